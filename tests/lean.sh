#!/bin/sh
# Checks programs with OPD_LEAN: how long they take to compile and how large they are, which errors they get, and that
# they contain the operators that their operators call.
#   sh tests/lean.sh [NAME]    runs the checks whose names contain NAME
#   sh tests/lean.sh --list    prints the names of the checks
# The compilers are CC and CXX, and for some checks gcc and clang, if they are installed.  Prints "ok NAME",
# "FAIL NAME: why" or "skip NAME: why" for each check.  The last line is "N passed, N failed".
set -u
names='first_program four_digits no_warnings kept_by_name late random as_whole loaders hints refused left_out linked families windows web
switches tcc operators'
# Test files that look up no built-in operators by name, except for operators that they keep with OPD_KEEP.
tests='autograd/test_engine autograd/test_function autograd/test_print dispatch/test_custom_ops dispatch/test_scopes
files/test_bad_checkpoints files/test_checkpoints files/test_json graphs/test_blocks graphs/test_builtins
graphs/test_graph_values graphs/test_planned ops/test_complex_linalg ops/test_packed ops/test_samples ops/test_statistics
tools/test_gradcheck tools/test_modules tools/test_pictures tools/test_training transforms/test_stacks_user
transforms/test_transform_writes types/test_keys types/test_schema'
root=$(cd "$(dirname "$0")/.." && pwd)
for test in $tests; do names="$names ${test#*/}"; done
if [ "${1:-}" = --list ]; then printf '%s\n' $names; exit 0; fi
only=${1:-}
tmp=$(mktemp -d "${TMPDIR:-/tmp}/opd_lean.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
cd "$root" || exit 1
. tests/checks.sh
have() { command -v "$1" >/dev/null 2>&1; }
quick=${CC:-cc}; ! have clang || quick=clang
# For programs that only have to run: tcc takes a tenth of clang's time.  The test files and check_operators use $quick.
quickest="$quick -O0 -w"; ! have tcc || quickest='tcc -w'
lib='-lm -lpthread -ldl'
source_of() {           # source_of NAME CODE [BEFORE]: writes a program with CODE in main
    printf '#include "opdispatch.h"\n%s\nint main(void) {\n    OPD_SCOPE {\n%s\n    }\n    return opd_finish();\n}\n' \
        "${3:-}" "$2" >"$tmp/$1.c"
}
lean='-DOPD_LEAN -DOPD_STATIC -DOPDISPATCH_IMPLEMENTATION -I.'
# The first program of the README.
awk '/^```c$/ { inside = !seen; seen = 1; next } /^```/ { inside = 0 } inside && !/define OPDISPATCH_IMPLEMENTATION/' README.md \
    >"$tmp/first.c"
said='tensor([ 0.0000,  1.3818,  0.0770, -2.8289])'

# The output of this program, and the size of its code and constants.  The optimiser gives no warnings.  The size must
# not depend on the name of $tmp, so the text __FILE__ is without it.
check_first_program() {
    for cc in gcc clang; do
        have $cc || continue
        quiet $cc -O2 -Wall -Wextra -Werror "-fmacro-prefix-map=$tmp/=" $lean "$tmp/first.c" -o "$tmp/first" $lib
        [ "$("$tmp/first")" = "$said" ] || echo "$cc: another output"
        size=$(size "$tmp/first" | awk 'NR == 2 { print $1 }')
        [ "$size" -lt 580000 ] || echo "$cc -O2: $size bytes of code and constants, at most 580,000"
        echo "$cc -O2: $size bytes" >&2
        sized first_program $cc "$size"
    done
}
# sized NAME COMPILER SIZE: compares a size with tests/golden/sizes.txt, and says on standard error if there is none.
sized() {
    have python3 || { echo "skip the size: no python3 to compare the size of $1 with" >&2; return; }
    said_of_size=$(python3 tests/sizes.py "$@" 2>&1)
    case $said_of_size in SKIP:*) echo "skip the size:${said_of_size#SKIP:}" >&2 ;; ?*) echo "$said_of_size" ;; esac
}
# A model that is written as C, for a small processor.  Its size is compared, and its code is compiled without warnings.
check_four_digits() {
    arm=arm-linux-gnueabihf-gcc
    have $arm || { echo "SKIP: no $arm"; return; }
    quiet $quickest -I. examples/model_to_c.c -o "$tmp/model_to_c" $lib
    "$tmp/model_to_c" examples/data/four_digits.pt2 "$tmp/digits" --size 1 >"$tmp/log" 2>&1 || cat "$tmp/log"
    quiet $arm -Os -mcpu=cortex-m7 -mthumb -mfpu=fpv5-d16 -mfloat-abi=hard -Wall -Wextra -c "$tmp/digits/model.c" -o "$tmp/digits.o"
    sized four_digits $arm "$(${arm%gcc}size "$tmp/digits.o" | awk 'NR == 2 { print $1 }')"
}
check_no_warnings() {
    turn 1 2 || { echo "$another_turn"; return; }
    for cc in 'gcc -std=c11' 'clang -std=c11' 'g++ -x c++ -std=c++11' 'clang++ -x c++ -std=c++11'; do
        have "${cc%% *}" || continue
        # gcc warns of unused code only when it compiles; check_first_program compiles the same code as C
        case $cc in g++*) checks='-O1 -c' ;; *) checks=-fsyntax-only ;; esac
        quiet $cc $checks -Wall -Wextra -Werror $lean "$tmp/first.c" -o "$tmp/first.o"
    done
}
# An operator that is looked up by its name is missing, with an error that says what to write to keep it.  With this
# line, the program has the operator.
check_kept_by_name() {
    source_of named '        opd_tensor *x = opd_ones(OPD_INTS(1, 1, 3, 3), OPD_FLOAT32);
#if defined(KEPT)
        OPD_KEEP(conv2d); OPD_KEEP(add_Tensor); OPD_KEEP(torchvision);
#endif
        opd_print(OPD_CALL(opd_find(NAME), x, x));'
    for name in aten::conv2d:conv2d aten::add_.Tensor:add_Tensor torchvision::nms:torchvision; do
        card=${name##*:}; name=${name%:*}
        quiet $quickest $lean -DNAME="\"$name\"" "$tmp/named.c" -o "$tmp/named" $lib
        case $("$tmp/named" 2>&1) in
            *"no operator named '$name'"*"write OPD_KEEP($card) before"*) ;;
            *) echo "$name: another error: $("$tmp/named" 2>&1)" ;;
        esac
    done
    for name in aten::conv2d aten::add_.Tensor; do
        quiet $quickest $lean -DNAME="\"$name\"" -DKEPT "$tmp/named.c" -o "$tmp/named" $lib
        "$tmp/named" >"$tmp/log" 2>&1 || cat "$tmp/log"
    done
    source_of groups '        OPD_KEEP(torchvision); OPD_KEEP(collectives); OPD_KEEP(quantized);
        (void)opd_find("torchvision::nms"); (void)opd_find("_c10d_functional::all_reduce"); (void)opd_find("c10d::allreduce_");
        (void)opd_find("torchao::quantize_affine"); (void)opd_find("quantized_decomposed::quantize_per_tensor");
        (void)opd_find("transformers::grouped_mm_fallback");'
    quiet $quick -O0 -Wall -Wextra $lean "$tmp/groups.c" -o "$tmp/groups" $lib
    quiet "$tmp/groups"
    source_of number '        opd_print(OPD_CALL(opd_op_builtin(OPD_OP_conv2d), opd_ones(OPD_INTS(1), OPD_FLOAT32)));'
    quiet $quickest $lean "$tmp/number.c" -o "$tmp/number" $lib
    case $("$tmp/number" 2>&1) in *'to keep OPD_OP_conv2d, for example, write OPD_KEEP(conv2d) before this line'*) ;; *) "$tmp/number" ;; esac
    # without OPD_LEAN the macro does nothing
    quiet $quick -fsyntax-only -Wall -Wextra -DOPDISPATCH_IMPLEMENTATION -I. -DNAME='"aten::conv2d"' -DKEPT "$tmp/named.c"
}
# Whether an operator that is not kept is random is unknown: an error says how to keep it.
check_random() {
    source_of random '        const char *const texts[] = {"aten::rrelu(Tensor self) -> Tensor", "aten::relu_(Tensor self) -> Tensor",
            "aten::poisson.out(Tensor self) -> Tensor", "my::rrelu(Tensor self) -> Tensor", "aten::rrelu(Tensor self) -> Tensor"};
        for (int i = 0; i < 5; i++) {
            opd_schema *schema = opd_schema_parse(texts[i]);
            if (i == 4) { OPD_KEEP(rrelu); }
            const bool random = opd_schema_is_nondeterministic(schema, NULL);
            printf("%d %s\n", random, opd_ok() ? "" : strstr(opd_error_message(), "write OPD_KEEP"));
            opd_error_clear();
            opd_schema_free(schema);
        }' '#include <stdio.h>
#include <string.h>'
    quiet $quickest $lean "$tmp/random.c" -o "$tmp/random" $lib
    "$tmp/random" >"$tmp/random.out" 2>&1
    printf '%s\n' '0 write OPD_KEEP(rrelu) before this line' '0 write OPD_KEEP(relu) before this line' \
        '0 write OPD_KEEP before this line, with poisson' '0 ' '1 ' | diff - "$tmp/random.out"
}
# Features that use operators that the program does not call work as without OPD_LEAN, or give an error: kernels that
# the program registers for built-in operators, the choice among overloads, and autocast on other devices.
check_as_whole() {
    turn 1 2 || { echo "$another_turn"; return; }
    source_of whole '        opd_tensor *x = opd_full(OPD_INTS(2, 2), OPD_V(3), OPD_FLOAT32), *out;
        opd_graph *graph = opd_graph_new();
        opd_graph_value *in[] = {opd_graph_input(graph, "x", NULL), opd_graph_constant(graph, opd_value_int(0))}, *y[2];
        opd_print(opd_sum_dim(x, OPD_INTS(0), false));
        opd_graph_call(graph, "aten::sum", in, 2, y, 2);
        opd_graph_output(graph, y, 1, false);
        if (opd_graph_run(graph, &x, 1, &out, 1) >= 0) { opd_print(out); }
        opd_graph_free(graph);
        opd_print(opd_mm(x, x));
        OPD_FAKE_MODE {
            opd_tensor *fake = opd_tensor_new_on(OPD_INTS(2), OPD_FLOAT16, opd_device_make(OPD_CUDA, 0));
            OPD_AUTOCAST(OPD_CUDA) { printf("%s\n", opd_dtype_name(opd_dtype(opd_norm_Scalar(fake, OPD_V(2))))); }
        }' '#include <stdio.h>
static int mine(opd_call *call) {
    printf("mine\n");
    return opd_return_tensor(call, opd_clone(opd_arg_tensor(call, 0)));
}
OPD_LIBRARY_IMPL(aten, CPU, lib) {
#if defined(KEPT)
    OPD_KEEP(mm);
#endif
    opd_impl(lib, "mm", mine);
}'
    quiet $quick -O0 -w -DKEPT -DOPDISPATCH_IMPLEMENTATION -I. "$tmp/whole.c" -o "$tmp/whole" $lib
    quiet $quick -O0 -w -DKEPT $lean "$tmp/whole.c" -o "$tmp/lean" $lib
    "$tmp/whole" 2>/dev/null >"$tmp/whole.out"; "$tmp/lean" 2>/dev/null >"$tmp/lean.out"
    [ "$(grep -c . "$tmp/whole.out")" -ge 6 ] || echo 'the whole program fails'
    diff "$tmp/whole.out" "$tmp/lean.out"
    quiet $quick -O0 -w $lean "$tmp/whole.c" -o "$tmp/lean" $lib
    case $("$tmp/lean" 2>&1) in *'opd_impl: aten::mm is a built-in operator that OPD_LEAN does not keep: write OPD_KEEP(mm)'*) ;;
        *) echo 'a kernel of the program is lost without an error' ;; esac
}
# What a program reaches only by the functions that begin a region of autocast or a vmap.
check_late() {
    source_of late '        opd_tensor *x = opd_full(OPD_INTS(2, 2), OPD_V(2), OPD_FLOAT32);
        opd_value args[2] = {opd_value_tensor(x), opd_value_tensor(x)}, ret;
        OPD_KEEP(mm);
        (void)opd_call_at(opd_find("aten::mm"), "AutocastCPU", &ret, args, 2);
        puts(opd_error_message());
        opd_error_clear();
        OPD_AUTOCAST(OPD_CPU) { opd_print(opd_mm(x, x)); }
        OPD_SCOPE { (void)opd_call_at(opd_find("aten::mm"), "AutocastCPU", &ret, args, 2); opd_print(ret.u.t); }
        opd_tensor *in[1], *out = NULL;
        in[0] = x;
        (void)opd_vmap(few, NULL, in, 1, NULL, &out, 1);
        puts(opd_error_message());
        opd_error_clear();' '#include <stdio.h>
static int few(void *ctx, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)ctx; (void)n;
    out[0] = opd_repeat(in[0], opd_ints_of(NULL, 0));
    return out[0] ? 1 : -1;
}'
    quiet $quickest $lean "$tmp/late.c" -o "$tmp/late" $lib
    "$tmp/late" >"$tmp/late.out" 2>&1
    cat >"$tmp/late.expected" <<'TEXT'
aten::mm: a program with OPD_LEAN must call opd_autocast_begin before it calls an operator at an autocast key
tensor([[8., 8.],
        [8., 8.]], dtype=torch.bfloat16)
tensor([[8., 8.],
        [8., 8.]], dtype=torch.bfloat16)
aten::repeat: Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor
TEXT
    diff "$tmp/late.expected" "$tmp/late.out"
}
# A function that loads a graph or a script from a file or from memory keeps all operators.
check_loaders() {
    source_of made '        opd_graph *graph = opd_graph_parse("graph(%x : Tensor):\n  %1 : Tensor = aten::relu(%x)\n"
                                           "  %2 : Tensor = aten::mm(%1, %x)\n  return (%2)\n");
        opd_graph_save(graph, FOLDER "/graph"); opd_graph_free(graph);
        opd_script *script = opd_script_compile("class M(Module):\n    def forward(self, x: Tensor) -> Tensor:\n"
                                                "        return torch.mm(torch.relu(x), x)\n", "M");
        opd_script_save(script, FOLDER "/script"); opd_script_free(script);'
    before='#include <stdio.h>
#include <stdlib.h>
static char bytes[1 << 20];
static size_t read_file(const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f) { exit(3); }
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    return n;
}'
    source_of loaded '        const float twos[4] = {2, 2, 2, 2};
        opd_tensor *x = opd_tensor_from(twos, OPD_INTS(2, 2), OPD_FLOAT32), *out = NULL;
#if defined(SCRIPT)
        const size_t n = read_file(FOLDER "/script");
        opd_script *script = opd_script_from_bytes(bytes, n);
        opd_value arg = opd_value_tensor(x), result;
        if (script && opd_script_run(script, "forward", &arg, 1, &result) == 0) { out = result.u.t; }
        if (out) { opd_print(out); }
        opd_script_free(script);
#else
        const size_t n = read_file(FOLDER "/graph");
        opd_graph *graph = FROM;
        (void)n;
        if (graph && opd_graph_run(graph, &x, 1, &out, 1) >= 0) { opd_print(out); }
        opd_graph_free(graph);
#endif' "$before"
    quiet $quickest -DFOLDER="\"$tmp\"" $lean "$tmp/made.c" -o "$tmp/made" $lib
    quiet "$tmp/made"
    for from in -DSCRIPT '-DFROM=opd_graph_load(FOLDER"/graph")' '-DFROM=opd_graph_from_bytes(bytes,n)'; do
        quiet $quickest -DFOLDER="\"$tmp\"" $lean "$from" "$tmp/loaded.c" -o "$tmp/loaded" $lib
        case $("$tmp/loaded" 2>&1) in *8.*8.*8.*8.*) ;; *) echo "$from: $("$tmp/loaded" 2>&1)" ;; esac
    done
}
# The error for each form of each operator names a card, or a list of cards, that exists.
check_hints() {
    source_of hints '        static const char *const cards[] = {
#define OPDI_CARD(card, name) #card,
            OPDI_CARDS NULL
#undef OPDI_CARD
        };
        char name[300];
        int lines = 0, wrong = 0;
        while (fgets(name, sizeof name, stdin)) {
            name[strcspn(name, "\n")] = 0;
            (void)opd_find(name);
            const char *said = opd_error_message(), *at = strstr(said, "OPD_KEEP(");
            const char *list = strstr(said, "has this form: ");
            size_t n = at ? strcspn(at + 9, ")") : list ? strcspn(list + 15, ",") : 0;
            int i = 0;
            at = at ? at + 9 : list ? list + 15 : said;
            while (cards[i] && (strlen(cards[i]) != n || strncmp(cards[i], at, n) != 0)) { i++; }
            lines++;
            if (opd_ok() || !cards[i]) { wrong++; if (wrong < 5) { printf("%s: %s\n", name, said); } }
            opd_error_clear();
        }
        if (wrong || lines < 2000) { printf("%d of %d wrong\n", wrong, lines); }' '#include <stdio.h>
#include <string.h>'
    source_of list '        for (opd_op *op = opd_op_next(NULL); op; op = opd_op_next(op)) { printf("%s\n", opd_op_name(op)); }' \
        '#include <stdio.h>'
    quiet $quickest -DOPDISPATCH_IMPLEMENTATION -I. "$tmp/list.c" -o "$tmp/list" $lib
    "$tmp/list" | grep '^aten::' >"$tmp/list.out"
    quiet $quickest $lean "$tmp/hints.c" -o "$tmp/hints" $lib
    quiet "$tmp/hints" <"$tmp/list.out"
    source_of odd '        char name[300];
        while (fgets(name, sizeof name, stdin)) {
            name[strcspn(name, "\n")] = 0;
            char *const exact = (char *)malloc(strlen(name) + 1);
            memcpy(exact, name, strlen(name) + 1);
            if (opd_find(exact)) { printf("%s is there\n", exact); }
            opd_error_clear();
            free(exact);
        }' '#include <stdio.h>
#include <stdlib.h>
#include <string.h>'
    quiet $quick -O0 -w -fsanitize=address $lean "$tmp/odd.c" -o "$tmp/odd" $lib
    printf '%s\n' '' : :: . a aten aten: aten:: aten::_ aten::. aten::_. c10d c10d:: _c10d_functional mylib::c10d_add torchvision \
        torchvision:: >"$tmp/odd.in"
    ASAN_OPTIONS=detect_leaks=0 quiet "$tmp/odd" <"$tmp/odd.in"
}
check_refused() {
    if $quick -fsyntax-only -DOPD_LEAN -DOPDISPATCH_IMPLEMENTATION -I. -DOPDISPATCH_PART=1 "$tmp/first.c" >"$tmp/log" 2>&1 ||
        ! grep -q 'do not define OPDISPATCH_PART' "$tmp/log"; then echo 'OPDISPATCH_PART'; fi
    printf '#include "opdispatch.h"\n#define OPD_LEAN\n#define OPDISPATCH_IMPLEMENTATION\n#include "opdispatch.h"\n' >"$tmp/late.c"
    if $quick -fsyntax-only -w -I. "$tmp/late.c" >"$tmp/log" 2>&1 ||
        ! grep -q 'define OPD_LEAN before opdispatch.h is included' "$tmp/log"; then echo 'defined too late'; fi
}
# library CC NAME FLAGS...: compiles the library with OPD_LEAN, a section for each function and variable, to $tmp/NAME.o.
library() {
    library_cc=$1 object=$tmp/$2.o; shift 2
    quiet $library_cc -w -DOPD_LEAN -DOPDISPATCH_IMPLEMENTATION -ffunction-sections -fdata-sections "$@" -x c -c opdispatch.h -o "$object"
}
# Programs of several files are linked with a library that was compiled once.  The linker drops what they do not use, but
# not what OPD_KEEP names in a file without the implementation.  In C++, too.
check_linked() {
    source_of named '        opd_tensor *x = opd_ones(OPD_INTS(1, 1, 3, 3), OPD_FLOAT32);
#if defined(KEPT)
        OPD_KEEP(conv2d); OPD_KEEP(torchvision);
        (void)opd_find("torchvision::nms");
#endif
        opd_print(OPD_CALL(opd_find("aten::conv2d"), other(x), x));' 'extern opd_tensor *other(opd_tensor *x);'
    printf '%s\n' '#include "opdispatch.h"' 'opd_tensor *other(opd_tensor *x) {' '#if defined(KEPT)' '    OPD_KEEP(relu);' \
        '    (void)opd_find("aten::relu");' '#endif' '    return opd_sin(x);' '}' >"$tmp/other.c"
    source_of any '        opd_tensor *x = opd_full(OPD_INTS(2, 2), OPD_V(2), OPD_FLOAT32);
        if (opd_overloads_find("aten::mm")) { opd_print(OPD_CALL(opd_find("aten::mm"), x, x)); }'
    mkdir -p "$tmp/declared"                      # a copy of the header without the implementation, by the guide's command
    command=$(sed -n 's/^    mkdir -p build && \(sed .*\) >build.*/\1/p' examples/guide/01-install.md)
    eval "$command" >"$tmp/declared/opdispatch.h"
    quiet make -s -C src ../build/opdispatch.h
    cmp build/opdispatch.h "$tmp/declared/opdispatch.h"
    for cc in 'gcc g++' 'clang clang++'; do
        cxx=${cc#* }; cc=${cc% *}
        have $cc && have $cxx || continue
        library $cc "$cc" -O0
        for compile in "$cc -std=c11" "$cxx -x c++ -std=c++11"; do
            for file in named other first; do
                quiet $compile -O0 -Wall -Wextra -Werror -DOPD_LEAN -DKEPT -I"$tmp/declared" -c "$tmp/$file.c" -o "$tmp/$file.o"
            done
            for macro in OPD_AOTI OPDISPATCH_PLUGIN; do
                quiet $compile -fsyntax-only -Wall -Wextra -Werror -D$macro -I"$tmp/declared" "$tmp/other.c"
            done
            $compile -fsyntax-only -DOPDISPATCH_IMPLEMENTATION -I"$tmp/declared" "$tmp/other.c" 2>&1 |
                grep -q 'this copy of opdispatch.h has only the declarations' || echo "$compile: no error for the implementation"
            quiet $cxx -Wl,--gc-sections "$tmp/named.o" "$tmp/other.o" "$tmp/$cc.o" -o "$tmp/named" $lib
            "$tmp/named" >"$tmp/log" 2>&1 && grep -q 7.5732 "$tmp/log" || cat "$tmp/log"
            quiet $cxx -Wl,--gc-sections "$tmp/first.o" "$tmp/$cc.o" -o "$tmp/first" $lib
            [ "$("$tmp/first")" = "$said" ] || echo "$compile: another output"
            [ "$(nm "$tmp/first" | grep -c conv2d)" = 0 ] || echo "$compile: the program has convolutions"
        done
        # a function that may need any operator keeps all
        quiet $cc -O0 -Wl,--gc-sections -I. "$tmp/any.c" "$tmp/$cc.o" -o "$tmp/any" $lib
        "$tmp/any" 2>&1 | grep -q '8.*8' || echo "$cc: opd_overloads_find does not keep all operators"
        # files without the macro: OPD_KEEP fails, the rest works
        quiet $cc -O0 -Wl,--gc-sections -I. "$tmp/first.c" "$tmp/$cc.o" -o "$tmp/first" $lib
        [ "$("$tmp/first")" = "$said" ] || echo "$cc, without OPD_LEAN: another output"
        quiet $cc -O0 -Wl,--gc-sections -DKEPT -I. "$tmp/named.c" "$tmp/other.c" "$tmp/$cc.o" -o "$tmp/named" $lib
        "$tmp/named" 2>&1 | grep -q 'OPD_KEEP(conv2d): the library is compiled with OPD_LEAN, this file without it' ||
            echo "$cc: OPD_KEEP in a file without OPD_LEAN gives no error"
        quiet $cc -O0 -Wl,--gc-sections -I. "$tmp/named.c" "$tmp/other.c" "$tmp/$cc.o" -o "$tmp/named" $lib
        "$tmp/named" 2>&1 | grep -q 'write OPD_KEEP(conv2d)' || echo "$cc: no error without OPD_KEEP"
    done
}
# A linked program contains little that it does not use: see lean_families.py.
check_families() {
    have gcc && have readelf && have python3 || { echo 'SKIP: no gcc, readelf or python3'; return; }
    case $(uname -m) in x86_64) ;; *) echo 'SKIP: the limits hold for x86-64'; return ;; esac
    rm -f build/lean.o                            # another compiler may have made it
    quiet make -s -C src lean CC=gcc
    quiet gcc -O2 -DOPD_LEAN -I. -c "$tmp/first.c" -o "$tmp/first.o"
    quiet gcc -Wl,--gc-sections "$tmp/first.o" build/lean.o -o "$tmp/first" $lib
    size=$(size "$tmp/first" | awk 'NR == 2 { print $1 }')
    [ "$size" -lt 506000 ] || echo "$size bytes of code and constants, at most 506,000"
    echo "gcc -O2, linked: $size bytes" >&2
    python3 tests/lean_families.py build/lean.o "$tmp/first.o"
}
# The linker refuses a library of another version or with other switches, and names it.
check_switches() {
    printf '#define OPDISPATCH_IMPLEMENTATION\n#include "opdispatch.h"\n' >"$tmp/whole_library.c"
    quiet $quick -O0 -DOPD_NO_COMPLEX -I. -c "$tmp/whole_library.c" -o "$tmp/whole_library.o"
    mkdir -p "$tmp/newer"
    sed 's/^#define OPD_VERSION_MINOR .*/#define OPD_VERSION_MINOR 987/' opdispatch.h >"$tmp/newer/opdispatch.h"
    source_of empty ''
    for row in '-I.:' '-I. -DOPD_NO_COMPLEX:' '-I. -DOPD_CHECKED:opd_library_with_OPD_CHECKED' \
        '-I. -DOPD_NO_THREADS -DOPD_NO_COMPLEX:opd_library_with_OPD_NO_THREADS' '-I. -DOPD_LEAN:opd_library_with_OPD_LEAN' \
        "-I$tmp/newer:opd_library_of_version_0_987"; do
        for cc in gcc clang; do
            have $cc || continue
            if $cc -w -O2 ${row%:*} "$tmp/empty.c" "$tmp/whole_library.o" -Wl,--gc-sections -o "$tmp/empty" $lib >"$tmp/log" 2>&1; then
                [ -z "${row##*:}" ] || echo "$cc ${row%:*} is linked"
            elif [ -z "${row##*:}" ] || ! grep -q "undefined .*${row##*:}" "$tmp/log"; then cat "$tmp/log"; fi
        done
    done
}
# Windows and browsers.  mingw-w64's linker takes minutes to drop sections, so only programs of one file are lean there.
check_windows() {
    have x86_64-w64-mingw32-gcc || { echo 'SKIP: no x86_64-w64-mingw32-gcc'; return; }
    quiet x86_64-w64-mingw32-gcc -O1 -w $lean "$tmp/first.c" -s -static -o "$tmp/first.exe" -lpthread
    [ "$(wc -c <"$tmp/first.exe")" -lt 1500000 ] || ls -l "$tmp/first.exe"
    have wine || return
    [ "$(WINEDEBUG=-all wine "$tmp/first.exe" 2>/dev/null | tr -d '\r')" = "$said" ] || echo 'another output'
}
check_web() {
    have emcc && have node || { echo 'SKIP: no emcc or no node'; return; }
    NODE_PATH=${NODE_PATH:-/usr/share/nodejs}; export NODE_PATH
    library emcc web -O0
    quiet emcc -w -O0 -DOPD_LEAN -I. "$tmp/first.c" "$tmp/web.o" -sALLOW_MEMORY_GROWTH=1 -sENVIRONMENT=node -o "$tmp/first.js"
    [ "$(wc -c <"$tmp/first.wasm")" -lt 2500000 ] || ls -l "$tmp/first.wasm"
    [ "$(node --no-experimental-fetch "$tmp/first.js")" = "$said" ] || echo 'another output'
}
# OPD_LEAN works together with the macros that leave something out.
check_left_out() {
    turn 0 2 || { echo "$another_turn"; return; }
    for macro in STATIC NO_OPERATORS NO_OP_CONV NO_OP_NORM NO_COMPLEX NO_TRANSFORMS NO_GRAPHS NO_TRAINING NO_EXCHANGE NO_CHECKING \
        NO_MODULES NO_AUTOCAST NO_SCRIPTS NO_COLLECTIVES NO_COMPILER NO_PLUGINS NO_THREADS NO_SIMD AOTI; do
        quiet $quick -fsyntax-only -Wall -Wextra -Werror -DOPD_$macro $lean "$tmp/first.c"
    done
    source_of conv '        opd_tensor *x = opd_ones(OPD_INTS(1, 1, 3, 3), OPD_FLOAT32);
        opd_print(opd_conv2d(x, x, NULL, OPD_INTS(1), OPD_INTS(0)));'
    quiet $quick -O0 -DOPD_NO_OP_CONV $lean "$tmp/conv.c" -o "$tmp/conv" $lib
    case $("$tmp/conv" 2>&1) in *'is left out: OPD_NO_OP_CONV was defined'*) ;; *) "$tmp/conv" ;; esac
}
check_tcc() {
    have tcc || { echo 'SKIP: no tcc'; return; }
    quiet tcc $lean "$tmp/first.c" -o "$tmp/first" $lib
    [ "$("$tmp/first")" = "$said" ] || echo 'another output'
}
# Calls each operator while only its own card is kept.
check_operators() {
    quiet $quick -O0 -w tests/product/lean_walk.c -o "$tmp/walk" $lib
    "$tmp/walk" 2>"$tmp/warnings" | tail -n 12 >"$tmp/log"
    case $(tail -n 1 "$tmp/log") in *' calls: right') ;; *) cat "$tmp/log" ;; esac
}
# test_file NAME NUMBER: compiles a test file with OPD_LEAN, and runs it.  One of three commits does.  Walks over many cases
# take a quarter of the cases.
test_file() {
    turn $(($2 % 3)) 3 || { echo "$another_turn"; return; }
    quiet $quick -O0 -w $lean "tests/$1.c" -o "$tmp/test" $lib
    CHECK_PART=${CHECK_PART:-4} "$tmp/test" >"$tmp/log" 2>&1 </dev/null || tail -n 12 "$tmp/log"
}

passed=0; failed=0; skipped=0
report() {
    result "$1" "$2"
    case $2 in '') passed=$((passed + 1)) ;; SKIP:*) skipped=$((skipped + 1)) ;; *) failed=$((failed + 1)) ;; esac
}
for name in $names; do
    case $name in *"$only"*) ;; *) continue ;; esac
    case $name in
        test_*)
            number=0
            for test in $tests; do
                number=$((number + 1))
                [ "${test#*/}" != "$name" ] || report "$name" "$(test_file "$test" $number)"
            done ;;
        *) report "$name" "$(check_"$name")" ;;
    esac
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
