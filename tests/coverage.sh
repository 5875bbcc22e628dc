#!/bin/sh
# How much of the implementation the tests run, by room of the header.  See --help.
set -u

help() {
    cat <<'TEXT'
usage: sh tests/coverage.sh [options] [name...]

Builds the implementation with clang's source-based coverage, runs tests/test_*.c, and prints for each room of the header
how many of its lines and of its branches were run, the least covered room first.  With names: test_NAME.c alone.
Code that a script has printed into the header (wrappers and lists of operators) is a room like the others, marked.

  --missed ROOM      the lines of one room that no test has run, in place of the table ('' for all rooms)
  --keep FOLDER      where the build and the counts go, and are found again: a second run adds to them
  --report           no tests, only the table, of what is in the folder
  --help             this text

Needs clang, llvm-profdata and llvm-cov of one version, and python3.  Takes about 15 minutes of two cores.
TEXT
}
here=$(cd "$(dirname "$0")" && pwd)
folder=; missed=; run=yes; names=; show_missed=
while [ $# -gt 0 ]; do
    case $1 in
        --help|-h) help; exit 0 ;;
        --keep) folder=$2; shift ;;
        --missed) missed=${2:-}; show_missed=yes; shift ;;
        --report) run= ;;
        -*) echo "coverage.sh: unknown option $1 (see --help)" >&2; exit 2 ;;
        *) names="$names $1" ;;
    esac
    shift
done
for tool in clang llvm-profdata llvm-cov python3; do
    command -v $tool >/dev/null 2>&1 || { echo "coverage.sh: no $tool" >&2; exit 2; }
done
if [ -z "$folder" ]; then folder=$(mktemp -d "${TMPDIR:-/tmp}/opd_coverage.XXXXXX") && trap 'rm -rf "$folder"' EXIT; fi
mkdir -p "$folder" || exit 1
folder=$(cd "$folder" && pwd)

if [ -n "$run" ]; then
    [ -n "$names" ] || names=$(ls "$here"/test_*.c | sed 's/.*test_\(.*\)\.c/\1/' | grep -v -x cuda)
    for name in $names; do                  # %4m: four files that are merged while programs run
        CC=clang CXX=clang++ CFLAGS='-O1 -fprofile-instr-generate -fcoverage-mapping' OBJECTS=$folder \
            LLVM_PROFILE_FILE="$folder/counts.%4m.profraw" sh "$here/run.sh" "$name" </dev/null 2>&1 |
            grep -a -E '^(test_[a-z0-9_]*\.c: |.*does not build)'
    done
fi
object=$(ls -t "$folder"/implementation_*.o 2>/dev/null | head -n 1)      # of the header as it is now
[ -f "$object" ] || { echo "coverage.sh: the implementation does not build" >&2; exit 1; }
llvm-profdata merge -sparse "$folder"/counts.*.profraw -o "$folder/counts.profdata" &&
    llvm-cov export -format=lcov -instr-profile="$folder/counts.profdata" "$object" >"$folder/counts.lcov" || exit 1
if [ -n "$show_missed" ]; then set -- --missed "$missed"; else set --; fi
python3 "$here/coverage.py" "$folder/counts.lcov" "$here/../opdispatch.h" "$@"
