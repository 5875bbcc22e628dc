#!/bin/sh
# Builds and runs the tests.  See --help.
set -u

help() {
    cat <<'TEXT'
usage: sh tests/run.sh [options] [name | operator NAME]

Builds and runs all test files (tests/*/test_*.c and .cpp) except those for CUDA.  Also checks the header itself
(tests/check_header.sh), and the ways to link or load operators (tests/linkage.sh).  This takes 5 to 8 minutes on two
cores.  The checks that compile the library again and again run only with --whole.  Walks that compile a program for each
operator visit an eighth of the operators, unless --whole or a name is given.

With a name, the script runs only the test files of the folder NAME, which are the tests of a layer.  If there is no such
folder, it runs the test file test_NAME.c.  (With the name test_autograd, it runs that file of the folder autograd.)
If there is no such file, it runs the checks of the two scripts whose names contain NAME (with the name linkage: all
checks of tests/linkage.sh), or else the test cases whose names contain NAME.  With the words operator NAME, it runs all
that the author of an operator has to see: the walks over all operators, for NAME, its in-place form and its overloads,
and the tests in tests/ops that name it.  The name cuda runs the tests of the CUDA plug-in (tests/cuda.sh), which need no GPU, and do not run
without this name.  The check cuda_emulated_races examines each memory access of the kernels, which takes minutes: it
runs only if its full name is given.  The same is true of the check cuda_plugin if there is no GPU.

The last line is: N passed, N failed, and N skipped if tests were skipped (a test is a test case with a name).  Seconds
are processor time.  The implementation is compiled once, with test_kernels.c, and linked with each test file.  On a
terminal, a bar shows the progress and the remaining time.

  --whole             runs all checks of the header and of linking, and compiles programs for all operators
  --rest              runs only the checks that run only with --whole
  --sanitize          uses the address and undefined-behaviour sanitizers
  --thread-sanitize   uses the thread sanitizer, and runs only the files with THREADED in their first ten lines
  --cxx               compiles the implementation and the test files as C++11 (except the files with C ONLY in their
                      first ten lines)
  --cxx-on-c          compiles the test files as C++11, and links them with an implementation in C
  --std11             only compiles the implementation and the declarations, as C11 and C++11, with strict warnings
  --header            runs only the checks of the header
  --rooms             compiles each file of src/ separately (make -C src), if it has changed, and tests these files
                      instead of the header.  It can be combined with the options above, except --cxx, --std11 and
                      --header.  With --cxx-on-c, the files with C ONLY are compiled as C.  A sanitizer can be
                      combined with both.
  --quick             like --rooms, for work on the library: tcc compiles the test files, in a twentieth of a second.  If
                      tcc refuses a file, or a case fails or is skipped, CC compiles the file again, and only this
                      result counts.  The names of such files are printed at the end.
  --again             for a second run with another compiler (CC): leaves out the checks that do not depend on the
                      compiler, and the checks that use all compilers
  --help              prints this text

  CC=clang CXX=clang++   other compilers
  CFLAGS=-O3             flags instead of -O2 for the implementation (-O1 with sanitizers, or as C++) and -O0 for the
                         test files
  JOBS=2                 the number of files that are compiled and run at the same time
  TMPDIR=/tmp            the folder for builds
  OBJECTS=folder         keeps implementations for later runs with the same header, compiler and flags
TEXT
}

#-- one file or script: run.sh calls itself with --one, several at a time ----------------------------------------------

# Draws the progress bar on a terminal.  RUN_BAR is the number of test files and checks.  A finished file has a result,
# and a finished check has a line in the log of its script.
progress() {
    [ -n "$RUN_BAR" ] || return 0
    done=$(cat "$RUN_TMP"/*.sh.log 2>/dev/null | grep -a -c -e '^ok ' -e '^FAIL ' -e '^skip ')
    done=$((done + $(ls "$RUN_TMP" | grep -c '^test_.*[.]result$')))
    awk -v done="$done" -v all="$RUN_BAR" -v took="$(($(date +%s) - RUN_BEGAN))" 'BEGIN {
        bar = ""; for (i = 1; i <= 30; i++) { bar = bar (i * all <= 30 * done ? "#" : ".") }
        left = done ? int(took * (all - done) / done) : 0
        printf "[%s] %d of %d, about %d:%02d left\033[K\r", bar, done, all, left / 60, left % 60 }'
}
# checks SCRIPT [NAME]: runs a script that prints "ok NAME", "FAIL NAME: why" or "skip NAME: why" for each check.
checks() {
    base=$(basename "$1")
    times >"$RUN_TMP/$base.before"; sh "$1" $2 >"$RUN_TMP/$base.log" 2>&1; times >"$RUN_TMP/$base.after"
    # without passed checks that took less than ten seconds
    said=$(grep -a -v '^ok [^ ]* (.\{0,1\} s)$' "$RUN_TMP/$base.log")
    set -- $(grep -a -c '^ok ' "$RUN_TMP/$base.log") $(grep -a -c '^FAIL ' "$RUN_TMP/$base.log") \
           $(grep -a -c '^skip ' "$RUN_TMP/$base.log")
    [ "$(($1 + $2 + $3))" -gt 0 ] || set -- 0 1 0
    echo "$1 $2 $3" >"$RUN_TMP/$base.result"
    printf '%s\n%s: %d passed, %d failed, %d skipped, %d s\n' "$said" "$base" "$1" "$2" "$3" \
           "$(seconds "$RUN_TMP/$base.before" "$RUN_TMP/$base.after")"
}

# with_tcc: compiles $file with tcc, links it with the separate files of src/, and runs it.  Fails if a case fails or is
# skipped.
with_tcc() {
    case $file in *.cpp) return 1 ;; esac
    tcc -w -c "$file" -o "$RUN_TMP/$name.o" >"$log" 2>&1 &&
        $CC -Wl,-z,noexecstack "$RUN_TMP/$name.o" $RUN_OBJECT -o "$RUN_TMP/$name" -lm -lpthread >"$log" 2>&1 &&
        $RUN_LIMIT "$RUN_TMP/$name" -v $RUN_CASES >"$log" 2>&1 && grep -aq "^$base: [0-9]* passed, 0 failed$" "$log"
}
# one FILE: builds and runs a test file.  Writes "passed failed skipped" to $RUN_TMP/NAME.result, and prints all output
# together, at the end.
one() {
    file=$1
    base=$(basename "$file"); name=${base%.*}
    log=$RUN_TMP/$name.log
    case $file in
        "$RUN_WHOLE") source= ;;                  # the file contains the implementation
        *.c) source="-x $RUN_LANGUAGE $file -x none" ;;
        *) source="-std=c++11 $file" ;;
    esac
    build=$RUN_COMPILER
    case $file in *.cpp) build=$CXX ;; esac
    if [ "$RUN_LANGUAGE" = c++ ] && head -n 10 "$file" | grep -q 'C ONLY'; then build=$CC source="-x c $file -x none"; fi
    build="$build $RUN_FLAGS $RUN_QUICK $source $RUN_OBJECT"
    # this file calls private functions of the files of src/, and contains what inside.o contains
    if [ "$file" = "$RUN_WHOLE" ] && [ -n "${RUN_APART:-}" ]; then
        build="$CC $RUN_FLAGS -w -O0 -U_FORTIFY_SOURCE -DOPDI_APART -I${0%/*}/../src -I$RUN_APART $file $RUN_APART/libopdispatch.a"
    fi
    passed=0; failed=0; skipped=0; built=; rc=0; by_tcc=
    if [ -n "$RUN_TCC" ]; then with_tcc && by_tcc=yes || echo "$base" >>"$RUN_TMP/by_cc"; fi
    if [ -z "$by_tcc" ] && ! $build -o "$RUN_TMP/$name" -lm -lpthread >"$log" 2>&1; then
        echo "$base: does not build: $build" >>"$log"
        failed=1; text=$(cat "$log")
    else
        if [ -z "$by_tcc" ]; then
            built=$(cat "$log")
            $RUN_LIMIT "$RUN_TMP/$name" -v $RUN_CASES >"$log" 2>&1
            rc=$?
        fi
        summary=$(grep -a "^$base: [0-9]* passed, [0-9]* failed" "$log" | tail -n 1)
        text=$(grep -a -v -e '^case ' -e "^$base: [0-9]* passed" "$log")
        [ -z "$built" ] || text="$built
$text"
        if [ -n "$summary" ]; then
            set -- $(echo "${summary#"$base": }" | tr -c '0-9\n' ' ')
            passed=$1; failed=$2; skipped=${3:-0}
            if [ $rc -ne 0 ] && [ "$failed" -eq 0 ]; then       # a sanitizer's report at the end
                failed=1; text="$text
$base: exit status $rc"
            fi
        else
            passed=$(grep -a -c '^case ' "$log"); passed=$((passed > 0 ? passed - 1 : 0)); failed=1
            text="$text
$base: died with status $rc in $(grep -a '^case ' "$log" | tail -n 1)"
        fi
    fi
    times >"$log.times"
    echo "$passed $failed $skipped" >"$RUN_TMP/$name.result"
    [ -z "$text" ] || text="$text
"
    [ "$((passed + failed + skipped))" -eq 0 ] ||
        printf '%s%s: %d passed, %d failed, %d skipped, %d s\n' "$text" "$base" "$passed" "$failed" "$skipped" \
               "$(seconds "$log.times")"
}
# seconds FILE [FILE]: prints the seconds of processor time in an output of `times`, or between two outputs of one
# shell.
seconds() {
    for said in "$@"; do
        tr 'ms' '  ' <"$said" | awk '{ s += 60 * ($1 + $3) + $2 + $4 } END { print s + 0 }'
    done | awk '{ s = $1 - s } END { printf "%d", s + 0.5 }'
}
if [ "${1:-}" = --one ]; then
    case $2 in
        */linkage.sh) checks "$2" "$RUN_LINKAGE_NAME" ;;
        */cuda.sh) checks "$2" "$RUN_CUDA_NAME" ;;
        *) one "$2" ;;
    esac
    progress
    exit 0
fi

#-- options ------------------------------------------------------------------------------------------------------------

here=$(cd "$(dirname "$0")" && pwd)
mode=plain; sanitizer=none; name=; operator=; RUN_AGAIN=; rooms=no; CHECKS=; RUN_TCC=
for arg in "$@"; do
    case $arg in
        --sanitize) sanitizer=address ;;
        --thread-sanitize) sanitizer=thread ;;
        --cxx) mode=cxx ;;
        --cxx-on-c) mode=cxx_on_c ;;
        --again) RUN_AGAIN=yes ;;
        --rooms) rooms=yes ;;
        --quick) rooms=yes; RUN_TCC=yes ;;
        --whole) CHECKS=all ;;
        --rest) CHECKS=slow ;;
        --std11) mode=std11 ;;
        --header) mode=header ;;
        --help|-h) help; exit 0 ;;
        -*) echo "run.sh: unknown option $arg (see --help)" >&2; exit 2 ;;
        *)
            [ -z "$name" ] || { echo "run.sh: one name at a time, not $name and $arg (see --help)" >&2; exit 2; }
            if [ "$arg" = operator ] && [ -z "$operator" ]; then operator=yes; else name=$arg; fi ;;
    esac
done
CC=${CC:-cc}
if [ -z "${CXX:-}" ]; then
    case $CC in
        *clang*) CXX=$(echo "$CC" | sed 's/clang/clang++/') ;;
        *gcc*) CXX=$(echo "$CC" | sed 's/gcc/g++/') ;;
        *) CXX=c++ ;;
    esac
fi
# The plain tests use -O2, as programs do: only then does gcc fuse multiplications and additions.  They also have the
# checks of glibc's functions (_FORTIFY_SOURCE), and the compiler's warnings for them.
RUN_FLAGS=${CFLAGS:--O1}
[ $rooms$mode$sanitizer != noplainnone ] || [ -n "${CFLAGS:-}" ] || RUN_FLAGS='-O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2'
kind=$mode                           # of an implementation that other scripts use, too: see built_before in checks.sh
[ $sanitizer = none ] || kind=$sanitizer
case $sanitizer in
    address)
        RUN_FLAGS="-DOPD_NO_CACHE -g1 $RUN_FLAGS -fsanitize=address,undefined -fno-omit-frame-pointer"
        # clang takes 40 s less to compile the library if undefined behaviour traps: the address sanitizer then prints
        # the line, but not the reason.  It also finds what null and object-size find.
        # In C++, some tests give enumerations numbers that they do not have, which must be errors.
        case $CC in
            *clang*) RUN_FLAGS="$RUN_FLAGS -fsanitize-trap=undefined -fno-sanitize=null,object-size,enum" ;;
            *) RUN_FLAGS="$RUN_FLAGS -fno-sanitize-recover=undefined" ;;
        esac ;;
    thread) RUN_FLAGS="-DOPD_NO_CACHE -g1 $RUN_FLAGS -fsanitize=thread" ;;
esac
# Test files are compiled with -O0: compiling them takes longer than running them.
RUN_QUICK=
[ -n "${CFLAGS:-}" ] || RUN_QUICK='-O0 -U_FORTIFY_SOURCE'
ASAN_OPTIONS=${ASAN_OPTIONS:-allocator_may_return_null=1:handle_sigill=1:handle_sigtrap=1}
TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=0:exitcode=66}
RUN_LIMIT=
if command -v timeout >/dev/null 2>&1; then RUN_LIMIT='timeout 1200'; fi
RUN_TMP=$(mktemp -d "${TMPDIR:-/tmp}/opd_tests.XXXXXX") || exit 1
beside=                                           # the process that checks the header at the same time
trap '[ -z "$beside" ] || { pkill -P "$beside"; kill "$beside"; } 2>/dev/null; rm -rf "$RUN_TMP"' EXIT
trap 'exit 130' INT TERM

#-- what to run --------------------------------------------------------------------------------------------------------

header=no; header_name=; linkage=no; RUN_LINKAGE_NAME=; cuda=no; RUN_CUDA_NAME=
files=$(ls "$here"/*/test_*.c "$here"/*/test_*.cpp 2>/dev/null | grep -v test_cuda.c)  # tests/cuda.sh runs test_cuda.c
case $mode$sanitizer in
    plainnone) header=yes; [ -n "$name" ] || linkage=yes; ;;
    headernone|std11none) header=yes ;;
esac
if [ "$CHECKS" = slow ]; then files=
elif [ -z "$CHECKS$name" ] && [ $mode$sanitizer = plainnone ]; then CHECKS=quick      # if a name is given, slow checks run, too
fi
export CHECKS
if [ -z "$name" ] && [ "$CHECKS" != all ]; then export CHECK_COMPILED_PART="${CHECK_COMPILED_PART:-8}"; fi      # see check.h
case $mode in
    header|std11) files= ;;
    cxx*) [ $rooms = yes ] ||
        files=$(for f in $files; do head -n 10 "$f" | grep -q 'C ONLY' || echo "$f"; done) ;;
esac
# Commits take turns with the halves of the files for the address sanitizer, see turn in checks.sh.
[ $sanitizer != address ] || [ "$CHECKS$name" ] || [ -z "${CHECK_TURNS:-}" ] ||
    files=$(printf '%s\n' $files | awk -v turn=$((${CHECK_TURN:-0} % 2)) 'NR % 2 == turn')
[ $sanitizer != thread ] || files=$(for f in $files; do head -n 10 "$f" | grep -q THREADED && echo "$f"; done)
[ $mode = std11 ] && header_name=std11
case $rooms$mode in
    yescxx|yesheader|yesstd11) echo "run.sh: --rooms cannot be combined with --cxx, --header or --std11 (see --help)" >&2; exit 2 ;;
esac
[ $rooms = no ] || { header=no; linkage=no; }
RUN_CASES=
if [ -n "$operator" ] && [ -z "$name" ]; then
    echo "run.sh: the name of an operator is missing, as in: sh tests/run.sh operator softmax" >&2; exit 2
fi
if [ -n "$name" ]; then
    chosen=$(for f in $files; do b=$(basename "$f"); case ${b%.*} in test_$name|$name) echo "$f" ;; esac; done)
    layer=$(printf '%s\n' "$files" | grep "^$here/${name%/}/")
    if [ -n "$operator" ]; then
        base=${name#*::}; base=${base%%.*}; base=${base%_}
        grep -rq "\"$base\(_\)\{0,1\}[.(]" "$here/../src/ops" ||
            { echo "run.sh: there is no built-in operator with the name $name" >&2; exit 2; }
        # the walks over all operators, with the cases of this one, and the tests of families that name it
        files=$(for f in $files; do
            case $f in
                "$here"/ops/*) grep -q "\b\(opd_\)\{0,1\}$base\(_\|\b\)" "$f" && echo "$f" ;;
                *) grep -q 'add_builtin_operators\|check_add_with(opd_op_name' "$f" && echo "$f" ;;
            esac
        done)
        RUN_CASES=--operator=$name; header=no; linkage=no
    elif [ -n "$layer" ]; then files=$layer; header=no
    elif [ -n "$chosen" ]; then files=$chosen; header=no
    elif [ $header = yes ] && sh "$here/check_header.sh" --list | grep -q "$name"; then files=; header_name=$name
    elif [ $mode$sanitizer = plainnone ] && { echo linkage; sh "$here/linkage.sh" --list; } | grep -q "$name"; then
        files=; header=no; linkage=yes
        [ "$name" = linkage ] || RUN_LINKAGE_NAME=$name
    elif [ $mode$sanitizer = plainnone ] && sh "$here/cuda.sh" --list | grep -q "$name"; then
        files=; header=no; cuda=yes; RUN_CUDA_NAME=$name
    else RUN_CASES=$name; header=no; fi
fi
RUN_COMPILER=$CC; RUN_LANGUAGE=c; language=c
# In a run of all tests, clang compiles the test files for an implementation of gcc: in half of gcc's time.
if [ $rooms$mode$sanitizer = noplainnone ] && [ -z "$name${CFLAGS:-}" ] && command -v clang >/dev/null 2>&1; then RUN_COMPILER=clang; fi
case $mode in
    cxx*) RUN_COMPILER="$CXX -std=c++11"; RUN_LANGUAGE=c++; [ $mode = cxx_on_c ] || language=c++ ;;
esac
RUN_WHOLE=$here/kernels/test_kernels.c; RUN_APART=
[ $language = c ] && build="$CC $RUN_FLAGS" || build="$RUN_COMPILER -x c++ $RUN_FLAGS"
built_from=$(cat "$here/../opdispatch.h" "$RUN_WHOLE" "$here/inside.h" "$here/check.h" | cksum)
RUN_OBJECT=${OBJECTS:-$RUN_TMP}/implementation_$(echo "$build $built_from" | cksum | tr ' ' _).o
scripts=
[ $linkage = no ] || scripts=$here/linkage.sh
[ $cuda = no ] || scripts=$here/cuda.sh
RUN_BEGAN=$(date +%s); RUN_BAR=
if [ -t 1 ]; then
    RUN_BAR=$({ printf '%s\n' "$files"
                [ $linkage = no ] || sh "$here/linkage.sh" --list
                [ $cuda = no ] || sh "$here/cuda.sh" --list
                [ $header = no ] || sh "$here/check_header.sh" --list; } | grep -c .)
fi
if [ -n "$RUN_TCC" ] && [ $mode$sanitizer != plainnone ]; then
    echo "run.sh: --quick can be combined only with a name (see --help)" >&2; exit 2
fi
if [ -n "$RUN_TCC" ] && ! command -v tcc >/dev/null 2>&1; then RUN_TCC=; echo "there is no tcc: $CC compiles the test files"; fi
export RUN_BEGAN RUN_BAR RUN_LINKAGE_NAME RUN_CUDA_NAME RUN_TCC
export CC CXX RUN_TMP RUN_QUICK RUN_OBJECT RUN_FLAGS RUN_COMPILER RUN_LANGUAGE RUN_LIMIT RUN_CASES RUN_WHOLE RUN_AGAIN ASAN_OPTIONS TSAN_OPTIONS

#-- run ----------------------------------------------------------------------------------------------------------------

# Builds the library from the separate files of src/, in a folder that the next run uses again.
rooms_built() {
    folder=${OBJECTS:-$here/../build}/rooms_$(echo "$build" | cksum | cut -d ' ' -f 1)
    mkdir -p "$folder" && folder=$(cd "$folder" && pwd) || return 1
    RUN_APART=$folder; export RUN_APART
    RUN_OBJECT="$folder/inside.o $folder/libopdispatch.a"
    export OPD_INCLUDE=${OPD_INCLUDE:-$here/..}   # the library's own path would lead to src/
    [ ! -f "$folder/libopdispatch.a" ] || ! [ "$folder/inside.o" -nt "$folder/libopdispatch.a" ] ||
        [ -n "$(find "$here/../src" "$here/seams.h" "$here/inside.h" -type f ! -name '*.pyc' -newer "$folder/libopdispatch.a" | head -n 1)" ] || return 0
    make -s -C "$here/../src" -j "${JOBS:-2}" CC="$CC" FLAGS="$RUN_FLAGS -include $here/seams.h" B="$folder" || return 1
    [ "$folder/inside.o" -nt "$folder/libopdispatch.a" ] && [ "$folder/inside.o" -nt "$here/inside.h" ] ||
        $build -DOPDI_APART -I"$here/../src" -I"$folder" -c "$here/inside_apart.c" -o "$folder/inside.o" || return 1
    # one object of all, for other scripts; aoti/unsupported.c is for programs without OPD_AOTI
    [ -z "${OBJECTS:-}" ] || [ -n "${CFLAGS:-}" ] || [ $sanitizer = none ] ||
        ld -r $(find "$folder" -name '*.o' ! -name unsupported.o) -o "$OBJECTS/${kind}_$CC.o"
}
# The checks of the header do not need the implementation's object.  With more than one job, they start before it is
# built.
if [ $header = yes ] && [ -n "$files" ] && [ "${JOBS:-2}" -gt 1 ]; then
    { checks "$here/check_header.sh" "$header_name"; progress; } &
    beside=$!
fi
failed_early=0; warned=0; rest=
warnings=; [ $mode$sanitizer != plainnone ] || warnings='-Wall -Wextra'           # with sanitizers, compilers give false warnings
if [ -n "$files" ]; then
    if [ $rooms = yes ]; then
        if rooms_built; then times >"$RUN_TMP/times"; echo "the files of src/: built, $(seconds "$RUN_TMP/times") s"
        else echo 'the files of src/: they do not build'; failed_early=1; files=; fi
    elif [ -f "$RUN_OBJECT" ]; then echo 'the implementation: built before'
    elif $build $warnings -c "$RUN_WHOLE" -o "$RUN_TMP/implementation.o" 2>"$RUN_TMP/warnings" &&
         mv "$RUN_TMP/implementation.o" "$RUN_OBJECT"; then
        [ -z "${OBJECTS:-}" ] || [ -n "${CFLAGS:-}" ] || ln -sf "$(basename "$RUN_OBJECT")" "$OBJECTS/${kind}_$CC.o"
        times >"$RUN_TMP/times"; echo "the implementation: built, $(seconds "$RUN_TMP/times") s"
        if [ -s "$RUN_TMP/warnings" ]; then       # warnings of the optimiser, which check_header.sh does not use
            head -n 20 "$RUN_TMP/warnings"; echo 'the implementation: warnings'; warned=1
        fi
    else
        head -n 20 "$RUN_TMP/warnings"
        echo "the implementation: does not build: $build -c $RUN_WHOLE"
        failed_early=1; files=
    fi
fi
[ $failed_early = 0 ] || scripts=
[ -z "$scripts$files" ] ||
    { [ -z "$scripts" ] || echo "$scripts"; [ -z "$files" ] || printf '%s\n' "$files"; } |
        xargs -P "${JOBS:-2}" -n 1 sh "$here/run.sh" --one
if [ -n "$beside" ] && [ $failed_early = 0 ]; then wait "$beside"; rest=$beside; beside=
elif [ $header = yes ] && [ $failed_early = 0 ]; then checks "$here/check_header.sh" "$header_name"
fi
[ -z "$RUN_BAR" ] || printf '\033[K'
[ ! -f "$RUN_TMP/by_cc" ] || echo "compiled with $CC, not tcc: $(sort "$RUN_TMP/by_cc" | tr '\n' ' ')"

passed=0; failed=$((failed_early + warned)); skipped=0
for file in "$RUN_TMP"/*.result; do
    [ -f "$file" ] || continue
    read -r p f s <"$file"
    passed=$((passed + p)); failed=$((failed + f)); skipped=$((skipped + s))
done
for file in $files; do                            # a job that ended without a result
    base=$(basename "$file")
    [ -f "$RUN_TMP/${base%.*}.result" ] || { echo "$base: no result"; failed=$((failed + 1)); }
done
for file in $scripts ${rest:+check_header.sh}; do
    base=$(basename "$file")
    [ -f "$RUN_TMP/$base.result" ] || { echo "$base: no result"; failed=$((failed + 1)); }
done
if [ -n "$name" ] && [ $((passed + failed + skipped)) -eq 0 ]; then
    echo "run.sh: there is no test file, test case or check with the name $name"; failed=1
fi
tail=
[ $skipped -eq 0 ] || tail=", $skipped skipped"
echo "$passed passed, $failed failed$tail"
[ $failed -eq 0 ]
