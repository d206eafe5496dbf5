#!/bin/sh
# werror.sh - prints -Werror for the compilers that CI builds with, nothing for others. Usage: werror.sh COMPILER...
#
# A compiler that is newer than these lines may warn of something that nobody has seen yet; that must not keep anybody
# from building. CI sees it as soon as the compiler is added here.
id=$(echo '__GNUC__ __clang_major__' | "$@" -E -P -x c - 2>/dev/null) || exit 0
case $id in
  '12 __clang_major__' | '14 __clang_major__') echo -Werror ;; # gcc of Debian 12 and 13
  '4 14' | '4 19') echo -Werror ;;                             # clang of Debian 12 and 13
esac
