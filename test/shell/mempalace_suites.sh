#!/bin/bash
# mempalace_suites.sh PROGRAM [sample] - MemPalace's own tests with Lode's backend, beside the same with its Chroma backend in the same run; `make
# test-mempalace`. What passes there must pass here, but for the tests that bindings/python/tests/mempalace-differs.txt lists, with reasons. Everything
# is fetched once, into build/mempalace-suites; without the network it is skipped, and says so. LODE_MEMPALACE_VERSIONS names other versions than
# 3.4.0 and 3.11.0, the first and the newest with a registry of backends; LODE_MEMPALACE_TESTS some of the files of tests, and then nothing is said of
# listed tests that do not differ. First it compares what the tools say of drawers without wing or room; with `sample` that alone, of 3.11.0, where it
# is fetched already. What the tests printed stays in
# build/mempalace-suites/results. Ends with a table of the versions, and "N passed, N failed[, N skipped]".
set -u
. "$(dirname "$0")/../support/kit.sh"
. "$(dirname "$0")/../support/suites.sh"
begin mempalace-suites "$@"
export HOME="$user_home"
unset XDG_DATA_HOME
cd "$(dirname "$0")/../.." || exit 1
here=$PWD
to=$here/build/mempalace-suites
differs=$here/bindings/python/tests/mempalace-differs.txt
results=$to/results
versions=${LODE_MEMPALACE_VERSIONS:-3.4.0 3.11.0}
sample=${2:-}
if [ "$sample" = sample ]; then
  results=$tmp/results
  versions=3.11.0
fi
suites_sample=${LODE_MEMPALACE_TESTS:-}
mkdir -p "$results"
packages="chromadb==1.5.9 pyyaml huggingface_hub tokenizers numpy python-dateutil pytest==9.2.0 pytest-timeout==2.4.0 psutil hypothesis"
# the files of its tests that store something
files="mcp test_backend_conformance test_backends test_chroma_collection_lock test_cli test_closets test_collection_metric_invariant test_config
  test_convo_miner test_convo_miner_unit test_dedup test_embedding_wrapper test_empty_chromadb_results test_exporter test_fact_checker test_format_miner
  test_hallways test_hallways_pagination test_hnsw_capacity test_hybrid_candidate_union test_hybrid_search test_knowledge_graph test_layers test_mcp_server
  test_migrate test_migrate_wings test_miner test_miner_fts5_validation test_miner_jsonl_visibility test_palace test_palace_graph test_palace_graph_tunnels
  test_palace_locks test_repair test_save_hook_mines test_searcher test_sources test_sweeper test_sync"

# have VERSION: the package, and its tests, which are in its source package
have() {
  if [ "$sample" = sample ] && ! [ -f "$to/$1/installed" ]; then echo "make test-mempalace fetches it" > "$tmp/pip.log"; return 1; fi
  if ! [ -f "$to/venv/installed" ]; then
    python3 -m venv "$to/venv" > "$tmp/pip.log" 2>&1 || return 1
    # shellcheck disable=SC2086
    timeout 1800 "$to/venv/bin/pip" install --quiet $packages >> "$tmp/pip.log" 2>&1 && touch "$to/venv/installed" || return 1
  fi
  [ -f "$to/$1/installed" ] && return 0
  mkdir -p "$to/$1/source" "$tmp/$1"
  timeout 600 "$to/venv/bin/pip" install --quiet --no-deps --upgrade --target "$to/$1/package" "mempalace==$1" > "$tmp/pip.log" 2>&1 &&
    timeout 600 "$to/venv/bin/pip" download --quiet --no-deps --no-build-isolation --no-binary :all: -d "$tmp/$1" "mempalace==$1" >> "$tmp/pip.log" 2>&1 &&
    tar xzf "$tmp/$1"/*.tar.gz -C "$to/$1/source" --strip-components=1 && touch "$to/$1/installed"
}

# The package of this tree, with the entry point that its wheel would have
mkdir -p "$tmp/package/lode-0.dist-info"
cp -r bindings/python/lode "$tmp/package/"
python3 bindings/python/abi.py include/lode.h > "$tmp/package/lode/_abi.py" || exit 1
printf 'Metadata-Version: 2.1\nName: lode\nVersion: 0\n' > "$tmp/package/lode-0.dist-info/METADATA"
printf '[mempalace.backends]\nlode = lode.mempalace:LodeBackend\n' > "$tmp/package/lode-0.dist-info/entry_points.txt"

# use VERSION: MemPalace takes what PYTHONPATH names out of the path, so the packages are named in the environment itself
use() {
  paths=$("$to/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/lode-suites.pth
  printf '%s\n' "$tmp/package" "$to/$1/package" "$here/bindings/python/tests" > "$paths"
}
trap 'rm -rf "$tmp" "${paths:-$tmp/none}"' EXIT

# side VERSION BACKEND NAME: in a copy, because tests write beside themselves
side() {
  local folder=$tmp/$1.$3 tests=
  cp -r "$to/$1/source" "$folder"
  rm -rf "$folder/mempalace.egg-info"
  for file in ${LODE_MEMPALACE_TESTS:-$files}; do
    if [ -d "$folder/tests/$file" ]; then tests="$tests tests/$file"; elif [ -f "$folder/tests/$file.py" ]; then tests="$tests tests/$file.py"; fi
  done
  # shellcheck disable=SC2086
  (cd "$folder" && MEMPALACE_BACKEND=$2 LODE_LIBRARY=$here/build/release/liblode.so \
    ANONYMIZED_TELEMETRY=False PYTHONDONTWRITEBYTECODE=1 timeout 3000 "$to/venv/bin/python" -m pytest -p mempalace_suite -p no:cacheprovider -v --tb=short --timeout=300 $tests) \
    > "$results/$1.$3" 2>&1
}

# views VERSION: what the tools say of drawers without wing or room is the same with both
views() {
  for backend in chroma lode; do
    (cd "$tmp" && MEMPALACE_BACKEND=$backend LODE_LIBRARY=$here/build/release/liblode.so \
      ANONYMIZED_TELEMETRY=False PYTHONDONTWRITEBYTECODE=1 timeout 300 "$to/venv/bin/python" "$here/bindings/python/tests/palace_views.py") \
      > "$results/$1.views.$backend" 2> "$tmp/err" || bad "$1: the views of a palace with $backend: $(tail -n 1 "$tmp/err")"
  done
  if [ -s "$results/$1.views.lode" ] && cmp -s "$results/$1.views.chroma" "$results/$1.views.lode"; then ok
  else bad "$1: the views differ: $(diff "$results/$1.views.chroma" "$results/$1.views.lode")"; fi
}

for version in $versions; do
  if ! command -v python3 > /dev/null || ! have "$version"; then
    skip "MemPalace $version: it is not there ($(tail -n 1 "$tmp/pip.log" 2> /dev/null))"
    continue
  fi
  use "$version"
  views "$version"
  [ "$sample" != sample ] || continue
  side "$version" chroma theirs
  side "$version" lode lode
  compare "$version"
done
summary
finish
