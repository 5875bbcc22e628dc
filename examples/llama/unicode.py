#!/usr/bin/env python3
"""Writes examples/llama/unicode.h: the general category of each Unicode character, for the tokenisers.

    python3 examples/llama/unicode.py

The table is one text. A letter or sign names a category, in the order of NAMES; the digits behind it (base 32) say how
many characters in a row have this category. Without digits, it is one character. The last sign stands for characters
that are upper and lower case in turn, which are frequent in Unicode.
"""
import os

try:
    import unicodedata2 as unicodedata                # a package with a newer version of Unicode than Python's own
except ImportError:
    import unicodedata

NAMES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co Cn".split()
SIGNS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ!#$%&"
IN_TURN = len(NAMES)


def runs():
    kinds = [NAMES.index(unicodedata.category(chr(c))) for c in range(0x110000)]
    at = 0
    while at < len(kinds):
        end = at
        while end < len(kinds) and kinds[end] == (end - at) % 2:
            end += 1
        if end - at >= 4:
            yield IN_TURN, end - at
        else:
            end = at
            while end < len(kinds) and kinds[end] == kinds[at]:
                end += 1
            yield kinds[at], end - at
        at = end


def number(n):
    digits = ""
    while n:
        digits = "0123456789abcdefghijklmnopqrstuv"[n % 32] + digits
        n //= 32
    return digits


def main():
    text = "".join(SIGNS[kind] + (number(n) if n > 1 else "") for kind, n in runs())
    lines = [text[i:i + 110] for i in range(0, len(text), 110)]
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "unicode.h")
    with open(path, "w") as out:
        out.write(f"/* The general category of each character of Unicode {unicodedata.unidata_version}, written by unicode.py, "
                  "which explains the\n   text. */\n")
        rows = [", ".join("TOK_" + name for name in NAMES[i:i + 12]) for i in range(0, len(NAMES), 12)]
        out.write("enum {\n    " + ",\n    ".join(rows) + ",\n    TOK_IN_TURN\n};\n")
        out.write(f'static const char tok_category_signs[] = "{SIGNS}";\n')
        out.write("static const char *const tok_category_runs[] = {\n")
        for line in lines:
            out.write(f'    "{line}",\n')
        out.write("    NULL\n};\n")


if __name__ == "__main__":
    main()
