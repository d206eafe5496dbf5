#!/bin/bash
# run.sh - what the Python binding costs, written to bench/PYTHON.md; see bench.py. PREPARE=1 only makes the stores.
set -eu
cd "$(dirname "$0")/../.."
work=build/bench/python
mkdir -p "$work/package"
cp -r bindings/python/lode "$work/package/"
${PYTHON:-python3} bindings/python/abi.py include/lode.h >"$work/package/lode/_abi.py"
PYTHONPATH=$work/package LODE_LIBRARY=$PWD/build/release/liblode.so exec ${PYTHON:-python3} bench/python/bench.py "$work" build/release/bench_binding bench/PYTHON.md
