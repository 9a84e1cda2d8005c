#!/bin/sh
# simt_on_gpu.sh - are the emulator's tests true on a GPU? Compiles the checks of tests/simt with nvcc and runs them
# on the device: the same sources, the same expected values. Needs nvcc and an NVIDIA GPU. Prints one line per check.
# lab/simt_on_gpu.sh [NAME...] default: kernels waits ptx headers plain; BUILD=DIR only compiles into DIR, RUN=DIR
# only runs
arch=${ARCH:-sm_90}
dir=${BUILD:-${RUN:-$(mktemp -d)}}
bad=0
[ -n "$BUILD$RUN" ] || trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir"
for name in ${*:-kernels waits ptx headers plain}; do
    [ -f "tests/simt/$name.cu" ] || [ -n "$RUN" ] || continue
    if [ -z "$RUN" ]; then
        {
            echo "#include <cstdio>"
            echo "#include \"$name.cu\""
            cat <<'EOF'
int main()
{
    int bad = 0;
    for (const check *c = checks; c->name; c++) {
        int wrong = c->run();
        printf("%-16s %s (%d wrong, last error %s)\n", c->name, wrong ? "DIFFERS" : "agrees", wrong,
               cudaGetErrorString(cudaGetLastError()));
        bad += wrong != 0;
    }
    return bad != 0;
}
EOF
        } > "$dir/$name.main.cu"
        [ "$name" = plain ] && front="-include litetorch/include/litetorch/ptx_plain.h" || front=
        nvcc -std=c++17 -w -arch="$arch" --extended-lambda -DVOLATILE_WAITS -Itests/simt $front -o "$dir/$name" \
            "$dir/$name.main.cu" || bad=1
    fi
    [ -n "$BUILD" ] || timeout 60 "$dir/$name" || bad=1
done
exit $bad
