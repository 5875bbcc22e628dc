#!/usr/bin/env python3
"""Finds error messages in src/ with words that only programmers of Python know.

usage: python3 tests/error_words.py

Reads the messages that are passed to opd_fail, opd_warn and similar functions.  Prints a line for each message that
contains a word of WORDS, and then fails.  Folders in LEFT_OUT read or run texts of Python, and may use its words.
"""
import argparse
import os
import re
import sys

SRC = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'src')
LEFT_OUT = {'script', 'graphs', 'programs', 'files', 'aoti'}
CALL = re.compile(r'\b(opd_fail|opdi_fail_more|opd_warn|opd_check|OPD_CHECK|opdi_inside_transform)\s*\(')
# Types of ATen, classes and modules of Python, and values of Python that C does not have.
WORDS = re.compile(r'\b(functorch|version_counter|Variable|kwargs|tuples?|dicts?|None|autograd\.Function|'
                   r'Long|Half|Double|Float|Short|Byte|ComplexFloat|BFloat16)\b|\btorch\.')
STRING = re.compile(r'"((?:\\.|[^"\\])*)"')


def messages(text):
    """Yields the line number and the joined strings of each call that sets an error."""
    for match in CALL.finditer(text):
        at, depth = match.end(), 1
        while depth and at < len(text):
            string = STRING.match(text, at)
            if string:
                at = string.end()
                continue
            depth += {'(': 1, ')': -1}.get(text[at], 0)
            at += 1
        yield text.count('\n', 0, match.start()) + 1, ''.join(STRING.findall(text[match.end():at]))


def main():
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    wrong = 0
    for folder, _, names in sorted(os.walk(SRC)):
        if os.path.relpath(folder, SRC).split(os.sep)[0] in LEFT_OUT:
            continue
        for name in sorted(names):
            if not name.endswith(('.c', '.h', '.cu')):
                continue
            with open(os.path.join(folder, name), encoding='utf-8') as file:
                for line, text in messages(file.read()):
                    found = WORDS.search(text)
                    if found:
                        print(f'{os.path.relpath(os.path.join(folder, name))}:{line}: "{found.group()}" in: {text}')
                        wrong += 1
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
