#!/usr/bin/env python3
"""Finds code of src/ that loads machine code or starts a program without asking opd_code_forbidden.

usage: python3 tests/code_switch.py [FILE...]

Without files, all files of src/ are read.  A function that calls one of the system's functions in LOADS must also call
opd_code_forbidden, before the first such call.  Prints a line for each other place, and then fails.  Calls in ALLOWED
load nothing.
"""
import argparse
import os
import re
import sys

SRC = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'src')
LOADS = re.compile(r'\b(dlopen|dlmopen|system|popen|_popen|_wpopen|v?fork|exec[lv][pe]*|execveat|fexecve|posix_spawnp?|'
                   r'_?w?spawn[lv]p?e?|LoadLibrary\w*|LoadPackagedLibrary|CreateProcess\w*|ShellExecute\w*|WinExec|'
                   r'cuModuleLoad\w*|cuLibraryLoad\w*|cudaLibraryLoad\w*|nvrtcCompileProgram|mprotect|VirtualProtect)'
                   r'\s*\(|\b(PROT_EXEC|PAGE_EXECUTE\w*)\b')
ALLOWED = [r'dlopen\(NULL,',                                       # the process itself
           r'dlopen\("libtorch_cpu\.so", RTLD_NOW \| 4']           # RTLD_NOLOAD: only what is loaded already
NOTES = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/', re.S)


def blank(match):
    """Returns blanks for a comment or a string, with the same number of characters and lines."""
    return re.sub(r'[^\n]', ' ', match.group())


def places(text):
    """Returns [(line number, name)] of the calls that are not behind the switch."""
    plain = NOTES.sub(blank, text)
    found = []
    for match in LOADS.finditer(plain):
        line = text.rfind('\n', 0, match.start()) + 1
        if re.match(r'(OPDI_WIN\(|extern )', text[line:]) or any(re.match(call, text[match.start():]) for call in ALLOWED):
            continue
        begin = max([0] + [m.end() for m in re.finditer(r'^\}', plain[:match.start()], re.M)])
        if 'opd_code_forbidden(' not in plain[begin:match.start()]:
            found.append((plain.count('\n', 0, match.start()) + 1, match.group(1) or match.group(2)))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('files', nargs='*')
    files = parser.parse_args().files
    for folder, _, names in [] if files else list(os.walk(SRC)):
        files += [os.path.join(folder, name) for name in sorted(names) if re.search(r'\.(c|h|cu|cpp)$', name)]
    wrong = 0
    for path in sorted(files):
        with open(path, encoding='utf-8') as file:
            for line, name in places(file.read()):
                print(f'{os.path.relpath(path)}:{line}: {name} loads code or starts a program, but the function does not '
                      f'call opd_code_forbidden before')
                wrong += 1
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
