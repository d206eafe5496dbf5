#!/bin/bash
# serve.sh PROGRAM - `lode serve` over the wire, with curl and raw sockets: answers of Chroma's API as transcripts, lode's own API,
# guards, caps, hostile clients, a worker that is killed, an orderly stop. Ends with "N passed, N failed[, N skipped]".
set -u
. "$(dirname "$0")/../support/kit.sh"
lode=$(realpath "$1")
if ! command -v curl > /dev/null; then
  echo "skipped: curl is not installed"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/lode-serve-XXXXXX")
trap 'test -n "$server" && kill -9 "$server" 2> /dev/null; rm -rf "$work"' EXIT

# start NAME FLAGS...: a server on a free port; sets server, port, base. SIGHUP is as usual for it, also where the tests run under nohup
hangup=--default-signal=HUP
start() {
  local log="$work/$1.log"
  store="$work/$1"
  shift
  : > "$log"
  env $hangup "$lode" serve --store "$store" --port 0 --timeout 600 "$@" 2> "$log" > /dev/null &
  server=$!
  wait_ready "$log"
  base="http://127.0.0.1:$port"
  serverlog=$log
}
# stop [SIGNAL]: SIGTERM, or another, and it must end well
stop() {
  kill -"${1:-TERM}" "$server"
  wait "$server"
  local code=$?
  server=
  [ $code = 0 ] && ok || bad "the server ended with $code: $(tail -3 "$serverlog")"
  ! grep "Landlock on for new threads only" "$serverlog" && ok || bad "threads were started before the sandbox"
}

# want NAME STATUS PATTERN CURL-ARGS...: status and a grep -E pattern of the body
want() {
  local name=$1 status=$2 pattern=$3
  shift 3
  local got
  got=$(curl -s -m $((60 * patience)) -o "$work/body" -w '%{http_code}' "$@")
  if [ "$got" = "$status" ] && { [ -z "$pattern" ] || grep -qE -- "$pattern" "$work/body"; }; then ok
  else bad "$name: status $got, wanted $status; body $(head -c 300 "$work/body"), wanted $pattern"; fi
}
field() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" "$work/body" | head -1; }

# ---- Chroma's API ----

start one --allow-reset --wait 2
T=$base/api/v2/tenants
D=$T/default_tenant/databases/default_database
want heartbeat 200 '^\{"nanosecond heartbeat":[0-9]{19}\}$' "$base/api/v2/heartbeat"
want root 200 'nanosecond' "$base/api/v2"
want version 200 '^"1.0.0"$' "$base/api/v2/version"
want healthcheck 200 '"is_executor_ready":true' "$base/api/v2/healthcheck"
want preflight 200 '"supports_base64_encoding":true' "$base/api/v2/pre-flight-checks"
want identity 200 '"tenant":"default_tenant"' "$base/api/v2/auth/identity"
want 'the first API' 410 Unimplemented "$base/api/v1/collections"
want 'no route' 404 'nothing at this path' "$base/api/v2/nothing"
want 'another method' 405 'takes GET"' -X PUT "$base/api/v2/heartbeat"
want 'wrong method' 405 '' -X PATCH "$base/api/v2/version"
want 'short tenant' 400 InvalidArgumentError "$T" -d '{"name":"t1"}'
want 'no tenant' 404 'Tenant \[nope\] not found' "$T/nope"
want tenant 200 '^\{\}$' "$T" -d '{"name":"tenant-a"}'
want 'tenant again' 409 'already exists' "$T" -d '{"name":"tenant-a"}'
want 'tenant is there' 200 '^\{"name":"tenant-a","resource_name":null\}$' "$T/tenant-a"
want database 200 '^\{\}$' "$T/tenant-a/databases" -d '{"name":"db_one"}'
want 'database again' 409 'Database \[db_one\] already exists' "$T/tenant-a/databases" -d '{"name":"db_one"}'
want 'databases' 200 '^\[\{"id":"[0-9a-f-]{36}","name":"db_one","tenant":"tenant-a"\}\]$' "$T/tenant-a/databases?limit=100&offset=0"
# A record of the registry without its name: the others are listed
want 'another tenant' 200 '^\{\}$' "$T" -d '{"name":"tenant-d"}'
for name in d_one d_two d_three; do want "database $name" 200 '^\{\}$' "$T/tenant-d/databases" -d "{\"name\":\"$name\"}"; done
for name in d_one d_two; do
  record=$("$lode" db get .chroma --where "{\"name\":\"$name\"}" --include none --json --store "$store" | sed 's/}$/,"metadata":{"name":null}}/')
  echo "$record" | "$lode" db update .chroma --store "$store" > /dev/null || bad "the record of $name cannot be damaged"
done
want 'databases beside damaged ones' 200 '^\[\{"id":"[0-9a-f-]{36}","name":"d_three","tenant":"tenant-d"\}\]$' "$T/tenant-d/databases"
want 'default database' 200 '"id":"00000000-0000-0000-0000-000000000000"' "$D"
want 'no database' 404 'Are you sure it exists' "$T/tenant-a/databases/nope"
want 'collection in none' 400 'does not exist' "$T/tenant-a/databases/nope/collections" -d '{"name":"abc"}'
want 'a body is looked at before the name of the database' 422 'ChromaError' "$T/tenant-a/databases/x/collections" -d '{"name":7}'
want 'a short name of a database' 400 'at least 3' "$T/tenant-a/databases/x/collections" -d '{"name":"abc"}'
want 'an empty limit' 400 'empty' "$D/collections?limit="
want 'short name' 400 '3-512 characters' "$D/collections" -d '{"name":"a","configuration":{},"get_or_create":false}'
want 'two dots' 400 '3-512 characters' "$D/collections" -d '{"name":"a..b"}'
want 'an address as a name' 400 '3-512 characters' "$D/collections" -d '{"name":"10.0.0.1"}'
want 'wrong space' 422 ChromaError "$D/collections" -d '{"name":"bad","configuration":{"hnsw":{"space":"round"}}}'
want 'unknown field' 422 ChromaError "$D/collections" -d '{"name":"bad","configuration":{"hnsw":{"shape":1}}}'
want create 200 '"space":"cosine","ef_construction":50' "$D/collections" -d '{"name":"first","configuration":{"hnsw":{"space":"cosine","ef_construction":50}},"metadata":{"a":1}}'
want 'create again' 409 'Collection \[first\] already exists' "$D/collections" -d '{"name":"first"}'
want 'create or get' 200 '"metadata":\{"a":1\}' "$D/collections" -d '{"name":"first","get_or_create":true,"metadata":null,"configuration":null,"schema":null}'
id=$(field id)
want 'by id' 200 '"name":"first"' "$D/collections/by-id/$id"
# what lode_reembed() makes aside is not Chroma's
"$lode" db create 'first~reembed' --store "$store" > /dev/null
want 'list without it' 200 '^\[\{[^{]*"name":"first"' "$D/collections"
check "NAME~reembed is listed: $(curl -s "$D/collections")" [ "$(curl -s "$D/collections" | grep -c '~reembed')" = 0 ]
want 'count without it' 200 '^1$' "$D/collections_count"
"$lode" db drop 'first~reembed' --yes --store "$store" > /dev/null
want 'a uuid is no name' 404 'does not exist' "$D/collections/$id"
want 'the id alone counts, as with Chroma' 200 '^0$' "$T/tenant-a/databases/db_one/collections/$id/count"
want 'no uuid' 400 'not a valid UUID' "$D/collections/first/count"
want 'a uuid of nobody' 404 'does not exist' "$D/collections/00000000-0000-0000-0000-000000000000/count"
want 'a short database' 400 'at least 3' "$T/tenant-a/databases/ab/collections"
want 'empty metadata' 400 'cannot be empty' "$D/collections" -d '{"name":"bad","metadata":{}}'
want 'read level' 400 'read_level' "$D/collections/$id/count?read_level=all"
C=$D/collections/$id
want add 201 '^\{\}$' "$C/add" -d '{"ids":["a","b","c"],"embeddings":["AACAPwAAAAA=",[0,1],[1,1]],"documents":["hello world",null,"moon"],"metadatas":[{"k":1,"big":9007199254740993},{"k":2,"tags":["x","y"]},null]}'
want 'add is idempotent' 201 '' "$C/add" -d '{"ids":["a"],"embeddings":[[9,9]]}'
want 'bad base64' 400 base64 "$C/add" -d '{"ids":["z"],"embeddings":["AACA*wAAAAA="]}'
want 'wrong dimension' 400 'InvalidArgumentError.*dimension' "$C/add" -d '{"ids":["z"],"embeddings":[[1,2,3]]}'
want 'too large a number' 400 InvalidArgumentError "$C/add" -d '{"ids":["z"],"embeddings":[[1e39,2]]}'
want 'null in metadata' 422 ChromaError "$C/add" -d '{"ids":["z"],"embeddings":[[1,2]],"metadatas":[{"k":null}]}'
want 'lists of two lengths' 400 'as many' "$C/add" -d '{"ids":["z"],"embeddings":[[1,2],[1,2]]}'
want 'no ids' 422 ids "$C/add" -d '{"embeddings":[[1,2]]}'
want 'not JSON' 400 InvalidArgumentError "$C/add" -d '{"ids":'
want count 200 '^3$' "$C/count?read_level=index_and_wal"
want get 200 '^\{"ids":\["a","b","c"\],"embeddings":null,"documents":\["hello world",null,"moon"\],"uris":null,"metadatas":\[\{"k":1,"big":9007199254740993\},\{"k":2,"tags":\["x","y"\]\},null\],"include":\["documents","metadatas"\]\}$' "$C/get" -d '{}'
want 'get by ids' 200 '^\{"ids":\["a","c"\],"embeddings":\[\[1.0,0.0\],\[1.0,1.0\]\],"documents":null,"uris":null,"metadatas":null,"include":\["embeddings"\]\}$' "$C/get" -d '{"ids":["c","zz","a","c"],"include":["embeddings"]}'
want query 200 '^\{"ids":\[\["a","c"\]\],"embeddings":null,"documents":null,"uris":null,"metadatas":null,"distances":\[\[0.0,0.29289323\]\],"include":\["distances"\]\}$' "$C/query" -d '{"query_embeddings":[[2,0]],"n_results":2,"include":["distances"]}'
want 'n_results 0' 200 '^\{"ids":\[\[\]\]' "$C/query" -d '{"query_embeddings":[[2,0]],"n_results":0}'
want 'unknown ids' 200 '^\{"ids":\[\["b"\]\]' "$C/query" -d '{"query_embeddings":[[2,0]],"ids":["nobody","b"]}'
want 'query of base64' 422 ChromaError "$C/query" -d '{"query_embeddings":["AACAPwAAAAA="]}'
want 'too many results' 400 'the most' "$C/query" -d '{"query_embeddings":[[2,0]],"n_results":100000000}'
want 'unknown operator' 400 'Invalid where clause: unknown operator .*near' "$C/get" -d '{"where":{"k":{"$near":1}}}'
want 'two keys' 400 'Invalid where clause' "$C/get" -d '{"where":{"k":1,"l":2}}'
want 'empty where' 400 'Invalid where clause' "$C/get" -d '{"where":{}}'
want 'empty list' 400 'Invalid where clause' "$C/get" -d '{"where":{"k":{"$in":[]}}}'
want 'mixed list' 400 'Invalid where clause' "$C/get" -d '{"where":{"k":{"$in":[1,"a"]}}}'
want 'update' 200 '^\{\}$' "$C/update" -d '{"ids":["a","nobody"],"metadatas":[{"k":null,"n":2.5},{}],"uris":["u",null]}'
want 'updated' 200 '"uris":\["u"\],"metadatas":\[\{"big":9007199254740993,"n":2.5\}\]' "$C/get" -d '{"ids":["a"],"include":["metadatas","uris"]}'
want upsert 200 '^\{\}$' "$C/upsert" -d '{"ids":["a","d"],"embeddings":[[1,0],[0,2]],"documents":["new","d"]}'
want 'deletes nothing' 200 '^\{"deleted":0\}$' "$C/delete" -d '{}'
want 'deletes no ids' 400 'ids or where must be' "$C/delete" -d '{"ids":[]}'
want 'include of numbers' 400 'include' "$C/get" -d '{"include":[1]}'
want 'counts ids' 200 '^\{"deleted":1\}$' "$C/delete" -d '{"ids":["nobody"]}'
want 'by filter' 200 '^\{"deleted":1\}$' "$C/delete" -d '{"where":{"k":2}}'
want 'with a limit' 200 '^\{"deleted":1\}$' "$C/delete" -d '{"where_document":{"$regex":"."},"limit":1}'
want 'what is left' 200 '^2$' "$C/count"
want 'index status' 200 '"total_ops":2' "$C/indexing_status"
want fork 501 'unsupported' "$C/fork" -d '{"new_name":"forked"}'
want 'fork count' 501 'unsupported' "$C/fork_count"
want search 501 '' "$C/search" -d '{"searches":[]}'
want 'a search of an unknown level' 422 'read_level' "$C/search" -d '{"searches":[],"read_level":"x"}'
want 'a search of an object for a level' 422 'read_level' "$C/search" -d '{"searches":[],"read_level":{"x":1}}'
want 'a search of no level' 400 'read_level' "$C/search" -d '{"searches":[],"read_level":["index_only"]}'
want 'neither true nor false' 422 'get_or_create' "$D/collections" -d '{"name":"bad","get_or_create":null}'
want 'a type before a value' 422 'keys' "$D/collections" -d '{"name":"a/b","schema":{"defaults":{}}}'
want 'attach a function' 501 'functions are unsupported' "$C/functions/attach" -d '{"name":"f","function_id":"record_counter","output_collection":"o","params":null}'
want 'an attached function' 404 'function not found' "$C/functions/f"
want 'detach a function' 501 'functions are unsupported' "$C/attached_functions/f/detach" -d '{"delete_output":false}'
want rename 200 '^\{\}$' -X PUT "$C" -d '{"new_name":"renamed","new_metadata":{"z":1},"new_configuration":{"hnsw":{"ef_search":200}}}'
want renamed 200 '"ef_search":200.*"metadata":\{"z":1\}' "$D/collections/renamed"
want 'list' 200 '"name":"renamed"' "$D/collections?limit=1&offset=0"
want 'count collections' 200 '^1$' "$D/collections_count"
want drop 200 '^\{\}$' -X DELETE "$D/collections/renamed"
want 'dropped' 404 'does not exist' "$C/count"
want 'a name with a slash' 200 '^\{\}$' "$T" -d '{"name":"x/y z"}'
want 'its path' 200 '"name":"x/y z"' "$T/x%2Fy%20z"
want 'a database with a slash' 400 '3-512 characters' "$T/tenant-a/databases" -d '{"name":"x/y z"}'
want 'resource name' 200 '^\{\}$' -X PATCH "$T/tenant-a" -d '{"resource_name":"r"}'
want 'bad escape' 400 'percent' "$T/tenant-a/databases/x%2"
want 'NUL in a name' 400 'percent' "$T/a%00b"

# ---- Schemas ----

vector() { # the schema's vector index, in both places where clients write it
  echo "{\"defaults\":{\"float_list\":{\"vector_index\":{\"enabled\":false,\"config\":$1}}},\"keys\":{\"#embedding\":{\"float_list\":{\"vector_index\":{\"enabled\":true,\"config\":$1}}}}}"
}
made() { echo "{\"name\":\"$1\",\"schema\":$2}"; }
want 'cosine by schema' 200 '"hnsw":\{"space":"cosine","ef_construction":77.*"embedding_function":\{"type":"known","name":"mine".*"bool_inverted_index"' "$D/collections" \
  -d "$(made by-schema "$(vector '{"space":"cosine","hnsw":{"ef_construction":77},"embedding_function":{"type":"known","name":"mine","config":{}}}')")"
S=$D/collections/$(field id)
want 'records' 201 '' "$S/add" -d '{"ids":["near","far"],"embeddings":[[9,9],[1,0]]}'
want 'are compared by it' 200 '^\{"ids":\[\["near","far"\]\]' "$S/query" -d '{"query_embeddings":[[1,1.2]]}'
want 'not its space' 422 'space of a collection cannot be changed' -X PUT "$S" -d '{"new_configuration":{"spann":{"space":"ip"}}}'
want 'shape before existence' 422 'new_metadata must be an object' -X PUT "$D/collections/00000000-0000-0000-0000-000000000000" -d '{"new_metadata":[]}'
want 'a number beyond 32 bits' 422 'n_results must be a number' "$S/query" -d '{"query_embeddings":[[1,1]],"n_results":9007199254740993}'
want 'a limit of 0 and a wrong filter' 400 '' "$S/delete" -d '{"where_document":{"$regex":"("},"limit":0}'
want 'its figures change' 200 '' -X PUT "$S" -d '{"new_configuration":{"hnsw":{"ef_search":31}}}'
want 'in both' 200 '"ef_search":31,.*"ef_search":31,.*"ef_search":31,' "$D/collections/by-schema"
want 'spann' 200 '"hnsw":\{"space":"ip","ef_construction":100.*"spann":null' "$D/collections" -d "$(made by-spann "$(vector '{"space":"ip","spann":{"search_nprobe":9}}')")"
want 'a schema of nothing' 200 '"#document":\{"string":\{"fts_index":\{"enabled":true' "$D/collections" -d "$(made plain-schema '{"defaults":{},"keys":{}}')"
want 'schema and configuration' 400 'Cannot set both' "$D/collections" -d "{\"name\":\"bad\",\"schema\":$(vector '{"space":"ip"}'),\"configuration\":{\"hnsw\":{\"space\":\"cosine\"}}}"
want 'two indexes' 400 'Multiple vector index' "$D/collections" -d '{"name":"bad","configuration":{"hnsw":{},"spann":{}}}'
want 'a sparse index' 400 'Sparse vector indexing' "$D/collections" -d "$(made bad '{"defaults":{},"keys":{"k":{"sparse_vector":{"sparse_vector_index":{"enabled":true,"config":{}}}}}}')"
want 'a key of encryption' 400 'encryption' "$D/collections" -d "$(made bad '{"defaults":{},"keys":{},"cmek":{"gcp":"x"}}')"
want 'a vector index elsewhere' 400 'only be enabled on #embedding' "$D/collections" -d "$(made bad '{"defaults":{},"keys":{"k":{"float_list":{"vector_index":{"enabled":true,"config":{}}}}}}')"
want 'another source' 400 'source from #document' "$D/collections" -d "$(made bad "$(vector '{"source_key":"k"}')")"
want 'half a schema' 422 'defaults' "$D/collections" -d "$(made bad '{"keys":{}}')"
want 'an index without enabled' 422 'enabled' "$D/collections" -d "$(made bad '{"defaults":{"int":{"int_inverted_index":{"config":{}}}},"keys":{}}')"
want 'unknown field in a schema' 422 'unknown field' "$D/collections" -d "$(made bad "$(vector '{"shape":1}')")"
want 'too small a figure' 400 'sync_threshold' "$D/collections" -d "$(made bad "$(vector '{"hnsw":{"sync_threshold":1}}')")"
off='{"enabled":false,"config":{}}' on='{"enabled":true,"config":{}}'
want 'disabled indexes' 200 '"k":\{"string":\{"string_inverted_index":\{"enabled":false' "$D/collections" \
  -d "$(made unindexed "{\"defaults\":{\"int\":{\"int_inverted_index\":$off}},\"keys\":{\"k\":{\"string\":{\"string_inverted_index\":$off}},\"n\":{\"int\":{\"int_inverted_index\":$on}},\"#document\":{\"string\":{\"fts_index\":$off}}}}")"
S=$D/collections/$(field id)
want 'records there' 201 '' "$S/add" -d '{"ids":["a"],"embeddings":[[1]],"documents":["text"],"metadatas":[{"k":"v","n":1,"m":2,"f":0.5}]}'
want 'a key that is not indexed' 400 'key .*k.* with type .Str' "$S/get" -d '{"where":{"k":"v"}}'
want 'deep in a filter' 400 'indexing is disabled' "$S/query" -d '{"query_embeddings":[[1]],"where":{"$and":[{"n":1},{"$or":[{"f":{"$gt":0.1}},{"m":{"$in":[2]}}]}]}}'
want 'nothing is deleted by it' 400 'indexing is disabled' "$S/delete" -d '{"where":{"m":2}}'
want 'text that is not indexed' 400 'full-text search' "$S/get" -d '{"where_document":{"$contains":"t"}}'
want 'a key of its own' 200 '"ids":\["a"\]' "$S/get" -d '{"where":{"$and":[{"n":1},{"f":0.5}]}}'
want 'the same key, another type' 200 '"ids":\[\]' "$S/get" -d '{"where":{"k":1.5}}'
want 'delete by ids with a limit' 400 'where clause is provided' "$S/delete" -d '{"ids":["a"],"limit":1}'
want 'lists of numbers' 200 '' "$S/update" -d '{"ids":["a"],"metadatas":[{"l":[1.5,2],"e":[],"t":[true,false]}]}'
want 'are of one kind' 200 '"l":\[1.5,2.0\],"t":\[true,false\]' "$S/get" -d '{}'
want 'lists of two kinds' 422 'one kind' "$S/update" -d '{"ids":["a"],"metadatas":[{"l":[1,"a"]}]}'
want 'reserved keys' 400 'may not' "$S/update" -d '{"ids":["a"],"metadatas":[{"$k":1}]}'
want 'nothing to add' 201 '' "$S/add" -d '{"ids":[],"embeddings":[]}'
want 'nothing to ask' 200 '^\{"ids":\[\],"embeddings":null,"documents":\[\]' "$S/query" -d '{"query_embeddings":[]}'
echo "{\"ids\":[\"z\"],\"embeddings\":[[$(seq -s, 1 70000)]]}" > "$work/large.json"
want 'too many numbers' 400 '70000 numbers: 1 to 65535' "$S/add" -d @"$work/large.json"
want 'batches that fit a body' 200 '"max_batch_size":5461,' "$base/api/v2/pre-flight-checks"
curl -sD "$work/head" -o /dev/null "$base/api/v2/tenants/none"
grep -qi '^chroma-trace-id: [^ ]' "$work/head" && ok || bad "an error without chroma-trace-id: $(cat "$work/head")"
want 'deleted at once' 200 '"deleted":1' "$S/delete" -d '{"ids":["a"]}'
want 'index status of nothing' 200 '"num_unindexed_ops":0,"num_indexed_ops":0,"total_ops":0' "$S/indexing_status"
want 'a query of deleted ids' 200 '^\{"ids":\[\[\]\]' "$S/query" -d '{"query_embeddings":[[1]],"ids":["a"]}'
for name in by-schema by-spann plain-schema unindexed; do want "drop $name" 200 '' -X DELETE "$D/collections/$name"; done
# Others delete what is asked for all the time: get_or_create never answers 404
for _ in 1 2 3 4; do (for _ in $(seq 40); do curl -s -o /dev/null -X DELETE "$D/collections/contended"; done) & done
for i in 1 2 3 4; do
  (for _ in $(seq 40); do curl -s -o /dev/null -w '%{http_code}\n' "$D/collections" -d '{"name":"contended","get_or_create":true}'; done) > "$work/codes.$i" &
  codes="${codes:-} $!"
done
wait $codes
sort "$work"/codes.? | uniq -c | tr -s ' ' > "$work/codes"
[ "$(cat "$work/codes")" = ' 160 200' ] && ok || bad "get_or_create while others delete: $(cat "$work/codes")"

# ---- lode's own API ----

L=$base/api/lode/v1
want 'operations' 200 '"path":"/api/lode/v1/db/query"' "$L"
want 'schema' 200 '"inputSchema"' "$L/db/query"
want 'no operation' 404 '"status":"NOT_FOUND"' "$L/db/fly" -d '{}'
# What is listed is served: each operation of the list takes a request, and none of its arguments names a file of the server's machine
curl -s "$L" > "$work/list"
for path in $(grep -o '"path":"/api/lode/v1/[^"]*"' "$work/list" | cut -d'"' -f4); do
  curl -s -m $((60 * patience)) "$base$path" -d '{"no such argument":1}' > "$work/body"
  grep -q 'no such argument' "$work/body" && ok || bad "$path is listed and does not take a request: $(head -c 200 "$work/body")"
done
for path in chroma/check db/backup db/export export/jsonl export/npy completion db/import setup serve; do
  grep -q "/v1/$path\"" "$work/list" && bad "$path is listed" || ok
  want "$path" 501 'command line' "$L/$path" -d '{}'
  want "schema of $path" 404 '' "$L/$path"
done
grep -q '"project"' "$work/list" && bad "an argument that names a file is listed" || ok
want 'files stay closed' 501 'command line' "$L/db/backup" -d '{"file":"/tmp/x"}'
want 'no index but in lode ui' 501 'command line' "$L/index" -d '{}'
want 'nor its schema' 404 'NOT_FOUND' "$L/index"
want 'no progress of a call that is not there' 404 'NOT_FOUND' "$L/progress/nobody"
want 'other projects stay closed' 501 'command line' "$L/search" -d '{"query":"x","project":"/tmp"}'
want 'the page' 200 '<title>Lode</title>' "$base/"
want 'add by lode' 200 '"written":1' "$L/db/add" -d '{"collection":"notes","create":true,"records":[{"id":"n","document":"a parser of tokens","embedding":[1,2]}]}'
want 'text search' 200 '"id":"n"' "$L/db/query" -d '{"collection":"notes","text":"parser"}'
want 'a map' 200 '"summary":\{"collection"' "$L/db/map" -d '{"collection":"notes"}'
want 'seen by chroma' 200 '"name":"notes"' "$D/collections/notes"
want 'a query is explained' 200 '"summary":{"results":1,"explain":{"steps":' "$L/db/query" -d '{"collection":"notes","text":"parser","explain":true}'
want 'bad argument' 400 '"status":"INVALID"' "$L/db/query" -d '{"collection":"notes","k":"ten"}'
want 'no collection' 404 'did you mean' "$L/db/count" -d '{"collection":"note"}'

# A model is a path or a paid service: a request may not name any it likes. The answer is the same for a path that is there, one that
# is not, and one whose FIFO would never answer
mkdir "$work/model"
mkfifo "$work/model/config.json"
workers=$(pgrep -P "$server")
for model in "$work/model" "$work/model/" "$work/nowhere/model" openai:text-embedding-3-small ollama:x bert:.. "$work/model@1/2/float" 'minilm/../x'; do
  want "model $model" 422 'may name the models' -m 10 "$L/embed" -d "{\"texts\":[\"a\"],\"model\":\"$model\"}"
  want "add with $model" 422 'may name the models' -m 10 "$L/db/add" -d "{\"collection\":\"notes\",\"embed\":true,\"model\":\"$model\",\"records\":[{\"id\":\"m\",\"document\":\"d\"}]}"
  want "upsert with $model" 422 'may name the models' -m 10 "$L/db/upsert" -d "{\"collection\":\"notes\",\"embed\":true,\"model\":\"$model\",\"records\":[{\"id\":\"m\",\"document\":\"d\"}]}"
  want "vectors by $model" 422 'may name the models' -m 10 "$L/db/embed" -d "{\"collection\":\"notes\",\"model\":\"$model\"}"
  want "a collection of $model" 422 'may name the models' -m 10 "$L/db/create" -d "{\"collection\":\"stamped\",\"embedder\":\"$model\",\"embedder_dim\":2}"
done
want 'arguments of the command line' 400 'url' "$L/embed" -d '{"texts":["a"],"url":"http://127.0.0.1:9"}'
want 'folders of models' 400 'models' "$L/embed" -d '{"texts":["a"],"models":"/tmp"}'
want 'an installed model' 200 '"model":"code@1/256/static"' "$L/embed" -d '{"texts":["a"],"model":"code"}'
want 'its identity' 200 '"dimension":256' "$L/embed" -d '{"texts":["a"],"model":"code@1/256/static"}'
want 'a label of a client' 200 '"created":true' "$L/db/create" -d '{"collection":"labelled","embedder":"my-own","embedder_dim":2}'
want 'an installed embedder' 200 '"created":true' "$L/db/create" -d '{"collection":"coded","embedder":"code"}'
want "the collection's own" 200 '"written":1' "$L/db/add" -d '{"collection":"coded","embed":true,"records":[{"id":"a","document":"read the file"}]}'
want 'its name' 200 '"written":1' "$L/db/add" -d '{"collection":"coded","embed":true,"model":"code@1/256/static","records":[{"id":"b","document":"write the file"}]}'
# The embedding function of Chroma's configuration is the client's: it is kept, and never opened here
want 'a function of Chroma' 200 "\"model_name\":\"$work/model\"" "$D/collections" -d "{\"name\":\"functional\",\"configuration\":{\"embedding_function\":{\"type\":\"known\",\"name\":\"openai\",\"config\":{\"model_name\":\"$work/model\"}}}}"
want 'is not a model' 200 '"written":1' -m 10 "$L/db/add" -d '{"collection":"functional","records":[{"id":"a","document":"read the file","embedding":[1,2]}]}'
want 'nor opened by a query' 200 '"id":"a"' -m 10 "$L/db/query" -d '{"collection":"functional","text":"read the file"}'
[ "$(pgrep -P "$server")" = "$workers" ] && ok || bad "the name of a model cost the worker"
for name in labelled coded functional; do want "drop $name" 200 '' "$L/db/drop" -d "{\"collection\":\"$name\"}"; done

# ---- Caps and hostile clients ----

want 'ready' 200 ready "$base/readyz"
want 'metrics' 200 'lode_http_requests_total\{route="chroma.add",status="201"\} 5' "$base/metrics"
want 'metrics of workers' 200 '^lode_worker_restarts_total 0$' "$base/metrics"
head -c 200000 /dev/zero | tr '\0' '[' > "$work/deep"
want 'JSON 200,000 deep' 400 InvalidArgumentError "$T" --data-binary "@$work/deep"
printf '{"where":' > "$work/or"
awk 'BEGIN { printf "{\"$or\":["; for (i = 0; i < 100000; i++) printf "%s{\"k\":%d}", i ? "," : "", i; printf "]}}" }' >> "$work/or"
want notes 200 '' "$D/collections/notes"
N=$D/collections/$(field id)
want 'a filter of 100,000 clauses' 200 '^\{"ids":\[\]' "$N/get" --data-binary "@$work/or"
want 'a large header' 431 '' -H "X-Large: $(head -c 100000 /dev/zero | tr '\0' x)" "$base/healthz"
want 'a path of 30,000 bytes' 404 '' "$base/$(head -c 30000 /dev/zero | tr '\0' x)"
want 'too large a body' 413 'max-body' -H 'Expect:' -H 'Content-Length: 999999999999' -X POST "$T"
want 'too many records' 413 'the most' "$N/add" --data-binary @- << EOF
{"embeddings":[],"ids":[$(awk 'BEGIN { for (i = 0; i <= 100000; i++) printf "%s\"%d\"", i ? "," : "", i }')]}
EOF
want 'another host' 403 'allow-host' -H 'Host: evil.example' "$base/api/v2/version"
want 'another origin' 403 'allow-origin' -H 'Origin: http://evil.example' "$base/api/v2/version"
want 'its own origin' 200 '' -H "Origin: $base" "$base/api/v2/version"
# Requests that a proxy may read otherwise
for twice in 'Host: localhost\r\nHost: evil.example' 'Host: a\r\nContent-Length: 2\r\nContent-Length: 99' 'Host: a\r\nContent-Length: 2\r\nTransfer-Encoding: chunked'; do
  exec 5<> "/dev/tcp/127.0.0.1/$port"
  printf "POST /api/v2/tenants HTTP/1.1\r\n$twice\r\n\r\n{}" >&5
  got=$(timeout $((10 * patience)) cat <&5)
  exec 5>&-
  case $got in 'HTTP/1.1 400'*'Connection: close'*) ok ;; *) bad "$twice: $got" ;; esac
done

# raw NAME STATUS TEXT: bytes as they are (printf's escapes), and the first line of the answer; "400 501": one of these (libmicrohttpd 1.0.10)
raw() {
  exec 5<> "/dev/tcp/127.0.0.1/$port"
  (printf "$3" >&5) 2> /dev/null # it may be refused before its end
  IFS= read -r -t 10 got <&5
  exec 5>&-
  case "${got:0:9} $2 " in "HTTP/1.1 "*" ${got:9:3} "*) ok ;; *) bad "$1: $got, wanted $2" ;; esac
}
version='GET /api/v2/version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n'
upload='POST /api/v2/tenants HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n'
raw 'a plain request' 200 "$version\r\n"
for line in 'X-Name : v' 'X-Name\t: v' 'X Name: v' 'X-Name: v\r\n more' 'X-Name: v\r\n\tmore' 'X-Name: v\r\n ' 'X-Name:\r\n v' 'X-A: v\r\n w\r\nX-B: v\r\n w' 'no colon'; do
  raw "the header $line" 400 "$version$line\r\n\r\n"
done
for line in 'X-Name:v' 'X-Name:' 'X-Name: \t ' 'X-Name: \t v \t' "X-Long: $(head -c 40000 /dev/zero | tr '\0' x)" 'X-!#$%%&'"'"'*+.^_`|~: v'; do
  raw "the header ${line:0:30}" 200 "$version$line\r\n\r\n"
done
raw '300 headers' 200 "$version$(for i in $(seq 300); do printf 'X-%s: %s\\r\\n' "$i" "$i"; done)\r\n"
raw 'a length with a space' 400 "${upload}Content-Length : 2\r\n\r\n{}"
raw 'a length that is continued' 400 "${upload}Content-Length:\r\n 2\r\n\r\n{}"
raw 'another encoding' '400 501' "${upload}Transfer-Encoding: gzip\r\n\r\n{}"
raw 'two encodings' '400 501' "${upload}Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
raw 'no host' 400 'GET /api/v2/version HTTP/1.1\r\nConnection: close\r\n\r\n'
raw 'an old client' 200 'GET /api/v2/version HTTP/1.0\r\n\r\n'
raw 'a body in chunks' 422 "${upload}Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\nX-After: v\r\n\r\n"
# passed over, or refused where the library does not take them (libmicrohttpd 1.0)
extensions="${upload}Transfer-Encoding: chunked\r\n\r\n1;name=value;other=\"a b\"\r\n{\r\n1;x\r\n}\r\n0;end\r\n\r\n"
exec 5<> "/dev/tcp/127.0.0.1/$port"
printf "$extensions" >&5
IFS= read -r -t 10 got <&5
exec 5>&-
case $got in "HTTP/1.1 422"* | "HTTP/1.1 400"*) ok ;; *) bad "a chunk with extensions: $got" ;; esac
raw 'a chunk of no size' 400 "${upload}Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n"
for line in 'X-After : v' 'X-After: v\r\n more'; do raw "after the chunks $line" 400 "${upload}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n$line\r\n\r\n"; done
# In pieces, and as the second request of a connection
exec 5<> "/dev/tcp/127.0.0.1/$port"
for piece in 'GET /api/v2/ver' 'sion HTTP/1.1\r\nHo' 'st: localhost\r\nX-Name' ': v\r' '\n\r\n' 'GET /api/v2/version HTTP/1.1\r\nHost: localhost\r\nX-Name: v\r\n' ' more\r\n\r\n'; do
  (printf "$piece" >&5) 2> /dev/null
  sleep 0.02
done
got=$(timeout 10 cat <&5)
exec 5>&-
case $got in 'HTTP/1.1 200'*'HTTP/1.1 400'*) ok ;; *) bad "a request in pieces and one that is continued: $got" ;; esac

# Slow clients: their connections are closed after --wait, and nobody else notices
for _ in $(seq 20); do (exec 3<> "/dev/tcp/127.0.0.1/$port" && printf 'GET /healthz HTTP/1.1\r\nX-Slow: ' >&3 && sleep 30) 2> /dev/null & slow="${slow:-} $!"; done
exec 4<> "/dev/tcp/127.0.0.1/$port"
printf 'POST /api/v2/tenants HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"na' >&4
want 'beside slow clients' 200 '^1$' "$N/count"
if timeout $((20 * patience)) cat <&4 > /dev/null; then ok; else bad "a stuck client was not closed"; fi
exec 4>&-
kill $slow 2> /dev/null
want 'after slow clients' 200 'lode_http_connections_reaped_total [1-9]' "$base/metrics"
for garbage in '\x00\x01\x02\r\n\r\n' 'GET\r\n\r\n' 'POST / HTTP/1.1\r\nContent-Length: -5\r\n\r\n' 'POST / HTTP/9.9\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n'; do
  (exec 5<> "/dev/tcp/127.0.0.1/$port" && printf "$garbage" >&5) 2> /dev/null
done
want 'after garbage' 200 '^1$' "$N/count"

worker() { pgrep -P "$server" | head -1; }
metric() { curl -s "$base/metrics" | sed -n "s/^$1 //p"; }
until_metric() { for _ in $(seq $((600 * patience))); do [ "$(metric "$1")" = "$2" ] && return 0; sleep 0.05; done; return 1; }

# Clients that do not read their answer are closed after --wait; one that reads slowly gets all of it, however long that takes
awk 'BEGIN { for (i = 0; i < 1024; i++) text = text "many words of a long document "; for (i = 0; i < 1000; i++) printf "{\"id\":\"r%d\",\"document\":\"%s\"}\n", i, text }' > "$work/long.jsonl"
"$lode" db add long "$work/long.jsonl" --create --store "$store" > /dev/null || bad "no long records"
want long 200 '' "$D/collections/long"
L=$D/collections/$(field id)
until_metric lode_http_connections 1 && ok || bad "connections of before are not closed" # that of the question is left
reaped=$(metric lode_http_connections_reaped_total)
exec 4<> "/dev/tcp/127.0.0.1/$port"
printf 'POST /%s/get HTTP/1.1\r\nHost: localhost\r\nContent-Length: 25\r\n\r\n{"include":["documents"]}' "${L#*://*/}" >&4
slow=$(curl -s -m $((120 * patience)) --limit-rate 8M -o /dev/null -w '%{http_code} %{size_download}' "$L/get" -d '{"include":["documents"]}')
case $slow in '200 3'???????) ok ;; *) bad "a slow reader got $slow" ;; esac
if on_platform "linux darwin" "clients that do not read are closed"; then
  for _ in $(seq $((600 * patience))); do [ "$(metric lode_http_connections_reaped_total)" = "$reaped" ] || break; sleep 0.05; done
  [ "$(metric lode_http_connections_reaped_total)" = $((reaped + 1)) ] && ok || bad "a client that does not read: $reaped reaped before, $(metric lode_http_connections_reaped_total) after"
  [ "$(timeout $((20 * patience)) cat <&4 | wc -c)" -lt 30000000 ] && ok || bad "a client that did not read got everything"
fi
exec 4>&-

# One client asks for everything, many times, before another asks for one number: that is answered before most of the rest. The worker is
# stopped meanwhile, so that all of them are queued
awk 'BEGIN { for (i = 0; i < 30000; i++) printf "{\"id\":\"r%d\",\"document\":\"record %d of many that are read at once\",\"embedding\":[%d,1,2,3,4,5,6,7]}\n", i, i, i }' > "$work/many.jsonl"
"$lode" db add many "$work/many.jsonl" --create --store "$store" > /dev/null || bad "no records"
want many 200 '' "$D/collections/many"
M=$D/collections/$(field id)
stopped=$(worker)
kill -STOP "$stopped"
readers=
for i in $(seq 40); do
  (curl -s -m 600 -o /dev/null -w '%{http_code} %{size_download}\n' "$M/get" -d '{"include":["documents","embeddings"]}' >> "$work/read") &
  readers="$readers $!"
done
until_metric lode_worker_calls_in_flight 40 && ok || bad "the reads are not queued"
curl -s -m 600 -o /dev/null "$M/count" &
counter=$!
until_metric lode_worker_calls_in_flight 41 && ok || bad "the count is not queued"
kill -CONT "$stopped"
wait $counter $readers
before=$(sed "/${M##*/}.count/q" "$serverlog" | grep -c "${M##*/}.get") # the log has them in the order of their answers
[ "$before" -lt 20 ] && ok || bad "$before of 40 large reads came first"
[ "$(sort "$work/read" | uniq -c | wc -l)" = 1 ] && grep -q '^200 ' "$work/read" && [ "$(wc -l < "$work/read")" = 40 ] && ok || bad "large reads: $(sort "$work/read" | uniq -c)"
want 'drop many' 200 '' -X DELETE "$D/collections/many"

# A client that hangs up: what it asked for is cancelled. The worker is stopped, so that it has the call until then
stopped=$(worker)
gone=$(metric lode_http_hung_up_total)
kill -STOP "$stopped"
curl -s -m 60 -o /dev/null "$N/query" -d '{"query_embeddings":[[1,2,3]],"n_results":1}' &
call=$!
until_metric lode_worker_calls_in_flight 1 || bad "the call did not come to the worker"
kill "$call"
wait "$call" 2> /dev/null
until_metric lode_http_hung_up_total $((gone + 1)) && ok || bad "nobody noticed that a client hung up"
kill -CONT "$stopped"
until_metric lode_worker_calls_in_flight 0 && ok || bad "the call of a client that hung up stays"
want 'after a client hung up' 200 '^1$' "$N/count"
[ "$(worker)" = "$stopped" ] && ok || bad "a client that hung up cost the worker"

# ---- A worker that dies ----

restarts() { curl -s "$base/metrics" | sed -n 's/^lode_worker_restarts_total //p'; }
deaths=0
for signal in KILL SEGV BUS ABRT; do
  kill -$signal "$(worker)"
  deaths=$((deaths + 1))
  for _ in $(seq $((600 * patience))); do # a request that comes before the death is noticed is one of those in flight
    [ "$(restarts)" = $deaths ] && break
    sleep 0.02
  done
  want "after SIG$signal" 200 '^1$' "$N/count"
done
want 'restarts are counted' 200 '^lode_worker_restarts_total 4$' "$base/metrics"
reports=$(ls "$store/crashes" | wc -l)
[ "$reports" = 4 ] && ok || bad "$reports crash reports"
grep -q 'backtrace' "$store"/crashes/* && ok || bad "no backtrace in the reports"
# With a document in its hands: the report names the call, not of what was in it
stopped=$(worker)
kill -STOP "$stopped"
curl -s -m $((20 * patience)) -o /dev/null "$N/upsert" -d '{"ids":["SECRET-id"],"embeddings":[[1,2,3]],"documents":["SECRET-document"],"metadatas":[{"k":"SECRET-value"}]}' &
call=$!
until_metric lode_worker_calls_in_flight 1 || bad "the call did not come to the worker"
kill -SEGV "$stopped"
kill -CONT "$stopped"
wait $call
until_metric lode_worker_restarts_total 5 || bad "the worker did not die"
grep -lq 'chroma.upsert' "$store"/crashes/* && ok || bad "no report names the call"
grep -rqa SECRET "$store/crashes" "$serverlog" && bad "a report or the log holds what a client sent" || ok
want reset 200 '^true$' -X POST "$base/api/v2/reset"
want 'reset' 200 '^0$' "$D/collections_count"
stop

# ---- Guards ----

"$lode" serve --store "$work/two" --host 0.0.0.0 --port 0 2> "$work/refused"
[ $? = 5 ] && grep -q token-file "$work/refused" && ok || bad "an open address was not refused"
printf 'too short' > "$work/token"
"$lode" serve --store "$work/two" --port 0 --token-file "$work/token" 2> /dev/null
[ $? = 5 ] && ok || bad "a short token was not refused"
printf '0123456789abcdef0123\n' > "$work/token"
start two --host 0.0.0.0 --token-file "$work/token" --log errors --allow-host lode.example --allow-origin https://app.example
want 'without a token' 401 AuthError "$base/api/v2/version"
want 'probes need none' 200 '' "$base/healthz"
want 'documents need none' 200 '^/docs/cookbook ' "$base/docs"
want 'a document' 200 'RAG in Python' "$base/docs/cookbook"
want 'no such document' 404 '' --path-as-is "$base/docs/../etc"
want 'no such document either' 404 '/docs lists them' "$base/docs/nothing"
want 'with a bearer' 200 '' -H 'Authorization: Bearer 0123456789abcdef0123' "$base/api/v2/version"
want 'with a header' 200 '' -H 'X-Chroma-Token: 0123456789abcdef0123' "$base/api/v2/version"
want 'a longer one' 401 '' -H 'X-Chroma-Token: 0123456789abcdef01234' "$base/api/v2/version"
want 'a wrong one' 401 '' -H 'X-Chroma-Token: 0123456789abcdef0124' "$base/api/v2/version"
want 'metrics are closed' 401 '' "$base/metrics"
want 'no reset' 403 'allow-reset' -X POST -H 'X-Chroma-Token: 0123456789abcdef0123' "$base/api/v2/reset"
want 'an allowed name' 200 '' -H 'X-Chroma-Token: 0123456789abcdef0123' -H 'Host: lode.example' "$base/api/v2/version"
want 'an allowed origin' 200 '' -H 'X-Chroma-Token: 0123456789abcdef0123' -H 'Origin: https://app.example' "$base/api/v2/version"
stop

# ---- Other users of this machine ----

# other NAME STATUS PATTERN CURL-ARGS...: the same as want, by a user who has nothing here
other() {
  local name=$1 status=$2 pattern=$3 got
  shift 3
  got=$(setpriv --reuid "$stranger" --regid "$stranger" --clear-groups curl -s -m $((60 * patience)) -w '\n%{http_code}' "$@")
  if [ "${got##*$'\n'}" = "$status" ] && { [ -z "$pattern" ] || grep -qE -- "$pattern" <<< "$got"; }; then ok
  else bad "$name: $(head -c 300 <<< "$got"), wanted $status $pattern"; fi
}
stranger=54321
# Where the system does not tell whose a connection is
users_unknown() {
  start mine
  grep -q 'warning: .*every user of this machine.*--token' "$serverlog" && ok || bad "no warning where users cannot be known: $(cat "$serverlog")"
  other 'then it is open' 200 '' "$base/api/v2/version"
  stop
  chmod 600 "$work/token"
  start mine --token-file "$work/token" --token-for others
  want 'all must send the token' 401 'a token is needed' "$base/api/v2/version"
  want 'the owner with it' 200 '' -H 'Authorization: Bearer 0123456789abcdef0123' "$base/api/v2/version"
  other 'a stranger without it' 401 'a token is needed' "$base/api/v2/version"
  stop
}
users_known() {
  start mine
  grep -q 'for its own user' "$serverlog" && ok || bad "the log does not say whom it serves: $(cat "$serverlog")"
  want 'the owner needs no token' 200 '' "$base/api/v2/version"
  for path in api/v2/version api/v2/heartbeat metrics api/lode/v1; do other "a stranger at $path" 401 'its own user' "$base/$path"; done
  other 'a stranger writes' 401 'its own user' "$base/api/lode/v1/db/create" -d '{"collection":"theirs"}'
  other 'with any token' 401 'its own user' -H 'Authorization: Bearer ' "$base/api/v2/version"
  other 'with a long one' 401 'its own user' -H 'X-Chroma-Token: 0123456789abcdef0123' "$base/api/v2/version"
  other 'probes are for all' 200 '' "$base/healthz"
  other 'the page is for all' 200 '<title>Lode' "$base/"
  want 'nothing was made' 200 '^0$' "$base/api/v2/tenants/default_tenant/databases/default_database/collections_count"
  # Two requests on one connection
  got=$(curl -s -m $((60 * patience)) -w '%{http_code} ' -o /dev/null -o /dev/null "$base/api/v2/version" "$base/api/v2/version")
  [ "$got" = '200 200 ' ] && ok || bad "a connection that is kept: $got"
  exec 5<> "/dev/tcp/127.0.0.1/$port"
  printf 'GET /api/v2/version HTTP/1.0\r\n\r\n' >&5
  got=$(timeout $((10 * patience)) cat <&5)
  exec 5>&-
  case $got in 'HTTP/1.'?' 200'*) ok ;; *) bad "the owner over a raw socket: $got" ;; esac
  stop
  # With a token: everybody, or all but the owner
  start mine --token-file "$work/token"
  grep -q 'other users can read' "$serverlog" && ok || bad "a token that all can read is not worth a warning: $(cat "$serverlog")"
  want 'a token is asked of the owner too' 401 'a token is needed' "$base/api/v2/version"
  other 'a stranger with the token' 200 '' -H 'Authorization: Bearer 0123456789abcdef0123' "$base/api/v2/version"
  stop
  chmod 600 "$work/token"
  start mine --token-file "$work/token" --token-for others
  grep -q 'other users can read' "$serverlog" && bad "a warning about a token that is secret" || ok
  want 'the owner needs none' 200 '' "$base/api/v2/version"
  other 'a stranger needs one' 401 'a token is needed' "$base/api/v2/version"
  other 'a stranger with it' 200 '' -H 'Authorization: Bearer 0123456789abcdef0123' "$base/api/v2/version"
  stop
  start mine --token --token-for others
  token=$(sed -n 's/.*other users must send the token \([0-9a-f]\{48\}\)$/\1/p' "$serverlog")
  want 'the owner needs none' 200 '' "$base/api/v2/version"
  other 'a stranger without it' 401 'a token is needed' "$base/api/v2/version"
  other 'a stranger with what the log shows' 200 '' -H "X-Chroma-Token: $token" "$base/api/v2/version"
  stop
  start mine --host ::1 2> /dev/null
  if [ -n "$port" ]; then
    want 'the owner over IPv6' 200 '' "http://[::1]:$port/api/v2/version"
    other 'a stranger over IPv6' 401 'its own user' "http://[::1]:$port/api/v2/version"
    stop
  else wait "$server"; server=; fi
  # `lode ui`: others need the token of its address
  "$lode" ui --no-open --store "$work/mine" 2> "$work/ui.log" > /dev/null &
  server=$!
  for _ in $(seq $((600 * patience))); do grep -q 'is ready' "$work/ui.log" && break; sleep 0.05; done
  base=$(sed -n 's/.*the page is at \(http:[^#]*\)\/#token=.*/\1/p' "$work/ui.log")
  token=$(sed -n 's/.*#token=\([0-9a-f]\{48\}\);.*/\1/p' "$work/ui.log")
  want 'the page, for its owner' 200 '"rows"' "$base/api/lode/v1/db/collections" -d '{}'
  other 'not for strangers' 401 'a token is needed' "$base/api/lode/v1/db/collections" -d '{}'
  other 'but with its token' 200 '"rows"' -H "Authorization: Bearer $token" "$base/api/lode/v1/db/collections" -d '{}'
  want 'nothing to index outside of a project' 501 'does not lie in a project' "$base/api/lode/v1/index" -d '{}'
  want 'no index made anew' 501 'command line' "$base/api/lode/v1/index" -d '{"force":true}'
  other 'no index for strangers' 401 'a token is needed' "$base/api/lode/v1/index" -d '{}'
  serverlog=$work/ui.log
  stop
  # A user that is nobody in particular cannot be distinguished from others: a warning that says what to do; with a token it is asked of all
  nobody=$(mktemp -d "${TMPDIR:-/tmp}/lode-nobody-XXXXXX")
  chown 65534:65534 "$nobody"
  nobody_serves() {
    setpriv --reuid 65534 --regid 65534 --clear-groups env HOME="$nobody" "$lode" "$@" --store "$nobody/s" --port 0 2> "$work/nobody.log" > /dev/null &
    server=$! serverlog=$work/nobody.log
    for _ in $(seq $((600 * patience))); do grep -q 'is ready' "$serverlog" && break; kill -0 "$server" 2> /dev/null || break; sleep 0.05; done
    base=$(sed -n 's/.* at \(http:[^ ]*:[0-9]*\)[/,;].*/\1/p' "$serverlog" | tail -1)
  }
  if setpriv --reuid 65534 --regid 65534 --clear-groups env "$lode" --version > /dev/null 2>&1; then
    nobody_serves serve
    grep -q 'warning: .*every user of this machine.*--token' "$serverlog" && ok || bad "no warning where users cannot be known: $(cat "$serverlog")"
    other 'then it is open' 200 '' "$base/api/v2/version"
    stop
    nobody_serves serve --token --token-for others
    want 'or all must send the token' 401 'a token is needed' "$base/api/v2/version"
    stop
    nobody_serves ui --no-open
    want 'ui always has one' 401 'a token is needed' "$base/api/lode/v1/db/collections" -d '{}'
    stop
  else
    skip "a server whose user cannot be known, because other users cannot run $lode"
  fi
  rm -rf "$nobody"
}
if [ "$(id -u)" != 0 ] || ! command -v setpriv > /dev/null; then
  skip "other users, because this is not run by root or setpriv is not installed"
elif on_platform linux "other users are told apart"; then
  users_known
else
  users_unknown
fi
"$lode" serve --store "$work/two" --port 0 --token-for others 2> "$work/refused"
[ $? = 2 ] && grep -q 'needs a token' "$work/refused" && ok || bad "--token-for without a token: $(cat "$work/refused")"
"$lode" serve --store "$work/two" --port 0 --token --token-file "$work/token" 2> "$work/refused"
[ $? = 2 ] && grep -q 'one of them' "$work/refused" && ok || bad "two tokens: $(cat "$work/refused")"

# ---- Models that the server was allowed ----

"$lode" serve --store "$work/allowing" --port 0 --allow-model nonsense 2> "$work/refused"
[ $? = 2 ] && grep -q 'no model that lode could open' "$work/refused" && ok || bad "a model that is none was allowed: $(cat "$work/refused")"
start allowing --allow-model "openai:told,$work/here/model" --allow-model ollama:also --log nothing
L=$base/api/lode/v1
want 'an allowed path is looked for' 404 'here/model' "$L/embed" -d "{\"texts\":[\"a\"],\"model\":\"$work/here/model\"}"
want 'one beside it is not' 422 'may name the models' "$L/embed" -d "{\"texts\":[\"a\"],\"model\":\"$work/here/model2\"}"
want 'another service' 422 'may name the models' "$L/embed" -d '{"texts":["a"],"model":"openai:else"}'
want 'a collection of an allowed one' 200 '"created":true' "$L/db/create" -d '{"collection":"told","embedder":"openai:told","embedder_dim":2}'
want 'the second flag counts too' 200 '"created":true' "$L/db/create" -d '{"collection":"also","embedder":"ollama:also","embedder_dim":2}'
stop

# ---- TLS ----

if command -v openssl > /dev/null && openssl req -x509 -newkey rsa:2048 -nodes -keyout "$work/key.pem" -out "$work/cert.pem" -days 2 -subj /CN=localhost \
  -addext subjectAltName=DNS:localhost,IP:127.0.0.1 2> /dev/null; then
  if [ "${LODE_TEST_NO_TLS:-}" = 1 ]; then # a self-contained program
    timeout $((60 * patience)) "$lode" serve --store "$work/three" --port 0 --certificate "$work/cert.pem" --key "$work/key.pem" > /dev/null 2> "$work/refused"
    [ $? != 0 ] && grep -q 'put a reverse proxy that has it in front' "$work/refused" && ok || bad "TLS was not refused: $(cat "$work/refused")"
  else
    start three --certificate "$work/cert.pem" --key "$work/key.pem"
    want 'over TLS' 200 '^"1.0.0"$' --cacert "$work/cert.pem" "https://127.0.0.1:$port/api/v2/version"
    stop
  fi
else
  skip "TLS, because openssl is not installed"
fi

# ---- A project's store: it is the project that is meant, wherever the server was started ----

mkdir -p "$work/project" "$work/elsewhere"
printf 'int lines_around(void) {\n  return 41;\n}\n\nint answer(void) {\n  return 42;\n}\n' > "$work/project/a.c"
if XDG_DATA_HOME="$work/data" "$lode" index "$work/project" --quiet > /dev/null 2>&1; then
  log="$work/five.log"
  mkdir -p "$work/unindexed/.git"
  XDG_DATA_HOME="$work/data" timeout $((60 * patience)) "$lode" serve --project "$work/unindexed" --port 0 > "$work/body" 2>&1
  [ $? = 1 ] && grep -q 'is not indexed yet' "$work/body" && [ ! -e "$work/unindexed/.lode" ] && ok || bad "a project without an index: $(cat "$work/body")"
  timeout $((60 * patience)) "$lode" serve --project "$work/project" --store "$work/x" --port 0 > "$work/body" 2>&1
  [ $? = 2 ] && ok || bad "a project and a store: $(cat "$work/body")"
  mv "$work/project/.lode" "$work/kept" && ln -s ../kept "$work/project/.lode"
  XDG_DATA_HOME="$work/data" timeout $((60 * patience)) "$lode" serve --project "$work/project" --port 0 > "$work/body" 2>&1
  [ $? = 5 ] && ok || bad "a linked store of a project: $(cat "$work/body")"
  rm "$work/project/.lode" && mv "$work/kept" "$work/project/.lode"
  for served in "--project $work/project/a.c" "--store $work/project/.lode" "--store $work/moved"; do
    place=${served#* }
    [ "$place" = "$work/moved" ] && mv "$work/project/.lode" "$place"
    : > "$log"
    # shellcheck disable=SC2086
    ( cd "$work/elsewhere" && XDG_DATA_HOME="$work/data" exec "$lode" serve $served --port 0 2> "$log" > /dev/null ) &
    server=$!
    serverlog=$log
    wait_ready "$log"
    base="http://127.0.0.1:$port"
    # A store that lies elsewhere has no root: what it says of one is its writers' word
    [ "$place" = "$work/moved" ] && root=null || root='"[^"]*/project"'
    want "the root of $place" 200 "\"root\":$root" "$base/api/lode/v1/status" -d '{}'
    want 'a search there' 200 '"path":"a.c"' "$base/api/lode/v1/search" -d '{"query":"answer","mode":"text"}'
    want 'a search with context' 200 'int answer' "$base/api/lode/v1/search" -d '{"query":"answer","mode":"text","context":5,"limit":1}'
    [ "$place" = "$work/moved" ] && around=0 || around=1
    [ "$(grep -c 'lines_around' "$work/body")" = $around ] && ok || bad "lines around a hit: $(cat "$work/body")"
    [ "$(grep -c '"stale"' "$work/body")" = 0 ] && ok || bad "files that nobody looked at are said to be stale: $(cat "$work/body")"
    want 'a comparison with the files' 200 '"revision"' "$base/api/lode/v1/status" -d '{"check":true}'
    [ "$(grep -c 'changed_files' "$work/body")" = $around ] && ok || bad "compared with files: $(cat "$work/body")"
    want 'a path of the project' 200 '"path":"a.c"' "$base/api/lode/v1/context" -d '{"at":"./x/../a.c:5"}'
    want 'what is like it' 200 '"rows"' "$base/api/lode/v1/search" -d '{"similar":"a.c:5"}'
    want 'files of the machine' 501 'command line' "$base/api/lode/v1/skipped" -d '{}'
    want 'the list' 200 '"search"' "$base/api/lode/v1"
    grep -q '"skipped"' "$work/body" && grep -q '"name":"skipped"' "$work/body" && bad 'skipped is listed for requests' || ok
    for call in add upsert update; do
      want "no $call" 422 'REFUSED.*lode index' "$base/api/lode/v1/db/$call" -d '{"collection":"code","records":[{"id":"a.c#0","document":"x"}]}'
    done
    want 'no delete' 422 'REFUSED' "$base/api/lode/v1/db/delete" -d '{"collection":"files","where":{}}'
    want 'no new collection of the index' 422 'REFUSED' "$base/api/lode/v1/db/create" -d '{"collection":"quality"}'
    want 'no embedding' 422 'REFUSED' "$base/api/lode/v1/db/embed" -d '{"collection":"code"}'
    want 'no renaming to its names' 422 'REFUSED' "$base/api/lode/v1/db/rename" -d '{"collection":"files","new_name":"quality"}'
    C=$base/api/v2/tenants/default_tenant/databases/default_database/collections
    want 'the index by Chroma' 200 '' "$C/code"
    id=$(field id)
    for call in add upsert update; do
      want "no $call by Chroma" 400 'belongs to the code index' "$C/$id/$call" -d '{"ids":["a.c#0"],"documents":["x"],"embeddings":[[1]]}'
    done
    want 'no delete by Chroma' 400 'belongs to the code index' "$C/$id/delete" -d '{"ids":["a.c#0"]}'
    want 'no new one by Chroma' 400 'belongs to the code index' "$C" -d '{"name":"quality"}'
    want 'a search writes nothing' 501 'only reads' "$base/api/lode/v1/search" -d '{"query":"answer","refresh":true}'
    stop
  done
else
  bad "a project of one file was not indexed"
fi

# The names are the index's in a project's store before it is indexed, too
mkdir -p "$work/early"
start early/.lode
want 'no index by hand' 422 'REFUSED' "$base/api/lode/v1/db/create" -d '{"collection":"files"}'
want 'no index by a write' 422 'REFUSED' "$base/api/lode/v1/db/add" -d '{"collection":"code","create":true,"records":[{"id":"x"}]}'
want 'other names' 200 '' "$base/api/lode/v1/db/create" -d '{"collection":"notes"}'
want 'no index by another name' 422 'REFUSED' "$base/api/lode/v1/db/rename" -d '{"collection":"notes","new_name":"code"}'
stop

# ---- A store whose content names a folder of the server's machine: no file of it is read or looked at ----

mkdir -p "$work/private"
printf 'first\nthe_private_line\nlast\n' > "$work/private/.secret"
start forged
L=$base/api/lode/v1
stamp="{\"root\":\"$work/private\",\"revision\":1,\"indexed\":1,\"scanned\":1}"
want 'a forged index' 200 '"created":true' "$L/db/create" -d '{"collection":"code","if_missing":true}'
want 'forged chunks' 200 '' "$L/db/add" -d '{"collection":"code","records":[
  {"id":".secret#0","document":"parse it","metadata":{"path":".secret","language":"c","kind":"function","name":"parse","span":"1-1/1@0","hash":"x"}},
  {"id":"none#0","document":"parse it","metadata":{"path":"none","language":"c","kind":"function","name":"parse","span":"1-1/1@0","hash":"y"}}]}'
want 'a forged list of files' 200 '"created":true' "$L/db/create" -d "{\"collection\":\"files\",\"metadata\":$stamp}"
want 'a code index takes no records of clients' 422 'REFUSED' "$L/db/add" -d '{"collection":"code","records":[{"id":"x","document":"x"}]}'
want 'a search in it' 200 '"rows"' "$L/search" -d '{"query":"parse","mode":"text","context":5}'
grep -q 'the_private_line' "$work/body" && bad "a client read a file of the server's machine: $(cat "$work/body")" || ok
grep -q '"stale"' "$work/body" && bad "a client learns which files exist: $(cat "$work/body")" || ok
want 'what belongs to it' 200 '"rows"' "$L/context" -d '{"name":"parse"}'
grep -q '"stale"' "$work/body" && bad "context says which files exist: $(cat "$work/body")" || ok
stop

# ---- Reading only ----

"$lode" db create shown --store "$work/still" > /dev/null
echo '{"id":"a","document":"as it was"}' | "$lode" db add shown --store "$work/still" > /dev/null
before=$(cksum < "$work/still/lode.db")
start still --read-only
L=$base/api/lode/v1
want 'a read' 200 '"count":1' "$L/db/count" -d '{"collection":"shown"}'
want 'no write' 403 'READONLY' "$L/db/upsert" -d '{"collection":"shown","records":[{"id":"b"}]}'
want 'no new collection' 403 'READONLY' "$L/db/create" -d '{"collection":"other"}'
want 'no write by Chroma' 403 'read' "$base/api/v2/tenants/default_tenant/databases/default_database/collections" -d '{"name":"other"}'
stop
[ "$(cksum < "$work/still/lode.db")" = "$before" ] && [ ! -e "$work/still/crashes" ] && ok || bad "--read-only wrote: $(ls "$work/still")"
export XDG_STATE_HOME=$work/state
start still --read-only
kill -SEGV "$(pgrep -P "$server" | head -1)"
for _ in $(seq $((100 * patience))); do ls "$work/state/lode/crashes/"crash-*.txt > /dev/null 2>&1 && break; sleep 0.05; done
ls "$work/state/lode/crashes/"crash-*.txt > /dev/null 2>&1 && ok || bad "no report of a worker that only reads: $(cat "$serverlog")"
stop
export XDG_STATE_HOME=/dev/null/nowhere
start still --read-only
want 'without a folder for reports' 200 '"count":1' "$base/api/lode/v1/db/count" -d '{"collection":"shown"}'
stop
unset XDG_STATE_HOME

# ---- An orderly stop ----

hangup=--ignore-signal=HUP # as under nohup
start five
hangup=--default-signal=HUP
kill -HUP "$server"
want 'a hang-up that is ignored' 200 '' "$base/api/v2/heartbeat"
stop

start four
want 'before the stop' 200 '' "$base/api/v2/tenants/default_tenant/databases/default_database/collections" -d '{"name":"kept"}'
(exec 6<> "/dev/tcp/127.0.0.1/$port" && sleep 5) 2> /dev/null &
idle=$!
stop HUP # as when its terminal is closed
kill $idle 2> /dev/null
grep -q 'stopping (SIGHUP)' "$serverlog" && ok || bad "the log does not say that it stopped"
[ "$("$lode" db collections --store "$store" --json | grep -c kept)" = 1 ] && ok || bad "what was written is not there"

finish
