# seeds.sh - what compare_seeds.sh and ablations.sh share; each sources it with its own arguments.
# OUT SEED... [--jobs N] [-- WORD...]: out, jobs and seeds; WORDs stay in rest. A run gets 'each' of the cores.
usage() { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
[ $# -ge 2 ] || usage
out=$1 jobs=1 seeds=()
shift
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    case $1 in
    --jobs) [ $# -ge 2 ] || usage; jobs=$2; shift 2 ;;
    *[!0-9]*) usage ;;
    *) seeds+=("$1"); shift ;;
    esac
done
[ $# -eq 0 ] || shift
rest=("$@")
[ ${#seeds[@]} -gt 0 ] || usage
each=$(( $(nproc) / jobs > 0 ? $(nproc) / jobs : 1 ))
export OMP_NUM_THREADS=$each
musacoder=${MUSACODER:-build/musacoder}
mkdir -p "$out"

# begin FROM TO STAGE...: TO begins with what FROM has of these stages; their markers let 'run' skip them
begin() {
    local from=$out/$1 to=$out/$2 s
    [ ! -d "$to" ] || return 0
    shift 2
    mkdir -p "$to.part/stages" "$to.part/bench"
    cp "$from/.musacoder" "$to.part/" 2> /dev/null || true
    for s in "$@"; do
        cp -r "$from/$([ "$s" = synth ] && echo data || echo "$s")" "$to.part/"
        cp "$from/stages/"{,bench_}"$s.json" "$to.part/stages/" 2> /dev/null || true
        [ ! -d "$from/bench/$s" ] || cp -r "$from/bench/$s" "$to.part/bench/"
    done
    mv "$to.part" "$to"
}

# at most 'jobs' at once; the first failure is the script's, after the others have ended
pool() {
    local failed=0
    for work in "$@"; do
        while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n || failed=1; done
        $work &
    done
    while [ -n "$(jobs -p)" ]; do wait -n || failed=1; [ -n "$(jobs -rp)" ] || break; done
    wait || failed=1
    return $failed
}
