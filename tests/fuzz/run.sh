#!/bin/sh
# Compiles the fuzz targets with clang, and runs each for some seconds.  See --help.
set -u

help() {
    cat <<'TEXT'
usage: sh tests/fuzz/run.sh [--log FILE] SECONDS [TARGET...]

Runs each fuzz target (tests/fuzz/fuzz_TARGET.c) for SECONDS.  Without TARGET, all targets run.  The files of src/ are
compiled once, for all targets, with the sanitizers of addresses and of undefined behaviour; later runs compile what has
changed.  The first inputs are the files of the folder TARGET/ and what seeds.py makes from tests/golden.  The file
TARGET.dict is the dictionary of the target.  The corpus stays in the folder for builds, and later runs begin with it.
For each target, the script writes one line to the log: executions, executions per second, covered edges and features,
size of the corpus, findings.  Findings and their reports are kept in the folder for builds; the next run tries them
first.  The exit status is 1 if there are findings.

  --log FILE     the log (default: fuzz.log in the folder for builds)
  BUILD=DIR      the folder for builds, corpora and findings (default: build/fuzz)
  CC=clang       a clang with libFuzzer
  CFLAGS=-O1     flags for the compiler
  JOBS=2         how many files are compiled at the same time
TEXT
}

here=$(cd "$(dirname "$0")" && pwd)
log=
while :; do
    case ${1:-} in
        --help|-h|'') help; exit 0 ;;
        --log) log=$2; shift 2 ;;
        *) break ;;
    esac
done
seconds=$1; shift
[ $# -gt 0 ] || set -- $(ls "$here"/fuzz_*.c | sed 's/.*fuzz_\(.*\)\.c/\1/')
CC=${CC:-clang}
BUILD=${BUILD:-$here/../../build/fuzz}
mkdir -p "$BUILD" && BUILD=$(cd "$BUILD" && pwd) || exit 2
[ -n "$log" ] || log=$BUILD/fuzz.log
# OPD_NO_CACHE: freed memory is not used again, so that the address sanitizer finds accesses to it.
flags="-g1 ${CFLAGS:--O1} -DOPD_NO_CACHE -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined"
make -s -C "$here/../../src" -j "${JOBS:-2}" CC="$CC" FLAGS="$flags" B="$BUILD" || exit 2
found=0
targets=$*
for target in $targets; do
    bin=$BUILD/fuzz_$target; out=$BUILD/$target.txt; corpus=$BUILD/$target.corpus; findings=$BUILD/$target.findings
    mkdir -p "$corpus" "$findings"
    [ -n "$(ls "$corpus")" ] || python3 "$here/seeds.py" "$target" "$corpus"
    mv "$findings"/* "$corpus" 2>/dev/null
    if ! $CC $flags -fsanitize=fuzzer -DOPDI_APART -DOPDISPATCH_IMPLEMENTATION -I"$here/../../src" -I"$BUILD" \
         "$here/fuzz_$target.c" "$BUILD/libopdispatch.a" -o "$bin" -lm -ldl -lpthread; then
        echo "$target: does not build" | tee -a "$log"; found=1; continue
    fi
    set -- -max_total_time="$seconds" -timeout=20 -report_slow_units=100 -rss_limit_mb=4096 -print_final_stats=1
    [ ! -f "$here/$target.dict" ] || set -- "$@" -dict="$here/$target.dict"
    if [ -d "$here/$target" ]; then set -- "$@" "$corpus" "$here/$target"
    # the input is a list of choices; long inputs test more
    else set -- "$@" -max_len=512 -len_control=0 -timeout=100 "$corpus"; fi
    ASAN_OPTIONS=${ASAN_OPTIONS:-allocator_may_return_null=1} \
        "$bin" -artifact_prefix="$findings/" "$@" >"$out" 2>&1
    rc=$?
    last=$(grep -a 'cov:' "$out" | tail -n 1)
    number() { echo "$last" | sed -n "s/.*$1: *\([0-9]*\).*/\1/p"; }
    stat() { sed -n "s/^stat::$1: *//p" "$out"; }
    executions=$(stat number_of_executed_units); executions=${executions:-0}
    echo "$target: $executions executions in $seconds s ($((executions / seconds))/s), edges $(number cov)," \
         "features $(number ft), corpus $(ls "$corpus" | wc -l | tr -d ' '), findings $(ls "$findings" | wc -l | tr -d ' ')," \
         "status $rc" | tee -a "$log"
    if [ $rc -ne 0 ] || [ -n "$(ls "$findings")" ]; then
        found=1
        grep -a -m 1 -A 12 -e 'ERROR:' -e 'runtime error' -e 'fuzz_.*\.c:[0-9]*:' "$out" | tee -a "$log"
    fi
done
echo "log: $log"
exit $found
