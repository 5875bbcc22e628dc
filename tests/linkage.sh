#!/bin/sh
# Checks the ways to link and load operators: compiles one file of operators (tests/linkage/ops.c) in each way, and
# tries plug-ins that must not load.  Also checks the README and the pages that it links to.
#   sh tests/linkage.sh [NAME]     runs the checks whose names contain NAME
#   sh tests/linkage.sh --list     prints the names of the checks
# Prints "ok NAME", "FAIL NAME: why" or "skip NAME: why" for each check.  tests/run.sh calls this script, with CC, CXX
# and RUN_TMP in the environment.  With RUN_AGAIN=yes, checks that do not depend on CC and CXX are left out.
set -u

names='link_program link_in_any_order link_cxx link_archive link_archive_dropped link_shared link_shared_exported link_as_needed
link_hidden link_hidden_program link_halves link_library_of_its_own plugin
plugin_host_exports plugin_cxx plugin_many_files plugin_halves plugin_host_stripped plugin_by_program_symbols
plugin_strict plugin_needs_define plugin_own_implementation plugin_own_hidden plugin_own_static
plugin_newer_minor plugin_other_major plugin_other_entry plugin_older_minor plugin_missing_symbol
plugin_wrong_machine plugin_wrong_class plugin_two_copies plugin_hidden_copy plugin_no_library plugin_no_blocks
plugin_failing_block plugin_exports plugin_graph plugin_0_4'
[ -n "${RUN_AGAIN:-}" ] || names="host_table old_names stable_only pages_code pages_names link_tcc link_tcc_program_plugin plugin_example compiled_header no_plugins lapack $names"

# The checks that compile the implementation again; tests/run.sh runs them only with --whole.
slow='pages_code compiled_header no_plugins lapack link_hidden_program plugin_hidden_copy plugin_own_static plugin_own_implementation
plugin_own_hidden plugin_two_copies plugin_older_minor'

root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/tests/checks.sh"
names=$(chosen $names)
if [ "${1:-}" = --list ]; then printf '%s\n' $names; exit 0; fi
only=${1:-}
here=$root/tests/linkage
CC=${CC:-cc}; CXX=${CXX:-c++}
own=
if [ -z "${RUN_TMP:-}" ]; then RUN_TMP=$(mktemp -d "${TMPDIR:-/tmp}/opd_linkage.XXXXXX"); own=yes; fi
tmp=$RUN_TMP/linkage; mkdir -p "$tmp"
[ -z "$own" ] || trap 'rm -rf "$RUN_TMP"' EXIT
quick_c=$CC                               # for programs that only have to run: clang takes a third of gcc's time
case $CC in *clang*) ;; *) if command -v clang >/dev/null 2>&1; then quick_c=clang; fi ;; esac
inc="-I$root"
lib='-lm -lpthread'

#-- helpers ------------------------------------------------------------------------------------------------------------

# refused TEXT LIBRARY: the host refuses to load the library, with TEXT in the error, and none of it remains registered.
refused() {
    host
    out=$("$tmp/host" "$2" 2>&1); rc=$?
    [ $rc -eq 2 ] || printf 'status %d, not 2: %s\n' $rc "$out"
    case $out in *"$1"*) ;; *) printf 'no "%s" in: %s\n' "$1" "$out" ;; esac
}
printf '#define OPDISPATCH_IMPLEMENTATION\n#include "opdispatch.h"\n' >"$tmp/implementation.c"
# Compiles the implementation once, position-independent, for programs and libraries.  The quick checks link what $CC
# makes of it; for the slow checks it only has to run.
implementation() {
    object_c=$CC; [ "${CHECKS:-}" != slow ] || object_c=$quick_c
    [ -f "$tmp/implementation.o" ] || $object_c -O0 -fPIC $inc -c "$tmp/implementation.c" -o "$tmp/implementation.o" 2>&1
}
# Builds a program without operators twice: one exports no symbols, the other (with -rdynamic) all.
host() {
    implementation
    [ -x "$tmp/host" ] || $CC $inc "$here/main.c" "$tmp/implementation.o" -o "$tmp/host" $lib 2>&1
    [ -x "$tmp/host_exports" ] ||
        $CC -rdynamic $inc "$here/main.c" "$tmp/implementation.o" -o "$tmp/host_exports" $lib 2>&1
}
plugin_line='-shared -fPIC -DOPDISPATCH_PLUGIN'
plugin() {              # builds a plug-in with one command
    [ -f "$tmp/ops.so" ] || quiet $CC -O1 $plugin_line $inc "$here/ops.c" -o "$tmp/ops.so"
}
plain_library() {       # builds a shared library that uses the program's symbols
    [ -f "$tmp/libops.so" ] || quiet $CC -O1 -shared -fPIC $inc "$here/ops.c" -o "$tmp/libops.so"
}
# header_as FOLDER SED: writes a copy of the header, changed by sed.
header_as() { mkdir -p "$tmp/$1"; sed "$2" "$root/opdispatch.h" >"$tmp/$1/opdispatch.h"; }

#-- linked -------------------------------------------------------------------------------------------------------------

check_link_program() {
    implementation
    quiet $CC $inc "$here/main.c" "$here/ops.c" "$tmp/implementation.o" -o "$tmp/program" $lib
    quiet "$tmp/program"
}
check_link_cxx() {
    implementation
    quiet $CXX -x c++ -std=c++11 $inc -c "$here/ops.c" -o "$tmp/ops_cxx.o"
    quiet $CC $inc "$here/main.c" "$tmp/ops_cxx.o" "$tmp/implementation.o" -o "$tmp/program" $lib -lstdc++
    quiet "$tmp/program"
}
# The backward function, autocast policy and batching rules may be registered before or after their operator.
check_link_in_any_order() {
    implementation
    for part in 0 1 2 3; do quiet $CC $inc -DPART=$part -c "$here/parts.c" -o "$tmp/part$part.o"; done
    for order in '1 2 3' '1 3 2' '2 1 3' '2 3 1' '3 1 2' '3 2 1'; do
        set --; for part in $order; do set -- "$@" "$tmp/part$part.o"; done
        quiet $CC "$tmp/part0.o" "$@" "$tmp/implementation.o" -o "$tmp/program" $lib
        "$tmp/program" 2>&1 | sed "s/^/order $order: /"
    done
}
archive() {
    implementation
    quiet $CC $inc -c "$here/ops.c" -o "$tmp/ops.o"
    rm -f "$tmp/libarchive.a"; quiet ar rc "$tmp/libarchive.a" "$tmp/ops.o"
}
check_link_archive() {
    archive
    quiet $CC -DLINKAGE_USE $inc "$here/main.c" "$tmp/implementation.o" "$tmp/libarchive.a" -o "$tmp/program" $lib
    quiet "$tmp/program"
}
# Without the call of OPD_USE_LIBRARY, nothing of the archive is linked.
check_link_archive_dropped() {
    archive
    quiet $CC $inc "$here/main.c" "$tmp/implementation.o" "$tmp/libarchive.a" -o "$tmp/program" $lib
    out=$("$tmp/program" 2>&1) && echo "the operator is there without the call"
}
linked() {              # linked NAME FLAGS...: links a program with lib<NAME>.so, and runs it
    name=$1; shift
    implementation
    quiet $CC $inc "$here/main.c" "$tmp/implementation.o" "$@" -L"$tmp" -l"$name" -o "$tmp/program" \
          -Wl,-rpath,"$tmp" $lib
    quiet "$tmp/program"
}
check_link_shared() { plain_library; linked ops -Wl,--no-as-needed; }
check_link_shared_exported() { plain_library; linked ops -Wl,--no-as-needed -rdynamic; }
check_link_as_needed() { plain_library; linked ops -DLINKAGE_USE -Wl,--as-needed; }
check_link_hidden() {
    quiet $CC -shared -fPIC -fvisibility=hidden $inc "$here/ops.c" -o "$tmp/libhidden.so"
    linked hidden -DLINKAGE_USE -Wl,--as-needed
}
# A program with hidden symbols still exports the API to the libraries that it is linked with.
check_link_hidden_program() {
    plain_library
    quiet $quick_c -O0 -fvisibility=hidden $inc -c "$tmp/implementation.c" -o "$tmp/hidden.o"
    quiet $CC -fvisibility=hidden $inc "$here/main.c" "$tmp/hidden.o" -DLINKAGE_USE -L"$tmp" -lops -o "$tmp/program" \
          -Wl,-rpath,"$tmp" $lib
    quiet "$tmp/program"
}
halves() { quiet $CC -shared -fPIC $inc "$here/ops_cuda.c" -o "$tmp/libops_cuda.so"; }
check_link_halves() {
    plain_library; halves
    linked ops -Wl,--no-as-needed -L"$tmp" -lops_cuda -DLINKAGE_CUDA
    linked ops_cuda -Wl,--as-needed -L"$tmp" -lops -DLINKAGE_CUDA -DLINKAGE_USE
}
# The implementation is a shared library.  The program and the operators are linked with it.
check_link_library_of_its_own() {
    implementation; mkdir -p "$tmp/own"
    quiet $CC -shared "$tmp/implementation.o" -o "$tmp/own/libopdispatch.so" $lib
    quiet $CC -shared -fPIC $inc "$here/ops.c" -o "$tmp/own/libops.so" -L"$tmp/own" -lopdispatch
    quiet $CC -DLINKAGE_USE $inc "$here/main.c" -L"$tmp/own" -lops -lopdispatch -o "$tmp/program" \
          -Wl,-rpath,"$tmp/own" $lib
    quiet "$tmp/program"
    quiet $CC $inc "$here/main.c" -L"$tmp/own" -lopdispatch -o "$tmp/program" -Wl,-rpath,"$tmp/own" $lib
    quiet "$tmp/program" "$tmp/own/libops.so"
    plugin; quiet "$tmp/program" "$tmp/ops.so"
}
have_tcc() { command -v tcc >/dev/null 2>&1 || { echo 'SKIP: no tcc'; return 1; }; }
# Each old name gives a warning of the compiler that says the new one.
check_old_names() {
    $CC -fsyntax-only -DSHOW_WARNINGS $inc "$root/tests/product/test_old_names.c" >"$tmp/old_names.log" 2>&1
    sed -n 's/^OPDI_OLD_NAME("\(use [A-Za-z_]*\)").*/\1/p' "$root/src/api/old_names.h" >"$tmp/old_names.txt"
    [ "$(grep -c . "$tmp/old_names.txt")" -ge 18 ] || echo 'src/api/old_names.h was not read'
    while read -r text; do
        grep -q "warning: .*deprecated.*$text\b" "$tmp/old_names.log" || echo "no warning: $text"
    done <"$tmp/old_names.txt"
    quiet $CC -fsyntax-only -Wall -Werror -DOPD_NO_OLD_NAMES $inc "$here/main.c"
    ! $CC -fsyntax-only -w -DOPD_NO_OLD_NAMES $inc "$root/tests/product/test_old_names.c" 2>/dev/null ||
        echo 'OPD_NO_OLD_NAMES does not leave them out'
}
# With OPD_STABLE_ONLY, a call of a function that may change gives a warning, and nothing else does.
check_stable_only() {
    printf '%s\n' '#include "opdispatch.h"' 'int f(opd_tensor *x) { return opd_ok() && opd_add(x, x) != 0; }' \
        '#if defined(MAY_CHANGE)' 'opd_graph *g(void) { return opd_graph_new(); }' '#endif' >"$tmp/stable.c"
    for cc in gcc clang; do
        command -v $cc >/dev/null || continue
        quiet $cc -c -Wall -Werror -DOPD_STABLE_ONLY -I"$root" "$tmp/stable.c" -o "$tmp/stable.o"
        quiet $cc -c -Wall -Werror -DMAY_CHANGE -I"$root" "$tmp/stable.c" -o "$tmp/stable.o"
        quiet $cc -c -Wall -Werror -DOPD_STABLE_ONLY -DOPDISPATCH_PLUGIN -I"$root" "$tmp/stable.c" -o "$tmp/stable.o"
        $cc -c -DOPD_STABLE_ONLY -DMAY_CHANGE -I"$root" "$tmp/stable.c" -o "$tmp/stable.o" 2>&1 |
            grep -q 'opd_graph_new.*may change with the next minor version' || echo "$cc: no warning of opd_graph_new"
    done
}
check_link_tcc() {
    have_tcc || return
    quiet tcc -DLINKAGE_USE $inc "$here/main.c" "$here/ops.c" "$tmp/implementation.c" -o "$tmp/program" -lm
    quiet "$tmp/program"
}
check_link_tcc_program_plugin() {
    have_tcc || return
    plugin
    quiet tcc $inc "$here/main.c" "$tmp/implementation.c" -o "$tmp/program" -lm
    quiet "$tmp/program" "$tmp/ops.so"
}

#-- plug-ins that load -------------------------------------------------------------------------------------------------

check_plugin() { host; plugin; quiet "$tmp/host" "$tmp/ops.so"; (cd "$tmp" && quiet ./host ops.so); }
check_plugin_host_exports() { host; plugin; quiet "$tmp/host_exports" "$tmp/ops.so"; }
check_plugin_host_stripped() {
    host; plugin
    cp "$tmp/host" "$tmp/stripped"; quiet strip "$tmp/stripped"
    quiet "$tmp/stripped" "$tmp/ops.so"
}
check_plugin_cxx() {
    host
    quiet $CXX -x c++ -std=c++11 -Wall -Wextra -Wshadow $plugin_line $inc "$here/ops.c" -o "$tmp/ops_cxx.so"
    quiet "$tmp/host" "$tmp/ops_cxx.so"
}
check_plugin_many_files() {
    host
    quiet $CC $plugin_line -fvisibility=hidden $inc "$here/ops.c" "$here/ops_cuda.c" -o "$tmp/many.so"
    implementation
    quiet $CC -DLINKAGE_CUDA $inc "$here/main.c" "$tmp/implementation.o" -o "$tmp/host_cuda" $lib
    quiet "$tmp/host_cuda" "$tmp/many.so"
}
# A plug-in in C++ throws an exception, in a program in C.  A graph that calls its operator has the location of the
# call, and the error of a missing operator names the file that had it.
check_plugin_graph() {
    cat >"$tmp/thrower.cpp" <<'TEXT'
#include "opdispatch.h"
#include <stdexcept>
static int same(opd_call *call) {
    if (opd_arg_bool(call, 1)) { throw std::runtime_error("thrown in the plug-in\n"); }
    return opd_return_tensor(call, opd_clone(opd_arg_tensor(call, 0)));
}
OPD_LIBRARY(thrower, lib) {
    opd_op_desc d = opd_op_desc();
    d.schema = "same(Tensor x, bool now) -> Tensor";
    d.cpu = OPD_CATCH(same);
    opd_define(lib, &d);
}
TEXT
    cat >"$tmp/thrown.c" <<'TEXT'
#include "opdispatch.h"
#include <stdio.h>
static int fn(void *now, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)n;
    out[0] = opd_exp(OPD_CALL(opd_find("thrower::same"), in[0], now != NULL));
    return out[0] ? 1 : -1;
}
int main(int argc, char **argv) {
    static char text[4000];
    opd_trace_options o = {0};
    opd_plugin *p = opd_plugin_load(argv[1]);
    o.locations = argc > 1;
    OPD_SCOPE {
        opd_tensor *x = opd_ones(OPD_INTS(2), OPD_FLOAT32);
        opd_graph *g = opd_graph_trace(fn, text, &x, 1, &o);
        printf("%s.\n", opd_error_message());
        opd_error_clear();
        opd_graph_free(g);
        g = opd_graph_trace(fn, NULL, &x, 1, &o);
        if (opd_graph_save(g, argv[2])) { break; }
        opd_graph_free(g);
        g = opd_graph_load(argv[2]);
        opd_graph_print(g, text, sizeof text);
        printf("%s", text);
        opd_graph_free(g);
        opd_plugin_unload(p);
        g = opd_graph_load(argv[2]);
        printf("%s.\n", opd_error_message());
        opd_error_clear();
        opd_graph_free(g);
    }
    return opd_finish();
}
TEXT
    quiet $CXX -std=c++11 -Wall -Wextra $plugin_line $inc "$tmp/thrower.cpp" -o "$tmp/thrower.so"
    implementation
    quiet $CC -O0 -g $inc "$tmp/thrown.c" "$tmp/implementation.o" -o "$tmp/thrown" $lib
    out=$(cd "$tmp" && ./thrown ./thrower.so thrown.opd 2>&1) || printf 'status %d\n' $?
    case $out in *'thrower::same: thrown in the plug-in.'*) ;; *) printf 'no exception in: %s\n' "$out" ;; esac
    case $out in
        *'no operator thrower::same: load the library that defines it (when the graph was saved it was registered at '*'thrower.cpp:7 of ./thrower.so)'*) ;;
        *) printf 'no origin in: %s\n' "$out" ;;
    esac
    command -v addr2line >/dev/null 2>&1 || return
    case $out in *'thrower::same('*') # '*'thrown.c:5'*'aten::exp('*') # '*'thrown.c:5'*) ;;
        *) printf 'no location in: %s\n' "$out" ;;
    esac
}
# Two plug-ins each have a half of the operators, and are loaded in both orders.
check_plugin_halves() {
    plugin; implementation
    quiet $CC $plugin_line $inc "$here/ops_cuda.c" -o "$tmp/ops_cuda.so"
    quiet $CC -DLINKAGE_CUDA $inc "$here/main.c" "$tmp/implementation.o" -o "$tmp/host_cuda" $lib
    quiet "$tmp/host_cuda" "$tmp/ops.so" "$tmp/ops_cuda.so"
    quiet "$tmp/host_cuda" "$tmp/ops_cuda.so" "$tmp/ops.so"
}
# Without OPDISPATCH_PLUGIN, a library calls symbols that the program exports.
check_plugin_by_program_symbols() { host; plain_library; quiet "$tmp/host_exports" "$tmp/libops.so"; }
check_plugin_strict() {
    quiet $CC -std=c11 -O1 -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wundef \
          -Wmissing-prototypes -Wstrict-prototypes -Wcast-qual $plugin_line $inc "$here/ops.c" -o "$tmp/strict.so"
}
# A plug-in exports one name of the library, and has no undefined ones.
check_plugin_exports() {
    quiet $CC $plugin_line $inc "$here/ops_cuda.c" -o "$tmp/exports.so"
    nm -D --defined-only "$tmp/exports.so" | awk '{ print $NF }' | grep -v -e '^linkage_' -e '^_' |
        grep -v -x opd_plugin_entry | sed 's/^/exported: /'
    nm -D --undefined-only "$tmp/exports.so" | grep 'opd' | sed 's/^/looked for outside: /'
}
# Builds examples/plugin.c and its host with the commands in their first comments.
check_plugin_example() {
    for name in plugin plugin_host; do
        line=$(sed -n 's/^ *\(cc .*\)/\1/p' "$root/examples/$name.c" | head -n 1)
        (cd "$root" && quiet $quick_c ${line#cc } -O0 -o "$tmp/example_$name")
    done
    out=$("$tmp/example_plugin_host" "$tmp/example_plugin" 2>&1) || printf '%s\n' "$out"
    case $out in *32.*gone*'[1., 2., 3.]'*) ;; *) printf 'it prints: %s\n' "$out" ;; esac
}
# The program is linked with a library that has its own copy of opdispatch.  Only one copy can load a plug-in.
check_plugin_two_copies() {
    host; plugin
    cat >"$tmp/copy.c" <<'TEXT'
#define OPD_STATIC
#define OPDISPATCH_IMPLEMENTATION
#include "opdispatch.h"
OPD_EXPORT const char *copy_load(const char *path);
const char *copy_load(const char *path) { return opd_plugin_load(path) ? "loaded" : opd_error_message(); }
TEXT
    cat >"$tmp/copies.c" <<'TEXT'
#include "opdispatch.h"
#include <stdio.h>
const char *copy_load(const char *path);
int main(int argc, char **argv) {
    opd_plugin *p = argc > 1 ? opd_plugin_load(argv[1]) : NULL;
    printf("%s\n", copy_load(argv[1]));
    OPD_SCOPE { opd_print(OPD_CALL(opd_find("linkage::square_plus"), opd_ones(OPD_INTS(2), OPD_FLOAT32))); }
    return opd_plugin_unload(p) || opd_finish();
}
TEXT
    quiet $quick_c -O0 -shared -fPIC $inc "$tmp/copy.c" -o "$tmp/libcopy.so" $lib
    quiet $CC $inc "$tmp/copies.c" "$tmp/implementation.o" -L"$tmp" -lcopy -Wl,-rpath,"$tmp" -o "$tmp/copies" $lib
    out=$("$tmp/copies" "$tmp/ops.so" 2>&1) || printf 'status %d\n' $?
    case $out in *'by another copy of opdispatch'*'[2., 2.]'*) ;; *) printf 'it prints: %s\n' "$out" ;; esac
}
# A library of two files has its own copy of opdispatch, and operators of the same names as the program that loads it.
# It calls its own ones, although the program exports its copy.
check_plugin_hidden_copy() {
    cat >"$tmp/which.c" <<'TEXT'
#include "opdispatch.h"
#include <string.h>
static int which(opd_call *call) { return opd_return_int(call, WHICH); }
OPD_LIBRARY(copies, lib) {
    opd_op_desc d;
    memset(&d, 0, sizeof d);
    d.schema = "which(int x) -> int";
    d.composite = which;
    opd_define(lib, &d);
}
OPD_EXPORT int64_t WHICH_NAME(void);
int64_t WHICH_NAME(void) {
    opd_value ret = opd_value_none();
    return OPD_CALL_N(opd_find("copies::which"), &ret, 0) == 0 ? ret.u.i : -1;
}
TEXT
    cat >"$tmp/loads_copy.c" <<'TEXT'
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
int64_t of_host(void);
int main(int argc, char **argv) {
    void *const library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (!library) { printf("%s\n", dlerror()); return 1; }
    int64_t (*of_library)(void);
    *(void **)&of_library = dlsym(library, "of_library");
    printf("%d %d %d\n", (int)of_host(), (int)of_library(), (int)of_host());
    return 0;
}
TEXT
    small='-O0 -fPIC -DOPD_NO_OPERATORS -DOPD_NO_TRANSFORMS -DOPD_NO_GRAPHS'
    implementation
    quiet $CC $inc -rdynamic -DWHICH=1 -DWHICH_NAME=of_host "$tmp/which.c" "$tmp/loads_copy.c" "$tmp/implementation.o" \
          -o "$tmp/with_copy" $lib
    for way in -fvisibility=hidden -DOPD_HIDDEN; do
        quiet $quick_c $small $way $inc -c "$tmp/implementation.c" -o "$tmp/hidden_copy.o"
        quiet $CC $small $way $inc -DWHICH=2 -DWHICH_NAME=of_library -shared "$tmp/which.c" "$tmp/hidden_copy.o" \
              -o "$tmp/hidden_copy.so" $lib
        nm -D --defined-only "$tmp/hidden_copy.so" | awk '{ print $NF }' | grep -e '^opd' | head -n 4 |
            sed "s/^/with $way exported: /"
        out=$("$tmp/with_copy" "$tmp/hidden_copy.so" 2>&1)
        [ "$out" = '1 2 1' ] || printf 'with %s: %s\n' "$way" "$out"
    done
}
# A program with a newer header, whose struct and table have additional entries at the end, loads a plug-in of this
# version.
check_plugin_older_minor() {
    plugin
    minor=$(sed -n 's/^#define OPD_VERSION_MINOR //p' "$root/opdispatch.h")
    header_as newer "s/^#define OPD_VERSION_MINOR .*/#define OPD_VERSION_MINOR $((minor + 1))/
s/^} opd_op_desc;/    void *grown[4]; } opd_op_desc;/
/^#define OPDI_HOST_FUNCTIONS/,/[^\\]\$/s/[^\\]\$/&  X(int, opd_newer, 0, ())/
s/^static int opdi_host_define(/int opd_newer(void) { return 1; }\n&/
s/^    return opd_define(lib, &d);/    if (d.grown[0] || d.grown[3]) { return opd_fail(OPD_ERROR_USER, \"grown\"); }\n&/
s/^OPD_API const char \*opd_plugin_path/OPD_API int opd_newer(void);\n&/"
    quiet $quick_c -O0 -I"$tmp/newer" "$here/main.c" "$tmp/implementation.c" -o "$tmp/host_newer" $lib
    nm "$tmp/host_newer" | grep -q opd_newer || echo 'the newer header has not grown'
    quiet "$tmp/host_newer" "$tmp/ops.so"
}

# A plug-in of version 0.4 calls functions that had other parameters or results, by their places in the table.
check_plugin_0_4() {
    implementation
    cat >"$tmp/calls_0_4.c" <<'TEXT'
#include "opdispatch.h"
#include <stdio.h>
int main(int argc, char **argv) {
    opd_plugin *plugin = argc > 1 ? opd_plugin_load(argv[1]) : NULL;
    OPD_SCOPE {
        opd_value args[2];
        args[0] = opd_value_tensor(opd_full(opd_ints_of(NULL, 0), OPD_V(3), OPD_FLOAT64));
        args[1] = opd_value_double(0.5);
        const opd_value bad = opd_call_value(opd_find("old::calls"), args, 2);
        printf("%d wrong%s%s\n", (int)bad.u.i, opd_ok() ? "" : ": ", opd_error_message());
    }
    return opd_plugin_unload(plugin) || opd_finish();
}
TEXT
    quiet $CC -w -shared -fPIC $inc "$here/plugin_0_4.c" -o "$tmp/plugin_0_4.so"
    quiet $CC $inc "$tmp/calls_0_4.c" "$tmp/implementation.o" -o "$tmp/calls_0_4" $lib
    out=$("$tmp/calls_0_4" "$tmp/plugin_0_4.so" 2>&1) || printf 'status %d\n' $?
    [ "$out" = '0 wrong' ] || printf 'it prints: %s\n' "$out"
}

#-- plug-ins that do not load ------------------------------------------------------------------------------------------

check_plugin_needs_define() { plain_library; refused 'build the library with -DOPDISPATCH_PLUGIN' "$tmp/libops.so"; }
own_implementation() {
    implementation
    quiet $CC -shared -fPIC $inc "$here/ops.c" "$tmp/implementation.o" -o "$tmp/own.so" $lib
}
check_plugin_own_implementation() {
    own_implementation
    refused 'contains its own implementation' "$tmp/own.so"
    "$tmp/host_exports" "$tmp/own.so" | grep -q 'contains its own implementation' ||
        echo 'an exporting program does not say so'
    cat "$here/ops.c" >"$tmp/both.c"
    $CC $plugin_line -DOPDISPATCH_IMPLEMENTATION $inc "$tmp/both.c" -o "$tmp/both.so" 2>&1 |
        grep -q 'do not define OPDISPATCH_IMPLEMENTATION' || echo 'both macros at once compile'
}
check_plugin_own_hidden() {
    own_implementation
    echo '{ local: *; };' >"$tmp/none.map"
    quiet $CC -shared -fPIC $inc "$here/ops.c" "$tmp/implementation.o" -Wl,--version-script="$tmp/none.map" \
          -o "$tmp/own_hidden.so" $lib
    refused 'registers nothing' "$tmp/own_hidden.so"
}
check_plugin_own_static() {
    printf '#define OPD_STATIC\n#define OPDISPATCH_IMPLEMENTATION\n#include "%s"\n' "$here/ops.c" >"$tmp/own_static.c"
    quiet $quick_c -O0 -shared -fPIC $inc "$tmp/own_static.c" -o "$tmp/own_static.so" $lib
    refused 'registers nothing' "$tmp/own_static.so"
}
version_is() {          # version_is NAME SED TEXT: a plug-in with a header changed by SED is refused with TEXT
    header_as "$1" "$2"
    quiet $CC $plugin_line -I"$tmp/$1" "$here/ops.c" -o "$tmp/$1.so"
    refused "$3" "$tmp/$1.so"
}
check_plugin_newer_minor() {
    version_is minor 's/^#define OPD_VERSION_MINOR .*/#define OPD_VERSION_MINOR 987/' '.987, which a program'
}
check_plugin_other_major() {
    version_is major 's/^#define OPD_VERSION_MAJOR .*/#define OPD_VERSION_MAJOR 321/' 'built with opdispatch 321.'
}
check_plugin_other_entry() {
    echo 'const char opd_plugin_entry[64] = "something else";' >"$tmp/other.c"
    quiet $CC -shared -fPIC "$tmp/other.c" -o "$tmp/other.so"
    refused "is not the one of opdispatch.h" "$tmp/other.so"
}
check_plugin_missing_symbol() {
    { cat "$here/ops.c"; echo 'int nowhere(void); int (*somewhere)(void) = nowhere;'; } >"$tmp/missing.c"
    quiet $CC $plugin_line $inc "$tmp/missing.c" -o "$tmp/missing.so"
    refused 'undefined symbol: nowhere' "$tmp/missing.so"
}
check_plugin_wrong_machine() {
    plugin
    cp "$tmp/ops.so" "$tmp/machine.so"
    machine='\267'; name=aarch64
    case $(uname -m) in aarch64) machine='\076'; name=x86-64 ;; esac
    printf "$machine\\000" | dd of="$tmp/machine.so" bs=1 seek=18 conv=notrunc 2>/dev/null
    refused "is for $name, this program for" "$tmp/machine.so"
}
check_plugin_wrong_class() {
    plugin
    cp "$tmp/ops.so" "$tmp/class.so"
    printf '\001' | dd of="$tmp/class.so" bs=1 seek=4 conv=notrunc 2>/dev/null
    refused ', this program for' "$tmp/class.so"
}
check_plugin_no_library() {
    refused 'is not a shared library' "$here/ops.c"
    refused 'No such file' "$tmp/nowhere.so"
    implementation
    refused 'is not a shared library' "$tmp/implementation.o"
}
check_plugin_no_blocks() {
    echo '#include "opdispatch.h"' >"$tmp/empty.c"
    quiet $CC $plugin_line $inc "$tmp/empty.c" -o "$tmp/empty.so"
    refused 'registers nothing' "$tmp/empty.so"
}
# The last definition of a block fails: the definitions before it are undone.
check_plugin_failing_block() {
    { cat "$here/ops.c"
      echo 'OPD_LIBRARY_FRAGMENT(linkage, lib) { opd_def(lib, "fine() -> int"); opd_def(lib, "odd("); }'
    } >"$tmp/odd.c"
    quiet $CC $plugin_line $inc "$tmp/odd.c" -o "$tmp/odd.so"
    refused 'while processing OPD_LIBRARY_FRAGMENT block' "$tmp/odd.so"
}

#-- the header ---------------------------------------------------------------------------------------------------------

# Each public function is in the table OPDI_HOST_FUNCTIONS, or is defined for plug-ins in the header.  The typed
# functions of built-in operators are compiled into each plug-in (see check_header.sh cards).
check_host_table() {
    awk '/^\/\/  >>/ { typed = /api:op:|api:aoti/ }
         /^OPDI?_API|^OPD_NEW/ { want = !typed }
         want && match($0, /opdi?_[A-Za-z0-9_]*\(/) { print substr($0, RSTART, RLENGTH - 1); want = 0 }
         /Stop here if you are only interested/ { exit }' "$root/opdispatch.h" | sort >"$tmp/want"
    { awk '/^#define OPDI_HOST_FUNCTIONS/ { on = 1; next } on { print } on && !/\\$/ { exit }' "$root/opdispatch.h" |
          sed -n 's/^    X([^,]*, \(opdi\{0,1\}_[A-Za-z0-9_]*\),.*/\1/p; s/^    V(\(opdi\{0,1\}_[A-Za-z0-9_]*\),.*/\1/p'
      sed '/Stop here if you are only/q' "$root/opdispatch.h" |
          sed -n '/^#if defined(OPDISPATCH_PLUGIN)$/,$s/^static .*[ *]\(opdi\{0,1\}_[a-z_]*\)(.*/\1/p' |
          grep -v -x -e opd_plugin_kernel -e opdi_caught -e 'opdi_given[a-z_]*'
      echo opd_fail; echo opd_warn; echo opd_op_builtin; echo opdi_keep_operator; echo opdi_keep_needs_lean; } | sort >"$tmp/got"
    [ "$(wc -l <"$tmp/want")" -gt 100 ] || echo 'no prototypes found'
    diff "$tmp/want" "$tmp/got" | sed -n 's/^< /not in OPDI_HOST_FUNCTIONS: /p; s/^> /twice, or without a prototype: /p'
}
# Code that is compiled at run time includes the header with which the program was compiled, never one in the current
# folder.
check_compiled_header() {
    mkdir -p "$tmp/build" "$tmp/moved" "$tmp/current"; chmod 755 "$tmp/build"
    cp "$root/opdispatch.h" "$tmp/build"; cp "$tmp/build/opdispatch.h" "$tmp/current"
    echo 'OPD_LIBRARY(attacker, lib) { opd_def(lib, "here() -> ()"); }' >>"$tmp/current/opdispatch.h"
    cat >"$tmp/build/program.c" <<'TEXT'
#define OPDISPATCH_IMPLEMENTATION
#include "opdispatch.h"
int main(int argc, char **argv) {
    const char *source = "#include \"opdispatch.h\"\nOPD_LIBRARY(small, lib) { opd_def(lib, \"f() -> ()\"); }\n";
    opd_plugin *p = opd_compile_and_load_inline("small", source, argc > 1 ? argv[1] : NULL);
    if (opd_find_quiet("attacker::here")) { printf("the attacker's code runs\n"); }
    if (!p) { printf("%s\n", opd_error_message()); opd_error_clear(); return 3; }
    return opd_finish();
}
TEXT
    (cd "$tmp/build" && quiet $quick_c -O0 program.c -o program $lib)
    cp "$tmp/build/program" "$tmp/moved"
    export XDG_CACHE_HOME="$tmp"; unset OPD_INCLUDE
    (cd "$tmp/current" && quiet ../build/program)
    mkdir -p "$tmp/build/below/it"; cp "$tmp/build/program" "$tmp/build/below/it"; quiet "$tmp/build/below/it/program"
    chmod 775 "$tmp/build"; [ "$(id -u)" != "$(id -g)" ] || quiet "$tmp/build/program"; chmod 755 "$tmp/build"
    quiet "$tmp/moved/program" "-I$tmp/build"
    says 'set $OPD_INCLUDE to' "$tmp/moved/program"
    (export OPD_INCLUDE="$tmp/nowhere"; says 'not in the folder that $OPD_INCLUDE names' "$tmp/build/program")
    OPD_INCLUDE="$tmp/build" quiet "$tmp/moved/program"
    chmod 777 "$tmp/build"; says 'other users may change' "$tmp/build/program"; chmod 755 "$tmp/build"
    chmod 666 "$tmp/build/opdispatch.h"; says 'other users may change' "$tmp/build/program"
}
says() { out=$(cd "$tmp/current" && "$2" 2>&1); case $out in *"$1"*) ;; *) printf 'no "%s" in: %s\n' "$1" "$out" ;; esac; }
check_no_plugins() {
    quiet $quick_c -O0 -Wall -Wextra -DOPD_NO_PLUGINS $inc -c "$tmp/implementation.c" -o "$tmp/no_plugins.o"
    nm "$tmp/no_plugins.o" | grep -E ' U (dl|posix_spawn)' | sed 's/^/still called: /'
    quiet $CC $inc "$here/main.c" "$here/ops.c" "$tmp/no_plugins.o" -o "$tmp/program" $lib
    quiet "$tmp/program"
    plugin
    quiet $CC $inc "$here/main.c" "$tmp/no_plugins.o" -o "$tmp/program" $lib
    "$tmp/program" "$tmp/ops.so" | grep -q OPD_NO_PLUGINS || echo 'loading does not say what is missing'
}
# With OPD_LAPACK, factorisations call LAPACK.  The tests of linear algebra must pass, if a LAPACK library is installed.
check_lapack() {
    echo 'void dpotrf_(void); int main(void) { dpotrf_(); return 0; }' >"$tmp/has_lapack.c"
    for lapack in -lopenblas '-llapack -lblas' none; do
        [ "$lapack" = none ] && { echo 'SKIP: no liblapack, no libopenblas'; return; }
        $quick_c -w "$tmp/has_lapack.c" -o "$tmp/has_lapack" $lapack -lm >/dev/null 2>&1 && break
    done
    quiet $quick_c -O0 -Wall -Wextra -DOPD_LAPACK $inc -c "$tmp/implementation.c" -o "$tmp/lapack.o"
    for name in potrf getrf getrs geqrf orgqr ormqr gelsy syevd gesdd; do
        for type in s d; do nm "$tmp/lapack.o" | grep -q " U $type${name}_" || echo "$type${name}_ is not called"; done
    done
    quiet $quick_c -O0 -w $inc "$root/tests/ops/test_linalg.c" "$tmp/lapack.o" -o "$tmp/lapack" $lapack $lib
    "$tmp/lapack" 2>&1 | grep -q ' passed, 0 failed' || "$tmp/lapack" 2>&1 | head -n 8
}
# C code in README.md and the pages.  Programs run, and each line that they print is on the page.  The pieces of
# programs of a page compile as one file after tests/linkage/pages.h.  A block that begins with ```C is for recipes.py.
pages="$root/README.md $root/src/README.md $root/tests/README.md $root/bench/README.md $root/examples/README.md
$root/examples/guide.md $root/examples/coming-from.md $(echo "$root"/examples/guide/*.md "$root"/bench/tables/*.md)"
check_pages_code() {
    implementation
    for page in $pages; do
        rm -rf "$tmp/pages"; mkdir -p "$tmp/pages"
        awk -v to="$tmp/pages/" '
            /^```c$/ { on = 1; lines = 0; whole = 0; blocks++; next }
            /^```/ && on {
                if (!whole) { print "void piece" blocks "(void) {" >(to "bodies") }
                for (i = 1; i <= lines; i++) { if (whole) { print line[i] >(to blocks ".c") } else { piece(line[i]) } }
                if (!whole) { print "}" >(to "bodies") }
                on = 0
            }
            on { line[++lines] = $0; if (/^int main\(/) { whole = 1 } }
            function piece(text,   first) {
                if (text ~ /^ *\.\.\./) { return }
                if (text ~ /^#(define|include) /) { print text >(to "functions"); return }
                first = text ~ /^(static|OPD_LIBRARY|OPD_FUNCTION)/
                if (first) { inside = 1 }
                print text >(to (inside ? "functions" : "bodies"))
                sub(/ *\/\*.*\*\/$/, "", text)
                if (text ~ /^}/ || (first && text ~ /[})]$/)) { inside = 0 }
            }' "$page"
        for program in "$tmp/pages/"*.c; do
            [ -f "$program" ] || continue
            sed -i '/define OPDISPATCH_IMPLEMENTATION/d' "$program"
            quiet $CC -O0 -Wall -Wextra $inc "$program" "$tmp/implementation.o" -o "$tmp/program" $lib
            "$tmp/program" >"$tmp/said" 2>&1 || echo "a program in $page fails"
            # the warning that one kernel replaces another has paths and line numbers
            sed -i '/^opdispatch: warning: Warning only once for all operators/,/ new kernel: /d' "$tmp/said"
            while IFS= read -r said; do
                grep -qF -- "$said" "$page" || echo "not what $page says: $said"
            done <"$tmp/said"
        done
        [ -f "$tmp/pages/bodies" ] || continue
        { echo '#include "pages.h"'; cat "$tmp/pages/functions" "$tmp/pages/bodies"; } >"$tmp/pages/pieces.c" 2>"$tmp/said"
        quiet $CC -fsyntax-only $inc "-I$here" "$tmp/pages/pieces.c"
    done
}
# In the pages, targets of links and paths exist, all names of the library exist, and every example is mentioned.
check_pages_names() {
    for page in $pages; do
        grep -o '](\([^)]*\))' "$page" | sed 's/^](//; s/)$//' | grep -v '^http' | sort -u | while read -r link; do
            target=$page
            [ -z "${link%%#*}" ] || target=$(dirname "$page")/${link%%#*}
            [ -e "$target" ] || { echo "$page: leads nowhere: $link"; continue; }
            case $link in *'#'*)
                { sed -n 's/^##* //p' "$target" | tr 'A-Z' 'a-z' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'
                  grep -o '<a id="[^"]*"' "$target" | cut -d '"' -f 2; } |
                    grep -qx -- "${link#*#}" || echo "$page: no such section: $link" ;;
            esac
        done
        grep -o '`\(examples\|tests\|bench\|src\|\.ci\)/[A-Za-z0-9_./-]*`' "$page" | tr -d '`' | grep -v NAME | sort -u | while read -r path; do
            [ -e "$root/$path" ] || echo "$page: no such file: $path"
        done
    done
    grep -r -o -h -w -E '(opd|OPD)_[A-Za-z0-9_]*' "$root/opdispatch.h" "$root/opdispatch_cuda.cu" "$root/tests" \
        "$root/bench" --include='*.[ch]' --include='*.cu' --include='*.sh' --include='*.py' | sort -u >"$tmp/names"
    sed '/^```C$/,/^```$/d' $pages | grep -o -w -E '(opd|OPD)_[A-Za-z0-9_]*[A-Za-z0-9]' | sort -u | comm -23 - "$tmp/names" |
        while read -r name; do grep -q "^$name" "$tmp/names" || echo "the pages name $name, which is not there"; done
    for file in "$root"/examples/*.*; do
        grep -qF -- "\`${file##*/}\`" "$root/examples/README.md" || [ "${file##*.}" = md ] || echo "examples/README.md does not mention $file"
    done
}

for check in $names; do
    case $check in *"$only"*) result "$check" "$(check_$check 2>&1)" ;; esac
done
