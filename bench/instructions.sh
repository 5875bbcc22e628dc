#!/bin/sh
# Counts the instructions of kernels on 64-bit ARM, in an emulator, with NEON and in plain C.  See --help.
set -u

help() {
    cat <<'TEXT'
usage: sh bench/instructions.sh [--markdown] [NAME...]

Prints how many instructions an element of an operator, or a multiply-add of a matrix product, takes on 64-bit ARM: in
plain C (built with OPD_NO_SIMD), with NEON, and their ratio.  All sizes are 256 x 256.  The program runs in
qemu-aarch64, once with 1 call and once with 3 calls; half of the difference is one call.  The counts do not depend on
what else runs on the machine.  They are not times: instructions take different times.

  --markdown     prints the table for bench/tables/arm.md
  NAME...        only these rows (see bench/instructions.c), for example matmul-f32 exp-f64

  CC=aarch64-linux-gnu-gcc    the cross compiler         CFLAGS=-O2     its options
  EMULATOR=qemu-aarch64       an emulator with plug-ins  HOSTCC=cc      compiles the plug-in that counts

Exit status: 0, or 1 if something does not build or run, or 2 if a tool is missing.
TEXT
}
markdown=; names=
for arg in "$@"; do
    case $arg in
        --help|-h) help; exit 0 ;;
        --markdown) markdown=yes ;;
        -*) echo "instructions.sh: unknown option $arg (see --help)" >&2; exit 2 ;;
        *) names="$names $arg" ;;
    esac
done
cc=${CC:-aarch64-linux-gnu-gcc}; flags=${CFLAGS:--O2}; emulator=${EMULATOR:-qemu-aarch64}; hostcc=${HOSTCC:-cc}
for tool in "$cc" "$emulator" "$hostcc"; do
    command -v "$tool" >/dev/null 2>&1 || { echo "instructions.sh: $tool is missing" >&2; exit 2; }
done
cd "$(dirname "$0")/.." || exit 1
tmp=$(mktemp -d "${TMPDIR:-/tmp}/opd_instructions.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM

"$hostcc" -shared -fPIC -O2 bench/instructions_counter.c -o "$tmp/counter.so" || exit 1
"$cc" $flags -DOPD_LEAN -DOPD_STATIC bench/instructions.c -static -o "$tmp/neon" -lm -lpthread || exit 1
"$cc" $flags -DOPD_LEAN -DOPD_STATIC -DOPD_NO_SIMD bench/instructions.c -static -o "$tmp/plain" -lm -lpthread || exit 1

# count PROGRAM NAME TIMES: prints the number of instructions.
count() {
    "$emulator" -d plugin -D "$tmp/log" -plugin "$tmp/counter.so" "$tmp/$1" "$2" "$3" >"$tmp/out" 2>&1 ||
        { cat "$tmp/out" >&2; return 1; }
    sed -n 's/^instructions: //p' "$tmp/log" | tail -n 1
}
"$emulator" "$tmp/neon" --list >"$tmp/list" || exit 1
if [ -n "$markdown" ]; then printf '| kernel | plain C | NEON | ratio |\n|---|---|---|---|\n'
else printf '%-12s %9s %9s %7s\n' kernel plain NEON ratio; fi
while read -r name per; do
    case "$names " in ' '|*" $name "*) ;; *) continue ;; esac
    for build in plain neon; do
        one=$(count $build "$name" 1) && three=$(count $build "$name" 3) && [ -n "$one" ] && [ -n "$three" ] || exit 1
        eval "$build=$(((three - one) / 2))"
    done
    awk -v name="$name" -v per="$per" -v plain="$plain" -v neon="$neon" -v markdown="$markdown" 'BEGIN {
        form = markdown ? "| %s | %.2f | %.2f | %.2f |\n" : "%-12s %9.2f %9.2f %7.2f\n"
        printf form, name, plain / per, neon / per, neon / plain }'
done <"$tmp/list"
