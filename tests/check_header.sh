#!/bin/sh
# Checks the header as a file: its symbols, macros and style, and the ways to include and compile it.  Also checks the
# documents.  Checks that only read a text are in tests/texts.py, and the programs that are compiled in tests/header.
#   sh tests/check_header.sh [NAME]     runs the checks whose names contain NAME
#   sh tests/check_header.sh --list     prints the names of the checks
# Prints "ok NAME", "FAIL NAME: why" or "skip NAME: why" for each check.  tests/run.sh calls this script, with CC, CXX
# and RUN_TMP in the environment.  With RUN_AGAIN=yes, checks that do not depend on CC and CXX are left out.
set -u

names='macros_visible null_pointers symbols symbols_cxx aoti included_twice other_places beside_dlpack two_files cxx_with_c_implementation
cxx_implementation steps no_everything fortified wrong_arguments fast_math
std11_c_implementation std11_c_declarations std11_cxx_implementation std11_cxx_declarations newer_standards'
root=$(cd "$(dirname "$0")/.." && pwd)
texts=
if [ -z "${RUN_AGAIN:-}" ]; then
    texts=$(python3 "$root/tests/texts.py" --list) || texts=texts
    names="$texts join apart pragmas foreign_names cards recipes documents commands checked build_lines program_warnings
helps tcc msvc static_in_two_files no_threads no_simd no_cache core_alone families tools parts $names"
fi

# The checks that compile the header again and again; tests/run.sh runs them only with --whole.
slow='families tools parts null_pointers steps no_everything fortified symbols symbols_cxx aoti two_files cxx_with_c_implementation
cxx_implementation core_alone static_in_two_files no_threads no_simd no_cache beside_dlpack build_lines pragmas
std11_c_implementation std11_cxx_implementation newer_standards commands'

. "$root/tests/checks.sh"
names=$(chosen $names)
if [ "${1:-}" = --list ]; then printf '%s\n' $names; exit 0; fi
only=${1:-}
header=$root/opdispatch.h programs=$root/tests/header
CC=${CC:-cc}; CXX=${CXX:-c++}
own=
if [ -z "${RUN_TMP:-}" ]; then RUN_TMP=$(mktemp -d "${TMPDIR:-/tmp}/opd_header.XXXXXX"); own=yes; fi
tmp=$RUN_TMP/header; mkdir -p "$tmp"
[ -z "$own" ] || trap 'rm -rf "$RUN_TMP"' EXIT
strict_c='-std=c11 -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wundef -Wmissing-prototypes
-Wstrict-prototypes -Wcast-qual'
strict_cxx='-x c++ -std=c++11 -Wall -Wextra -Wshadow'
# The compilers for programs that only have to run.  For the implementation at -O0, clang takes a third of gcc's time;
# for programs in C, tcc takes a twentieth of clang's time.  $CC and $CXX check the text of the header for warnings.
quick_c=$CC quick_cxx=$CXX
if command -v clang++ >/dev/null 2>&1; then quick_c=clang quick_cxx=clang++; fi
quickest_c=$quick_c
if command -v tcc >/dev/null 2>&1; then quickest_c='tcc -w'; fi

#-- helpers ------------------------------------------------------------------------------------------------------------

# fails COMMAND...: runs a command that must not fail.  Prints its output only if it fails; warnings are allowed.
fails() {
    fails_out=$("$@" 2>&1) || printf 'status %d from: %s\n%s\n' $? "$*" "$fails_out" | head -n 12
}
first_comment() { awk '{ print } /\*\//{ exit }' "$header"; }

# The names of all prototypes: the first name before a "(" on a line with OPD_API or OPD_NEW, or on the next line.  prototypes
# prints the names of every implementation; all_prototypes also prints the names that OPD_AOTI adds.
prototypes() { all_prototypes | grep -v -E '^opd_(aoti|extension)_|^opdi_keep_operator$'; }         # the last needs OPD_LEAN
all_prototypes() {
    awk '/^OPDI?_API|^OPD_NEW|^ *extern OPD_API/ { want = 1 }
         want && match($0, /opdi?_[A-Za-z0-9_]*\(/) { print substr($0, RSTART, RLENGTH - 1); want = 0 }' "$header" | sort -u
}
exported() {                                                    # without the symbols of >>api:linking
    nm -g "$1" | awk 'NF == 3 && $2 ~ /^[TDBRSC]$/ && $3 !~ /^opd_library_(of_version|with)_/ { print $3 }' | sort -u
}
same_symbols() {
    prototypes >"$tmp/want"; exported "$1" >"$tmp/got"
    [ -s "$tmp/want" ] || echo "no prototypes found"
    diff "$tmp/want" "$tmp/got" | sed -n 's/^< /prototype without a function: /p; s/^> /exported without a prototype: /p' | head -n 12
}
# Prints the names of visible macros that do not begin with OPD.  opd_keep and opd_assign are macros that pass the place
# of the call to the functions of these names.
visible_macros() {      # $1: compiler and language
    printf '#include <stdint.h>\n#include <stddef.h>\n#include <stdbool.h>\n%s\n' "$2" >"$tmp/macros_base.c"
    printf '%s\n#include "opdispatch.h"\n' "$(cat "$tmp/macros_base.c")" >"$tmp/macros.c"
    $1 -dM -E "$tmp/macros_base.c" | awk '{ print $2 }' | sort -u >"$tmp/base"
    $1 -dM -E -I"$root" "$tmp/macros.c" | awk '{ print $2 }' | sort -u >"$tmp/all"
    comm -13 "$tmp/base" "$tmp/all" | grep -v -E '^(OPD|opd_(keep|assign)\()' | head -n 8
}

# use.c, a program that uses a few public functions, with the implementation in the same file, and with main.
sed 's/^#include "use.h"$/#define OPDISPATCH_IMPLEMENTATION\n#include "use.h"/' "$programs/use.c" >"$tmp/use_whole.c"
cat "$tmp/use_whole.c" >"$tmp/whole.c"; echo 'int main(void) { return use_library(); }' >>"$tmp/whole.c"
inc="-I$root -I$programs -I$tmp"
lib='-lm -lpthread'

build_run() {           # $1: name of the program; the rest: command that builds it, without -o
    program=$tmp/$1; shift
    out=$(fails "$@" -o "$program" $lib)
    if [ -n "$out" ]; then printf '%s\n' "$out"; else (cd "$tmp" && fails "$program"); fi      # it may write files
}
# Compiles the implementation once as C and once as C++, with all warnings, except the warnings that gcc gives only when
# it optimises (tests/run.sh checks these).  check_steps needs -g.
implementation_object() {
    [ -f "$tmp/implementation.o" ] ||
        quiet $CC $strict_c -O0 -g $inc -c "$programs/implementation.c" -o "$tmp/implementation.o" >"$tmp/warnings"
}
implementation_object_cxx() {
    [ -f "$tmp/implementation_cxx.o" ] ||
        quiet $CXX $strict_cxx -O0 $inc -c "$programs/implementation.c" -o "$tmp/implementation_cxx.o" >"$tmp/warnings_cxx"
}

#-- the checks ---------------------------------------------------------------------------------------------------------

# opdispatch.h equals the output of src/join.py, and no file of src/ is too long.  join.py reports these faults of a
# small tree: a file without a row or with two, a missing or too long file, a last line without an end, and a change of
# only src/ or only the header.
join_tree() {
    mkdir -p "$tmp/joined/src/base" "$tmp/joined/src/cuda"; rm -f "$tmp/joined/src/base/"*.c "$tmp/joined/src/cuda/"*
    cp "$root/src/join.py" "$root/src/printing.py" "$tmp/joined/src"
    printf '# two files\nbase/first.c\nbase/second.c\n' >"$tmp/joined/src/files.txt"
    echo '# none' >"$tmp/joined/src/long_files.txt"
    printf 'first\n\n' >"$tmp/joined/src/base/first.c"; printf 'second\nend\n' >"$tmp/joined/src/base/second.c"
    printf 'first\n\nsecond\nend\n' >"$tmp/joined/opdispatch.h"
    printf 'cuda/one.cu\ncuda/two.cu\n' >"$tmp/joined/src/cuda/files.txt"
    echo one >"$tmp/joined/src/cuda/one.cu"; echo two >"$tmp/joined/src/cuda/two.cu"; printf 'one\ntwo\n' >"$tmp/joined/opdispatch_cuda.cu"
}
join_says() {           # $1: the fault; $2: a part of the message of --check
    out=$(python3 "$tmp/joined/src/join.py" --check) && echo "join.py --check lets this through: $1"
    case $out in *"$2"*) ;; *) printf 'join.py --check does not say "%s" of this: %s\n%s\n' "$2" "$1" "$out" ;; esac
    join_tree
}
# join.py --apart writes prototypes only for definitions that other files use, within the guards of the file.  The
# header does not include these and private headers, because it contains their text.
check_apart() {
    if ! command -v python3 >/dev/null 2>&1; then echo "SKIP: no python3"; return; fi
    join_tree; cd "$tmp/joined/src" || return
    printf 'base/%s\n' api.h implementation.h base.h first.c second.c >files.txt
    echo 'int api;' >base/api.h; echo >base/implementation.h
    printf '#include "declarations.h"\ntypedef int t;\n#include "base.prototypes.h"\n' >base/base.h
    cat >base/first.c <<'TEXT'
#include "base.h"

#if A
/* OPDI_INTERNAL int comment(void); */
OPDI_INTERNAL int one(int a,            /* first */
                      char *b) {
#if B
    return b[a];
#endif
}
OPDI_INTERNAL int one(int a, char *b);
static int two(void) { return 0; }
#else
OPDI_NOINLINE OPD_PRINTF_LIKE(1, 2) OPDI_INTERNAL t *three(const char *format, ...) { return 0; }
#endif
#if C
OPDI_INTERNAL int (*four)(t);
#endif
OPDI_INTERNAL const t five[] = {1, 2};
OPDI_INTERNAL t six, *seven;
extern OPDI_INTERNAL t eight;
#include "shared.typed.h"
#include "../typed/f32.h"
#include "a.typed.h"
#include "../typed/end.h"
TEXT
    printf 'OPDI_AVX2 OPDI_INTERNAL OPDI_T OPDI_TYPED(nine)(OPDI_T x) { return x; }\n' >base/a.typed.h
    printf 'OPDI_INTERNAL int ten(int x) { return x; }\n' >base/shared.typed.h
    mkdir -p typed; echo '#define OPDI_T float' >typed/f32.h; echo '#undef OPDI_T' >typed/end.h
    fails python3 join.py --apart "$tmp/joined/apart"
    [ "$(cat "$tmp/joined/apart/declarations.h")" = 'int api;' ] || echo 'declarations.h is not what stands above the implementation'
    cat >"$tmp/joined/expected" <<'TEXT'
#if A
OPDI_INTERNAL int one(int a, char *b);
#else
OPDI_NOINLINE OPD_PRINTF_LIKE(1, 2) OPDI_INTERNAL t *three(const char *format, ...);
#endif
#if C
extern OPDI_INTERNAL int (*four)(t);
#endif
extern OPDI_INTERNAL const t five[];
extern OPDI_INTERNAL t six, *seven;
OPDI_INTERNAL int ten(int x);
#include "typed/f32.h"
OPDI_AVX2 OPDI_INTERNAL OPDI_T OPDI_TYPED(nine)(OPDI_T x);
#include "typed/end.h"
TEXT
    diff "$tmp/joined/expected" "$tmp/joined/apart/base.prototypes.h"
    python3 join.py >/dev/null
    [ "$(head -n 7 ../opdispatch.h)" = 'int api;

typedef int t;
#if defined(OPDI_DIVIDED)
#if A
OPDI_INTERNAL int one(int a, char *b);
#else' ] || echo 'the header does not have prototypes in the place of the includes of private headers'
    [ "$(python3 join.py --where 3 5 22)" = 'src/base/base.h:2
base.prototypes.h:1, which src/join.py prints
src/base/first.c:3' ] || echo "join.py --where does not find lines 3, 5 and 22"
}
check_join() {
    if ! command -v python3 >/dev/null 2>&1; then echo "SKIP: no python3"; return; fi
    fails python3 "$root/src/join.py" --check
    # the header with #line compiles, and its messages name the files of src/
    mkdir -p "$tmp/remapped"
    fails python3 "$root/src/join.py" --remap "$tmp/remapped/opdispatch.h"
    echo '#error here' >>"$tmp/remapped/opdispatch.h"
    printf '#define OPDISPATCH_IMPLEMENTATION\n#include "opdispatch.h"\n' >"$tmp/remapped/all.c"
    $CC -w -fsyntax-only "$tmp/remapped/all.c" >"$tmp/remapped/log" 2>&1
    [ "$(grep -c ': error:' "$tmp/remapped/log")" = 1 ] && grep -q 'src/.*: error:.* here' "$tmp/remapped/log" || echo '--remap'
    join_tree; fails python3 "$tmp/joined/src/join.py" --check
    cd "$tmp/joined/src" || return
    rm base/first.c; join_says 'no file' 'src/files.txt lists base/first.c, which does not exist: remove the row, or'
    echo >base/more.c; join_says 'no row' 'src/base/more.c is not in src/files.txt, and no file includes it: add a row at'
    echo 'base/first.c' >>files.txt; join_says 'two rows' 'src/files.txt lists base/first.c twice: remove one row'
    printf ' ' >>base/first.c; join_says 'no end of a line' 'src/base/first.c does not end with a newline: add one'
    echo '#include "no.typed.h"' >base/first.c; join_says 'an include of nothing' 'first.c includes src/base/no.typed.h, which does not exist'
    echo '#include "second.c"' >base/first.c; join_says 'an include of a later file' 'second.c, but its row in src/files.txt comes after'
    echo '#include "a.h"' >base/first.c; echo '#include "a.h"' >base/a.h; join_says 'a circle' 'src/base/a.h includes itself'; rm base/a.h
    echo '#if A' >base/first.c; join_says 'a guard' 'src/base/first.c:1: a guard or compile mode begins or ends in'
    echo '#endif' >base/first.c; join_says 'an end' 'src/base/first.c:1: a guard or compile mode begins or ends in'
    echo OPDI_COLD_BEGIN >base/first.c; join_says 'a mode' 'src/base/first.c:1: a guard or compile mode begins or ends'
    seq 1201 >base/first.c; join_says 'a long file' 'has 1201 lines, but at most 1200 are allowed: divide it at a section'
    echo 'base/first.c 1300 why' >long_files.txt; join_says 'an excuse' 'has only 2 lines: remove it from src/long_files.txt'
    sed -i 's/first.c/first.c warm/' files.txt; join_says 'a word' 'has the word "warm" for base/first.c: it must be a number, cold, once,'
    echo three >cuda/three.cu; join_says 'no row of the CUDA plug-in' 'src/cuda/three.cu is not in src/cuda/files.txt: add a row'
    rm cuda/two.cu; join_says 'no file of the CUDA plug-in' 'src/cuda/files.txt lists cuda/two.cu, which does not exist'
    echo more >>../opdispatch_cuda.cu; join_says 'an edit of the CUDA plug-in' 'opdispatch_cuda.cu differs from the text that src/join.py writes'
    echo more >>cuda/two.cu; join_says 'an edit of cuda/' 'line 3 of opdispatch_cuda.cu differs from src/cuda/two.cu:2'
    seq 1201 >cuda/one.cu; join_says 'a long file of the CUDA plug-in' 'src/cuda/one.cu has 1201 lines, but at most 1200 are allowed'
    [ "$(python3 join.py --where cu:2)" = 'src/cuda/two.cu:1' ] || echo "join.py --where does not find line 2 of the CUDA plug-in"
    for edit in '3s/$/ /' '3d' '$d' '$a more'; do
        sed -i "$edit" ../opdispatch.h; join_says "an edit of the header: $edit" 'make changes in src/, then run python3 src/join'
    done
    sed -i '3s/$/ /' ../opdispatch.h; join_says 'an edit of line 3' 'line 3 of opdispatch.h differs from src/base/second.c:1'
    sed -i '1s/$/ /' base/second.c; join_says 'an edit of src/' 'line 3 of opdispatch.h differs from src/base/second.c:1'
    sed -i '1s/$/ /' base/second.c; python3 join.py >/dev/null; fails python3 join.py --check
    [ "$(python3 join.py --where 2 4)" = 'src/base/first.c:2
src/base/second.c:2' ] || echo "join.py --where does not find lines 2 and 4"
    join_tree; printf '// head\n\ncode\n' >base/first.c; sed -i 's/first.c/first.c 3 OPD_NO_B once cold/; s/second.c/second.c 1/' files.txt; python3 join.py >/dev/null
    [ "$(cat ../opdispatch.h)" = '// head

#if OPDI_IN_PART(375)
#if !defined(OPD_NO_B)
OPDI_ONCE_BEGIN
OPDI_COLD_BEGIN
code
OPDI_COLD_END
OPDI_ONCE_END
#endif
#endif

#if OPDI_IN_PART(875)
second
end
#endif' ] || echo 'join.py does not put the guards and modes of the list around the code of a file'
    [ "$(python3 join.py --where 3 5 7 8)" = 'src/files.txt:2
src/files.txt:2
src/base/first.c:3
src/files.txt:2' ] || echo 'join.py --where does not find lines 3, 5, 7 and 8'
    join_tree; printf '#include "a.typed.h"\n#include "a.typed.h"\n' >base/first.c; printf 'typed\n' >base/a.typed.h; python3 join.py >/dev/null
    [ "$(cat ../opdispatch.h)" = '/* src/base/a.typed.h */
typed
/* src/base/a.typed.h */
typed
second
end' ] || echo 'join.py does not put what is included in the place of the line'
    [ "$(python3 join.py --where 4 5)" = 'src/base/a.typed.h:1
src/base/second.c:1' ] || echo 'join.py --where does not find lines 4 and 5'
    rm base/a.typed.h
    join_tree; printf '/* \n//  >>one  \n#include "contents.printed.h"\nend */\n' >base/first.c; python3 join.py >/dev/null
    [ "$(sed -n 3,4p ../opdispatch.h)" = '     base         >>one
end */' ] || echo 'join.py does not put what is printed in the place of the line'
    [ "$(python3 join.py --where 3 4)" = 'contents.printed.h:1, which src/printing.py prints
src/base/first.c:4' ] || echo 'join.py --where does not find lines 3 and 4'
    echo '#include "nothing.printed.h"' >base/first.c
    out=$(python3 join.py 2>&1) && echo 'join.py prints what it does not know'
    case $out in *'nothing.printed.h is included, but src/printing.py cannot print it'*) ;; *) echo "nothing.printed.h: $out" ;; esac
}
# A region with its own compile mode ends in every configuration; otherwise the mode would apply to all following code.
check_pragmas() {
    for with in WHOLE STATIC NO_THREADS NO_SIMD NO_CACHE NO_PLUGINS NO_OPERATORS NO_OP_CONV NO_OP_POOL NO_OP_RESAMPLE \
        NO_OP_DISTANCE NO_OP_FFT NO_OP_SOLVE NO_OP_SPECIAL NO_OP_NORM NO_OP_SEQUENCE NO_OP_LOSS NO_OP_INDEX NO_OP_QUANTIZED NO_OP_TRAIN NO_TRANSFORMS NO_GRAPHS NO_CHECKING \
        NO_TRAINING NO_EXCHANGE NO_MODULES NO_PROFILER NO_AUTOCAST PART=1 PART=2; do
        compiler=$quick_c; [ $with != WHOLE ] || compiler=$CC
        define=OPD_$with; case $with in PART=*) define=OPDISPATCH_$with ;; esac
        $compiler -O2 -E $inc -D$define "$programs/implementation.c" 2>/dev/null | grep '^ *# *pragma' |
            awk -v with=$define '/pragma GCC push_options|pragma clang attribute push|pragma clang optimize off/ { n++; m++ }
                 /pragma GCC pop_options|pragma clang attribute pop|pragma clang optimize on/ { n-- }
                 END { if (n || !m) { printf "with %s %d regions of %d do not end\n", with, n, m } }'
    done
}
check_macros_visible() {
    visible_macros "$CC -x c" '' | sed 's/^/visible in C: /'
    visible_macros "$CXX -x c++ -std=c++11" '#include <initializer_list>
#include <new>' | sed 's/^/visible in C++: /'
}
# Macros in system headers (windows.h, complex.h, sys/sysmacros.h, X11, Qt, ...).  The header does not use the names of
# object-like macros, and does not call names of function-like macros.
object_macros='near far NEAR FAR pascal cdecl hyper small interface IN OUT OPTIONAL CONST VOID CALLBACK WINAPI DELETE
ERROR NO_ERROR IGNORE INFINITE STRICT THIS TRANSPARENT OPAQUE ABSOLUTE RELATIVE TRUE FALSE BOOL BYTE WORD DWORD INT LONG
UINT FLOAT CHAR SHORT PASSTHROUGH psh1 chx1 rad1 grp1 frm1 rct1 ico1 stc1 lst1 cmb1 edt1 scr1 ctl1 sun unix linux i386
mips vax PPC SS CS DS ES FS GS ESP EIP UESP B0 B50 ECHO TAB0 CR0 I DOMAIN SING OVERFLOW UNDERFLOW PLOSS TLOSS PAGE_SIZE
PATH_MAX NAME_MAX None True False Bool Status Success Always Above Below Complex nil YES NO signals emit foreach PI EPS
A B C D E F G H I J K L M N O P Q R S T U V W X Y Z'
call_macros='min max MIN MAX ABS major minor makedev check verify require clear move erase refresh echo timeout
bit swap constrain sq F index rindex bzero'
check_foreign_names() {
    {
        sed -n 's/^ *# *include *<\(.*\)>.*/\1/p' "$header" | sort -u |
            sed 's/.*/#if __has_include(<&>)\n#include <&>\n#endif/'
        for name in $object_macros; do printf '#undef %s\n#define %s not %s of opdispatch\n' $name $name $name; done
        for name in $call_macros; do printf '#undef %s\n#define %s(...) not %s of opdispatch\n' $name $name $name; done
        cat "$programs/implementation.c"
    } >"$tmp/foreign.c"
    $CC -fsyntax-only $inc "$tmp/foreign.c" >"$tmp/foreign.log" 2>&1 ||
        { grep -o 'not [A-Za-z0-9_]* of opdispatch$' "$tmp/foreign.log" | sort -u; grep -m 2 ' error: ' "$tmp/foreign.log"; }
}
# No public function crashes for a pointer that is NULL.
check_null_pointers() {
    implementation_object
    python3 "$root/tests/null_pointers.py" >"$tmp/null_pointers.c"
    build_run null_pointers $CC -w -O0 $inc "$tmp/null_pointers.c" "$tmp/implementation.o"
}
check_symbols() { implementation_object; same_symbols "$tmp/implementation.o"; }
check_symbols_cxx() { implementation_object_cxx; same_symbols "$tmp/implementation_cxx.o"; }
# OPD_AOTI adds its functions to a file without the implementation, and to the file with the implementation; once, also
# if the header is included twice.
check_aoti() {
    printf '#define OPD_AOTI\n#include "opdispatch.h"\n#include "opdispatch.h"\n' >"$tmp/aoti.c"
    all_prototypes | grep -E '^opd_(aoti|extension)_' >"$tmp/want"
    [ -s "$tmp/want" ] || echo 'no prototypes found'
    for language in c c++; do
        compiler="$CC $strict_c"; [ $language = c ] || compiler="$CXX $strict_cxx"
        fails $compiler -Wno-cast-qual -O0 $inc -x $language -c "$tmp/aoti.c" -o "$tmp/aoti.o"
        exported "$tmp/aoti.o" | diff "$tmp/want" - | sed -n 's/^< /without OPD_AOTI alone: /p; s/^> /exported, too: /p' | head -n 4
    done
    implementation_object
    fails $quickest_c -O0 $inc -DOPDISPATCH_IMPLEMENTATION -c "$tmp/aoti.c" -o "$tmp/aoti_whole.o"
    exported "$tmp/aoti_whole.o" | grep -E '^opd_(aoti|extension)_' | diff "$tmp/want" - | head -n 4
}
# Including the declarations and the implementation several times, in any order, gives the same text as one
# implementation.
check_included_twice() {
    $CC -E -P $inc "$programs/implementation.c" | grep . >"$tmp/once"
    grep -q 'int opd_finish(void) {' "$tmp/once" || echo 'no implementation'
    for order in 'd i' 'i d' 'i i' 'd d i d'; do
        : >"$tmp/twice.c"
        for part in $order; do
            [ $part = d ] || echo '#define OPDISPATCH_IMPLEMENTATION' >>"$tmp/twice.c"
            printf '#include "opdispatch.h"\n#undef OPDISPATCH_IMPLEMENTATION\n' >>"$tmp/twice.c"
        done
        as_once "$order"
    done
    printf '#define OPDISPATCH_IMPLEMENTATION\n#include "opdispatch.h"\n#include "opdispatch.h"\n' >"$tmp/twice.c"
    as_once 'i and again'
}
as_once() {             # declarations that come first also refer to the symbol of the version
    $CC -E -P $inc "$tmp/twice.c" | grep . | grep -v '_is_linked ' | cmp -s - "$tmp/once" || echo "$1: not the same as one implementation"
}
# The header can be in a folder with a space in its name, be included by a relative path, and have another name.
check_other_places() {
    mkdir -p "$tmp/a place/sub"; cp "$header" "$tmp/a place/sub/opdispatch.h"; cp "$header" "$tmp/a place/other.h"
    for file in sub/opdispatch.h other.h; do
        sed "s,\"opdispatch.h\",\"$file\"," "$programs/implementation.c" >"$tmp/place.c"
        quiet $CC -fsyntax-only "-I$tmp/a place" "$tmp/place.c"
    done
}
# The header compiles after dlpack.h, whose structs have names that the header declares, too.
check_beside_dlpack() {
    { sed -n '/^typedef struct.*DLPackVersion/,/^} DLManagedTensorVersioned/p' "$root/tests/files/test_exchange.c"
      cat "$programs/implementation.c"; } | sed '1i #include <stdint.h>' >"$tmp/dlpack.c"
    grep -q '^} DLManagedTensorVersioned' "$tmp/dlpack.c" || echo 'test_exchange.c has no structs'
    quiet $CC -fsyntax-only $inc "$tmp/dlpack.c"
    quiet $CXX -x c++ -std=c++11 -fsyntax-only $inc "$tmp/dlpack.c"
}
check_two_files() {
    implementation_object
    build_run two_files $CC -O0 $inc "$programs/main.c" "$programs/use.c" "$tmp/implementation.o"
}
check_cxx_with_c_implementation() {
    implementation_object
    fails $CXX -x c++ -std=c++11 -O0 $inc -c "$programs/use.c" -o "$tmp/use_cxx.o"
    fails $CXX -x c++ -std=c++11 -O0 $inc -c "$programs/main.c" -o "$tmp/main_cxx.o"
    build_run cxx_with_c $CXX "$tmp/main_cxx.o" "$tmp/use_cxx.o" "$tmp/implementation.o"
}
check_cxx_implementation() {
    implementation_object_cxx
    quiet $CXX -x c++ -std=c++11 -fsyntax-only $inc "$tmp/whole.c"
    build_run cxx_implementation $CXX -x c++ -std=c++11 -O0 $inc "$programs/main.c" "$programs/use.c" -x none "$tmp/implementation_cxx.o"
}
check_static_in_two_files() {
    sed 's/use_library/use_again/' "$tmp/use_whole.c" >"$tmp/static_b.c"
    sed 's/^int main(void) { return/int use_again(void);\nint main(void) { return use_again() ||/' "$tmp/whole.c" >"$tmp/static_a.c"
    fails $CC -fsyntax-only -DOPD_STATIC $inc "$tmp/static_a.c"
    for part in a b; do fails $quickest_c -DOPD_STATIC $inc -c "$tmp/static_$part.c" -o "$tmp/static_$part.o"; done
    build_run static_two $quickest_c "$tmp/static_a.o" "$tmp/static_b.o"
    exported "$tmp/static_b.o" | grep -v -x use_again | head -n 4 | sed 's/^/exported with OPD_STATIC: /'
}
# Each build line of the manual compiles a small program, with the flags of the line, but without -O2.
check_build_lines() {
    turn 1 2 || { echo "$another_turn"; return; }
    first_comment | sed -n 's/^[ *]*\(\$ *\)\{0,1\}\(\(cc\|gcc\|clang\|tcc\|c++\|g++\|clang++\) .*\)/\2/p' |
        grep -E '\.(c|cpp|cc)( |$)' | sed 's/  *\(\/\*\|#\|(\).*//' >"$tmp/lines"
    [ -s "$tmp/lines" ] || echo "the first comment has no build line"
    while read -r compiler rest; do
        command -v "$compiler" >/dev/null 2>&1 || continue
        flags=; libs=; next=
        for word in $rest; do
            if [ -n "$next" ]; then next=; continue; fi
            case $word in
                -o) next=yes ;;
                -l*) libs="$libs $word" ;;
                *.c|*.cpp|*.cc|*.o|*.a|*.so) ;;
                *) flags="$flags $word" ;;
            esac
        done
        case $compiler in *++) flags="-x c++ $flags" ;; esac
        case $compiler in cc) compiler=$quick_c ;; c++) compiler=$quick_cxx ;; esac      # any compiler may be used
        cp "$tmp/whole.c" "$tmp/line.c"
        out=$(fails $compiler $flags -O0 $inc "$tmp/line.c" -o "$tmp/line" $libs)
        [ -n "$out" ] || out=$(fails "$tmp/line")
        [ -z "$out" ] || printf 'the line "%s %s": %s\n' "$compiler" "$rest" "$out"
    done <"$tmp/lines"
}
# Adds the operators in src/README.md to a copy of src/, as the page says.
check_recipes() {
    if ! command -v python3 >/dev/null 2>&1; then echo "SKIP: no python3"; return; fi
    python3 "$root/tests/recipes.py" --cc "$quickest_c" 2>&1 | head -n 12
}
# Compiles and runs the programs of the documents, and tests their operators with opd_opcheck and opd_gradcheck.
check_documents() {
    if ! command -v python3 >/dev/null 2>&1; then echo "SKIP: no python3"; return; fi
    fails $quick_c -O0 -w $inc -c "$programs/implementation.c" -o "$tmp/documents.o"
    python3 "$root/tests/documents.py" --cc "$quick_c" --cxx "$quick_cxx" --object "$tmp/documents.o" 2>&1 | head -n 24
}
# Runs the commands of the documents in a copy of the repository.  Also checks that a test compiles each block of code.
check_commands() {
    if ! command -v python3 >/dev/null 2>&1; then echo "SKIP: no python3"; return; fi
    python3 "$root/tests/commands.py" --cc "$quick_c" 2>&1 | grep -v '^skip ' | head -n 24
}
# With OPD_CHECKED, a kernel that gets data in its loop fails with an error if the dtype is wrong or the tensor is NULL.
check_checked() {
    fails $quickest_c -DOPD_CHECKED -O0 $inc "$programs/checked.c" -o "$tmp/checked" -lm -lpthread
    fails "$tmp/checked"
    "$tmp/checked" 2>&1 | head -n 4
}
# src/printing.py reads the same operators from the cards as the library registers.  join.py reports
# mistakes in a card, in its comment, and in lists, and names the operator.
check_cards() {
    if ! command -v python3 >/dev/null 2>&1; then echo "SKIP: no python3"; return; fi
    python3 "$root/tests/operators.py" "$header" --cc "$quickest_c" | head -n 8
    card=ops/pointwise/unary.c
    wrong_card "$card" 's|^/\* opd_exp: .*||' 'OPDI_OP(exp needs a comment /* opd_NAME: ... */ above it'
    wrong_card "$card" 's|^/\* opd_exp: |/* opd_log: |' 'two operators have the function log'
    wrong_card "$card" 's|^/\* opd_exp: |/* opd_exp(other): |' 'the comment must list the arguments of exp, which are self'
    wrong_card "$card" 's|op->schema = "exp(|op->schema = OPDI_NOTHING "exp(|' "'OPDI_NOTHING' is not a macro for a string"
    wrong_card "$card" 's|"exp(Tensor self)|"exp(Tensor self=None, Tensor other)|' 'exp: an argument with a default comes before an argument without'
    wrong_card "$card" '/op->schema = "exp(/d' 'OPDI_OP(exp): the descriptor must begin with op->schema'
    wrong_card ops/train.c 's|^OPDI_FOREACH(_foreach_abs, .*)$|& ;|' 'OPDI_OP(_foreach_abs) must have the form'
    wrong_card "$card" 's|^OPDI_OP(exp) {|OPDI_OP(exp)\n{|' 'OPDI_OP(exp) must have the form "OPDI_OP(name) {"'
    wrong_card api/operators.h '/op_fft.printed.h/d' 'src/api/operators.h has no #include "op_fft.printed.h"'
    wrong_card api/operators.h 's/op_fft.printed.h/op_fft2.printed.h/' 'src/api/operators.h has no #include "op_fft.printed.h"'
    wrong_card ops/registration.c 's/cards.printed.h/card.printed.h/' 'card.printed.h is included, but src/printing.py cannot print it'
    wrong_card api/host_functions.txt 's/opd_error_code/opd_error_cod/' 'src/api/ has no prototype for opd_error_cod'
    wrong_card graphs/recording.c 's|^//==|#endif   /* OPD_NO_GRAPHS */\n//==|' 'a region of OPD_NO_GRAPHS ends, but did not begin'
}
# wrong_card FILE SED TEXT: changes a file in a copy of src/ with sed.  join.py must fail with a message that contains
# TEXT.
wrong_card() {
    rm -rf "$tmp/wrong"; mkdir -p "$tmp/wrong"; cp -r "$root/src" "$tmp/wrong"
    sed -i -e "$2" "$tmp/wrong/src/$1"
    out=$(python3 "$tmp/wrong/src/join.py" 2>&1) && echo "join.py lets this through: $1 with $2"
    case $out in *"$3"*) ;; *) printf 'join.py does not say "%s" of %s with %s: %s\n' "$3" "$1" "$2" "$out" ;; esac
}
# helped FILE COMMAND...: checks that a program has --help, and that an unknown option is an error.
helped() {
    name=$1; shift
    "$@" --help >"$tmp/help" 2>"$tmp/unasked" || echo "$name --help fails: $(head -n 1 "$tmp/unasked")"
    [ -s "$tmp/help" ] || echo "$name --help prints nothing"
    ! "$@" --no-such-option >"$tmp/help" 2>&1 || echo "$name takes an option that it does not know"
}
# Each program that takes arguments has --help, and an unknown option is an error.  --help of a script works without the
# packages that the script needs.  A program runs if tcc can compile it; otherwise only its source is checked.
check_helps() {
    for file in "$root"/examples/*.c "$root"/bench/*.c; do
        name=${file#"$root"/}
        grep -q '^int main(int argc' "$file" || continue
        grep -q -e '"--help"' -e bench_main "$file" || { echo "$name takes arguments and has no --help"; continue; }
        case $name in *_mpi.c|*/sharded_lm.c|*/crop.c|*/inline.c|*/cuda.c|bench/*) continue ;; esac
        command -v tcc >/dev/null 2>&1 || continue
        # tcc cannot compile it
        tcc -w -I"$root" "$file" -o "$tmp/helped" -lm -lpthread -ldl >"$tmp/help" 2>&1 || continue
        (cd "$tmp" && helped "$name" "$tmp/helped")
    done
    [ ! -e "$tmp/--help" ] || echo 'a program has written a file named --help'
    command -v python3 >/dev/null 2>&1 || return
    mkdir -p "$tmp/no_packages"
    for package in torch numpy; do echo "raise ImportError('there is no $package')" >"$tmp/no_packages/$package.py"; done
    for file in "$root"/src/*.py "$root"/tests/*.py "$root"/tests/oracle/*.py "$root"/tests/extension/*.py \
        "$root"/examples/site/*.py "$root"/examples/packaging/*.py "$root"/examples/finetune_network.py; do
        grep -q '^if __name__\|^main()' "$file" || continue                     # a module that other scripts import
        helped "${file#"$root"/}" env PYTHONPATH="$tmp/no_packages" PYTHONDONTWRITEBYTECODE=1 python3 "$file"
    done
}
#| tcc on Linux (no threads, no SIMD) | tcc, C11 | small programs | natively
check_tcc() {
    if ! command -v tcc >/dev/null 2>&1; then echo 'SKIP: no tcc'; return; fi
    out=$(fails tcc $inc "$tmp/whole.c" -o "$tmp/whole_tcc" -lm)
    if [ -n "$out" ]; then printf '%s\n' "$out"; else fails "$tmp/whole_tcc"; fi
}
#| Windows on x86-64, code for Microsoft's compiler | clang for this target, with an error for each GNU attribute | small programs | only compiled
check_msvc() { CLANG=clang sh "$root/tests/msvc.sh"; }
without() {             # compiles without one feature
    quiet $quick_c -fsyntax-only -Wall -Wextra "-DOPD_NO_$1" $inc "$programs/implementation.c"
    [ "$quick_c" = "$CC" ] || quiet $CC -fsyntax-only -Wall -Wextra "-DOPD_NO_$1" $inc "$programs/implementation.c"
}
check_no_threads() { without THREADS; }
check_no_simd() { without SIMD; }
check_no_cache() { without CACHE; }
check_no_everything() { # compiles without all three, and runs.  Clang also reports unused functions.
    flags='-DOPD_NO_THREADS -DOPD_NO_SIMD -DOPD_NO_CACHE'
    [ "$quick_c" = "$CC" ] || quiet $CC -fsyntax-only -Wall -Wextra $flags $inc "$programs/implementation.c"
    quiet $quick_c -O0 -Wall -Wextra $flags $inc -c "$programs/implementation.c" -o "$tmp/without.o"
    build_run without $CC -O0 $flags $inc "$programs/main.c" "$programs/use.c" "$tmp/without.o"
}
# No warnings of the checks of glibc's headers, which Ubuntu's gcc switches on.  Without compiling, only clang prints
# them.  run.sh compiles the library with these checks, so that gcc prints them there.
check_fortified() {
    case $quick_c in *clang*) ;; *) echo 'SKIP: no clang'; return ;; esac
    quiet $quick_c -O1 -fsyntax-only -Wall -Wextra -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 $inc "$programs/implementation.c"
}
# says FLAGS...: prints the warnings of $CC and $CXX for the implementation with these flags.
says() {
    [ "$quick_c" = "$CC" ] || quiet $CC $strict_c -fsyntax-only "$@" $inc "$programs/implementation.c"
    quiet $CXX $strict_cxx -fsyntax-only "$@" $inc "$programs/implementation.c"
}
# Without the built-in operators, a program's own operator and its derivative run.  A call of an operator that was left
# out fails with an error that says so.
check_core_alone() {
    turn 1 2 || { echo "$another_turn"; return; }
    quiet $quick_c $strict_c -O0 -DOPD_NO_OPERATORS $inc -c "$programs/implementation.c" -o "$tmp/core.o"
    build_run core $quick_c -O0 $inc "$programs/core.c" "$tmp/core.o"
    build_run core_device $quick_c -O0 $inc "$root/tests/product/core_device.c" "$tmp/core.o"
    quiet $quick_cxx $strict_cxx -O0 -DOPD_NO_OPERATORS $inc -c "$programs/implementation.c" -o "$tmp/core_cxx.o"
    build_run core_cxx $quick_cxx -x c++ -std=c++11 -O0 $inc "$programs/core.c" -x none "$tmp/core_cxx.o"
    says -DOPD_NO_OPERATORS
}
# Without complex arithmetic, complex tensors can be made, moved and added.  Operators that were left out fail with an
# error that says so.
# Without one family of operators, the implementation compiles without a warning.  Without all of them it also compiles
# as C++, and works.
check_families() {
    flags=
    for family in CONV POOL RESAMPLE DISTANCE FFT SOLVE SPECIAL NORM LOSS INDEX TRAIN; do
        flags="$flags -DOPD_NO_OP_$family"
        quiet $quick_c $strict_c -fsyntax-only "-DOPD_NO_OP_$family" $inc "$programs/implementation.c"
    done
    quiet $quick_c $strict_c -fsyntax-only -DOPD_NO_COMPLEX $inc "$programs/implementation.c"
    quiet $quickest_c -DOPD_NO_COMPLEX $inc -c "$programs/implementation.c" -o "$tmp/no_complex.o"
    build_run no_complex $quickest_c $inc "$programs/no_complex.c" "$tmp/no_complex.o"
    says -DOPD_NO_COMPLEX
    flags="$flags -DOPD_NO_COMPLEX"
    quiet $quickest_c $flags $inc -c "$programs/implementation.c" -o "$tmp/families.o"
    build_run families $quickest_c $inc "$programs/main.c" "$programs/use.c" "$tmp/families.o"
    says $flags
}
# Without one tool, the implementation compiles without a warning; without all of them also as C++.  Without all tools,
# with and without operators, all functions exist: a function of a tool fails with an error that names the macro, a
# function that frees or closes something does nothing, and plug-ins can be loaded.
tools='TRANSFORMS GRAPHS CHECKING TRAINING EXCHANGE MODULES PROFILER AUTOCAST'
check_tools() {
    turn 0 2 || { echo "$another_turn"; return; }
    flags=
    for tool in $tools; do
        flags="$flags -DOPD_NO_$tool"
        quiet $quick_c $strict_c -fsyntax-only "-DOPD_NO_$tool" $inc "$programs/implementation.c"
    done
    quiet $quick_c $strict_c -O0 $flags $inc -c "$programs/implementation.c" -o "$tmp/tools.o"
    same_symbols "$tmp/tools.o"
    build_run tools $quick_c -O0 $inc "$programs/tools.c" "$tmp/tools.o"
    says -DOPD_NO_GRAPHS -DOPD_NO_TRANSFORMS
    quiet $quickest_c -DOPD_NO_GRAPHS -DOPD_NO_TRANSFORMS $inc -c "$programs/implementation.c" -o "$tmp/opcheck.o"
    build_run opcheck $quickest_c $inc "$programs/opcheck.c" "$tmp/opcheck.o"
    quiet $quick_cxx $strict_cxx -O0 $flags $inc -c "$programs/implementation.c" -o "$tmp/tools_cxx.o"
    build_run tools_cxx $quick_cxx -x c++ -std=c++11 -O0 $inc "$programs/tools.c" -x none "$tmp/tools_cxx.o"
    quiet $quick_c -O0 -DOPD_NO_OPERATORS $flags $inc -c "$programs/implementation.c" -o "$tmp/core_tools.o"
    build_run core_tools $quick_c -O0 -DTOOLS_LEFT_OUT $inc "$programs/core.c" "$tmp/core_tools.o"
    says $flags
    says -DOPD_NO_OPERATORS $flags
    [ "$(uname)" = Linux ] || return
    fails $quick_c -O0 -shared -fPIC -DOPDISPATCH_PLUGIN "$root/examples/plugin.c" -o "$tmp/plugin.so"
    sed "/OPDISPATCH_IMPLEMENTATION/d; s,\.\./opdispatch.h,$header," "$root/examples/plugin_host.c" >"$tmp/host.c"
    fails $quick_c -O0 "$tmp/host.c" "$tmp/tools.o" -o "$tmp/host" $lib
    "$tmp/host" "$tmp/plugin.so" 2>&1 | grep -q 'tensor(\[1\., 2\., 3\.\])' || echo 'no plug-in is loaded'
}
# The library compiles in 1, 2, 3 and 7 parts, without a warning.  Together, the parts have each public function and each
# variable once, and link to a program that runs.  Parts with different settings do not link, and wrong numbers are
# refused.
parts_of() {            # $1: N; $2: the program; $3: the compiler; the rest: its options
    n=$1; program_of_parts=$2; parts_compiler=$3; shift 3
    objects=; part=0
    while [ $((part += 1)) -le "$n" ]; do
        quiet $parts_compiler -DOPDISPATCH_PARTS=$n -DOPDISPATCH_PART=$part "$@" $inc -c "$programs/implementation.c" -o "$tmp/part$part.o"
        objects="$objects $tmp/part$part.o"
    done
    build_run parts $parts_compiler -O0 $inc $program_of_parts -x none $objects
}
check_parts() {
    awk '$1 ~ /\.c$/ && $2 !~ /^[0-9]+$/ { print "src/files.txt has no time for " $1 }' \
        "$root/src/files.txt"
    for n in 1 7 2; do
        [ $n = 7 ] || turn $((n - 1)) 2 || continue
        parts_of $n "$programs/main.c $programs/use.c" "$quick_c $strict_c" -O0
        for object in $objects; do
            nm "$object" | awk 'NF == 3 && $2 ~ /[bBdD]/ && $3 !~ /\./ { print $3 }' | sort -u
        done | sort | uniq -d | sed "s/$/: of $n parts, several have a variable of this name/"
        ld -r $objects -o "$tmp/parts.o" 2>&1 | head -n 3
        readelf -sW "$tmp/parts.o" | awk '$5 == "GLOBAL" && $6 == "DEFAULT" && $7 != "UND" &&
            $8 !~ /^opd_library_(of_version|with)_/ { print $8 }' | sort -u >"$tmp/got"
        prototypes | diff - "$tmp/got" | sed -n "s/^[<>]/not in the $n parts or not in the header:/p" | head -n 12
    done
    for without in THREADS CACHE; do              # without OPDISPATCH_PARTS, there are two parts
        $quick_c -O0 -w -DOPDISPATCH_PART=2 -DOPD_NO_$without $inc -c "$programs/implementation.c" -o "$tmp/other.o"
        $quick_c -O0 $inc "$programs/main.c" "$programs/use.c" "$tmp/part1.o" "$tmp/other.o" -o "$tmp/parts" $lib 2>&1 |
            grep -qi "opdi_parts_without_$without" || echo "parts with and without $without are linked"
    done
    for wrong in 'PART=3' 'PART=0' 'PART=1 -DOPDISPATCH_PARTS=0' 'PART=1 -DOPDISPATCH_PARTS=65' 'PARTS=2' \
        'PART=8 -DOPDISPATCH_PARTS=7' 'PART=1 -DOPD_STATIC' 'PART=1 -DOPD_LEAN'; do
        $quick_c -DOPDISPATCH_$wrong -fsyntax-only $inc "$programs/implementation.c" 2>&1 | grep -q 'error.*OPDISPATCH_PART' ||
            echo "-DOPDISPATCH_$wrong is taken"
    done
    for part in 1 2 3; do says -O1 -DOPDISPATCH_PARTS=3 -DOPDISPATCH_PART=$part; done
    parts_of 3 "$programs/main.c $programs/use.c" "$quick_c $strict_c" -O0 -DOPD_NO_THREADS -DOPD_NO_SIMD -DOPD_NO_CACHE -DOPD_NO_PLUGINS
    parts_of 2 "$programs/core.c" "$quick_c $strict_c" -O0 -DOPD_NO_OPERATORS -DOPD_NO_GRAPHS -DOPD_NO_TRANSFORMS
    parts_of 2 "$programs/main.c $programs/use.c" "$quick_cxx $strict_cxx" -O0
}
# An argument of a type that no operator takes does not compile as C or C++ (a pointer does not become a bool).  The
# error has only a few lines.
check_wrong_arguments() {
    for call in 'right OPD_CALL(op, t, 1, 0.5, "text", OPD_V(2))' 'wrong opd_add(t, s)' 'wrong OPD_CALL(op, s)' \
        'wrong OPD_CALL(op, t, f)' 'wrong OPD_CALL(op, c)' 'wrong OPD_V(f)' 'wrong opd_sum(op)' 'wrong OPD_CALL(op, opd_sum)'; do
        printf '#include "opdispatch.h"\ntypedef struct S { int a; } S;\n' >"$tmp/wrong.c"
        echo 'void f(opd_op *op, opd_tensor *t, const opd_tensor *c, float *f, S s);' >>"$tmp/wrong.c"
        echo "void f(opd_op *op, opd_tensor *t, const opd_tensor *c, float *f, S s) {" >>"$tmp/wrong.c"
        echo "    (void)op; (void)t; (void)c; (void)f; (void)s; (void)${call#* };" >>"$tmp/wrong.c"
        echo '}' >>"$tmp/wrong.c"
        taken=wrong
        $CC -std=c11 -Werror -fsyntax-only $inc "$tmp/wrong.c" >"$tmp/wrong.txt" 2>&1 && taken=right
        [ $taken = "${call%% *}" ] || echo "C: $call"
        taken=wrong
        $CXX -x c++ -std=c++11 -fsyntax-only $inc "$tmp/wrong.c" >"$tmp/wrong.txt" 2>&1 && taken=right
        [ $taken = "${call%% *}" ] || echo "C++: $call"
        case $($CXX --version) in
            *clang*) ;;                               # clang lists all candidates
            *) [ "$(wc -l <"$tmp/wrong.txt")" -le 14 ] || echo "$call: $(wc -l <"$tmp/wrong.txt") lines of error" ;;
        esac
    done
    # arguments that C++ functions accept
    for type in 'std::vector<int64_t>' 'std::string' 'const opd_ints &' 'short'; do
        printf '#include "opdispatch.h"\n#include <string>\n#include <vector>\ntypedef %s T;\n' "$type" >"$tmp/wrong.cpp"
        printf 'static opd_tensor *f(opd_tensor *x, T) { return x; }\nOPD_FUNCTION(f_fn, f, opd_tensor *, opd_tensor *, T)\n' >>"$tmp/wrong.cpp"
        $CXX -std=c++11 -w -fsyntax-only $inc "$tmp/wrong.cpp" >"$tmp/wrong.txt" 2>&1 && echo "OPD_FUNCTION takes $type"
        grep -q 'OPD_FUNCTION: an operator cannot have an argument or result of this type: use double' "$tmp/wrong.txt" ||
            sed "s|^|$type: |" "$tmp/wrong.txt" | head -n 4
    done
}
# A debugger steps from opd_add into its loop, and through a backward function.  Each step shows a line of source text.
# It steps through the second call, because the first one registers the operators.
check_steps() {
    command -v gdb >/dev/null || { echo 'SKIP: gdb is not there'; return; }
    implementation_object
    quiet $CC -O0 -g $inc "$programs/steps.c" "$tmp/implementation.o" -o "$tmp/steps" $lib
    gdb -batch -nx -ex run "$tmp/steps" 2>&1 | grep -q 'exited normally' || { echo 'SKIP: gdb runs no programs here'; return; }
    gdb -batch -nx -x "$programs/steps.gdb" "$tmp/steps" >"$tmp/stepped" 2>&1
    for line in 'opd_add (' 'opdi_f32_add (' 'opdi_f32_blocks (' 'for (int j = 0; j < 16; j++) {' \
        'const OPD_T value = formula(x\[i + j\], ' 'opdi_f32_at_add (x=1, y=1,' 'out\[i + j\] = value;' \
        'opdi_mul_backward (' 'opd_tensor \*grad = opd_bw_grad(bw, 0);' 'opd_mul(grad, opd_bw_tensor(bw, 1))' 'grad = 0x'; do
        grep -q "$line" "$tmp/stepped" || echo "not seen: $line"
    done
}
# The implementation does not compile with flags that would give wrong numbers.  The declarations do.
check_fast_math() {
    for flag in -ffast-math -Ofast -ffinite-math-only; do
        $CC $flag -E -o "$tmp/fast.i" $inc "$programs/implementation.c" >"$tmp/fast" 2>&1 && echo "$flag is let through"
        grep -q 'error.*build this file without' "$tmp/fast" || echo "$flag: another error"
        quiet $CC $flag -fsyntax-only $inc "$programs/declarations.c"
    done
}
check_std11_c_implementation() { implementation_object; cat "$tmp/warnings"; }
check_std11_c_declarations() { quiet $CC $strict_c -O1 $inc -c "$programs/declarations.c" -o "$tmp/strict.o"; }
check_std11_cxx_implementation() { implementation_object_cxx; cat "$tmp/warnings_cxx"; }
check_std11_cxx_declarations() { quiet $CXX $strict_cxx -O1 $inc -c "$programs/declarations.c" -o "$tmp/strict.o"; }
# Examples and benchmarks compile without warnings, with declarations only.  Programs that include other libraries are
# left out if these are not installed.
check_program_warnings() {
    for program in "$root"/bench/*.c "$root"/examples/*.c; do
        sed 's/^#define OPDISPATCH_IMPLEMENTATION.*//' "$program" |
            $quick_c -Wall -Wextra -fsyntax-only $inc -I"$(dirname "$program")" -x c - >"$tmp/program" 2>&1
        grep -q 'fatal error: .*\(mpi\|Magick[A-Za-z]*\).h' "$tmp/program" ||
            grep -E '(warning|error): ' "$tmp/program" | sed "s|^|$(basename "$program"): |" | head -n 4
    done
}
# C++20 and C23 have warnings of their own.  Older compilers know these standards as c++2a and c2x.
check_newer_standards() {
    quiet $CXX -x c++ -std=c++2a -Wall -Wextra -O0 -fsyntax-only $inc "$programs/implementation.c"
    quiet $CC -std=c2x -Wall -Wextra -O0 -fsyntax-only $inc "$programs/implementation.c"
}

# The checks of tests/texts.py, which prints their results; then the others.
check_texts() { echo 'SKIP: no python3'; }
read=; other=
for check in $names; do
    case $check in *"$only"*) ;; *) continue ;; esac
    case " $(echo $texts) " in *" $check "*) read="$read $check" ;; *) other="$other $check" ;; esac
done
[ "$read" != ' texts' ] || { read=; other="texts$other"; }
[ -z "$read" ] || python3 "$root/tests/texts.py" $read
checks_at=$(date +%s)
for check in $other; do result "$check" "$(check_$check 2>&1)"; done
