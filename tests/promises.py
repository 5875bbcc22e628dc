#!/usr/bin/env python3
"""Compares the public names, prototypes and layouts of the header with the recorded ones in tests/golden/api.txt, and says
which promise to users a change breaks.

usage: python3 tests/promises.py                      prints what differs from the record, except for added names
       python3 tests/promises.py --added              prints the added names
       python3 tests/promises.py --write [--break]    records the names of the header
       python3 tests/promises.py --symbols PACKAGE    prints the exported names, as Debian's file PACKAGE.symbols
       ... --header FILE                              reads another header than opdispatch.h

A row of the record has the kind of the name, what the name is, the name, and its text: the type of a function, typedef or
variable, the fields of a struct with their offsets on 64-bit machines, the value of a constant, the parameters of a macro.
Names of parameters may change.  A name that is added breaks nothing; --write records it before a release.

The kind is "stable", "may change" or "private".  The names of a file of src/api/ may change if the title of its chapter
ends with "(may change)"; otherwise they are stable.  Functions that begin with opdi_ are private: only macros and inline
functions of the header call them, and the exported names contain them.  --write refuses to record a break of a stable name within one minor version, unless --break is given.

Needs clang, which reads the header, and an x86-64 machine for the layouts.  Without clang, the script prints "SKIP: why".
"""
import argparse
import glob
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FILE = os.path.join(ROOT, 'tests', 'golden', 'api.txt')
WRITE = 'python3 tests/promises.py --write'
STABLE, MAY_CHANGE, PRIVATE = 'stable', 'may change', 'private'
NUMBERED = ('OPD_OP_', 'OPD_FORMULA_')              # constants that have other values in each version
NOT_EXPORTED = re.compile('opd_(aoti|extension)_|opdi_keep_operator$')       # only with OPD_AOTI or OPD_LEAN
FLAGS = ['-x', 'c', '-std=c11']


def public(name):
    return bool(name) and name.startswith(('opd_', 'OPD_'))


#-- the names of the header --------------------------------------------------------------------------------------------

def fields_of(record, prefix=''):
    """Returns [(path, type, is a bit field)] for the fields of a struct or union, also those of unnamed ones inside."""
    found, inner = [], None
    for part in record.get('inner', []):
        if part['kind'] == 'RecordDecl':
            inner = part
        elif part['kind'] == 'FieldDecl':
            path, text = prefix + part.get('name', ''), part['type']['qualType']
            if inner is not None and re.search(r'\((anonymous|unnamed)', text):
                end = re.sub(r'^.*\)', '', text)                                           # [4], for an array
                if end:
                    found.append((path, inner['tagUsed'] + ' {' + '; '.join(row[1] + ' ' + row[0] for row in fields_of(inner)) +
                                  '}' + end, False))
                else:
                    found += fields_of(inner, path + '.' if part.get('name') else prefix)
            else:
                found.append((path, text, part.get('isBitfield', False)))
    return found


def layouts(records, header, folder):
    """Returns {name: text} for the structs and unions: their size and their fields with offsets."""
    lines = ['#include <stddef.h>', '#include <stdio.h>', '#include "%s"' % header, 'int main(void) {']
    for name, (tag, record) in records.items():
        lines.append('printf("%s|%%zu bytes", sizeof(%s));' % (name, tag))
        for path, text, bits in fields_of(record):
            at = '", 0' if bits else ' @%%zu", offsetof(%s, %s)' % (tag, path)
            lines.append('printf("; %s %s%s);' % (text, path, at.replace(', 0', '') if bits else at))
        lines.append('puts("");')
    source, program = os.path.join(folder, 'layouts.c'), os.path.join(folder, 'layouts')
    with open(source, 'w', encoding='utf-8') as f:
        f.write('\n'.join(lines + ['}', '']))
    done = subprocess.run(['clang', '-w', '-O0', '-DOPD_DLL'] + FLAGS + [source, '-o', program], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    if done.returncode:
        sys.exit('the program that prints layouts does not compile:\n' + done.stdout.decode('utf-8', 'replace')[:2000])
    said = subprocess.run([program], stdout=subprocess.PIPE).stdout.decode('utf-8')
    return dict(line.split('|', 1) for line in said.splitlines())


def names_of(header):
    """Returns {(what, name): text} for the public names of a header."""
    found, records, previous = {}, {}, None
    with tempfile.TemporaryDirectory(prefix='opd_promises.') as folder:
        source = os.path.join(folder, 'all.c')
        with open(source, 'w', encoding='utf-8') as f:
            f.write('#include "%s"\n' % header)
        done = subprocess.run(['clang'] + FLAGS + ['-fsyntax-only', '-w', '-Xclang', '-ast-dump=json', source],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode:
            sys.exit('clang cannot read %s:\n%s' % (header, done.stderr.decode('utf-8', 'replace')[:2000]))
        tree = re.sub(r'\b(struct|union|enum) (?=opd)', '', done.stdout.decode('utf-8').replace('_Bool', 'bool'))
        for part in json.loads(tree)['inner']:                  # clang's versions differ in these words
            kind, name = part['kind'], part.get('name')
            if kind == 'EnumDecl':
                constants(part, found)
            elif kind == 'RecordDecl' and part.get('completeDefinition'):
                if public(name):
                    records[name] = (part['tagUsed'] + ' ' + name, part)
            elif kind == 'FunctionDecl' and (public(name) or (name or '').startswith('opdi_')):
                inline = part.get('storageClass') == 'static'
                if inline and not public(name):
                    continue
                found['inline function' if inline else 'function', name] = part['type']['qualType']
            elif kind == 'VarDecl' and public(name) and part.get('storageClass') == 'extern':
                found['variable', re.sub(r'(of_version)_\d+_\d+$', r'\1', name)] = part['type']['qualType']
            elif kind == 'TypedefDecl' and public(name):
                text = part['type']['qualType']
                if previous is not None and previous['kind'] == 'RecordDecl' and not previous.get('name'):
                    records[name] = (name, previous)
                else:
                    found['typedef', name] = text
            previous = part
        if platform.machine() in ('x86_64', 'AMD64'):
            found.update({('layout', name): text for name, text in layouts(records, header, folder).items()})
        macros(source, found)
    return found


def constants(enum, found):
    """Adds the constants of an enum to `found`."""
    value = -1
    for constant in (part for part in enum['inner'] if part['kind'] == 'EnumConstantDecl'):
        given = [part['value'] for part in constant.get('inner', []) if 'value' in part]
        value = int(given[0]) if given else value + 1
        if public(constant['name']):
            found['constant', constant['name']] = '' if constant['name'].startswith(NUMBERED) else str(value)


def macros(source, found):
    """Adds the macros that a file defines to `found`: their parameters, and their values if these are numbers."""
    done = subprocess.run(['clang'] + FLAGS + ['-dM', '-E', source], stdout=subprocess.PIPE)
    for line in done.stdout.decode('utf-8').splitlines():
        name, parameters, body = re.match(r'#define (\w+)(\([^)]*\))? ?(.*)', line).groups()
        if not public(name) or name.startswith(('OPD_VERSION', 'OPD_SOURCE_ID', 'OPD_AOTI')):
            continue
        number = body if re.fullmatch(r'\(?-?[0-9a-fA-FxuUlL]+\)?', body) else ''
        count = len(parameters.split(',')) if parameters and parameters != '()' else 0
        found['macro', name] = ('%d parameters%s' % (count, ', ...' if '...' in parameters else '')) if parameters else number


def host_functions(found):
    """Adds the places of the functions in the table for plug-ins."""
    with open(os.path.join(ROOT, 'src', 'api', 'host_functions.txt'), encoding='utf-8') as f:
        names = [name for line in f if not line.startswith('#') for name in line.split()]
    for place, name in enumerate(names):
        found['place for plug-ins', name] = str(place)


def kinds():
    """Returns a function that says of which kind a name is."""
    found = {}
    for path in sorted(glob.glob(os.path.join(ROOT, 'src', 'api', '*.h'))):
        with open(path, encoding='utf-8') as f:
            text = f.read()
        kind = MAY_CHANGE if re.search(r'^//  >>api:.* \(may change\)$', text, re.M) else STABLE
        code = re.sub(r'/\*.*?\*/|//[^\n]*', ' ', text, flags=re.S)
        for name in re.findall(r'^OPD_(?:API|NEW|INLINE)\b[^;{}=]*?\b(opdi?_\w+)\(|\b(opdi?_\w+);|\(\*(opdi?_\w+)\)|'
                               r'^# *define (OPD_\w+)|\b(OPD_\w+)\s*[,=}]|^ *(OPD_\w+)$|^typedef [^;{]*?\b(opdi?_\w+)\(', code, re.M):
            found.setdefault(''.join(name), kind)
    return lambda name: PRIVATE if name.startswith('opdi_') else found.get(name, STABLE)


#-- the record ---------------------------------------------------------------------------------------------------------

def recorded():
    """Returns the version of the record, and {(what, name): (kind, text)}."""
    with open(FILE, encoding='utf-8') as f:
        lines = f.read().splitlines()
    found = {}
    for line in (line for line in lines if line and not line.startswith('#')):
        kind, what, name, text = [part.strip() for part in line.split('|', 3)]
        found[what, name] = (kind, text)
    return lines[0].split()[-1], found


def version_of(header):
    with open(header, encoding='utf-8') as f:
        return re.search(r'^#define OPD_VERSION "(.*)"$', f.read(), re.M).group(1)


def breaks(now, kind_of):
    """Returns [(kind, message)] for the recorded names that are gone or different."""
    _, before = recorded()
    found = []
    for (what, name), (kind, text) in sorted(before.items()):
        if what == 'layout' and not any(key[0] == 'layout' for key in now):
            continue                                                                       # another machine
        if (what, name) not in now:
            others = [other for other, same in now if same == name and other != what]
            found.append((kind, 'the %s %s is gone%s; it was: %s' % (what, name, ', and is now a ' + others[0] if others else '', text)))
        elif now[what, name] != text:
            found.append((kind, 'the %s %s has changed\n    from  %s\n    to    %s' % (what, name, text, now[what, name])))
        elif kind == STABLE and kind_of(name) != STABLE:
            found.append((kind, 'the %s %s was stable, and may change now' % (what, name)))
    return found


def write(now, kind_of, header):
    lines = ['# The public names of the header; python3 tests/promises.py --write writes them.  Version %s' % version_of(header),
             '# kind | what | name | type, layout (64-bit machines), value or parameters']
    lines += ['%-10s | %s | %s | %s' % (kind_of(name), what, name, text) for (what, name), text in sorted(now.items())]
    with open(FILE, 'w', encoding='utf-8') as f:
        f.write('\n'.join(line.rstrip() for line in lines) + '\n')


def symbols(package):
    """Prints the exported names as Debian's tools read them."""
    version, found = recorded()
    major, minor = version.split('.')[:2]
    minor = '0.' + minor if major == '0' else major
    print('libopdispatch.so.%s %s #MINVER#\n* Build-Depends-Package: libopdispatch-dev' % (minor, package))
    print(' OPDISPATCH_%s@OPDISPATCH_%s %s' % (minor, minor, version))
    names = {name for what, name in found if what == 'function' and not NOT_EXPORTED.match(name)}
    names.add('opd_library_of_version_' + '_'.join(version.split('.')[:2]))
    for name in sorted(names):
        print(' %s@OPDISPATCH_%s %s' % (name, minor, version))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--added', action='store_true')
    parser.add_argument('--write', action='store_true')
    parser.add_argument('--break', action='store_true', dest='broken')
    parser.add_argument('--symbols', metavar='PACKAGE')
    parser.add_argument('--header', metavar='FILE', default=os.path.join(ROOT, 'opdispatch.h'))
    o = parser.parse_args()
    if o.symbols:
        symbols(o.symbols)
        return 0
    if not shutil.which('clang'):
        print('SKIP: no clang, which reads the names of the header')
        return 0
    header, kind_of = os.path.abspath(o.header), kinds()
    now = names_of(header)
    host_functions(now)
    there = os.path.exists(FILE)
    broken = breaks(now, kind_of) if there else []
    old, new = recorded()[0] if there else '', version_of(header)
    promised = [message for kind, message in broken if kind == STABLE and old.split('.')[:2] == new.split('.')[:2]]
    if o.added:
        print('\n'.join('%s %s: %s' % (key + (text,)) for key, text in sorted(now.items()) if key not in recorded()[1]))
    elif o.write and promised and not o.broken:
        print('\n'.join(promised))
        print('These names are stable, and %s and %s are versions with the same minor number. Keep the names, raise '
              'OPD_VERSION_MINOR, or give --break. Nothing was written' % (old, new))
        return 1
    elif o.write:
        if not any(key[0] == 'layout' for key in now):
            sys.exit('the record has layouts of x86-64: run this on such a machine')
        write(now, kind_of, header)
        print('%d names were recorded; %d of the record before were changed or gone' % (len(now), len(broken)))
    elif broken:
        print('\n'.join(('breaks a promise: ' if message in promised else '') + message for _, message in broken))
        print('%d names of version %s are gone or different. If programs need not compile any more, or must be compiled '
              'again: %s%s, and say so in examples/guide/changes.md' % (len(broken), old, WRITE, ' --break' if promised else ''))
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
