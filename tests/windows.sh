#!/bin/sh
# Builds tests for Windows with mingw-w64, and runs them under wine.  See --help.
set -u

# Test files for features that depend on Windows: files, DLLs, threads, thread-locals, memory, the size of long,
# printing.
usual='msvc paths dlls compile exchange json keys memory registration scopes threads gradcheck graphs vmap_api print modules'
help() {
    cat <<TEXT
usage: sh tests/windows.sh [--whole] [NAME...]

Builds the implementation and test files (tests/*/test_NAME.c) for Windows with mingw-w64, without optimisation, and
runs them under wine.  Without names, these are: $usual.
msvc is no test file: it is sh tests/msvc.sh --run.
Cases that Windows or wine cannot pass are left out: the list in this script says why.

  --whole         all test files, except fuzz tests and the files in this list (about 20 minutes)
  OBJECT=file.o   an implementation that is compiled already, with tests/inside.h
  WINEPREFIX=...  an existing prefix of wine, instead of a new one (695 MB in \$TMPDIR while this runs)
TEXT
}

# Prints a line for each FILE or FILE:CASE that is left out, with the reason.
left_out() {
    cat <<'TEXT'
plugins                     ELF files and shell commands; test_dlls.c has the cases for Windows
compiled                    shell commands; test_compile.c has the cases for Windows
extension                   libraries of PyTorch for Linux
aoti                        libraries of PyTorch for Linux
kernels                     contains the implementation itself
cuda                        needs CUDA
texts                       asks for terabytes of memory, which wine grants
fuzz_scripts                needs signals of a timer
compile:memory_of_several_types              needs clang and gcc under wine
exchange:files_without_room                  needs a limit for the size of files
exchange:permissions_stay                    permissions and symbolic links of POSIX
exchange:links_stay                          symbolic links of POSIX
hooks:anomaly_mode_names_the_call            addresses of code have no names on Windows
hooks:anomaly_mode_tells_the_parents         addresses of code have no names on Windows
collectives:checkpoints_of_parts_are_loaded_by_any_number_of_ranks   shell commands
collectives:allocations_that_fail_are_errors shell commands
faster_way:slow_code_does_not_stay           the library is built without optimisation, so that no code is slower
builtins:functions_give_what_pytorch_gives    last digits of Windows' C library
special:values_are_those_of_mpmath_and_pytorch  last digits of Windows' C library
sym_numbers:numbers_of_programs_are_pythons  last digits of Windows' C library
mistakes:printing                            sends the standard output to a file
engine:backward_in_a_forked_child            needs fork
threads:children_of_a_fork_register          needs fork
TEXT
}

whole=
case ${1:-} in --help|-h) help; exit 0 ;; --whole) whole=yes; shift ;; esac
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root" || exit 1
cc=x86_64-w64-mingw32-gcc
have() { command -v "$1" >/dev/null 2>&1; }
passed=0; failed=0; skipped=0
finish() {
    tail=; [ $skipped -eq 0 ] || tail=", $skipped skipped"
    echo "$passed passed, $failed failed$tail"
    [ $failed -eq 0 ]
    exit
}
bad() { failed=$((failed + 1)); echo "FAIL windows: $1"; [ -z "${2:-}" ] || head -n 12 "$2" | cut -c 1-240; }
wine=; for w in wine64 wine /usr/lib/wine/wine64; do have $w && wine=$w; done
if [ -z "$wine" ] || ! have $cc; then echo 'skip windows: no wine or no mingw-w64'; skipped=1; finish; fi

tmp=$(mktemp -d "${TMPDIR:-/tmp}/opd_windows.XXXXXX") || exit 1
# No winedevice.exe: it runs drivers, which no test needs, and now and then it ends with a page fault, whose message
# comes among what a test prints.
export WINEDEBUG=-all WINEDLLOVERRIDES=winedevice.exe=d TMPDIR="$tmp" WINEPREFIX="${WINEPREFIX:-$tmp/wine}"
# wine's server ends some seconds after the last program, and writes files into a prefix in $tmp until then.
remove() {
    [ -z "${server:-}" ] || kill "$server" 2>/dev/null
    for again in 1 2 3 4 5 6 7 8 9; do rm -rf "$tmp" 2>/dev/null && return; sleep 1; done
}
trap remove EXIT
trap 'exit 130' INT TERM
limit=; have timeout && limit='timeout 900'

[ -d "$WINEPREFIX" ] || "$wine" wineboot >"$tmp/out" 2>&1        # a new prefix has messages of its own
mkdir -p "$tmp/headers/sys" "$tmp/dlls/größe 日"
for name in sys/wait sys/mman sys/resource dlfcn; do : >"$tmp/headers/$name.h"; done
if [ -z "${OBJECT:-}" ]; then
    OBJECT=$tmp/implementation.o
    printf '#define OPDISPATCH_IMPLEMENTATION\n#include "tests/inside.h"\n' >"$tmp/implementation.c"
    if ! $cc -O0 -I. -c "$tmp/implementation.c" -o "$OBJECT" >"$tmp/out" 2>&1; then
        bad 'the implementation does not build' "$tmp/out"; finish
    fi
fi

# Builds the DLLs for test_dlls.c.
dlls() {
    plugin="$cc -O0 -w -shared -static -I. -DOPDISPATCH_PLUGIN"
    echo 'no DLL' >"$tmp/dlls/text.dll"
    echo 'int missing(void) { return 1; }' >"$tmp/missing.c"
    echo 'int missing(void); int needs(void) { return missing(); }' >"$tmp/needs.c"
    # 95 sections: their headers have more than 4,096 bytes
    { for i in $(seq 84); do echo "int v$i __attribute__((section(\"part$i\"))) = $i;"; done
      cat tests/linkage/ops.c; } >"$tmp/sections.c"
    $plugin tests/linkage/ops.c -o "$tmp/dlls/ops.dll" && $plugin tests/linkage/order.c -o "$tmp/dlls/order.dll" &&
        cp "$tmp/dlls/ops.dll" "$tmp/dlls/order" && $plugin -s "$tmp/sections.c" -o "$tmp/dlls/sections.dll" &&
        $plugin tests/linkage/errors.c -o "$tmp/dlls/errors.dll" &&
        $plugin tests/linkage/ops.c tests/linkage/ops_cuda.c -o "$tmp/dlls/größe 日/two files.dll" &&
        $cc -shared "$tmp/missing.c" -o "$tmp/dlls/plain.dll" && $cc -shared "$tmp/missing.c" -o "$tmp/missing.dll" &&
        $cc -shared "$tmp/needs.c" "$tmp/missing.dll" -o "$tmp/dlls/needs.dll" &&
        $cc -shared -static "$OBJECT" -o "$tmp/dlls/own.dll" -lpthread
}
case " $usual $* " in *' dlls '*)
    dlls >"$tmp/out" 2>&1 || bad 'the DLLs do not build' "$tmp/out"
    export OPD_DLLS="$tmp/dlls"
esac

# Compiles what programs under wine ask for: see tests/plugins/compiler_for_wine.c.
serve() {
    while [ -d "$tmp/requests" ]; do
        for request in "$tmp"/requests/*.request; do
            [ -e "$request" ] || continue
            set --
            while IFS= read -r word; do
                case $word in [cCzZ]:*|-I[cCzZ]:*)
                    word=$(printf %s "$word" | tr '\\' / |
                           sed "s|^\(-I\)\{0,1\}[zZ]:|\1|; s|^\(-I\)\{0,1\}[cC]:|\1$WINEPREFIX/drive_c|") ;;
                esac
                set -- "$@" "$word"
            done <"$request"
            rm "$request"
            $cc "$@" >"${request%request}output" 2>&1
            echo $? >"$tmp/status.new"
            mv "$tmp/status.new" "${request%request}status"
        done
        sleep 0.02
    done
}
mkdir "$tmp/requests" "$tmp/cache" "$tmp/bin of gcc"
$cc -O0 -static -municode tests/plugins/compiler_for_wine.c -o "$tmp/bin of gcc/cc.exe" >"$tmp/out" 2>&1 ||
    bad 'compiler_for_wine.c does not build' "$tmp/out"
export OPD_REQUESTS="Z:$tmp/requests" XDG_CACHE_HOME="Z:$tmp/cache" CC="Z:$tmp/bin of gcc/cc.exe" OPD_INCLUDE="Z:$root"
serve 2>/dev/null &
server=$!

names=${*:-$usual}
if [ -n "$whole" ]; then names=msvc\ $(ls tests/*/test_*.c | sed 's|.*/test_||; s|\.c$||' | grep -v '^fuzz_'); fi
for name in $names; do
    left_out | grep -q "^$name " && continue
    if [ "$name" = msvc ]; then
        export OBJECT; WINE=$wine $limit sh tests/msvc.sh --run >"$tmp/out" 2>&1
        case $(cat "$tmp/out") in
            '') passed=$((passed + 1)) ;;
            SKIP:*) skipped=$((skipped + 1)); sed 's/^SKIP:/skip windows: msvc.sh:/' "$tmp/out" ;;
            *) bad msvc.sh "$tmp/out" ;;
        esac
        continue
    fi
    without=$(left_out | sed -n "s/^$name:\([^ ]*\) .*/--without=\1/p")
    if ! $cc -O0 -w -I"$tmp/headers" -include tests/on_windows.h tests/*/test_"$name".c "$OBJECT" -static \
         -o "$tmp/program.exe" -lm -lpthread >"$tmp/out" 2>&1; then
        bad "test_$name.c does not build" "$tmp/out"; continue
    fi
    for try in 1 2; do
        $limit "$wine" "$tmp/program.exe" $without >"$tmp/out" 2>&1 </dev/null
        rc=$?
        # On a busy machine, wine now and then starts no process: the file runs once more.
        grep -a -q 'cannot run the compiler .*: error [0-9]* of Windows' "$tmp/out" && [ $try = 1 ] || break
        echo "again: test_$name.c: $(grep -a -m 1 -o 'error [0-9]* of Windows' "$tmp/out")"
    done
    line=$(tr -d '\r' <"$tmp/out" | grep -a "^test_$name.c: [0-9]* passed, [0-9]* failed" | tail -n 1)
    set -- $(echo "${line#*: }" | tr -c '0-9\n' ' ')
    if [ $# -lt 2 ]; then bad "test_$name.c died" "$tmp/out"; continue; fi
    passed=$((passed + $1)); failed=$((failed + $2)); skipped=$((skipped + ${3:-0}))
    if [ "$2" != 0 ]; then echo "FAIL windows: $line"; grep -a -v '^skipped' "$tmp/out" | head -n 12 | cut -c 1-240
    elif [ $rc -ne 0 ]; then bad "test_$name.c: exit status $rc" "$tmp/out"; fi
done
finish
