#!/bin/sh
# check-platform.sh OUT [posix] - is everything that differs between operating systems in src/lib/platform? OUT is a folder that make
# has filled: build/release. Elsewhere only the headers and calls of the lists below are allowed: ISO C, pthreads, the libraries that
# Lode uses, and calls of POSIX that are the same everywhere and that no test needs to let fail. With `posix`, OUT was built with
# PLATFORM=posix: then nothing in it may use a call that POSIX does not have.
set -eu
cd "$(dirname "$0")/.."
out=${1:-build/release}
bad=0
complain() { echo "$*"; bad=$((bad + 1)); }
work=$(mktemp -d "${TMPDIR:-/tmp}/lode-platform-XXXXXX")
trap 'rm -rf "$work"' EXIT

headers='assert ctype errno float inttypes limits math stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib string time
  pthread sched signal strings unistd fcntl pwd grp arpa/inet
  immintrin nmmintrin cpuid arm_neon sanitizer/asan_interface
  sqlite3 pcre2 utf8proc curl/curl microhttpd tree_sitter/api'
for file in $(git ls-files 'src/*.[ch]' | grep -v '^src/lib/platform/'); do
  [ -f "$file" ] || continue
  for header in $(sed -n 's/^ *# *include *<\([^>]*\)\.h>.*/\1/p' "$file"); do
    case " $(echo $headers) " in
      *" $header "*) ;;
      *) complain "$file includes <$header.h>: what needs it belongs into src/lib/platform" ;;
    esac
  done
  if grep -nE '__linux__|__APPLE__|OS_LINUX|OS_DARWIN|"/proc/' "$file"; then complain "$file knows an operating system by name"; fi
done

# Undefined symbols of the objects outside the room that no object of ours defines
iso='abort atan2 calloc cos div exp exp2 f(max|min|abs|mod)f? fprintf fputs free frexpf? fwrite getenv is[a-z]+ ldexpf? ll?abs log(2|10|1p)?f? malloc
  mem(chr|cmp|cpy|mem|move|set) nearbyintf? nextafterf? pow printf put(s|char) qsort realloc roundf? sin signal raise snprintf sqrtf? sscanf
  std(err|out|in) str(cat|chr|cmp|cpy|cspn|error|ftime|len|ncmp|rchr|spn|str|to[dfl]|toull?|toll) time to(lower|upper) vsnprintf'
posix='_exit access close fchmod get(cwd|euid|grgid_r|hostname|pid|pwuid_r) gmtime_r in6addr_loopback inet_pton isatty kill localtime_r mkdtemp
  pause posix_memalign pthread_[a-z_]+ read readlink realpath sched_yield setenv sig(action|addset|altstack|emptyset|wait) sincos
  str(casecmp|ncasecmp|dup|ndup) write'
libraries='sqlite3_[a-z0-9_]+ pcre2_[a-z0-9_]+ utf8proc_[a-z0-9_]+ ts_[a-z_]+ lode_[a-z0-9_]+'
compiler='_GLOBAL_OFFSET_TABLE_ __[a-z0-9_]+ ___tls_get_addr gcov_[a-z_]+'
allowed="^($(echo $iso $posix $libraries $compiler | tr ' ' '|'))\$"
for object in "$out"/src/lib/*/*.o "$out"/src/app/*/*.o; do
  source=${object#"$out"/}
  [ ! -f "${source%.o}.c" ] || echo "$object"
done >"$work/objects"
[ -s "$work/objects" ] || complain "$out has no objects: run make first"
{ cat "$work/objects"; ls "$out/web/page.o" "$out/web/docs_pages.o"; } | xargs nm -g --defined-only | awk 'NF == 3 { print $3 }' | sort -u >"$work/ours"
grep -v "^$out/src/lib/platform/" "$work/objects" | xargs nm -A -u | awk '{ sub(/:.*/, "", $1); sub(/@.*/, "", $NF); print $NF, $1 }' |
  awk 'NR == FNR { ours[$1] = 1; next } !($1 in ours)' "$work/ours" - >"$work/outside"
awk '{ print $1 }' "$work/outside" | sort -u | grep -vE "$allowed" >"$work/refused" || true
awk '{ print $1 }' "$work/outside" | sort -u | grep -E "^__open(64)?_2\$" >>"$work/refused" || true
for name in $(cat "$work/refused"); do
  complain "$(awk -v n="$name" '$1 == n { printf "%s ", $2 }' "$work/outside")calls $name: what needs it belongs into src/lib/platform"
done

# What Linux or the GNU library alone have, in a build for POSIX
if [ "${2:-}" = posix ]; then
  grep "^$out/src/lib/platform/" "$work/objects" | xargs nm -A -u | awk '{ sub(/:.*/, "", $1); sub(/@.*/, "", $NF); print $NF, $1 }' |
    grep -E '^(accept4|arch_prctl|close_range|dup3|epoll_[a-z0-9]+|eventfd|fdatasync|getauxval|getrandom|inotify_[a-z0-9_]+|madvise|malloc_usable_size|memfd_create|memrchr|pipe2|prctl|pthread_[a-z_]+_np|pthread_rwlockattr_setkind_np|qsort_r|signalfd|statfs|statx|syscall) ' >"$work/linux" || true
  while read -r name object; do complain "$object calls $name, which POSIX does not have"; done <"$work/linux"
fi
if [ "$bad" = 0 ]; then echo "1 passed, 0 failed"; else echo "0 passed, 1 failed"; exit 1; fi
