#!/bin/sh
# Compiles the fuzz targets with clang, and runs each for some seconds.  See --help.
set -u

help() {
    cat <<'TEXT'
usage: sh tests/fuzz/run.sh [--log FILE] SECONDS [TARGET...]

Compiles each fuzz target (tests/fuzz/fuzz_TARGET.c) and runs it for SECONDS.  Without TARGET, all targets run.  If the
file TARGET.dict exists, it is the dictionary of the target.  If the folder TARGET/ exists, it has the initial corpus.
For each target, the script writes one line to the log: executions, executions per second, covered edges and features,
size of the corpus, findings.  Findings and their reports are kept in the folder for builds, whose path is printed.  The
exit status is 1 if there are findings.

  --log FILE     the log (default: fuzz.log in the folder for builds)
  BUILD=DIR      the folder for builds and findings (default: a new folder)
  CC=clang       a clang with libFuzzer
  CFLAGS=-O1     flags for the compiler
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
BUILD=${BUILD:-$(mktemp -d "${TMPDIR:-/tmp}/opd_fuzz.XXXXXX")}
mkdir -p "$BUILD"
[ -n "$log" ] || log=$BUILD/fuzz.log
found=0
targets=$*
for target in $targets; do
    bin=$BUILD/fuzz_$target; out=$BUILD/$target.txt; corpus=$BUILD/$target.corpus; findings=$BUILD/$target.findings
    mkdir -p "$corpus" "$findings"
    if ! $CC -g ${CFLAGS:--O1} -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
         "$here/fuzz_$target.c" -o "$bin" -lm -lpthread; then
        echo "$target: does not build" | tee -a "$log"; found=1; continue
    fi
    set -- -max_total_time="$seconds" -timeout=20 -report_slow_units=100 -rss_limit_mb=4096 -max_len=4096 -print_final_stats=1
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
