#!/usr/bin/env python3
"""Writes a C program that passes NULL for each pointer of each public function.

usage: python3 tests/null_pointers.py >null_pointers.c

Calls all functions that src/api/ declares.  Each is called once for each of its pointers, with valid arguments beside
the one that is NULL, and once with NULL for all.  A call runs in a process of its own.  A call that crashes is printed, and the
program then returns 1.  Functions that exist only inside of a kernel or a derivative (opd_call and such) are left out.
`null_pointers N` makes call number N in the program itself, for a debugger.
"""
import glob
import os
import re
import sys

API = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'src', 'api')
INSIDE = re.compile(r'\bopd_(call|context|backward_call|jvp_call|work) \*')
LEFT_OUT = {'opd_finish', 'opd_code_forbid',            # they end the library, or forbid what other calls need
            'opdi_keep_operator'}                        # exists only with OPD_LEAN
POINTERS = {'function pointer', 'opd_kernel', 'opd_deleter', 'opd_destroy', 'opd_vmap_rule'}
VALUES = {
    'opd_tensor *': 'tensor', 'opd_tensor *const *': 'tensors', 'opd_tensor **': 'pointers', 'char *': 'text',
    'const char *': '"x"', 'const char *const *': 'words', 'const char **': '(const char **)pointers', 'opd_value *': 'results',
    'const opd_value *': 'values', 'opd_graph *': 'graph', 'opd_program *': 'program', 'opd_program *const *': 'programs',
    'opd_module *': 'module', 'const opd_schema *': 'opd_op_schema(op)', 'opd_op *': 'op', 'opd_op **': '(opd_op **)pointers',
    'opd_optimizer *': 'optimizer', 'opd_tensor_file *': 'file', 'opd_json *': 'json', 'opd_node *': 'node',
    'opd_generator *': 'generator', 'opd_scaler *': 'scaler', 'int64_t *': 'numbers', 'int *': 'ints', 'double *': 'doubles',
    'unsigned *': '(unsigned *)ints', 'uint64_t *': '(uint64_t *)numbers', 'bool *': 'bools', 'opd_graph_value *': 'input',
    'opd_graph_value *const *': 'inputs', 'opd_graph_value **': '(opd_graph_value **)pointers', 'opd_device *': 'devices',
    'opd_transform_fn': 'square', 'opd_library *': 'library', 'void *': 'memory', 'opd_kept *': 'kept', 'bool': 'false',
    'opd_scalar_type': 'OPD_FLOAT32', 'opd_backend': 'OPD_CPU', 'size_t': '64'}
NUMBERS = {'int', 'int64_t', 'int32_t', 'uint64_t', 'unsigned', 'double', 'float'}
HEAD = r'''#include "opdispatch.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/wait.h>
static opd_tensor *tensor, *tensors[4];
static void *pointers[64];
static opd_value values[8], results[16];
static char text[256], memory[4096];
static const char *const words[] = {"x", "y", NULL, NULL};
static opd_graph *graph;
static opd_program *program, *programs[4];
static opd_module *module;
static opd_op *op;
static opd_optimizer *optimizer;
static opd_tensor_file *file;
static opd_json *json;
static opd_node *node;
static opd_generator *generator;
static opd_scaler *scaler;
static opd_library *library;
static opd_graph_value *input, *inputs[4];
static int64_t numbers[64];
static int ints[64];
static double doubles[64];
static bool bools[64];
static opd_device devices[8];
static opd_kept kept[8];
static int square(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    out[0] = opd_sum(opd_mul(in[0], in[0]));
    return opd_ok() ? 1 : -1;
}
static void quiet(void *user, int is_error, const char *said) { (void)user; (void)is_error; (void)said; }
'''
TAIL = r'''
/* Makes the arguments.  Returns 0, or -1 and sets an error. */
static int prepare(void) {
    opd_graph *other = opd_graph_new();
    char saved[200];
    int i;
    tensor = opd_tensor_set_requires_grad(opd_ones(OPD_INTS(2, 2), OPD_FLOAT32), true);
    for (i = 0; i < 4; i++) { tensors[i] = tensor; }
    for (i = 0; i < 8; i++) { values[i] = opd_value_tensor(tensor); }
    node = opd_tensor_node(opd_sum(opd_mul(tensor, tensor)));
    graph = opd_graph_trace(square, NULL, tensors, 1, NULL);
    module = opd_module_new();
    (void)opd_module_add(module, "x", opd_ones(OPD_INTS(2), OPD_FLOAT32), OPD_MODULE_PARAMETER);
    op = opd_find("aten::add.Tensor");
    optimizer = opd_sgd_new(tensors, 1, NULL);
    snprintf(saved, sizeof saved, "/tmp/opd_null_pointers.%ld", (long)getpid());
    (void)opd_program_save(graph, NULL, saved);
    program = opd_program_load(saved, NULL);
    (void)opd_npz_save(saved, words, opd_tensors_of(tensors, 1));
    file = opd_tensor_file_open(saved);
    (void)remove(saved);
    for (i = 0; i < 4; i++) { programs[i] = program; }
    json = opd_json_parse("[1, {}]", 7);
    generator = opd_generator_new(1);
    scaler = opd_scaler_new(NULL);
    library = opd_library_open(OPD_FRAGMENT, "aten", NULL, __FILE__, __LINE__);
    input = opd_graph_input(other, "x", "Tensor");
    for (i = 0; i < 4; i++) { inputs[i] = input; }
    return opd_ok() ? 0 : -1;
}
int main(int argc, char **argv) {
    int i, bad = 0;
    opd_scope scope = opd_scope_open();
    if (prepare()) { puts(opd_error_message()); return 1; }
    opd_log_set(quiet, NULL);
    if (argc > 1) {
        puts(calls[atoi(argv[1])]);
        call(atoi(argv[1]));
        puts(opd_error_message());
        return 0;
    }
    for (i = 0; i < (int)(sizeof calls / sizeof *calls); i++) {
        int status = 0;
        pid_t child;
        fflush(stdout);
        child = fork();
        if (child == 0) {
            alarm(10);
            if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)) { _exit(2); }
            call(i);
            _exit(0);
        }
        if (child < 0 || waitpid(child, &status, 0) != child) { perror("fork"); return 1; }
        if (status) { printf("%s: %s %d, call number %d\n", calls[i], WIFSIGNALED(status) ? "signal" : "status",
                             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), i); }
        bad += status != 0;
    }
    opd_scope_close(&scope);
    return bad != 0;
}
'''


def declarations():
    """Yields (name, [(type, parameter)]) of the public functions."""
    for path in sorted(glob.glob(os.path.join(API, '*.h'))):
        if os.path.basename(path) in ('aoti.h', 'formulas.h'):
            continue
        with open(path, encoding='utf-8') as file:
            for said in re.findall(r'^OPD_(?:API|NEW) ([^;{]*?\([^;{]*?\));', file.read(), re.M):
                match = re.match(r'.*?(\w+)\((.*)\)$', ' '.join(said.split()))
                arguments = []
                for argument in re.split(r',(?![^(]*\))', match.group(2)):
                    parts = re.match(r'(.*?)(\w+)((?:\[\w*\])?)$', argument.strip())
                    if '(*' in argument:
                        arguments.append(('function pointer', re.search(r'\(\*(\w*)\)', argument).group(1)))
                    elif parts:
                        kind = parts.group(1).strip() + (' *' if parts.group(3) else '')
                        arguments.append((re.sub(r'\s*\*$', ' *', kind), parts.group(2)))
                    else:
                        arguments.append((argument.strip(), ''))
                yield match.group(1), arguments


def is_pointer(kind):
    return kind.endswith('*') or kind.endswith('_fn') or kind in POINTERS


def value(kind):
    """Returns a valid argument of a type as C."""
    plain = re.sub(r'^const (?!opd_value \*|opd_schema \*|char)', '', kind)
    if is_pointer(kind):
        return VALUES.get(kind) or VALUES.get(plain) or 'NULL'
    return VALUES.get(kind) or ('1' if kind in NUMBERS else f'({kind}){{0}}')


def main():
    if len(sys.argv) > 1:
        print(__doc__)
        return 0 if sys.argv[1] in ('-h', '--help') else 2
    names, cases, seen = [], [], set()
    for name, arguments in declarations():
        pointers = [i for i, (kind, _) in enumerate(arguments) if is_pointer(kind)]
        if name in LEFT_OUT or not pointers or any(INSIDE.search(kind) or kind == '...' for kind, _ in arguments):
            continue
        for null in [[i] for i in pointers] + [pointers]:
            given = ', '.join('NULL' if i in null else value(kind) for i, (kind, _) in enumerate(arguments))
            if (name, given) not in seen:
                seen.add((name, given))
                cases.append(f'    case {len(names)}: (void){name}({given}); break;')
                names.append(f'{name} with NULL for {arguments[null[0]][1] if len(null) == 1 else "all"}')
    print(HEAD + 'static const char *const calls[] = {\n    "' + '",\n    "'.join(names) + '"};')
    print('static void call(int number) {\n    switch (number) {\n' + '\n'.join(cases) + '\n    }\n}' + TAIL)
    return 0


if __name__ == '__main__':
    sys.exit(main())
