#!/bin/bash
# chroma_suites.sh PROGRAM [sample] - Chroma's own tests and those of libraries on Lode, beside the same on Chroma itself in the same run; `make
# test-chroma`. What passes there must pass here, but for the tests that test/clients/chroma-differs.txt lists with a reason, and those must
# differ. Then the answers of both servers to generated requests, and libraries on lode.chroma. It ends with a table of the parts, and
# "N passed, N failed[, N skipped]". Everything is fetched once, into build/chroma-suites; without the network it is skipped, and says so. With
# `sample` it is a few tests, where all is fetched already. What the tests printed stays in build/chroma-suites/results.
#   LODE_CHROMA_SOURCE, LODE_LLAMA_SOURCE, LODE_MEM0_SOURCE   checkouts of Chroma, llama_index and mem0, for the tests of Chroma's JavaScript client
#                           and of the libraries
#   LODE_CHROMA_PARTS       some of the parts below instead of all
#   LODE_CHROMA_TESTS       other tests of chromadb; then nothing is said of listed ones that do not differ
#   LODE_CHROMA_EXAMPLES    how many examples of each generated test (10)
#   LODE_CHROMA_SEEDS       other seeds of requests than 1, 2 and a fresh one
set -u
. "$(dirname "$0")/../support/kit.sh"
. "$(dirname "$0")/../support/suites.sh"
begin chroma-suites "$@"
export HOME="$user_home"
unset XDG_DATA_HOME
cd "$(dirname "$0")/../.." || exit 1
here=$PWD
to=$here/build/chroma-suites
differs=$here/test/clients/chroma-differs.txt
packages="chromadb==1.5.9 pytest==9.2.0 pytest-asyncio==1.5.0 pytest-timeout==2.4.0 hypothesis fastapi opentelemetry-instrumentation-fastapi psutil bcrypt
  langchain-chroma==1.1.0 langchain-tests==1.1.9 llama-index-vector-stores-chroma==0.6.0 mem0ai==2.2.1 autogen-ext[chromadb]==0.7.5 autogen-agentchat==0.7.5 crewai==1.15.30"
# Chroma's own tests need an older pytest than langchain's
older="pytest==8.3.5 pytest-asyncio==1.3.0 pytest-timeout==2.4.0 pluggy==1.5.0"
results=$to/results
if [ "${2:-}" = sample ]; then
  results=$tmp/results
  LODE_CHROMA_PARTS="http process"
  LODE_CHROMA_TESTS="chromadb/test/api/test_collection.py chromadb/test/api/test_types.py chromadb/test/api/test_limit_offset.py"
fi
mkdir -p "$to" "$results"

have_packages() {
  [ -f "$to/venv/installed" ] && return 0
  [ "${1:-}" != sample ] || { echo "make test-chroma fetches it" > "$tmp/pip.log"; return 1; }
  rm -rf "$to/venv"
  python3 -m venv "$to/venv" > "$tmp/pip.log" 2>&1 || return 1
  # shellcheck disable=SC2086
  timeout 1800 "$to/venv/bin/pip" install --quiet $packages >> "$tmp/pip.log" 2>&1 || return 1
  # shellcheck disable=SC2086
  timeout 600 "$to/venv/bin/pip" install --quiet --no-deps --target "$to/pytest8" $older >> "$tmp/pip.log" 2>&1 && touch "$to/venv/installed"
}
if ! command -v python3 > /dev/null || ! have_packages "${2:-}"; then
  skip "all of it: there is no chromadb with the libraries ($(tail -n 1 "$tmp/pip.log" 2> /dev/null))"
  finish
  exit
fi
python=$to/venv/bin/python
site=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
mkdir -p "$to/tests" && ln -sfn "$site/chromadb" "$to/tests/chromadb"
# chroma_tests PYTHONPATH OPTION...: pytest in a folder that has nothing but chromadb
chroma_tests() {
  local path=$1
  shift
  (cd "$to/tests" && PYTHONPATH=$to/pytest8:$here/bindings/python/tests${path:+:$path} PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 timeout 3600 "$python" -m pytest -p pytest_asyncio -p pytest_timeout \
    -p _hypothesis_pytestplugin -p no:cacheprovider -v --tb=line "$@")
}

# The package of this tree, for lode.chroma
mkdir -p "$tmp/package"
cp -r bindings/python/lode "$tmp/package/"
"$python" bindings/python/abi.py include/lode.h > "$tmp/package/lode/_abi.py" || exit 1
export LODE_LIBRARY="$here/build/release/liblode.so" ANONYMIZED_TELEMETRY=False PYTHONDONTWRITEBYTECODE=1
[ ! -f build/models/minilm.pack ] || export LODE_MODELS="$here/build/models"

# ---- Both servers

"$lode" serve --store "$tmp/store" --port 0 --allow-reset 2> "$tmp/log" > /dev/null &
server=$!
wait_ready "$tmp/log"
chroma_port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
printf 'port: %s\nlisten_address: "127.0.0.1"\npersist_path: "%s"\nallow_reset: true\n' "$chroma_port" "$tmp/chroma" > "$tmp/chroma.yaml"
"$to/venv/bin/chroma" run "$tmp/chroma.yaml" > "$tmp/chroma.log" 2>&1 &
chroma=$!
trap 'kill -9 $server $chroma 2> /dev/null; rm -rf "$tmp"' EXIT
for _ in $(seq 100); do curl -s -o /dev/null "http://127.0.0.1:$chroma_port/api/v2/heartbeat" && break || sleep 0.2; done

# ---- Suites

suite="chromadb/test/test_api.py chromadb/test/test_client.py chromadb/test/api chromadb/test/configurations chromadb/test/client/test_database_tenant.py
  chromadb/test/client/test_multiple_clients_concurrency.py chromadb/test/test_multithreaded.py"
# those of property/ that are about what a server answers: not the persistence of Chroma's own files
property="chromadb/test/property/test_add.py chromadb/test/property/test_base64_conversion.py chromadb/test/property/test_client_url.py
  chromadb/test/property/test_collections.py chromadb/test/property/test_collections_with_database_tenant.py
  chromadb/test/property/test_collections_with_database_tenant_overwrite.py chromadb/test/property/test_embeddings.py
  chromadb/test/property/test_filtering.py chromadb/test/property/test_schema.py"
if [ -n "${LODE_CHROMA_TESTS:-}" ]; then suite=$LODE_CHROMA_TESTS property=$LODE_CHROMA_TESTS suites_sample=1; fi
over_http() { # NAME PORT TEST...
  local name=$1 at=$2
  shift 2
  CHROMA_INTEGRATION_TEST_ONLY=1 CHROMA_SERVER_HOST=127.0.0.1 CHROMA_SERVER_HTTP_PORT=$at PROPERTY_TESTING_PRESET=fast chroma_tests "" --timeout=600 "$@" > "$results/$name" 2>&1
}
# both NAME TEST...: the same tests on both servers
both() {
  local name=$1
  shift
  over_http "$name.theirs" "$chroma_port" "$@"
  over_http "$name.lode" "$port" "$@"
  compare "$name"
}
in_process() { # NAME PYTHONPATH OPTION...
  local name=$1 path=$2
  shift 2
  CHROMA_RUST_BINDINGS_TEST_ONLY=1 PROPERTY_TESTING_PRESET=fast chroma_tests "$path" --timeout=600 --continue-on-collection-errors "$@" > "$results/$name" 2>&1
}
# in_both NAME TEST...: the same tests on chromadb and on lode.chroma, in this process
in_both() {
  local name=$1
  shift
  in_process "$name.theirs" "" "$@"
  in_process "$name.lode" "$tmp/package" -p chromadb_suite "$@"
  compare "$name"
}

# library NAME FOLDER TESTS: a library's own tests on chromadb, then on lode.chroma
library() {
  in_library "$1.theirs" "" "$2" "$3"
  in_library "$1.lode" "$tmp/package:$here/bindings/python/tests" "$2" "$3" -p chromadb_installed
  compare "$1"
}
in_library() { # NAME PYTHONPATH FOLDER TESTS OPTION...
  local name=$1 path=$2 folder=$3 tests=$4
  shift 4
  mkdir -p "$tmp/$name.folder" && cp -r "$folder/." "$tmp/$name.folder/" # tests write beside themselves
  (cd "$tmp/$name.folder" && PYTHONPATH=$path timeout 900 "$python" -m pytest -p no:cacheprovider -o addopts= -o asyncio_mode=auto -v --tb=line "$@" "$tests") > "$results/$name" 2>&1
}

# ---- Parts

# shellcheck disable=SC2086
part_http() { both http $suite; }
# shellcheck disable=SC2086
part_process() { in_both process $suite; }
# Generated sequences of calls, which take longest
# shellcheck disable=SC2086
part_property() { both property -p fewer_examples $property; }
# shellcheck disable=SC2086
part_property_process() { in_both property_process -p fewer_examples $property; }

part_langchain() { # its own tests are in its source package
  if [ -d "$to/langchain" ] || { mkdir -p "$tmp/sdist" && "$to/venv/bin/pip" download --quiet --no-deps --no-binary langchain-chroma -d "$tmp/sdist" langchain-chroma==1.1.0 > "$tmp/pip.log" 2>&1 &&
    mkdir "$to/langchain" && tar xzf "$tmp"/sdist/*.tar.gz -C "$to/langchain" --strip-components=1; }; then
    library langchain "$to/langchain" tests
  else
    skip "langchain-chroma's tests: its source package cannot be had"
  fi
}
part_llama() {
  local folder=${LODE_LLAMA_SOURCE:-}/llama-index-integrations/vector_stores/llama-index-vector-stores-chroma
  if [ -d "$folder/tests" ]; then library llama-index "$folder" tests
  else skip "llama-index's tests: LODE_LLAMA_SOURCE names no checkout of llama_index"; fi
}
part_mem0() {
  if [ -f "${LODE_MEM0_SOURCE:-}/tests/vector_stores/test_chroma.py" ]; then library mem0 "$LODE_MEM0_SOURCE" tests/vector_stores/test_chroma.py
  else skip "mem0's tests: LODE_MEM0_SOURCE names no checkout of mem0"; fi
}
part_libraries() {
  tally libraries env PYTHONPATH="$tmp/package" "$python" bindings/python/tests/libraries.py
  tally libraries-http env PYTHONPATH="$tmp/package" "$python" bindings/python/tests/libraries.py "127.0.0.1:$port"
}
part_requests() {
  for seed in ${LODE_CHROMA_SEEDS:-1 2 "$RANDOM"}; do
    "$python" bindings/python/tests/openapi_requests.py "http://127.0.0.1:$chroma_port" "http://127.0.0.1:$port" --seed $seed --show > "$results/requests.$seed" 2>&1 && ok ||
      { cat "$results/requests.$seed"; bad "$(tail -n 1 "$results/requests.$seed")"; }
    tail -n 1 "$results/requests.$seed" >>  "$tmp/summary.requests"
  done
}

part_javascript() {
  local js=${LODE_CHROMA_SOURCE:-}/clients/new-js/packages/chromadb
  if ! [ -d "$js/test" ] || ! command -v npm > /dev/null; then
    skip "the JavaScript client's tests: LODE_CHROMA_SOURCE names no checkout of Chroma's repository"
    return
  fi
  mkdir -p "$to/js" && cp -r "$js/src" "$js/test" "$to/js/" && cp test/clients/jest/package.json test/clients/jest/jest.config.cjs "$to/js/"
  [ -d "$to/js/node_modules/jest" ] || (cd "$to/js" && timeout 900 npm install --ignore-scripts --no-audit --no-fund --legacy-peer-deps) > "$tmp/npm.log" 2>&1
  javascript "$chroma_port" > "$results/javascript.theirs"
  javascript "$port" > "$results/javascript.lode"
  [ -s "$results/javascript.theirs" ] || bad "the JavaScript tests did not run: $(tail -n 3 "$tmp/npm.log" 2> /dev/null)"
  differences javascript "$results/javascript.theirs" "$results/javascript.lode" "$(wc -l < "$results/javascript.theirs")"
}
javascript() { # PORT: "NAME of a test that passes"
  (cd "$to/js" && DEFAULT_CHROMA_INSTANCE_URL=http://127.0.0.1:$1 DEFAULT_CHROMA_INSTANCE_HOST=127.0.0.1 DEFAULT_CHROMA_INSTANCE_PORT=$1 timeout 900 \
    npx jest --runInBand --verbose --config jest.config.cjs 2>&1) | sed -n 's/^ *✓ \(.*[^)]\)\( ([0-9]* m\{0,1\}s)\)\{0,1\}$/\1/p' | sort
}

for part in ${LODE_CHROMA_PARTS:-http process langchain llama mem0 libraries requests javascript property property_process}; do "part_$part"; done
while read -r test; do grep -qF -- "${test##*::}" docs/SERVE.md || bad "docs/SERVE.md does not name what differs: $test"; done < <(listed http; listed javascript)
summary
[ ! -f "$tmp/summary.requests" ] || cat "$tmp/summary.requests"
finish
