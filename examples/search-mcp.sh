#!/bin/sh
# search-mcp.sh PROJECT QUERY - what an agent does over MCP: open a session with `lode mcp`, call a tool, print its answer.
# The project must be indexed (lode index). `lode` must be on the PATH.
set -eu
cd "$1"
{
  printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"example","version":"1"}}}'
  printf '%s\n' '{"jsonrpc":"2.0","method":"notifications/initialized"}'
  printf '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"search_code","arguments":{"query":"%s","limit":3}}}\n' "$2"
} | lode mcp 2>/dev/null | grep '"id":2'
