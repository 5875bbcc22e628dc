#!/usr/bin/env python3
"""Compiles and runs the programs of the documents: QUICK START of the manual, README.md, the chapters of
examples/guide, examples/coming-from.md, and also examples/quickstart.  The output of a program must be in its document.
Operators that a program defines must pass opd_opcheck.  If they have a derivative, they must also pass opd_gradcheck
and opd_gradgradcheck, with float64.  If they accept float32, they are checked with it, too.  Some text blocks of the
guide show the output of opd_explain, of a trace of calls, or of wrong calls.  These blocks must equal the real output.
tests/example_operators.py checks the operators of the other examples and pages.

usage: python3 tests/documents.py [--cc CC] [--cxx CXX] [--object FILE]     FILE: the compiled implementation
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

import example_operators

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

CHECKS = r'''
#undef main
#include <stdio.h>
#include <string.h>
static int document_call(void *op, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_value args[8];
    int i;
    for (i = 0; i < n; i++) { args[i] = opd_value_tensor(in[i]); }
    out[0] = opd_call_op((opd_op *)op, args, n);
    return out[0] ? 1 : -1;
}
static int document_say(const opd_op *op, const char *what) {
    if (opd_ok()) { return 0; }
    printf("FAIL %s: %s: %s\n", opd_op_name(op), what, opd_error_message());
    opd_error_clear();
    return 1;
}
/* Tensors alone are arguments that a check can make up. */
static int document_check(opd_op *op, opd_scalar_type dtype) {
    const int n = opd_schema_nargs(opd_op_schema(op));
    const bool pure = !opd_schema_is_mutable(opd_op_schema(op));
    opd_tensor *in[8], *rows[8];
    opd_value args[8];
    int i, bad = 0;
    for (i = 0; i < n; i++) {
        in[i] = opd_randn(OPD_INTS(2, 3), dtype);
        rows[i] = opd_t(opd_randn(OPD_INTS(3, 2), dtype));      /* columns side by side */
        if (pure) { in[i] = opd_tensor_set_requires_grad(in[i], true); }
        args[i] = opd_value_tensor(in[i]);
    }
    if (document_say(op, "arguments")) { return 1; }
    (void)opd_opcheck(op, args, n, NULL);
    bad += document_say(op, "opd_opcheck");
    for (i = 0; i < n; i++) { args[i] = opd_value_tensor(rows[i]); }
    (void)opd_opcheck(op, args, n, NULL);
    bad += document_say(op, "opd_opcheck of transposed tensors");
    for (i = 0; i < n; i++) { args[i] = opd_value_tensor(in[i]); }
    if (pure && dtype == OPD_FLOAT64 && !DOCUMENT_CONSTANT) {
        (void)opd_gradcheck(document_call, op, in, n, NULL);
        bad += document_say(op, "opd_gradcheck");
        (void)opd_gradgradcheck(document_call, op, in, n, NULL, NULL);
        bad += document_say(op, "opd_gradgradcheck");
    }
    if (n > 1 && pure) {                          /* other sizes are an error, and nothing is read behind an end */
        args[1] = opd_value_tensor(opd_randn(OPD_INTS(3, 2), dtype));
        if (opd_call_op(op, args, n)) {
            printf("FAIL %s takes [2, 3] and [3, 2]\n", opd_op_name(op));
            bad++;
        }
        opd_error_clear();
    }
    return bad;
}
static int document_main(void);
int main(void) {
    opd_op *ops[64];
    opd_op *op;
    int bad = 0, count = 0, i;
    for (op = opd_op_next(NULL); op; op = opd_op_next(op)) {
        const char *name = opd_op_name(op);
        if (count < 64 && (strncmp(name, "my::", 4) == 0 || strncmp(name, "myops::", 7) == 0)) { ops[count++] = op; }
    }
    if (count != DOCUMENT_OPERATORS) { printf("FAIL: %d operators, not %d; %s\n", count, DOCUMENT_OPERATORS, opd_error_message()); bad++; }
    opd_log_set(NULL, NULL);
    for (i = 0; i < count; i++) {
        OPD_SCOPE { bad += document_check(ops[i], OPD_FLOAT64); }
        if (DOCUMENT_FLOATS) { OPD_SCOPE { bad += document_check(ops[i], OPD_FLOAT32); } }
    }
    printf("program:\n");
    (void)fflush(stdout);
    return document_main() || bad;
}
'''


def read(name):
    with open(os.path.join(ROOT, name)) as f:
        return f.read()


def quick_start(header):
    """Returns the program below QUICK START IN C in the manual."""
    at = header.index('   QUICK START IN C\n')
    lines = []
    for line in header[at:].split('\n')[1:]:
        if line.strip() and not line.startswith(' ' * 9):
            break
        lines.append(line[9:])
    return '\n'.join(lines)


def blocks(text):
    """Returns the blocks of C in a document."""
    return [b for b in re.findall(r'^```c\n(.*?)^```$', text, re.M | re.S)]


def only(found, what):
    if len(found) != 1:
        sys.exit('%d blocks of the documents have %s' % (len(found), what))
    return found[0]


def halves(block):
    """Returns the functions of a block, and its statements."""
    functions = ''.join(re.findall(r'^static .*?^}\n', block, re.M | re.S))
    return functions, re.sub(r'^static .*?^}\n', '', block, flags=re.M | re.S)


def programs():
    """Yields (name, source, document, number of operators, whether they take float32, whether they have no
    derivative)."""
    header, readme, coming = (read(n) for n in ('opdispatch.h', 'README.md', 'examples/coming-from.md'))
    guide = ''.join(read(chapter) for chapter in sorted(glob.glob(os.path.join(ROOT, 'examples', 'guide', '*.md'))))
    quick = read('examples/quickstart.c').replace('"../opdispatch.h"', '"opdispatch.h"')
    kernels = quick[:quick.index('OPD_LIBRARY(myops, lib)')]
    yield 'QUICK START', '#include "opdispatch.h"\n' + quick_start(header), None, 1, False, False
    yield 'examples/quickstart.c', quick, None, 4, True, False
    yield 'examples/quickstart.cpp', read('examples/quickstart.cpp').replace('"../opdispatch.h"', '"opdispatch.h"'), None, 1, True, False
    first = only([b for b in blocks(readme) if 'int main' in b], 'a first program')
    yield 'README.md', first, readme, 0, True, False
    block = only([b for b in blocks(readme) if 'OPD_LIBRARY(my, lib)' in b], 'an operator')
    said = re.findall(r'Replace `(.*?)` by `(OPD_CALL.*?)`:$', readme, re.M)
    if len(said) != 1 or said[0][0] not in first:
        sys.exit('README.md does not say where the operator is called')
    yield ('README.md, an operator', first.replace('int main', block + 'int main').replace(*said[0]),
           readme, 1, True, False)
    block = only([b for b in blocks(guide) if 'OPD_LIBRARY_FRAGMENT(myops' in b], 'OPD_LIBRARY_FRAGMENT(myops')
    yield ('the guide, an operator in two steps', kernels +
           'static int myadd_setup(opd_context *ctx) { (void)ctx; return 0; }\n' + block +
           'int main(void) { return opd_finish(); }\n', None, 1, True, False)
    for block in blocks(coming):
        if '#include "opdispatch.h"' in block:
            count = 1 if 'OPD_LIBRARY' in block else 0
            yield 'examples/coming-from.md', block, coming, count, True, 'OPD_NOT_DIFFERENTIABLE' in block
    checks = only([b for b in blocks(guide) if 'opd_gradcheck(f' in b], 'opd_gradcheck')
    functions, statements = halves(checks)
    opcheck = only([b for b in blocks(guide) if 'opd_opcheck(opd_find("myops::myadd")' in b], 'opd_opcheck')
    library = quick[quick.index('OPD_LIBRARY(myops, lib)'):quick.index('int main')]
    yield ('the guide, checks', kernels + library + functions + '''
int main(void) {
    OPD_SCOPE {
        opd_tensor *x = opd_randn(OPD_INTS(2, 3), OPD_FLOAT64), *y = opd_randn(OPD_INTS(2, 3), OPD_FLOAT64), *inputs[2];
        inputs[0] = opd_tensor_set_requires_grad(opd_clone(x), true);
        inputs[1] = opd_tensor_set_requires_grad(opd_clone(y), true);
''' + statements + opcheck + '    }\n    return opd_finish();\n}\n', None, 4, True, False)
    kernel = only([b for b in blocks(guide) if 'static int doubled(' in b], 'a kernel')
    yield ('the guide, a kernel', '#include "opdispatch.h"\n' + kernel + '''
OPD_LIBRARY(my, lib) {
    opd_define(lib, &(opd_op_desc){.schema = "doubled(Tensor x) -> Tensor", .cpu = doubled, .fake = doubled,
                                   .backward = OPD_NOT_DIFFERENTIABLE, .vmap = OPD_BATCH_POINTWISE});
}
int main(void) { return opd_finish(); }
''', None, 1, False, True)
    scaled = only([b for b in blocks(guide) if 'OPD_FUNCTION(scaled_op' in b], 'OPD_FUNCTION')
    before, after = scaled.split('...\n')
    yield ('the guide, a C function', '#include "opdispatch.h"\n#include <stdio.h>\n' + before +
           'OPD_LIBRARY(maths, lib) {\n' + after + '}\nint main(void) {\n    static opd_op *op;\n'
           '    printf("%g\\n", opd_call_value(OPD_OP(&op, "maths::scaled"), (opd_value[]){OPD_V(2.5), OPD_V(4)}, 2).u.d);\n'
           '    return opd_finish();\n}\n', None, 0, True, False)
    sheet = read('examples/guide/cheat-sheet.md')
    functions, statements = halves(''.join(blocks(sheet)).replace('...\n', ''))
    if len(set(re.findall(r'\bopd_\w+(?=\()', re.sub(r'/\*.*?\*/', '', statements)))) < 40:
        sys.exit('the cheat sheet has less than 40 calls')
    yield ('examples/guide/cheat-sheet.md', '#include "opdispatch.h"\n#include <stdio.h>\n' + functions +
           'int main(void) {\n    opd_tensor *out[3];\n    OPD_SCOPE {\n' + statements + '    }\n    return opd_finish();\n}\n',
           sheet, 0, True, False)


def run(name, source, document, operators, floats, constant, args, folder):
    """Compiles and runs a program.  Returns an error message, or None."""
    cxx = name.endswith('.cpp')
    source = source.replace('#define OPDISPATCH_IMPLEMENTATION', '', 1) if args.object else source
    source = re.sub(r'^int main\((void)?\)', 'static int document_main(void)', source, count=1, flags=re.M)
    if 'document_main' not in source:
        return 'it has no main'
    path = os.path.join(folder, 'program.cpp' if cxx else 'program.c')
    with open(path, 'w') as f:
        f.write('#define DOCUMENT_OPERATORS %d\n#define DOCUMENT_FLOATS %d\n#define DOCUMENT_CONSTANT %d\n' %
                (operators, floats, bool(constant)))
        f.write(source + CHECKS)
    compiler = (args.cxx.split() + ['-std=c++11']) if cxx else args.cc.split()
    build = compiler + ['-O0', '-w', '-I' + ROOT, path, '-o', os.path.join(folder, 'program')]
    done = subprocess.run(build + ([args.object] if args.object else []) + ['-lm', '-lpthread', '-ldl'],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        return done.stdout.decode(errors='replace')[:1500]
    done = subprocess.run(['./program'], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = done.stdout.decode(errors='replace')
    if done.returncode or 'FAIL' in said:
        return 'status %d: %s' % (done.returncode, said[:1500])
    for line in said.split('program:\n')[-1].split('\n'):
        if document and line not in document:
            return 'it prints what the document does not say: ' + line
    return None


def printed(source, args, folder, **environment):
    """Runs a program whose file is first.c, and returns its output."""
    path = os.path.join(folder, 'first.c')
    with open(path, 'w') as f:
        f.write(source.replace('#define OPDISPATCH_IMPLEMENTATION', '' if args.object else '#define OPDISPATCH_IMPLEMENTATION', 1))
    build = args.cc.split() + ['-O0', '-w', '-I' + ROOT, 'first.c', '-o', 'first']
    subprocess.run(build + ([args.object] if args.object else []) + ['-lm', '-lpthread', '-ldl'], cwd=folder, check=True)
    done = subprocess.run(['./first'], cwd=folder, env=dict(os.environ, **environment), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    return re.sub(r'[^ ]*(opdispatch\.h):\d+', r'\1', done.stdout.decode(errors='replace'))


def agrees(shown, said):
    """Returns True if `said` has all lines of `shown`, one after the other.  A line that ends in ... matches any
    rest."""
    begins = [line[:-3] if line.endswith('...') else line + '\n' for line in shown.rstrip('\n').split('\n')]
    lines = said.split('\n')
    return any(all((line + '\n').startswith(begin) for line, begin in zip(lines[i:] + [''] * len(begins), begins))
               for i in range(len(lines)))


def wrong_texts(args, folder):
    """Returns messages about text blocks of the guide that differ from the output of programs."""
    wrong = []
    concepts, debugging = read('examples/guide/02-concepts.md'), read('examples/guide/12-debugging.md')
    first, operator = [b for b in blocks(read('README.md')) if 'int main' in b or 'OPD_LIBRARY(my, lib)' in b]
    program = first.replace('int main', operator + 'int main').replace('opd_mul(x, opd_sin(x))', 'OPD_CALL(opd_find("my::cube"), x)')
    shown = re.findall(r'^```text\n(my::cube.*?|\[call\].*?)^```', concepts, re.M | re.S)
    explained = program.replace('return opd_finish();', '''
    static char text[4000];
    opd_value x = opd_value_tensor(opd_tensor_set_requires_grad(opd_ones(OPD_INTS(3), OPD_FLOAT32), true));
    (void)opd_explain(opd_find("my::cube"), &x, 1, text, sizeof text);
    opd_print(x.u.t);
    fputs(text, stdout);
    return opd_finish();''').replace('#include "opdispatch.h"\n', '#include "opdispatch.h"\n#include <stdio.h>\n#line 3\n')
    for block, said in zip(shown, (printed(explained, args, folder), printed(program, args, folder, OPD_SHOW_DISPATCH_TRACE='1'))):
        if not agrees(block, said):
            wrong.append('examples/guide/02-concepts.md shows\n%sand this is printed:\n%s' % (block, said[:3000]))
    shown = re.findall(r'^```text\n(.*?)^```', debugging, re.M | re.S)
    programs = [b for b in blocks(debugging) if 'int main' in b]
    said = ''.join(printed(b, args, folder) for b in programs) if args.object else ''
    for block in shown if args.object else ():
        if not agrees(block, said):
            wrong.append('examples/guide/12-debugging.md shows\n%sand the program does not print it' % block)
    if args.object and (len(shown) < 10 or said.count('\n') < 10):
        wrong.append('examples/guide/12-debugging.md shows %d errors only' % len(shown))
    return wrong


def repeated():
    """Returns messages about headings and paragraphs of three lines that a page has twice, as after a wrong merge."""
    wrong = []
    for path in sorted(glob.glob(os.path.join(ROOT, '*.md')) + glob.glob(os.path.join(ROOT, 'examples', '*.md')) +
                       glob.glob(os.path.join(ROOT, 'examples', 'guide', '*.md'))):
        text = re.sub(r'^```.*?^```$', '', read(path), flags=re.M | re.S)
        parts = re.findall(r'^#+ .*$', text, re.M) + [part for part in re.split(r'\n(?=- )|\n\n', text) if part.count('\n') > 1]
        wrong += ['%s has this twice: %s' % (os.path.relpath(path, ROOT), part[:300])
                  for part in sorted(set(parts)) if parts.count(part) > 1]
    return wrong


def main():
    args = example_operators.arguments(__doc__)
    count = wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, *rest in programs():
            what = run(name, *rest, args, folder)
            count += 1
            if what:
                print('%s: %s' % (name, what))
                wrong += 1
        for what in wrong_texts(args, folder) + repeated() + example_operators.wrong(args, folder):
            print(what)
            wrong += 1
    if count < 10:
        sys.exit('only %d programs' % count)
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
