#!/usr/bin/env python3
"""Checks that the operators that src/printing.py reads from the cards are those that the library registers.

usage: python3 tests/operators.py OPDISPATCH.H [--cc CC]

The typed functions of opdispatch.h and the reference are generated from the text of the cards.  This script compiles a
program that asks the library for the schema of each operator and of its in-place form, whether the operator has a
derivative, and what it does in mixed precision.  The script prints the differences.
"""
import argparse
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'src'))
import join                                                                                          # noqa: E402
import printing                                                                                      # noqa: E402
import reference                                                                                     # noqa: E402

PROGRAM = '''
#define OPDISPATCH_IMPLEMENTATION
#include "%s"
#include <stdio.h>
#include <string.h>
static char text[4096];
static void show(const opd_op *op) {
    if (!op) { puts(""); return; }
    (void)opd_schema_print(opd_op_schema(op), text, sizeof text);
    puts(text + strlen("aten::"));
}
int main(void) {
    int i;
    for (i = 0; i < OPD_OP_COUNT; i++) {
        const opd_op *op = opd_op_builtin((opd_op_id)i);
        const char *form = op && opd_op_card(op) ? opd_op_card(op)->inplace : NULL;
        char name[200] = "";
        show(op);
        if (form) { (void)snprintf(name, sizeof name, "aten::%%.*s", (int)strcspn(form, "("), form); }
        show(form ? opd_find(name) : NULL);
        if (op && opd_op_card(op)) {
            const opd_op_desc *card = opd_op_card(op);
            printf("%%s, %%d\n", card->composite ? "of its parts" : (card->backward || card->autograd) &&
                   card->backward != OPD_NOT_DIFFERENTIABLE ? "yes" : "none", (int)card->autocast);
        } else { puts(""); }
    }
    return opd_ok() ? 0 : 1;
}
'''


def registered(header, cc):
    """Returns three lines for each operator, as the library prints them: the schema, the schema of its in-place
    form, and its derivative with the number of its autocast policy."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, 'schemas.c'), os.path.join(folder, 'schemas')
        with open(source, 'w') as f:
            f.write(PROGRAM % os.path.abspath(header))
        if subprocess.run(cc.split() + ['-w', '-O0', source, '-o', program, '-lm', '-lpthread']).returncode:
            sys.exit('the header does not compile')
        return subprocess.run([program], check=True, stdout=subprocess.PIPE).stdout.decode().split('\n')


def facts(schema):
    """Returns what determines a typed function: the name, the results, and each argument's type, name, and whether
    it has a default."""
    return schema and (schema.name, schema.returns, [(kind, name, default is not None) for kind, name, default in schema.args])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('header')
    parser.add_argument('--cc', default=os.environ.get('CC', 'cc'), help='the compiler for this program')
    o = parser.parse_args()
    tree, lines, failed, words = join.tree(), registered(o.header, o.cc), 0, {}
    operators, functions = tree.operators(), reference.fills_of(tree.files)
    if len(lines) != 3 * len(operators) + 1:
        sys.exit('%d operators are read, %d are registered' % (len(operators), len(lines) // 3))
    for i, operator in enumerate(operators):
        derivative, _, cast, _, _ = reference.traits(operator, {}, functions)
        there, policy = lines[3 * i + 2].split(', ') if lines[3 * i + 2] else (derivative, None)
        if derivative != there or policy and words.setdefault(policy, cast) != cast:
            print('%s: the reference says "%s" of its derivative and "%s" of autocast, the library "%s" and "%s"' % (
                operator.card, derivative, cast, there, words.get(policy)))
            failed = 1
        for read, line in ((operator.schema, lines[3 * i]), (operator.inplace, lines[3 * i + 1])):
            there = printing.Schema(line) if line else None
            if facts(read) != facts(there):
                print('%s is read as\n  %s\nand registered as\n  %s' % (operator.card, facts(read), facts(there)))
                failed = 1
    return failed


if __name__ == '__main__':
    sys.exit(main())
