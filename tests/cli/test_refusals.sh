#!/bin/sh
# test_refusals.sh - what cannot work is refused at once, with code 2 and the word that helps, and leaves nothing
# behind.
set -u
exe=${MUSACODER_EXE:-build/musacoder}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
fail() { echo "$*"; bad=1; }

# refuses WORDS ARGUMENT..
refuses() {
    words=$1
    shift
    timeout 60 "$exe" "$@" >"$dir/text" 2>&1
    code=$?
    [ $code = 2 ] || fail "'$*' ends with $code: $(cat "$dir/text")"
    grep -q -- "$words" "$dir/text" || fail "'$*' does not say '$words': $(cat "$dir/text")"
}

stream="synth --records 4 --verify-share 0 --out $dir/s"
refuses "no operator or family 'activations'" $stream --ops activations
refuses "dialect" $stream --dialect opencl
refuses "there are 'synth mine'" synth mined "$dir"
refuses "'max-program' wants a number 0 to" $stream --max-program=-1
[ ! -e "$dir/s" ] || fail "a refused stream leaves its folder"

mkdir "$dir/model" && ln -s model "$dir/same"
refuses "is the model's own folder" export --model "$dir/model" --out "$dir/same"

echo '{}' >"$dir/empty.jsonl"
for lr in -1 0 2; do
    refuses 'lr is' sft --model "$dir/no" --data "$dir/no" --out "$dir/o" --lr=$lr
    refuses 'lr is' rl --model "$dir/no" --prompts "$dir/no" --out "$dir/o" --lr=$lr
    refuses 'lr is' rft --model "$dir/no" --prompts "$dir/no" --out "$dir/o" --lr=$lr
    refuses 'lr is' run recipes/smoke.yaml --plan --set sft.lr=$lr
done
refuses 'wants a number' sft --model "$dir/no" --data "$dir/no" --out "$dir/o" --lr=nan
refuses 'no' sft --model "$dir/no" --data "$dir/empty.jsonl" --out "$dir/o"
refuses 'no' rl --model "$dir/no" --prompts "$dir/empty.jsonl" --out "$dir/o"
refuses 'no' rft --model "$dir/no" --prompts "$dir/empty.jsonl" --out "$dir/o"
refuses "no file '$dir/no'" rft --model "$dir/no" --prompts "$dir/no" --data "$dir/no" --out "$dir/o"
[ ! -e "$dir/o/options.json" ] || fail "a start that failed claims its folder"

# an ablation typed with a blank would compare a thing with itself
for switch in mirrorpop bdr primeecho; do
    refuses "say --no-$switch or --$switch=false" rl --model "$dir/no" --prompts "$dir/no" \
        --out "$dir/o" --$switch false
done
for command in agent export generate init logits rft rl serve sft version worker doctor owner 'synth teach'; do
    refuses "unexpected 'stray'" $command stray
done
refuses "unexpected 'stray'" run recipes/smoke.yaml stray
refuses "unexpected 'stray'" tokenize a stray
refuses "unexpected argument 'stray'" bench stray --tasks "$dir" --out "$dir/o"

refuses "no queue at '$dir/typo/q'; start 'musacoder serve" worker --queue "$dir/typo/q"
[ ! -e "$dir/typo" ] || fail "a worker makes the folder of a queue that is not there"
refuses 'hexadecimal' eval --secret zz --task docs/example/task.py docs/example/kernel.py

refuses 'wants a number 0 to 1, not 1.5' run recipes/smoke.yaml --plan --set rl_single.top-p=1.5
for set in sft.steps=-5 rl_single.group=0 synth.tasks=0 init.layers=0 rft.samples=-1; do
    refuses "at least 1\|wants a number 1 to" run recipes/smoke.yaml --plan --set $set
done

echo '__global__ void k() {}' >"$dir/k.cu"
refuses 'no MUSA device; there are' translate --profile nosuch "$dir/k.cu"
! grep -qi 'h100' "$dir/text" || fail "NVIDIA's devices among MUSA's: $(cat "$dir/text")"

# a run's plan: what a stage lacks is said before anything is made, and the whole recipe is shown
printf 'name: a\nstages: sft\n' >"$dir/alone.yaml"
refuses "stage 'sft' has no model to start from: name 'init' before it" run "$dir/alone.yaml" --plan
"$exe" run recipes/smoke.yaml --plan >"$dir/plan" || fail "no plan of recipes/smoke.yaml"
for key in name seed stages; do
    grep -q "^  \"$key\":" "$dir/plan" || fail "the plan lacks the recipe's $key"
done

# a lack of this machine has one remedy, and it stands behind the arrow
"$exe" doctor >"$dir/text" || true
! grep -E '^(ok|note|bad) .*; (install|use|set|run) ' "$dir/text" || fail "doctor gives a remedy beside the remedy"

# Ctrl-C while a stream is drawn: code of a stop, and the same command gives the bytes of a straight run
big="synth --records 3000 --shard-size 100 --verify-share 0 --max-elements 256"
setsid "$exe" $big --out "$dir/cut" >"$dir/text" 2>&1 &
pid=$!
for i in $(seq 600); do [ -e "$dir/cut/stats/00001.json" ] && break; sleep 0.05; done
kill -INT $pid
wait $pid
code=$?
[ $code != 0 ] || fail "an interrupted stream ends with 0: $(cat "$dir/text")"
grep -q 'the same command continues' "$dir/text" || fail "no word of how to go on: $(cat "$dir/text")"
[ ! -e "$dir/cut/stats/00029.json" ] || fail "the stream was not interrupted"
"$exe" $big --out "$dir/cut" >/dev/null 2>&1 &&
    "$exe" $big --out "$dir/straight" >/dev/null 2>&1 || fail "it does not continue"
diff -r "$dir/cut/data" "$dir/straight/data" >/dev/null || fail "a continued stream has other bytes"
exit $bad
