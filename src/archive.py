#!/usr/bin/env python3
"""Writes the archives of a release from a tag of the repository: opdispatch-VERSION.tar.gz, the same files as
opdispatch-VERSION.zip, and opdispatch-VERSION.sha256 with the checksums of both.

usage: python3 src/archive.py TAG [--to FOLDER]       TAG: "v" followed by OPD_VERSION, such as v0.9.0

The archives contain the files of the tagged commit that a user needs: opdispatch.h, opdispatch_cuda.cu, LICENSE,
README.md, examples/ (with the guide, its changes.md, and the files for CMake and pkg-config) and bench/ (the pages
refer to its tables).  They do not contain src/ and tests/.  Files of the working tree are not read.

The script writes nothing and ends with status 1 if the commit's OPD_VERSION does not fit the tag, or if the header,
the CUDA file or the reference of the commit are not what src/join.py and src/reference.py write.

The archives of a commit have the same bytes on each machine and for each user: the files are sorted, all times are the
time of the commit, and there are no names of users.  Only another version of zlib may compress to other bytes.
"""
import argparse
import gzip
import hashlib
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CONTENTS = ['LICENSE', 'README.md', 'bench', 'examples', 'opdispatch.h', 'opdispatch_cuda.cu']
VERSION = re.compile(rb'^#define OPD_VERSION "([^"\n]*)"$', re.M)


def git(*arguments, given=None):
    """Returns the output of a git command.  If the command fails, the script ends with its message."""
    try:
        done = subprocess.run(('git', '-C', ROOT) + arguments, input=given,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except FileNotFoundError:
        sys.exit('archive.py reads the files of a tag with git, which is not installed')
    if done.returncode != 0:
        sys.exit('git %s: %s' % (arguments[0], done.stderr.decode('utf-8', 'replace').strip() or 'it fails'))
    return done.stdout


def commit_of(tag):
    """Returns the commit of a tag, and its time in seconds since 1970."""
    if tag not in git('tag', '--list').decode('utf-8').split('\n'):
        sys.exit('there is no tag %s. Make it: git tag %s COMMIT' % (tag, tag))
    commit, seconds = git('log', '-1', '--format=%H %ct', 'refs/tags/' + tag).decode('ascii').split()
    return commit, int(seconds)


def files_of(commit, paths):
    """Returns [(path, mode, content)] for the files and folders of a commit, sorted by path."""
    listed = []
    for row in git('ls-tree', '-r', '-z', '--full-tree', commit, '--', *paths).decode('utf-8').split('\0')[:-1]:
        about, path = row.split('\t')
        mode, _, blob = about.split()
        if mode not in ('100644', '100755'):
            sys.exit('%s is a link or a submodule. The archives can only contain files' % path)
        listed.append((path, int(mode, 8) & 0o777, blob))
    for path in paths:
        if not any(name == path or name.startswith(path + '/') for name, _, _ in listed):
            sys.exit('the tagged commit has no %s' % path)
    contents = git('cat-file', '--batch', given=''.join(blob + '\n' for _, _, blob in listed).encode('ascii'))
    files, at = [], 0
    for path, mode, _ in listed:
        begin = contents.index(b'\n', at) + 1
        size = int(contents[at:begin].split()[2])
        files.append((path, mode, contents[begin:begin + size]))
        at = begin + size + 1
    return sorted(files)


def wrong(files, tag):
    """Returns a list of lines: the reasons why the files of a commit cannot be released with this tag."""
    header = dict((path, content) for path, _, content in files)['opdispatch.h']
    found = [version.decode('utf-8') for version in VERSION.findall(header)]
    if len(found) != 1:
        return ['opdispatch.h of the tagged commit has %d lines #define OPD_VERSION "...", not one' % len(found)]
    if tag != 'v' + found[0]:
        return ['the tag is %s, but OPD_VERSION of the tagged commit is "%s". The tag of this version is v%s' %
                (tag, found[0], found[0])]
    with tempfile.TemporaryDirectory(prefix='opd_archive.') as folder:
        for path, _, content in files:
            to = os.path.join(folder, path)
            os.makedirs(os.path.dirname(to), exist_ok=True)
            with open(to, 'wb') as f:
                f.write(content)
        for script in ('join.py', 'reference.py'):
            done = subprocess.run([sys.executable, '-B', os.path.join(folder, 'src', script), '--check'],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if done.returncode != 0:
                said = done.stdout.decode('utf-8', 'replace').strip().split('\n')
                return ['the tagged commit has not what src/%s writes. Run it, commit, and move the tag. It says:' %
                        script] + said
    return []


def tar_of(files, folder, seconds):
    """Returns the content of the .tar.gz."""
    packed = io.BytesIO()
    with gzip.GzipFile('', 'wb', 6, packed, seconds) as out:
        with tarfile.open(fileobj=out, mode='w', format=tarfile.USTAR_FORMAT) as tar:
            for path, mode, content in files:
                entry = tarfile.TarInfo(folder + '/' + path)           # user and group are 0, without names
                entry.size, entry.mtime, entry.mode = len(content), seconds, mode
                tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def zip_of(files, folder, seconds):
    """Returns the content of the .zip.  A .zip has no time zone, so its times are in UTC."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, 'w', zipfile.ZIP_DEFLATED) as out:
        for path, mode, content in files:
            entry = zipfile.ZipInfo(folder + '/' + path, time.gmtime(seconds)[:6])
            entry.create_system, entry.external_attr = 3, (0o100000 | mode) << 16          # 3: Unix, which has modes
            out.writestr(entry, content, zipfile.ZIP_DEFLATED, 6)
    return packed.getvalue()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('tag', metavar='TAG', help='the tag of the release')
    parser.add_argument('--to', metavar='FOLDER', default='.', help='write the three files to this folder')
    o = parser.parse_args()
    commit, seconds = commit_of(o.tag)
    files = files_of(commit, CONTENTS + ['src'])
    lines = wrong(files, o.tag)
    if lines:
        sys.exit('\n'.join(lines))
    files = [file for file in files if not file[0].startswith('src/')]
    name = 'opdispatch-' + o.tag[1:]
    outputs = [(name + '.tar.gz', tar_of(files, name, seconds)), (name + '.zip', zip_of(files, name, seconds))]
    sums = ''.join('%s  %s\n' % (hashlib.sha256(content).hexdigest(), path) for path, content in outputs)
    os.makedirs(o.to, exist_ok=True)
    for path, content in outputs + [(name + '.sha256', sums.encode('ascii'))]:
        with open(os.path.join(o.to, path), 'wb') as f:
            f.write(content)
    print('%s, %d files of commit %s:\n%s' % (name, len(files), commit, sums), end='')
    return 0


if __name__ == '__main__':
    try:
        sys.exit(main())
    except OSError as error:
        sys.exit(str(error))
