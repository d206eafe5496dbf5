#!/bin/bash
# mcp_clients.sh PROGRAM - real MCP clients, unchanged, against `lode mcp`: @modelcontextprotocol/sdk (v1), @modelcontextprotocol/client (v2, in
# each of its modes) and the inspector's command line, versions as pinned. They are fetched once, into build/clients/mcp; where they cannot be
# had they are skipped, and it says so. Ends with "N passed, N failed[, N skipped]".
set -u
patience=${LODE_TEST_PATIENCE:-1} # times as long as on a quiet machine
lode=$(realpath "$1")
cd "$(dirname "$0")/../.." || exit 1
from=test/clients/mcp
to=build/clients/mcp
work=$(mktemp -d "${TMPDIR:-/tmp}/lode-mcp-XXXXXX")
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0
mkdir -p "$to" "$work/p/net" "$work/home"

have_npm() {
  command -v node > /dev/null && command -v npm > /dev/null || { why="node and npm are not installed"; return 1; }
  [ "$(node -p 'process.versions.node.split(".")[0] >= 20')" = true ] || { why="node is older than 20"; return 1; }
  cp "$from/package.json" "$from/package-lock.json" "$from/mcp.mjs" "$to/"
  cmp -s "$to/package-lock.json" "$to/installed.json" && [ -d "$to/node_modules" ] && return 0
  (cd "$to" && timeout 300 npm ci --ignore-scripts --no-audit --no-fund) > "$work/npm.log" 2>&1 && cp "$to/package-lock.json" "$to/installed.json" && return 0
  why="npm cannot get the packages"
  return 1
}

# run NAME COMMAND...: adds up the last line of its output
run() {
  local name=$1 last p f
  shift
  timeout $((300 * patience)) "$@" > "$work/$name.out" 2>&1
  last=$(tail -1 "$work/$name.out")
  p=$(expr "$last" : '\([0-9]*\) passed') f=$(expr "$last" : '.* \([0-9]*\) failed')
  if [ -n "$p" ] && [ -n "$f" ]; then
    passed=$((passed + p)) failed=$((failed + f))
    [ "$f" = 0 ] || cat "$work/$name.out"
  else
    failed=$((failed + 1))
    echo "FAILED $name"
    tail -20 "$work/$name.out"
  fi
}

# inspect WANTED ARGUMENT...: the inspector, once; its output must hold a text
inspect() {
  local wanted=$1
  shift
  if timeout $((120 * patience)) "$to/node_modules/.bin/mcp-inspector-cli" --cli "$lode" mcp "$work/p" "$@" > "$work/inspect.out" 2>&1 && grep -q "$wanted" "$work/inspect.out"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED inspector $*: no $wanted"
    tail -5 "$work/inspect.out"
  fi
}

if ! have_npm; then
  echo "skipped: npm's MCP clients, because $why"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
fi
export HOME="$work/home" GIT_CONFIG_GLOBAL=/dev/null
mkdir "$work/p/.git"
cat > "$work/p/net/retry.py" << 'EOF'
import time


def retry(work, times=5):
    """Retry with growing pauses between attempts."""
    pause = 0.1
    for attempt in range(times):
        try:
            return work()
        except OSError:
            time.sleep(pause)
            pause *= 2
    raise TimeoutError("gave up")
EOF
cat > "$work/p/net/socket.c" << 'EOF'
#include <sys/socket.h>

/* Opens a socket for one connection. */
int open_socket(int port) {
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  return fd < 0 ? -1 : fd + port * 0;
}

void close_socket(int fd) {
  if (fd >= 0) close(fd);
}
EOF
cat > "$work/p/main.c" << 'EOF'
#include "net/socket.h"

int main(void) {
  int fd = open_socket(8080);
  close_socket(fd);
  return 0;
}
EOF
run v1 node "$to/mcp.mjs" "$lode" "$work/p" v1
for mode in auto legacy pin; do run "v2-$mode" node "$to/mcp.mjs" "$lode" "$work/p" v2 $mode; done
inspect '"search_code"' --method tools/list
inspect 'net/retry.py' --method tools/call --tool-name search_code --tool-arg 'query=growing pauses' --tool-arg limit=2
inspect '"isError": true' --method tools/call --tool-name search_code --tool-arg 'query=x' --tool-arg limit=0
[ -d "$work/p/.lode/crashes" ] && [ -n "$(ls "$work/p/.lode/crashes")" ] && { failed=$((failed + 1)); echo "FAILED: the worker died"; cat "$work"/p/.lode/crashes/*; }
if [ $skipped = 0 ]; then echo "$passed passed, $failed failed"; else echo "$passed passed, $failed failed, $skipped skipped"; fi
[ $failed = 0 ]
