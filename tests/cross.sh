#!/bin/sh
# Compiles the library for other machines, and runs tests in emulators.  See --help.
set -u

all='s390x riscv64 aarch64 armhf i686 x86-64-v1 x86-64-v2 x86-64-v3 no-simd same-bits mingw
emscripten musl'
help() {
    cat <<'TEXT'
usage: sh tests/cross.sh [target...]

Compiles the implementation once for each target, and runs tests of code that depends on the machine: byte order
(s390x), 32 bits (armhf, i686), signed or unsigned char, other SIMD instructions, systems without threads, plug-ins or
an unwinder.

  s390x riscv64 aarch64 armhf    the tests of $TESTS and examples/quickstart.c, with Debian's cross compilers and
                                 qemu-user; aarch64 also tests the vector code for NEON
  i686                           the same tests, directly on this machine if possible
  x86-64-v1 x86-64-v2 x86-64-v3  tests of kernels and examples/quickstart.c on processors that have no instructions of
                                 later levels, with qemu-user; with the kernels that they use, all tests of kernels
                                 also run directly on this machine (OPD_CPU_LEVEL)
  no-simd                        training in the mode of same bits without vector code (OPD_NO_SIMD), compiled by gcc
                                 and clang, and for 64-bit ARM with qemu-user
  same-bits                      training in the mode of same bits for i686, for Windows (if wine is installed), with
                                 another C library (musl), and for aarch64, armhf, s390x and riscv64; then each operator
                                 with functions of the C library that return other results (other_math.c), with clang,
                                 without vector code (OPD_NO_SIMD) and with musl, and an eighth of them in the
                                 emulators: only operators in golden/outside_same_bits.txt may give other bits
  mingw                          examples/quickstart.c for Windows, with threads; if wine is installed, it and the tests
                                 of tests/windows.sh run
  emscripten                     examples/quickstart.c, one epoch of examples/digits.c, and training in the mode of same
                                 bits, run by node
  musl                           examples/quickstart.c with another C library, linked statically

A target is skipped with a message if its compiler or emulator is missing.  Without arguments, the script runs all
targets.  The last line is: N passed, N failed, and N skipped if tests were skipped (a test is a test case with a name,
or a program).

  TESTS='keys graphs:by_hand,wrong'     runs these test files, or these cases of them, instead of the default ones
  CFLAGS=-O0                            compiles the implementation with these flags instead of -O1 (aarch64: -O2, i686: -O0)
TEXT
}
case ${1:-} in --help|-h) help; exit 0 ;; --list) printf '%s\n' $all; exit 0 ;; esac

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root" || exit 1
tests=${TESTS:-'keys schema print tensors views overloads exchange
dispatch:golden,values,kinds,fallthrough,guards,calls,coercions,results,typed,user
autograd:derivatives,in_place,accumulate,wide,many,threads graphs:programs,by_hand,wrong,constants,files,texts,allocations
memory:handles,define,network,create_graph same_numbers same_training audit kernels:half,edges,philox,random,outer,conv,no_memory,--without=kernels_conv_ways'}
neon='kernels:conv_ways,vector_math,gemm,dots,few_rows,extremes,short_floats,levels,winograd,functions_of_doubles,powers block_products'
tmp=$(mktemp -d "${TMPDIR:-/tmp}/opd_cross.XXXXXX") || exit 1
# wine's server ends some seconds after the last program, and writes files into $tmp until then.
remove() { for again in 1 2 3 4 5 6 7 8 9; do rm -rf "$tmp" 2>/dev/null && return; sleep 1; done; }
trap remove EXIT
trap 'exit 130' INT TERM
passed=0; failed=0; skipped=0
limit=; command -v timeout >/dev/null 2>&1 && limit='timeout 900'       # emulators are slow

good() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); echo "FAIL $target: $1"; [ -z "${2:-}" ] || tail -n 12 "$2" | cut -c 1-240; }
skip() { skipped=$((skipped + 1)); echo "skip $target: $1"; }
. "$root/tests/checks.sh"
have() { command -v "$1" >/dev/null 2>&1; }

# The examples, and their output, which must be equal on all machines.
printf '#define OPDISPATCH_IMPLEMENTATION\n#include "opdispatch.h"\n' >"$tmp/implementation.c"
printf '#define OPDISPATCH_IMPLEMENTATION\n#include "tests/inside.h"\n' >"$tmp/inside.c"
mkdir "$tmp/examples"
ln -s "$root/opdispatch.h" "$tmp/opdispatch.h"
for example in quickstart digits; do        # the implementation is compiled separately
    grep -v '^#define OPDISPATCH_IMPLEMENTATION' "examples/$example.c" >"$tmp/examples/$example.c"
done
# example NAME OUTPUT COMMAND...: runs a command and compares its output with the file OUTPUT.
example() {
    name=$1; want=$2; shift 2
    if ! $limit "$@" >"$tmp/out" 2>"$tmp/err" </dev/null; then cat "$tmp/err" >>"$tmp/out"; bad "$name" "$tmp/out"; return; fi
    tr -d '\r' <"$tmp/out" | diff "$want" - >"$tmp/diff" && good || bad "$name says something else" "$tmp/diff"
}
# run_test NAME COMMAND...: runs a test file, and adds its counts to the counts of this script.  Walks over many cases
# take an eighth of the cases, because emulators are slow.  The test finds no C compiler, because the one of this machine
# compiles for this machine.
run_test() {
    name=$1; shift
    CHECK_PART=8 CC=false TMPDIR=$tmp $limit "$@" >"$tmp/out" 2>&1 </dev/null
    line=$(grep -a "^test_$name.c: [0-9]* passed, [0-9]* failed" "$tmp/out" | tail -n 1)
    set -- $(echo "${line#*: }" | tr -c '0-9\n' ' ')
    if [ $# -lt 2 ]; then bad "test_$name.c died" "$tmp/out"; return; fi
    passed=$((passed + $1)); failed=$((failed + $2)); skipped=$((skipped + ${3:-0}))
    [ "$2" = 0 ] || { echo "FAIL $target: $line"; grep -a -v '^skipped' "$tmp/out" | head -n 12 | cut -c 1-240; }
}

# linux TRIPLE EMULATOR FLAGS...: builds with TRIPLE-gcc, and runs tests and an example in the emulator.
linux() {
    cc=$1-gcc; emulator=$2; sysroot=/usr/$1; shift 2
    # Only with -O2 does gcc fuse multiplications and additions, for which 64-bit ARM always has instructions.  What
    # 32 bits change shows without optimisation, too; in emulators, optimising takes less time than it saves.
    flags=-O1
    case $target in aarch64) flags=-O2 ;; i686) flags=-O0 ;; esac
    flags=${CFLAGS:-$flags}
    have "$cc" || { skip "no $cc"; return; }
    if [ "$target" = i686 ]; then           # threads do not run in qemu-i386
        loader=$sysroot/lib/ld-linux.so.2
        "$loader" --help >/dev/null 2>&1 || { skip "this machine does not run 32-bit programs"; return; }
        run="$loader --library-path $sysroot/lib"
    else
        have "$emulator" || { skip "no $emulator"; return; }
        run="$emulator -L $sysroot"
    fi
    if ! $cc "$@" $flags -c tests/kernels/test_kernels.c -o "$tmp/$target.o" >"$tmp/out" 2>&1; then
        bad 'the implementation does not build' "$tmp/out"; return
    fi
    if $cc "$@" -O0 "$tmp/examples/quickstart.c" "$tmp/$target.o" -o "$tmp/program" -lm -lpthread $libs >"$tmp/out" 2>&1
    then
        example quickstart.c tests/golden/quickstart.out $run "$tmp/program"
    else bad 'quickstart.c does not build' "$tmp/out"; fi
    for name in $tests $more; do
        cases=; case $name in *:*) cases=$(echo "${name#*:}" | tr , ' '); name=${name%%:*} ;; esac
        source=$(echo tests/*/test_$name.c); [ "$name" != kernels ] || source=  # the program is only the implementation
        if $cc "$@" -O0 $source "$tmp/$target.o" -o "$tmp/program" -lm -lpthread $libs >"$tmp/out" 2>&1; then
            run_test "$name" $run "$tmp/program" $cases
        else bad "test_$name.c does not build" "$tmp/out"; fi
    done
}
# older PROCESSOR LEVEL: runs few tests in an emulator of the processor, which stops a program at an instruction that the
# processor lacks.  If LEVEL is a number, also runs all tests of kernels directly, with OPD_CPU_LEVEL.  The emulator would
# take minutes for matrix products, and does not emulate fork in programs with threads.
few='half powers_and edges philox functions_of_doubles running_sums layer_norm stored levels'
older() {
    processor=$1 level=$2
    case $(uname -m) in x86_64) ;; *) skip 'this machine is no x86-64'; return ;; esac
    object=
    [ -n "${CFLAGS:-}" ] || object=$(built_before 'plain_*' opdispatch.h)
    [ -n "$object" ] || object=$tmp/x86-64.o
    if [ ! -e "$object" ] && ! gcc ${CFLAGS:--O1} -c tests/kernels/test_kernels.c -o "$object" >"$tmp/out" 2>&1; then
        bad 'the implementation does not build' "$tmp/out"; return
    fi
    for name in kernels words; do
        source=tests/kernels/test_$name.c; [ $name = words ] || source=   # the object is the other program
        gcc -O0 $source "$object" -o "$tmp/$name" -lm -lpthread >"$tmp/out" 2>&1 || bad "test_$name.c does not build" "$tmp/out"
        [ -z "$level" ] || run_test $name env OPD_CPU_LEVEL=$level "$tmp/$name"
    done
    if gcc -O0 -Iexamples "$tmp/examples/digits.c" "$object" -o "$tmp/digits" -lm -lpthread >"$tmp/out" 2>&1; then
        same_digits env OPD_CPU_LEVEL="${level:-2}" "$tmp/digits"
        for cc in gcc clang; do
            for threads in 1 8; do
                same_compiled_digits $cc env OPD_CPU_LEVEL="${level:-2}" OPD_NUM_THREADS=$threads "$tmp/digits"
            done
        done
    else bad 'digits.c does not build' "$tmp/out"; fi
    have qemu-x86_64 || { skip 'no qemu-x86_64'; return; }
    gcc -O0 "$tmp/examples/quickstart.c" "$object" -o "$tmp/program" -lm -lpthread >"$tmp/out" 2>&1
    example quickstart.c tests/golden/quickstart.out qemu-x86_64 -cpu $processor "$tmp/program"
    run_test kernels qemu-x86_64 -cpu $processor "$tmp/kernels" $few
}
# same_digits RUN...: RUN is examples/digits.c, which has to print the hash of the weights in golden/same_training.txt.
same_digits() {
    if $limit "$@" --steps 20 --hash --data examples/data/digits.txt >"$tmp/out" 2>&1 &&
       grep -q "$(sed -n 's/^digits: //p' tests/golden/same_training.txt)" "$tmp/out"; then good
    else bad 'digits.c --hash says something else' "$tmp/out"; fi
}
# same_compiled_digits COMPILER RUN...: the same if COMPILER compiles the steps of the training.  The first is uncompiled.
same_compiled_digits() {
    cc=$1; shift
    have "$cc" || { skip "no $cc"; return; }
    same_digits env "CC=$cc" OPD_COMPILED_ALWAYS=1 "XDG_CACHE_HOME=$tmp" "$@" --compiled
    grep -q '^19 of 20 steps were compiled' "$tmp/out" || bad "digits.c --compiled is not compiled by $cc" "$tmp/out"
}
# trains COMPILER FLAGS RUN...: trains in the mode of same bits, and compares the weights with golden/same_training.txt.
trains() {
    cc=$1 flags=$2; shift 2
    have "$cc" || { skip "no $cc"; return; }
    [ $# = 0 ] || have "$1" || { skip "no $1"; return; }
    if $cc $flags -O1 -I. -c "$tmp/inside.c" -o "$tmp/$target.o" >"$tmp/out" 2>&1 &&
       $cc $flags -O0 tests/walks/test_same_training.c "$tmp/$target.o" -o "$tmp/trains.exe" -lm -lpthread $libs >"$tmp/out" 2>&1
    then run_test same_training "$@" "$tmp/trains.exe"
    else bad "$cc: the implementation does not build" "$tmp/out"; fi
}
no_simd() {
    trains gcc -DOPD_NO_SIMD
    trains clang -DOPD_NO_SIMD
    trains aarch64-linux-gnu-gcc -DOPD_NO_SIMD qemu-aarch64 -L /usr/aarch64-linux-gnu
}
# calls_operators COMPILER FILE FLAGS...: writes hashes of the results of all operators in the mode of same bits to FILE.
# $run: the emulator, in which an eighth of the operators is called; or empty.
calls_operators() {
    cc=$1 to=$2; shift 2
    $cc -O0 tests/walks/test_same_bits.c "$@" -o "$tmp/program" -lm -lpthread $libs >"$tmp/out" 2>&1 &&
        OPD_SAME_BITS=1 OPD_TEST_LIST=1 $limit env ${run:+CHECK_PART=8} $run "$tmp/program" --without=a_row_has_the_same_bits_in_each_batch \
            --without=long_rows_have_the_same_bits_in_each_batch >"$to" 2>"$tmp/out" </dev/null
}
same_bits() {
    loader=/usr/i686-linux-gnu/lib/ld-linux.so.2
    trains i686-linux-gnu-gcc '-msse2 -mfpmath=sse' "$loader" --library-path /usr/i686-linux-gnu/lib
    cc=x86_64-w64-mingw32-gcc
    if ! have $cc; then skip "no $cc"
    elif $cc -O1 -I. -c "$tmp/inside.c" -o "$tmp/$target.o" >"$tmp/out" 2>&1; then windows_tests same_training
    else bad "$cc: the implementation does not build" "$tmp/out"; fi
    object=$(built_before 'plain_*' opdispatch.h)
    if [ -z "$object" ]; then
        object=$tmp/glibc.o
        gcc -O1 -c tests/kernels/test_kernels.c -o "$object" >"$tmp/out" 2>&1 || { bad 'does not build' "$tmp/out"; return; }
    fi
    run=
    calls_operators gcc "$tmp/glibc.txt" "$object" || { bad 'test_same_bits.c died' "$tmp/out"; return; }
    other_math
    same_operators clang
    same_operators 'gcc -DOPD_NO_SIMD'
    same_operators 'musl-gcc -static'
    same_operators aarch64-linux-gnu-gcc qemu-aarch64 -L /usr/aarch64-linux-gnu
    same_operators arm-linux-gnueabihf-gcc qemu-arm -L /usr/arm-linux-gnueabihf
    same_operators s390x-linux-gnu-gcc qemu-s390x -L /usr/s390x-linux-gnu
    libs=-latomic
    same_operators riscv64-linux-gnu-gcc qemu-riscv64 -L /usr/riscv64-linux-gnu
}
# other_math: compares the results of operators with those that use the functions of tests/other_math.c.
other_math() {
    have objcopy || { skip 'no objcopy'; return; }
    if gcc -O0 -c tests/other_math.c -o "$tmp/other_math.o" >"$tmp/out" 2>&1 &&
       nm "$tmp/other_math.o" | sed -n 's/.* T other_\(.*\)/\1 other_\1/p' >"$tmp/names" && [ -s "$tmp/names" ] &&
       objcopy --redefine-syms="$tmp/names" "$object" "$tmp/other.o" >"$tmp/out" 2>&1 &&
       calls_operators gcc "$tmp/other.txt" "$tmp/other.o" "$tmp/other_math.o" &&
       python3 tests/same_bits.py "$tmp/glibc.txt" "$tmp/other.txt" >"$tmp/out" 2>&1; then good
    else bad 'operators call functions of the C library' "$tmp/out"; fi
}
# same_operators COMPILER RUN...: trains, and compares the results of operators with those on this machine.
same_operators() {
    cc=${1%% *} flags=${1#"$cc"}; shift
    trains "$cc" "$flags" "$@"
    have "$cc" || return
    [ $# = 0 ] || have "$1" || return
    if [ $# != 0 ]; then                # the emulator runs this machine's cross compiler
        $cc -O0 "$tmp/examples/digits.c" "$tmp/$target.o" -o "$tmp/digits" -lm -lpthread $libs >"$tmp/out" 2>&1
        same_compiled_digits $cc "$@" "$tmp/digits"
    fi
    run=$*
    if calls_operators "$cc" "$tmp/other.txt" $flags "$tmp/$target.o" &&
       python3 tests/same_bits.py "$tmp/glibc.txt" "$tmp/other.txt" >"$tmp/out" 2>&1; then good
    else bad "operators give other bits with $cc" "$tmp/out"; fi
}
mingw() {
    cc=x86_64-w64-mingw32-gcc
    have $cc || { skip "no $cc"; return; }
    # -O0 is enough: the programs need no speed, and other builds show the warnings that need optimisation
    if ! $cc -Wall -Wextra -Werror -O0 -I. -c "$tmp/inside.c" -o "$tmp/$target.o" >"$tmp/out" 2>&1 ||
       ! $cc -O0 -static "$tmp/examples/quickstart.c" "$tmp/$target.o" -o "$tmp/q.exe" -lm -lpthread >"$tmp/out" 2>&1; then
        bad 'does not build' "$tmp/out"; return
    fi
    good
    wine=; for w in wine64 wine /usr/lib/wine/wine64; do have $w && wine=$w; done
    if [ -z "$wine" ]; then skip 'no wine to run it'; return; fi
    export WINEDEBUG=-all WINEDLLOVERRIDES=winedevice.exe=d WINEPREFIX="$tmp/wine"
    example quickstart.c tests/golden/quickstart.out $wine "$tmp/q.exe"
    windows_tests
}
# windows_tests NAME...: runs tests/windows.sh with the implementation for Windows.
windows_tests() {
    OBJECT=$tmp/$target.o sh tests/windows.sh "$@" >"$tmp/out" 2>&1
    cat "$tmp/out"
    set -- $(tail -n 1 "$tmp/out" | tr -c '0-9\n' ' ')
    passed=$((passed + ${1:-0})); failed=$((failed + ${2:-1})); skipped=$((skipped + ${3:-0}))
}
emscripten() {
    have emcc || { skip 'no emcc'; return; }
    have node || { skip 'no node'; return; }
    if ! emcc -Wall -Wextra -Werror -O1 -I. -c "$tmp/inside.c" -o "$tmp/$target.o" >"$tmp/out" 2>&1; then
        bad 'the implementation does not build' "$tmp/out"; return
    fi
    for example in quickstart digits; do
        if ! emcc -O1 "$tmp/examples/$example.c" "$tmp/$target.o" -o "$tmp/$example.js" -lm -sALLOW_MEMORY_GROWTH \
             -sSINGLE_FILE -sNODERAWFS >"$tmp/out" 2>&1; then
            bad "$example.c does not build" "$tmp/out"; return
        fi
    done
    example quickstart.c tests/golden/quickstart.out node "$tmp/quickstart.js"
    if $limit node "$tmp/digits.js" --epochs 1 --plain >"$tmp/out" 2>&1 && grep -q "$digits" "$tmp/out"; then good
    else bad "digits.c does not say $digits" "$tmp/out"; fi
    same_digits node "$tmp/digits.js"
    if emcc -O1 tests/walks/test_same_training.c "$tmp/$target.o" -o "$tmp/same.js" -lm -sALLOW_MEMORY_GROWTH -sSINGLE_FILE \
        -sNODERAWFS >"$tmp/out" 2>&1; then run_test same_training node "$tmp/same.js"
    else bad 'test_same_training.c does not build' "$tmp/out"; fi
}
# Kernels for other instruction sets round differently: plain C gives 2.1818 and 35.1%, vector code 2.1817 and 35.2%.
digits='loss 2\.181[78]  accuracy  35\.[12]%'
musl() {
    have musl-gcc || { skip 'no musl-gcc'; return; }
    if ! musl-gcc -O0 -I. -c "$tmp/implementation.c" -o "$tmp/$target.o" >"$tmp/out" 2>&1 ||
       ! musl-gcc -O0 -static "$tmp/examples/quickstart.c" "$tmp/$target.o" -o "$tmp/program" >"$tmp/out" 2>&1; then
        bad 'does not build' "$tmp/out"; return
    fi
    example quickstart.c tests/golden/quickstart.out "$tmp/program"
}

for target in ${*:-$all}; do
    was=$passed; libs=; more=
    case $target in                     # "#|" lines: rows of the table of platforms, see .ci/run
        #| Linux on s390x | gcc | tests of dispatcher, tensors, autograd and graphs, an example | in an emulator
        s390x) linux s390x-linux-gnu qemu-s390x ;;
        #| Linux on RISC-V | gcc | tests of dispatcher, tensors, autograd and graphs, an example | in an emulator
        riscv64) libs='-latomic'; linux riscv64-linux-gnu qemu-riscv64 ;;
        #| Linux on 64-bit ARM | gcc | tests of dispatcher, tensors, autograd, graphs and the kernels for NEON, an example | in an emulator
        aarch64) [ -n "${TESTS:-}" ] || more=$neon; linux aarch64-linux-gnu qemu-aarch64 ;;
        #| Linux on 32-bit ARM | gcc | tests of dispatcher, tensors, autograd and graphs, an example | in an emulator
        armhf) linux arm-linux-gnueabihf qemu-arm ;;
        #| Linux on i686 | gcc | tests of dispatcher, tensors, autograd and graphs, an example | natively
        i686) linux i686-linux-gnu '' -msse2 -mfpmath=sse ;;
        #| Linux on x86-64 without SSE3 | gcc | tests of kernels, an example | natively with plain C, some of them in an emulator
        x86-64-v1) older qemu64,-sse3,-ssse3,-sse4a,-cx16 0 ;;
        #| Linux on x86-64 without AVX | gcc | tests of kernels, an example | some of them in an emulator
        x86-64-v2) older Nehalem '' ;;
        #| Linux on x86-64 without AVX-512 | gcc | tests of kernels, an example | natively with AVX2, some of them in an emulator
        x86-64-v3) older Haswell 1 ;;
        #| Linux without vector code (`OPD_NO_SIMD`), x86-64 and 64-bit ARM | gcc, clang | training in the mode of same bits | natively, in an emulator
        no-simd) no_simd ;;
        #| Linux on i686, 64- and 32-bit ARM, s390x, RISC-V, and on x86-64 with musl; Windows on x86-64 | gcc | training in the mode of same bits; with musl, with clang, and without vector code, each operator; in emulators, an eighth of the operators | natively, with wine, in an emulator
        same-bits) same_bits ;;
        #| Windows on x86-64 | mingw-w64 gcc | tests of dispatcher, tensors, autograd, graphs, files, plug-ins and compiling at run time, an example | with wine, if it is installed
        #| Windows on x86-64, code for Microsoft's compiler | clang for this target, with the C library of mingw-w64 | an example (with the library; with a DLL of the library; a plug-in) | with wine, if it is installed
        mingw) mingw ;;
        #| browser (no plug-ins, no threads) | emscripten | two examples, training in the mode of same bits | with node
        emscripten) emscripten ;;
        #| Linux on x86-64 with musl | gcc | an example | natively
        musl) musl ;;
        *) echo "cross.sh: no target $target (see --help)" >&2; exit 2 ;;
    esac
    echo "$target: $((passed - was)) passed"
done
tail=; [ $skipped -eq 0 ] || tail=", $skipped skipped"
echo "$passed passed, $failed failed$tail"
[ $failed -eq 0 ]
