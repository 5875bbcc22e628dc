#!/bin/sh
# Measures how much code of each room of the header the tests run.  See --help.
set -u

help() {
    cat <<'TEXT'
usage: sh tests/coverage.sh [options] [name...]

Compiles the implementation with clang's source-based coverage, runs all tests, and prints how many lines and branches
of each room of the header were run, beginning with the lowest share.  All tests are: tests/*/test_*.c and test_*.cpp,
tests/linkage.sh, tests/mpi.sh, and the emulated tests of devices, streams and groups of tests/cuda.sh.  The walk of
tests/cuda.sh over all operators does not run, because CUDA kernels are not counted.  With names, the script runs only
test_NAME, or only the scripts linkage, mpi or cuda.

Generated code of the header (typed functions and lists of operators) is a room of its own in the table, which names the
script that prints the code.  Inline functions of the declarations count if a test calls them.  These are not counted:
child processes that a signal ends, programs that Python or a test builds, and builds without clang.  Some checks of
linkage.sh fail with coverage, because they examine the exports or the output of a program.

  --missed ROOM      prints the lines of one room that no test has run, instead of the table ('' for all rooms)
  --keep FOLDER      keeps the build and the counts in this folder; a second run adds to the counts
  --report           runs no tests, and prints the table for the counts in the folder
  --help             prints this text

Needs clang, llvm-profdata and llvm-cov of the same version, and python3.  Takes about 30 minutes on two cores.
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

flags='-fprofile-instr-generate -fcoverage-mapping -DCHECK_COVERAGE'
# script NAME [CHECK]...: runs tests/NAME.sh, after a new build.  The objects of its programs remain in the folder.
script() {
    rm -rf "${folder:?}/$1"
    script=$1; shift
    for check in "${@:-}"; do
        CC="clang $flags" CXX="clang++ $flags" RUN_TMP=$folder sh "$here/$script.sh" $check </dev/null 2>&1
    done | awk -v name="$script.sh" '/^ok / { ok++ } /^FAIL / { failed++ }
        END { printf "%s: %d passed, %d failed (with what counts in their programs)\n", name, ok, failed }'
}
if [ -n "$run" ]; then
    # %4m: programs merge their counts into four files
    LLVM_PROFILE_FILE="$folder/counts.%4m.profraw"; export LLVM_PROFILE_FILE
    [ -n "$names" ] || names="$(ls "$here"/*/test_*.c* | sed 's/.*test_\(.*\)\.c.*/\1/' | grep -v -x cuda) linkage mpi cuda"
    for name in $names; do
        case $name in
            linkage|mpi) script $name ;;
            cuda) script cuda cuda_emulated_async cuda_emulated_out_of_memory cuda_emulated_nccl cuda_emulated_mpi ;;
            *)
                source=$(ls "$here"/*/"test_$name".c*)
                CC=clang CXX=clang++ CFLAGS="-O1 $flags" OBJECTS=$folder sh "$here/run.sh" "test_$name" </dev/null 2>&1 |
                    grep -a -E '^(test_[a-z0-9_]*\.c.*: |.*does not build)'
                # inline functions of the declarations are in the object of each test file
                case $source in *.cpp) compiler='clang++ -std=c++11' ;; *) compiler=clang ;; esac
                $compiler -O0 -w $flags -c "$source" -o "$folder/inline_$name.o" ;;
        esac
    done
fi
object=$(ls -t "$folder"/implementation_*.o 2>/dev/null | head -n 1)      # the newest implementation
[ -f "$object" ] || { echo "coverage.sh: the implementation does not build" >&2; exit 1; }
# The branches of a function that is in several objects would add up.  So each implementation is exported separately,
# and then all test files together, because only inline functions are in them.
set -- "$object"
for other in "$folder/linkage/implementation.o" "$folder/mpi/plain.o" "$folder/cuda/implementation.o"; do
    [ ! -f "$other" ] || set -- "$@" "$other"
done
llvm-profdata merge -sparse "$folder"/counts.*.profraw -o "$folder/counts.profdata" || exit 1
rm -f "$folder"/counts*.lcov
n=0
for other in "$@"; do
    n=$((n + 1))
    llvm-cov export -format=lcov -instr-profile="$folder/counts.profdata" "$other" >"$folder/counts$n.lcov" || exit 1
done
set --
for other in "$folder"/inline_*.o; do [ ! -f "$other" ] || set -- "$@" -object "$other"; done
if [ $# -gt 0 ]; then
    shift                         # the first object has no -object
    llvm-cov export -format=lcov -instr-profile="$folder/counts.profdata" "$@" >"$folder/counts.lcov" || exit 1
fi
if [ -n "$show_missed" ]; then set -- --missed "$missed"; else set --; fi
python3 "$here/coverage.py" "$here/../opdispatch.h" "$@" "$folder"/counts*.lcov
