#!/usr/bin/env python3
"""Writes inputs for fuzz targets, made from files of tests/golden.

usage: python3 tests/fuzz/seeds.py TARGET FOLDER

Writes the inputs of TARGET to FOLDER.  For targets other than script, script_archive and program_file, there are none.
"""
import glob
import json
import os
import sys
import zipfile

GOLDEN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'golden')
MOST = 16384


def script():
    with open(os.path.join(GOLDEN, 'scripts.json'), encoding='utf-8') as file:
        todo = [json.load(file)]
    while todo:
        value = todo.pop()
        todo += value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
        if isinstance(value, dict) and isinstance(value.get('source'), str):
            yield value['source'].encode()
    with open(os.path.join(GOLDEN, 'script_graphs.py'), encoding='utf-8') as file:
        for text in file.read().split('\ndef ')[1:]:
            yield b'def ' + text.encode() + b'\n'


def script_archive():
    for path in sorted(glob.glob(os.path.join(GOLDEN, 'scripts', '*.pt'))):
        with open(path, 'rb') as file:
            yield file.read()


def program_file():
    for path in sorted(glob.glob(os.path.join(GOLDEN, 'programs', '*.pt2'))):
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            model = [archive.read(name) for name in names if '/models/' in name and name.endswith('.json')]
            weights = [archive.read(name) for name in names if name.endswith('model_weights_config.json')]
        yield b'\0'.join(model[:1] + weights[:1])


def main():
    target, folder = sys.argv[1:]
    made = {'script': script, 'script_archive': script_archive, 'program_file': program_file}.get(target, list)()
    for i, data in enumerate(data for data in made if len(data) <= MOST):
        with open(os.path.join(folder, f'golden_{i}'), 'wb') as file:
            file.write(data)


if __name__ == '__main__':
    sys.exit(main())
