#!/usr/bin/env python3
"""Writes the files of a release from a tag of the repository:

    opdispatch-VERSION.tar.gz, opdispatch-VERSION.zip    two archives of the same files
    opdispatch-VERSION.spdx.json                         what is released, its licence and checksums (SPDX 2.3)
    verify.py                                            a copy of src/verify.py, with which users check a release
    SHA256SUMS, and its signature if there is a key      the checksums of the files above

usage: python3 src/archive.py TAG [--to FOLDER] [--site FOLDER] [--key FILE]
       python3 src/archive.py --unpacked FOLDER [--to FOLDER]

TAG is "v" followed by OPD_VERSION, such as v0.9.0.  The archives contain all files of the tagged commit: the header,
src/, tests/, examples/, bench/ and .ci/.  Files of the working tree are not read, except for the site: if the folder
build/site exists, or with --site another one, the archives contain its files in the folder site/.

With --unpacked, the script packs the folder of an unpacked archive again.  This needs no git.  The time of the files is
$SOURCE_DATE_EPOCH or else the time of opdispatch.h.  src/verify.py compares the result with the archive.

--key names a secret key of minisign or of signify, with which the script signs SHA256SUMS.  minisign writes
SHA256SUMS.minisig, signify writes SHA256SUMS.sig.

The script writes nothing and ends with status 1 if the commit's OPD_VERSION does not fit the tag, or if the header,
the CUDA file or the reference of the commit are not what src/join.py and src/reference.py write.

The archives of a commit have the same bytes on each machine and for each user: the files are sorted, all times are the
time of the commit, and there are no names of users.  Only another version of zlib may compress to other bytes.
"""
import argparse
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LICENCE = '(MIT OR Unlicense) AND CC-BY-4.0 AND CC0-1.0'             # the last two: pictures in examples/data
VERSION = re.compile(rb'^#define OPD_VERSION "([^"\n]*)"$', re.M)
SOURCE_ID = re.compile(rb'^#define OPD_SOURCE_ID "([^"\n]*)"$', re.M)


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


def files_of(commit):
    """Returns [(path, mode, content)] for the files of a commit, sorted by path."""
    listed = []
    for row in git('ls-tree', '-r', '-z', '--full-tree', commit).decode('utf-8').split('\0')[:-1]:
        about, path = row.split('\t')
        mode, _, blob = about.split()
        if mode not in ('100644', '100755'):
            sys.exit('%s is a link or a submodule. The archives can only contain files' % path)
        listed.append((path, int(mode, 8) & 0o777, blob))
    contents = git('cat-file', '--batch', given=''.join(blob + '\n' for _, _, blob in listed).encode('ascii'))
    files, at = [], 0
    for path, mode, _ in listed:
        begin = contents.index(b'\n', at) + 1
        size = int(contents[at:begin].split()[2])
        files.append((path, mode, contents[begin:begin + size]))
        at = begin + size + 1
    return sorted(files)


def files_in(folder):
    """Returns [(path, mode, content)] for the files of a folder, sorted by path.  Leaves out what running the scripts of
    the folder may have left there: build/ and compiled Python."""
    files = []
    for where, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != '__pycache__' and os.path.join(where, name) !=
                      os.path.join(folder, 'build')]
        for path in (os.path.join(where, name) for name in folders + names):
            if os.path.islink(path) or not (os.path.isfile(path) or os.path.isdir(path)):
                sys.exit('%s is not a file. The archives can only contain files' % path)
        for path in (os.path.join(where, name) for name in names):
            with open(path, 'rb') as f:
                files.append((os.path.relpath(path, folder).replace(os.sep, '/'),
                              0o755 if os.stat(path).st_mode & 0o100 else 0o644, f.read()))
    return sorted(files)


def content_of(files, name):
    """Returns the content of the file of this name."""
    for path, _, content in files:
        if path == name:
            return content
    sys.exit('there is no %s among the files of the release: is this the commit or the folder of a release?' % name)


def wrong(files, tag):
    """Returns a list of lines: the reasons why the files of a commit cannot be released with this tag."""
    header = content_of(files, 'opdispatch.h')
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


def spdx_of(name, version, files, outputs, seconds):
    """Returns the list of what is released, as SPDX 2.3 in JSON: one package, without the files in it."""
    identifier = SOURCE_ID.search(content_of(files, 'opdispatch.h'))
    identifier = identifier.group(1).decode('ascii') if identifier else 'unknown'
    copyright_line = re.search(rb'^Copyright .*$', content_of(files, 'LICENSE'), re.M).group(0).decode('utf-8')
    package = {
        'SPDXID': 'SPDXRef-opdispatch', 'name': 'opdispatch', 'versionInfo': version, 'packageFileName': outputs[0][0],
        'downloadLocation': 'NOASSERTION', 'filesAnalyzed': False, 'primaryPackagePurpose': 'LIBRARY',
        'checksums': [{'algorithm': 'SHA256', 'checksumValue': hashlib.sha256(outputs[0][1]).hexdigest()}],
        'licenseConcluded': LICENCE, 'licenseDeclared': LICENCE,
        'licenseComments': 'The library is MIT OR Unlicense. examples/data/README names the licences of the data.',
        'copyrightText': copyright_line, 'sourceInfo': 'OPD_SOURCE_ID ' + identifier,
        'externalRefs': [{'referenceCategory': 'PACKAGE-MANAGER', 'referenceType': 'purl',
                          'referenceLocator': 'pkg:generic/opdispatch@' + version}]}
    document = {
        'spdxVersion': 'SPDX-2.3', 'dataLicense': 'CC0-1.0', 'SPDXID': 'SPDXRef-DOCUMENT', 'name': name,
        'documentNamespace': 'https://spdx.org/spdxdocs/%s-%s' % (name, identifier),
        'creationInfo': {'created': time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(seconds)),
                         'creators': ['Tool: src/archive.py']},
        'packages': [package],
        'relationships': [{'spdxElementId': 'SPDXRef-DOCUMENT', 'relationshipType': 'DESCRIBES',
                           'relatedSpdxElement': 'SPDXRef-opdispatch'}]}
    return (json.dumps(document, indent=2) + '\n').encode('utf-8')


def signing(key, path):
    """Returns the command that signs a file with a secret key of minisign or signify."""
    with open(key, encoding='utf-8', errors='replace') as f:
        data = f.read().split('\n')[1:2]
    if data and data[0].startswith('RWRC'):                             # "Ed", for Ed25519, and "BK", signify's way to encrypt
        tools, options = ['signify-openbsd', 'signify'], ['-S', '-s', key, '-m', path, '-x', path + '.sig']
    elif data and data[0].startswith('RW'):
        tools, options = ['minisign'], ['-S', '-s', key, '-m', path]
    else:
        sys.exit('%s is no secret key of minisign or signify. Make one: minisign -G -s KEY -p KEY.pub' % key)
    for tool in tools:
        if shutil.which(tool):
            return [tool] + options
    sys.exit('%s is a key of %s, which is not installed: install the package %s' % (key, tools[-1], tools[0]))


def release(files, version, seconds, to, key):
    """Writes the files of the release to the folder `to`.  Returns the text of SHA256SUMS."""
    name = 'opdispatch-' + version
    outputs = [(name + '.tar.gz', tar_of(files, name, seconds)), (name + '.zip', zip_of(files, name, seconds))]
    outputs += [(name + '.spdx.json', spdx_of(name, version, files, outputs, seconds)),
                ('verify.py', content_of(files, 'src/verify.py'))]
    sums = ''.join('%s  %s\n' % (hashlib.sha256(content).hexdigest(), path) for path, content in outputs)
    sign = signing(key, os.path.join(to, 'SHA256SUMS')) if key else None
    os.makedirs(to, exist_ok=True)
    for path, content in outputs + [('SHA256SUMS', sums.encode('ascii'))]:
        with open(os.path.join(to, path), 'wb') as f:
            f.write(content)
    if sign and subprocess.run(sign).returncode != 0:
        sys.exit('%s could not sign %s: see its message above' % (sign[0], os.path.join(to, 'SHA256SUMS')))
    return sums


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('tag', metavar='TAG', nargs='?', help='the tag of the release')
    parser.add_argument('--unpacked', metavar='FOLDER', help='packs this folder again, instead of the files of a tag')
    parser.add_argument('--to', metavar='FOLDER', default='.', help='write the files to this folder')
    parser.add_argument('--site', metavar='FOLDER', default=os.path.join(ROOT, 'build', 'site'),
                        help='the folder of the site; without the option, build/site')
    parser.add_argument('--key', metavar='FILE', help='the secret key that signs SHA256SUMS')
    o = parser.parse_args()
    if bool(o.tag) == bool(o.unpacked):
        parser.error('give a TAG or --unpacked FOLDER')
    if o.unpacked:
        files = files_in(o.unpacked)
        seconds = int(os.environ.get('SOURCE_DATE_EPOCH') or os.stat(os.path.join(o.unpacked, 'opdispatch.h')).st_mtime)
        version = VERSION.search(content_of(files, 'opdispatch.h'))
        if not version:
            sys.exit('%s/opdispatch.h has no line #define OPD_VERSION "..."' % o.unpacked)
        print(release(files, version.group(1).decode('utf-8'), seconds, o.to, o.key), end='')
        return 0
    commit, seconds = commit_of(o.tag)
    files = files_of(commit)
    lines = wrong(files, o.tag)
    if lines:
        sys.exit('\n'.join(lines))
    site = [('site/' + path, mode, content) for path, mode, content in files_in(o.site)] if os.path.isdir(o.site) else []
    sums = release(sorted(files + site), o.tag[1:], seconds, o.to, o.key)
    print('opdispatch-%s, %d files of commit %s and %d of the site:\n%s' % (o.tag[1:], len(files), commit, len(site), sums),
          end='')
    return 0


if __name__ == '__main__':
    try:
        sys.exit(main())
    except OSError as error:
        sys.exit(str(error))
