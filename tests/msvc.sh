#!/bin/sh
# Compiles programs for Microsoft's compiler, by clang.  See --help.
set -u

help() {
    cat <<'TEXT'
usage: sh tests/msvc.sh [--run]

Compiles the header with clang for the target x86_64-pc-windows-msvc.  There, clang reads the same branches of #if as
Microsoft's compiler, which is not needed.  Each __attribute__ is an error.  Without --run: compiles declarations,
examples and a plug-in as C11, C17, C++14 and C++17, and checks that the C library will run the OPD_LIBRARY blocks.
Also runs an example with an implementation that clang has compiled for this machine without GNU C.

  --run          instead, also compiles the implementation in this way, and runs examples/quickstart.c with it under
                 wine, with the C library of mingw-w64.  Then runs the same example, and a plug-in, with a DLL of the
                 library that gcc of mingw-w64 has compiled
  OBJECT=file.o  for --run: the implementation, compiled by gcc of mingw-w64
  WINE=wine      for --run: the command that runs programs

Prints what is wrong, or "SKIP: why".  The status is 0.
TEXT
}
run=
case ${1:-} in --help|-h) help; exit 0 ;; --run) run=yes ;; esac
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root" || exit 1
clang=${CLANG:-clang}
command -v "$clang" >/dev/null 2>&1 || { echo 'SKIP: no clang'; exit 0; }
tmp=$(mktemp -d "${TMPDIR:-/tmp}/opd_msvc.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM

# The compiler, and stubs of the headers that programs include: Microsoft's headers are not here.
mkdir "$tmp/stubs"
cat >"$tmp/stubs/stdio.h" <<'TEXT'
#pragma once
#ifdef __cplusplus
extern "C" {
#endif
int printf(const char *, ...);
#ifdef __cplusplus
}
#endif
TEXT
printf '#pragma once\n#include <stdio.h>\nnamespace std { using ::printf; }\n' >"$tmp/stubs/cstdio"
cat >"$tmp/stubs/new" <<'TEXT'
#pragma once
namespace std {
class exception { public: virtual ~exception(); virtual const char *what() const; };
class bad_alloc : public exception {};
}
TEXT
target='--target=x86_64-pc-windows-msvc -fms-compatibility -fms-extensions -fms-compatibility-version=19.38'
plain='-D__attribute__(x)=MICROSOFT_HAS_NO_ATTRIBUTES'
# compile OPTIONS...: compiles with declarations only, and prints all warnings and errors.
compile() {
    "$clang" $target "$plain" -ffreestanding -I"$tmp/stubs" -I. -Wall -Wextra -pedantic -Wgnu "$@" 2>&1 | head -n 12
}
for name in quickstart.c quickstart.cpp plugin.c; do        # programs without the implementation
    sed '/^#define OPDISPATCH_IMPLEMENTATION/d; s|"../opdispatch.h"|"opdispatch.h"|' "examples/$name" >"$tmp/$name"
done
printf '#define OPDISPATCH_IMPLEMENTATION\n#include "opdispatch.h"\n' >"$tmp/implementation.c"
# build COMMAND...: a step of a build.
build() {
    "$@" >"$tmp/out" 2>&1 && return
    grep -v 'corrupt .drectve' "$tmp/out" | head -n 12
    return 1
}
# ran FILE COMMAND...: the output of the command is FILE, and there are no messages.
ran() {
    want=$1; shift
    "$@" 2>&1 </dev/null | tr -d '\r' | diff "$want" - | sed "s|^|$*: |" | head -n 12
}

# constructors WANT OPTIONS...: the functions in the section .CRT$XCU, which the C library calls before main, are WANT.
constructors() {
    want=$1; shift
    out=$(compile -S -o "$tmp/out.s" "$@")
    [ -z "$out" ] || { printf '%s\n' "with $*:" "$out"; return; }
    got=$(awk '$1 == ".section" { on = index($2, ".CRT$XCU") } on && $1 == ".quad" { printf "%s%s", again, $2; again = " " }' "$tmp/out.s")
    [ "$got" = "$want" ] || echo "with $*: the C library runs the constructors \"$got\", not \"$want\""
}
# refused MESSAGE OPTIONS...: this is a compile error with this message.
refused() {
    message=$1; shift
    compile -fsyntax-only "$@" | grep -q "error: .*$message" || echo "with $*: no error that says \"$message\""
}
compiles() {
    at=opd_block_at_load_
    for std in c11 c17; do
        constructors "${at}0 ${at}1 ${at}2 ${at}3" -std=$std "$tmp/quickstart.c"
        constructors "${at}0" -std=$std -DOPDISPATCH_PLUGIN "$tmp/plugin.c"
        constructors "${at}0 ${at}1 ${at}2 ${at}3" -std=$std tests/linkage/order.c
        # the linker must keep each pointer in this section, although nothing uses it
        kept=$(grep -c '\.ascii.* /include:opd_block_of_order_[0-3]_[0-9]' "$tmp/out.s")
        [ "$kept" = 4 ] || echo "the linker keeps $kept of 4 blocks"
    done
    for std in c++14 c++17; do
        for kind in -UOPDISPATCH_PLUGIN -DOPDISPATCH_PLUGIN; do
            constructors _GLOBAL__sub_I_quickstart.cpp -std=$std -fcxx-exceptions -fexceptions $kind "$tmp/quickstart.cpp"
        done
        constructors _GLOBAL__sub_I_order.c -x c++ -std=$std tests/linkage/order.c
    done
    printf '#include "opdispatch.h"\nint main(void) { OPD_SCOPED; return 0; }\n' >"$tmp/scoped.c"
    refused 'cannot close OPD_SCOPED' -std=c11 "$tmp/scoped.c"
    compile -fsyntax-only -x c++ "$tmp/scoped.c"
    refused 'needs C11: compile with /std:c11' -std=c99 tests/linkage/order.c
    refused 'compile with /Zc:preprocessor' -std=c11 -D_MSVC_TRADITIONAL=1 tests/linkage/order.c
    cat >"$tmp/dll.c" <<'TEXT'
#include "opdispatch.h"
OPD_EXPORT int twice(void);
opd_op *op;
int twice(void) { return OPD_OP(&op, "aten::add.Tensor") && opd_add(0, 0) != 0; }
TEXT
    for way in 'UOPD_DLL opd_add' 'DOPD_DLL __imp_opd_add'; do
        compile -std=c11 -O1 "-${way% *}" -S -o "$tmp/out.s" "$tmp/dll.c"
        grep -q "call.*[^_]${way#* }" "$tmp/out.s" || echo "with -${way% *}: does not call ${way#* }"
        grep -q '/EXPORT:twice' "$tmp/out.s" || echo "with -${way% *}: OPD_EXPORT does not export"
        grep -q 'xchgq.*op(%rip)' "$tmp/out.s" || echo "with -${way% *}: OPD_OP does not write the handle atomically"
    done
}
# Without GNU C, the implementation also runs on this machine, without threads.  In some headers, infinite constants give
# warnings then.
natively() {
    build "$clang" -fgnuc-version=0 -std=c11 -w -O0 -I. -c "$tmp/implementation.c" -o "$tmp/native.o" &&
        build "$clang" -I. "$tmp/quickstart.c" "$tmp/native.o" -o "$tmp/native" -lm &&
        ran tests/golden/quickstart.out "$tmp/native"
    if nm "$tmp/native.o" | grep -q pthread; then echo 'without GNU C, there are threads, but no atomic operations'; fi
}

# The headers of mingw-w64 are not for compilers with _MSC_VER: these change what clang cannot compile then.
hosted() {
    mkdir "$tmp/hosted"
    cat >"$tmp/hosted/stdlib.h" <<'TEXT'
#include <_mingw.h>
#undef __MINGW_ATTRIB_DEPRECATED
#undef __MINGW_ATTRIB_NORETURN
#undef __MINGW_ATTRIB_PURE
#define __MINGW_ATTRIB_DEPRECATED
#define __MINGW_ATTRIB_NORETURN
#define __MINGW_ATTRIB_PURE
#include_next <stdlib.h>
TEXT
    cat >"$tmp/hosted/math.h" <<'TEXT'
#include_next <math.h>
#undef HUGE_VAL
#undef HUGE_VALF
#undef INFINITY
#undef NAN
#define HUGE_VAL (1e300 * 1e300)
#define HUGE_VALF ((float)HUGE_VAL)
#define INFINITY HUGE_VALF
#define NAN ((float)(INFINITY * 0.0F))
TEXT
    cat >"$tmp/hosted/stdarg.h" <<'TEXT'
#include_next <stdarg.h>
#undef va_start
#undef va_arg
#undef va_end
#undef va_copy
#define va_start(list, last) __builtin_va_start(list, last)
#define va_arg(list, type) __builtin_va_arg(list, type)
#define va_end(list) __builtin_va_end(list)
#define va_copy(to, from) __builtin_va_copy(to, from)
TEXT
}
runs() {
    gcc=x86_64-w64-mingw32-gcc
    headers=$("$gcc" -print-sysroot 2>/dev/null)/x86_64-w64-mingw32/include
    [ -f "$headers/_mingw.h" ] || headers=/usr/x86_64-w64-mingw32/include
    [ -f "$headers/_mingw.h" ] || { echo 'SKIP: the headers of mingw-w64 are not found'; return; }
    hosted
    cc="$clang $target -w -std=c11 -I$tmp/hosted -isystem $headers -I. -c"
    printf 'tensor(32., grad_fn=<DotBackward0>)\nplugin::dot is gone\ntensor([1., 2., 3.])\n' >"$tmp/host.out"
    sed '/^#define OPDISPATCH_IMPLEMENTATION/d; s|"../opdispatch.h"|"opdispatch.h"|' examples/plugin_host.c >"$tmp/host.c"
    build $cc "$plain" -O0 "$tmp/implementation.c" -o "$tmp/whole.obj" &&
        build $cc "$plain" "$tmp/quickstart.c" -o "$tmp/quickstart.obj" &&
        build $gcc "$tmp/quickstart.obj" "$tmp/whole.obj" -Wl,--defsym=__chkstk=___chkstk_ms -o "$tmp/whole.exe" &&
        ran tests/golden/quickstart.out $WINE "$tmp/whole.exe"
    build $gcc -shared -static "$OBJECT" -o "$tmp/opdispatch.dll" -Wl,--out-implib,"$tmp/opdispatch.lib" -lpthread &&
        build $cc "$plain" -DOPD_DLL "$tmp/quickstart.c" -o "$tmp/imports.obj" &&
        build $gcc "$tmp/imports.obj" "$tmp/opdispatch.lib" -o "$tmp/imports.exe" &&
        ran tests/golden/quickstart.out $WINE "$tmp/imports.exe" &&
        build $cc "$plain" -DOPDISPATCH_PLUGIN "$tmp/plugin.c" -o "$tmp/plugin.obj" &&
        build $gcc -shared -static "$tmp/plugin.obj" -o "$tmp/plugin.dll" &&
        build $gcc -O0 -DOPD_DLL -I. "$tmp/host.c" "$tmp/opdispatch.lib" -o "$tmp/host.exe" &&
        ran "$tmp/host.out" $WINE "$tmp/host.exe" "$tmp/plugin.dll"
}
if [ -n "$run" ]; then runs; else compiles; natively; fi
