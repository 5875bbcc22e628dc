#!/usr/bin/env python3
"""Finds calls whose arguments make nodes of the autograd graph in an order that depends on the compiler.

C does not say in which order the arguments of a call are evaluated: in opd_add(opd_mul(a, b), opd_mul(c, d)), gcc for
x86-64 makes the second product first, and clang the first one.  Backward runs the nodes in the reverse order, so three
gradients that meet at one tensor would be added in another order.  Recorded graphs would differ, too.  So at most one
argument of a call may call operators that are recorded:

    opd_tensor *const left = opd_mul(a, b);
    return opd_add(left, opd_mul(c, d));

The script reads the files of the layers whose code can run while autograd records.
"""
import argparse
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, 'src'))
import join                                                                                          # noqa: E402

LAYERS = ('tensor', 'levels', 'autograd', 'transforms', 'graphs', 'tools', 'collective', 'ops')
NOTES = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/', re.S)
RETURNS_TENSOR = re.compile(r'\bopd_tensor \*\s*(opdi?_\w+)\(')
CALL = re.compile(r'\b([A-Za-z_]\w*)\(')
# Functions that make no node: they return an argument, a constant, or a tensor without a derivative.
SILENT = re.compile(
    r'opd_(?:bw|arg|jvp|context|tensor)_\w+|opd_detach|opd_(?:new_)?(?:zeros|ones|full|empty)(?:_\w+)?|'
    r'opd_(?:scalar_tensor|arange|logical|bitwise)\w*|opd_(?:eq|ne|lt|le|gt|ge|all|any|one_hot|nonzero)(?:_[A-Z]\w*)?|'
    r'opd_(?:is(?:nan|inf|finite|in)|arg(?:max|min|sort)|sign|floor|ceil|round|trunc)(?:_\w+)?|'
    r'opdi_(?:new_number|maybe_zeros|identity_like|batch_blank|tensor_in|call_tensor|coded_arg)')
NOT_RECORDED = re.compile(r'opd_(?:copy_|eq|ne|lt|le|gt|ge|equal|logical_\w+|bitwise_\w+)')
NO_CALL = ('if', 'while', 'for', 'switch', 'return', 'sizeof')


def blank(match):
    """Returns blanks for a comment or a string, with the same number of characters and lines."""
    return re.sub(r'[^\n]', ' ', match.group())


def arguments(code, at):
    """Returns the beginnings and ends of the arguments after the bracket at `at`, and the place of its end."""
    depth, begin, found = 0, at + 1, []
    for mark in re.compile(r'[][(){},]').finditer(code, at):
        depth += {'(': 1, '[': 1, '{': 1, ',': 0}.get(mark.group(), -1)
        if depth == 0 or (depth == 1 and mark.group() == ','):
            found.append((begin, mark.start()))
            begin = mark.end()
        if depth == 0:
            return found, mark.start()
    return found, len(code)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--count', action='store_true', help='only print how many calls were seen')
    count = parser.parse_args().count
    texts = {}
    for path in join.paths():
        if path.split('/')[0] in LAYERS + ('api',):
            texts[path] = NOTES.sub(blank, join.read(os.path.join(join.SRC, path)).decode('utf-8'))
    with open(os.path.join(ROOT, 'opdispatch.h'), encoding='utf-8') as f:
        names = {name for text in [f.read()] + list(texts.values()) for name in RETURNS_TENSOR.findall(text)}
    names = {name for name in names if not SILENT.fullmatch(name)} | {'OPD_CALL'}
    seen, wrong = 0, 0
    for path, code in texts.items():
        for call in CALL.finditer(code):
            if call[1] in NO_CALL or NOT_RECORDED.fullmatch(call[1]):
                continue
            found, end = arguments(code, call.end() - 1)
            recorded = sum(any(inner[1] in names for inner in CALL.finditer(code, *place)) for place in found)
            seen += recorded > 0
            if recorded > 1:
                wrong += 1
                if not count:
                    print('src/%s:%d: %s   <- two arguments call operators: call one of them before' % (
                        path, code.count('\n', 0, call.start()) + 1, ' '.join(code[call.start():end + 1].split())))
    if count:
        print('%d calls, %d with two such arguments' % (seen, wrong))
    elif seen < 1000:
        print('only %d calls were seen' % seen)


if __name__ == '__main__':
    main()
