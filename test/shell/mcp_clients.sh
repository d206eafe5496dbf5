#!/bin/bash
# mcp_clients.sh PROGRAM - real MCP clients, unchanged, against `lode mcp`: @modelcontextprotocol/sdk (v1), @modelcontextprotocol/client (v2, in
# each of its modes) and the inspector's command line, versions as pinned. They are fetched once, into build/clients/mcp; where they cannot be
# had they are skipped, and it says so. Ends with "N passed, N failed[, N skipped]".
set -u
. "$(dirname "$0")/../support/kit.sh"
begin mcp_clients "$@"
cd "$(dirname "$0")/../.." || exit 1
to=build/clients/mcp
mkdir -p "$tmp/p/net"

# inspect WANTED ARGUMENT...: the inspector, once; its output must hold a text
inspect() {
  local wanted=$1
  shift
  if timeout $((120 * patience)) "$to/node_modules/.bin/mcp-inspector-cli" --cli "$lode" mcp "$tmp/p" "$@" > "$tmp/inspect.out" 2>&1 && grep -q "$wanted" "$tmp/inspect.out"; then
    ok
  else
    bad "inspector $*: no $wanted: $(tail -5 "$tmp/inspect.out")"
  fi
}

if ! have_npm test/clients/mcp "$to" mcp.mjs; then
  skip "npm's MCP clients, because $why"
  finish
  exit 0
fi
unset XDG_DATA_HOME
mkdir "$tmp/p/.git"
cat > "$tmp/p/net/retry.py" << 'EOF'
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
cat > "$tmp/p/net/socket.c" << 'EOF'
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
cat > "$tmp/p/main.c" << 'EOF'
#include "net/socket.h"

int main(void) {
  int fd = open_socket(8080);
  close_socket(fd);
  return 0;
}
EOF
tally v1 node "$to/mcp.mjs" "$lode" "$tmp/p" v1
for mode in auto legacy pin; do tally "v2-$mode" node "$to/mcp.mjs" "$lode" "$tmp/p" v2 $mode; done
inspect '"symbol"' --method tools/list
inspect 'net/retry.py' --method tools/call --tool-name search --tool-arg 'query=growing pauses' --tool-arg limit=2
inspect '"isError": true' --method tools/call --tool-name search --tool-arg 'query=x' --tool-arg limit=0
[ -d "$tmp/p/.lode/crashes" ] && [ -n "$(ls "$tmp/p/.lode/crashes")" ] && bad "the worker died: $(cat "$tmp"/p/.lode/crashes/*)"
finish
