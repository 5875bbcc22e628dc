#!/usr/bin/env python3
"""Adds the operators in src/README.md ("How to add a built-in operator") to a copy of src/, exactly as they are written
there, and tests their values, their derivatives, and their cases with opd_opcheck.

usage: python3 tests/recipes.py [--cc CC]
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

PROGRAM = r'''
#define OPDISPATCH_IMPLEMENTATION
#include "opdispatch.h"
#include "tests/cases.h"
#include <math.h>
static int failures;
static void near(const char *what, double have, double want) {
    if (fabs(have - want) <= 1e-6 * fabs(want)) { return; }
    printf("%s is %g, not %g; %s\n", what, have, want, opd_error_message());
    failures++;
}
static void cases(const char *name) {
    opd_op *op = opd_find(name);
    const char *text = op ? opd_op_card(op)->cases : "";
    op_case c;
    memset(&c, 0, sizeof c);
    c.op = op;
    c.dtype = OPD_FLOAT64;
    if (!*text) { printf("%s has no cases\n", name); failures++; }
    while (*text && case_read_next(&c, &text)) {
        OPD_SCOPE {
            if (opd_opcheck(op, c.args, c.nargs, NULL)) {
                printf("%s: %s\n", name, opd_error_message());
                opd_error_clear();
                failures++;
            }
        }
    }
}
int main(void) {
    OPD_SCOPE {
        const float data[] = {1, -2, 3};
        opd_tensor *x = opd_tensor_set_requires_grad(opd_tensor_from(data, OPD_INTS(3), OPD_FLOAT32), true);
        opd_tensor *c = opd_cubed(x), *s = opd_sumsq(c, OPD_INTS(0)), *b = opd_bump(x);
        near("cubed(-2)", opd_data_f32(c)[1], -8);
        near("sumsq", opd_item_f64(s), 1 + 64 + 729);
        near("bump(3)", opd_data_f32(b)[2], 0.1);
        (void)opd_backward(opd_add(s, opd_sum(b)));
        near("d(sumsq(cubed(x)) + sum(bump(x)))/dx at 3", opd_data_f32(opd_tensor_grad(x))[2], 6 * 243 - 6 / 100.);
        near("cubed_", opd_data_f32(opd_cubed_(opd_clone(opd_tensor_data(x))))[2], 27);
    }
    cases("aten::cubed");
    cases("aten::sumsq");
    cases("aten::bump");
    cases("aten::bump_backward");
    return opd_finish() || failures;
}
'''


def recipes(document):
    """Returns ((file, macro or None), lines) for each block ```C below a line "At the end of `src/file`, add:" or
    "At the beginning of the list `MACRO` in `src/file`, add:"."""
    section = document[document.index('## How to add a built-in operator\n'):]
    section = section[:section.index('\n## ', 1)]
    steps = re.findall(r'^At the (?:end of|beginning of the list `(\w+)` in) `(src/\S+)`, add:\n\n```C\n(.*?)^```$', section,
                       re.M | re.S)
    if len(steps) < section.count('```C'):
        sys.exit('a block of C has no line above it that names its file: At the end of `src/...`, add:')
    return [((path, macro or None), text.rstrip('\n').split('\n')) for macro, path, text in steps]


def put(path, macro, lines):
    """Adds the lines at the end of the file, or as the first rows of the macro."""
    with open(path) as f:
        text = f.read()
    if macro:
        at = text.index('\n', text.index('#define %s(X) \\\n' % macro)) + 1
        text = text[:at] + ''.join('    %s\n' % line for line in lines) + text[at:]
    else:
        text = text.rstrip('\n') + '\n' + '\n'.join(lines) + '\n\n'
    with open(path, 'w') as f:
        f.write(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--cc', default=os.environ.get('CC', 'cc'))
    cc = parser.parse_args().cc
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, 'tests'))
        for name in ('cases.h', 'check.h', 'modes.h'):
            shutil.copy(os.path.join(ROOT, 'tests', name), os.path.join(folder, 'tests', name))
        shutil.copytree(os.path.join(ROOT, 'src'), os.path.join(folder, 'src'))
        with open(os.path.join(ROOT, 'src', 'README.md')) as f:
            steps = recipes(f.read())
        if len(steps) < 5:
            sys.exit('src/README.md has %d steps only' % len(steps))
        for (path, macro), lines in steps:
            put(os.path.join(folder, path), macro, lines)
        with open(os.path.join(folder, 'recipes.c'), 'w') as f:
            f.write(PROGRAM)
        run = [[sys.executable, 'src/join.py'],
               cc.split() + ['-O0', '-w', '-I.', 'recipes.c', '-o', 'recipes', '-lm', '-lpthread'], ['./recipes']]
        for command in run:
            done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if done.returncode:
                sys.exit('%s:\n%s' % (' '.join(command), done.stdout.decode(errors='replace')[:4000]))
    return 0


if __name__ == '__main__':
    sys.exit(main())
