#!/usr/bin/env python3
"""Checks that the operators of the examples and of the guide are models that one can copy.  Calls opd_opcheck, and
opd_gradcheck for operators with a derivative, with the sample arguments of SAMPLES.  An operator that has no derivative
must say so (OPD_NOT_DIFFERENTIABLE), and must refuse the wrong arguments of SAMPLES.  Fails also if an example or a page
registers an operator without samples.

tests/documents.py calls this script, and checks the operators of README.md, of examples/quickstart and of
examples/coming-from.md itself.

usage: python3 tests/example_operators.py [--cc CC] [--cxx CXX] [--object FILE]    FILE: the compiled implementation
"""
import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# For each file: {operator: (arguments, other arguments that the operator must refuse, or None)}.  R(...) is a float32
# tensor of normal random numbers, of the sizes in brackets; U(...) of numbers from 0.25 to 0.75; S(...) of 1 and -1;
# D(...) is like R(...), but float64: second derivatives and forward mode are then checked, too.
SAMPLES = {
    'examples/plugin.c': {'plugin::dot': ('R(2, 3), R(2, 3)', 'R(2, 3), R(6)')},
    'examples/inline.c': {'inline::formula': ('R(2, 3)', None)},
    'examples/digits.c': {'digits::bias_relu': ('S(2, 3, 4, 4), U(3)', 'S(2, 3, 4, 4), U(4)')},
    'examples/autocast_wrappers.c': {'myops::mymatmul': ('R(2, 3), R(3, 4)', 'R(2, 3), R(2, 3)'),
                                     'myops::mymatmul_by_policy': ('R(2, 3), R(3, 4)', 'R(2, 3), R(2, 3)'),
                                     'myops::my_multiple_input_op': ('R(2, 3), R(2, 3)', 'R(2, 3), R(3, 2)')},
    'examples/crop.c': {'mylib::crop': ('U(3, 5, 6), OPD_INTS(1, 1, 4, 4)', 'U(3, 5, 6), OPD_INTS(1, 1, 7, 4)')},
    'examples/warp_perspective.cpp': {'my_ops::warp_perspective': ('R(5, 6), R(3, 3)', 'R(5, 6), R(2, 2)')},
    'examples/heat_inverse.c': {'heat::flow': ('D(3, 4), D(3, 4)', 'D(3, 4), D(4, 3)'),
                                'heat::slopes': ('D(3, 4), D(3, 4)', 'D(3, 4), D(12)')},
    'examples/graph_parts.c': {'mine::linear_relu': ('D(2, 3), D(4, 3), D(4)', 'D(2, 3), D(4, 2), D(4)')},
    'examples/llama.c': {'llama::rotate': ('D(2, 3, 6), D(2, 2), D(2, 2), 1', 'D(2, 3, 6), D(2, 4), D(2, 4), 1')},
    'examples/cuda_op.cu': {'example::gate': ('R(2, 3), R(2, 3)', 'R(2, 3), R(6)')},
    'examples/guide/kernels.md': {'my::smooth': ('R(2, 5), 0.5, OPD_INTS(-1, 2)', None)},
    'examples/guide/macros.md': {'mine::scale': ('R(2, 3), 0.5, OPD_INTS(1)', 'R(3), 0.5, OPD_INTS(1)')},
}
# Files with operators that are not checked here, and why.
ELSEWHERE = {
    'examples/quickstart.c': 'tests/documents.py', 'examples/quickstart.cpp': 'tests/documents.py',
    'examples/coming-from.md': 'tests/documents.py', 'examples/guide/03-operators.md': 'tests/documents.py',
    'examples/mpi_group.c': 'its operator has no tensors, and needs MPI',
    'examples/guide/12-debugging.md': 'its operator shows a mistake',
    'examples/guide/error-codes.md': 'its operators show mistakes',
}
# What the compiler needs for a file.
PACKAGES = {'examples/crop.c': 'MagickWand', 'examples/warp_perspective.cpp': 'opencv4'}

CHECKS = r'''
#undef main
#include <stdio.h>
#include <string.h>
#define R(...) opd_randn(OPD_INTS(__VA_ARGS__), OPD_FLOAT32)
#define D(...) opd_randn(OPD_INTS(__VA_ARGS__), OPD_FLOAT64)
#define S(...) opd_sign(R(__VA_ARGS__))
#define U(...) opd_add_Scalar(opd_mul_Scalar(opd_rand(OPD_INTS(__VA_ARGS__), OPD_FLOAT32), OPD_V(0.5)), OPD_V(0.25))
typedef struct model_call { opd_op *op; const opd_value *args; int nargs; } model_call;
/* Calls the operator with the tensors of `in`, and all other arguments of the sample. */
static int model_run(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const model_call *call = (const model_call *)user;
    opd_value args[8];
    int i, at = 0;
    for (i = 0; i < call->nargs; i++) {
        args[i] = call->args[i].tag == OPD_TAG_TENSOR && at < n ? opd_value_tensor(in[at++]) : call->args[i];
    }
    out[0] = opd_call_op(call->op, args, call->nargs);
    return out[0] ? 1 : -1;
}
static int model_say(const char *name, const char *what) {
    if (opd_ok()) { return 0; }
    printf("FAIL %s: %s: %s\n", name, what, opd_error_message());
    opd_error_clear();
    return 1;
}
static int model_check(const char *name, const opd_value *args, int nargs) {
    model_call call;
    opd_gradcheck_options options = opd_gradcheck_defaults();
    opd_tensor *in[8], *out = NULL;
    int i, n = 0, bad;
    bool precise;
    call.op = opd_find(name);
    call.args = args;
    call.nargs = nargs;
    if (model_say(name, "opd_find")) { return 1; }
    (void)opd_opcheck(call.op, args, nargs, NULL);
    bad = model_say(name, "opd_opcheck");
    const opd_op_desc *desc = opd_op_card(call.op);
    const int most = desc && desc->constant ? 1 : nargs;      /* of an operator with constants: its first tensor */
    for (i = 0; i < nargs && n < most; i++) {
        if (args[i].tag == OPD_TAG_TENSOR) { in[n++] = opd_tensor_set_requires_grad(opd_clone(args[i].u.t), true); }
    }
    precise = n > 0 && opd_dtype(in[0]) == OPD_FLOAT64;
    if (precise) { options.check_forward_ad = options.check_fwd_over_rev = true; }
    else { options.eps = options.atol = options.rtol = 1e-2; }
    if (model_run(&call, in, n, &out) == 1 && opd_tensor_requires_grad(out)) {
        (void)opd_gradcheck(model_run, &call, in, n, &options);
        bad += model_say(name, "opd_gradcheck");
        if (precise) { (void)opd_gradgradcheck(model_run, &call, in, n, NULL, &options); }
        bad += model_say(name, "opd_gradgradcheck");
    }
    return bad + model_say(name, "a call");
}
static int model_refuses(const char *name, const opd_value *args, int nargs) {
    opd_op *op = opd_find(name);
    const int bad = op && opd_call_op(op, args, nargs) != NULL;
    if (bad) { printf("FAIL %s accepts the wrong arguments of its sample\n", name); }
    opd_error_clear();
    return bad;
}
/* Returns the number of operators in the namespaces of the file that have no sample. */
static int model_unknown(const char *spaces, const char *samples) {
    opd_op *op;
    char name[200];
    int bad = 0;
    for (op = opd_op_next(NULL); op; op = opd_op_next(op)) {
        (void)snprintf(name, sizeof name, " %s ", opd_op_name(op));
        const bool known = strstr(samples, name) != NULL;
        if (strstr(name, "::")) { strstr(name, "::")[0] = 0; }
        (void)strcat(name, " ");
        if (!known && strstr(spaces, name)) {
            printf("FAIL %s has no sample in tests/example_operators.py\n", opd_op_name(op));
            bad++;
        }
    }
    return bad;
}
int main(void) {
    int bad = 0;
    MODEL_FIRST;
    opd_log_set(NULL, NULL);
    bad += model_say("the program", "at its begin");
'''


def read(name):
    with open(os.path.join(ROOT, name), encoding='utf-8') as f:
        return f.read()


def registers(text):
    """Returns True if a text defines operators."""
    return re.search(r'\b(?:opd_define|opd_def|opd_def_function)\(', text) is not None


def registering():
    """Returns the names of the examples and pages of the guide that define operators."""
    found = []
    for path in sorted(glob.glob(os.path.join(ROOT, 'examples', '**', '*'), recursive=True)):
        name = os.path.relpath(path, ROOT)
        if not os.path.isfile(path) or '/reference/' in name or name.endswith('changes.md'):
            continue
        if name.endswith(('.c', '.cpp', '.cu')) and registers(read(name)):
            found.append(name)
        elif name.endswith('.md') and any(registers(block) and 'OPD_LIBRARY' in block for block in blocks(read(name))):
            found.append(name)
    return found


def blocks(text):
    """Returns the blocks of C in a page."""
    return re.findall(r'^```c\n(.*?)^```$', text, re.M | re.S)


def source_of(name):
    """Returns the program of a file, with another name for its main."""
    text = read(name)
    if name.endswith('.md'):
        text = next(block for block in blocks(text) if registers(block) and 'int main' in block)
    text = text.replace('"../opdispatch.h"', '"opdispatch.h"')
    if name.endswith('.cu'):                      # the part for the CPU
        text = text[:text.index('/* Computes gate, and the gradients')]
        text = re.sub(r'^(?:__global__ void|static int gate_cuda).*?^}$', '', text, flags=re.M | re.S)
        text = text.replace('#include <cuda_runtime.h>', '').replace('op.cuda = gate_cuda;', '')
    if name == 'examples/inline.c':               # its main makes the operator
        text = text.replace('opd_finish()', 'opd_ok()')
    return re.sub(r'^int main\(', 'int model_main(', text, flags=re.M)


def checks_of(name, source):
    """Returns a main function that checks the operators of a file."""
    first = 'char *none[] = {NULL}; (void)model_main(0, none)' if name == 'examples/inline.c' else '(void)0'
    out = [CHECKS.replace('MODEL_FIRST', first)]
    for operator, (args, wrong) in SAMPLES[name].items():
        for call, given in (('model_check', args), ('model_refuses', wrong)):
            if given:
                values = re.sub(r'(\w+\([^)]*\)|[\d.]+)(?:, |$)', r'args[n++] = OPD_V(\1); ', given)
                out.append('    OPD_SCOPE { opd_value args[8]; int n = 0; %sbad += %s("%s", args, n); }' % (values, call, operator))
    spaces = sorted({operator.split('::')[0] for operator in SAMPLES[name]} | set(re.findall(r'\bOPD_LIBRARY\((\w+),', source)))
    out.append('    bad += model_unknown(" %s ", " %s ");' % ('  '.join(spaces), '  '.join(SAMPLES[name])))
    return '\n'.join(out) + '\n    return bad ? 1 : opd_finish();\n}\n'


def check(name, args, folder):
    """Compiles a file together with the checks, and runs them.  Returns a message, or None."""
    flags = []
    if name in PACKAGES:
        if not shutil.which('pkg-config'):
            return None
        asked = subprocess.run(['pkg-config', '--cflags', '--libs', PACKAGES[name]], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
        if asked.returncode:
            return None                           # the package is not installed
        flags = asked.stdout.decode().split()
    source = source_of(name)
    cxx = name.endswith(('.cpp', '.cu'))
    path = os.path.join(folder, 'models.cpp' if cxx else 'models.c')
    if args.object:
        source = source.replace('#define OPDISPATCH_IMPLEMENTATION', '')
    elif 'OPDISPATCH_IMPLEMENTATION' not in source:
        source = '#define OPDISPATCH_IMPLEMENTATION\n' + source
    with open(path, 'w', encoding='utf-8') as f:
        f.write(source + checks_of(name, source))
    compiler = (args.cxx.split() + ['-std=c++11']) if cxx else args.cc.split()
    build = compiler + ['-O0', '-w', '-I' + ROOT, '-I' + os.path.join(ROOT, 'examples'), path, '-o', os.path.join(folder, 'models')]
    build += ([args.object] if args.object else []) + flags + ['-lm', '-lpthread', '-ldl']
    done = subprocess.run(build, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        return '%s: %s' % (name, done.stdout.decode(errors='replace')[:1500])
    environment = dict(os.environ, OPD_INCLUDE=ROOT, XDG_CACHE_HOME=folder)
    done = subprocess.run([os.path.join(folder, 'models')], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment)
    said = done.stdout.decode(errors='replace')
    return '%s: status %d: %s' % (name, done.returncode, said[:1500]) if done.returncode or 'FAIL' in said else None


def wrong(args, folder):
    """Returns messages about operators that are no models."""
    found = registering()
    messages = ['%s registers operators: add them to SAMPLES in tests/example_operators.py' % name
                for name in found if name not in SAMPLES and name not in ELSEWHERE]
    messages += ['%s registers no operator any more: leave it out of tests/example_operators.py' % name
                 for name in list(SAMPLES) + list(ELSEWHERE) if name not in found]
    return messages + [message for message in (check(name, args, folder) for name in SAMPLES if name in found) if message]


def arguments(description):
    """Returns the arguments of this script, which tests/documents.py has, too."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--cc', default=os.environ.get('CC', 'cc'))
    parser.add_argument('--cxx', default=os.environ.get('CXX', 'c++'))
    parser.add_argument('--object')
    args = parser.parse_args()
    args.object = args.object and os.path.abspath(args.object)
    return args


def main():
    args = arguments(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        messages = wrong(args, folder)
    for message in messages:
        print(message)
    return 1 if messages else 0


if __name__ == '__main__':
    sys.exit(main())
