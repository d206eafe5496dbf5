#!/bin/sh
# format.sh [--check] - formats all C files as .clang-format says, or says which are not formatted. The samples of
# test/chunk are data.
#
# Versions of clang-format differ in small things, so one is used everywhere: 14, which is Debian 12's; elsewhere
# `pip install clang-format==14.0.6`. CLANG_FORMAT names another program. Without version 14 the check is skipped.
set -eu
cd "$(dirname "$0")/.."
program=${CLANG_FORMAT:-clang-format}
version=$("$program" --version 2>/dev/null | sed -n 's/.*version \([0-9]*\).*/\1/p')
files() { git ls-files '*.c' '*.h' ':!test/chunk'; }
if [ "$version" != 14 ]; then
  [ "${1:-}" = --check ] || { echo "format: needs clang-format 14: pip install clang-format==14.0.6" >&2; exit 1; }
  echo "skipped: clang-format is ${version:-not installed}${version:+, not 14}"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
fi
if [ "${1:-}" != --check ]; then
  files | xargs "$program" -i
  exit 0
fi
failed=0
files | xargs "$program" --dry-run -Werror --ferror-limit=1 || { echo "not formatted: run make format"; failed=1; }
long=$(files | xargs grep -nE '.{121,}' | cut -c1-100 || true)
[ -z "$long" ] || { echo "lines above 120 columns:"; echo "$long"; failed=1; }
echo "$((1 - failed)) passed, $failed failed"
exit $failed
