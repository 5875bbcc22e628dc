#!/usr/bin/env python3
"""Checks a release of opdispatch: that the files are the ones that were released, that the header is joined from the
sources beside it, and that packing the files again makes the same archive.

usage: python3 verify.py opdispatch-VERSION.tar.gz [--key FILE]    the archive; SHA256SUMS lies in the same folder
       python3 src/verify.py [FOLDER] [--key FILE]                 the unpacked archive; SHA256SUMS lies beside its folder
       ... --sums FILE                                             SHA256SUMS lies elsewhere
       ... --repository FOLDER                                     also writes the archives from the tag of this repository

Without FOLDER, the script checks the folder from which it is run.  FILE is the public key of the project, for minisign
or signify.  Take it from another place than the archive: whoever changes an archive can change the files beside it, too.

The checks: signature (of SHA256SUMS), checksums, joined (opdispatch.h and opdispatch_cuda.cu are what src/join.py
writes), identifier (OPD_SOURCE_ID in the header is that of src/), list (the .spdx.json beside SHA256SUMS names the same
version, identifier and archive), reproduced (the archive, byte for byte).  The script needs Python 3.6 or newer, and
minisign or signify for the signature.  "joined" and "reproduced" run scripts of the archive, after the signature and
the checksums have passed.

Prints "ok NAME", "FAIL NAME: why" or "skip NAME: why" for each check.  The last line is "N passed, N failed, N skipped".
The status is 0 if no check failed.  A skipped check proves nothing: read why it was skipped.
"""
import argparse
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

SUMS = 'SHA256SUMS'
JOINED = ('files.txt', 'join.py', 'printing.py')        # files in src/ itself from which the header is made
counts = {'ok': 0, 'FAIL': 0, 'skip': 0}


def say(word, name, why=''):
    counts[word] += 1
    print('%s %s%s' % (word, name, ': ' + why if why else ''))


def end():
    print('%d passed, %d failed, %d skipped' % (counts['ok'], counts['FAIL'], counts['skip']))
    sys.exit(1 if counts['FAIL'] else 0)


def read(path):
    with open(path, 'rb') as f:
        return f.read()


def digest(data):
    return hashlib.sha256(data).hexdigest()


def run(command, **more):
    """Runs a command.  Returns its status and what it prints."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, **more)
    return done.returncode, done.stdout.decode('utf-8', 'replace').strip()


#-- what was downloaded ------------------------------------------------------------------------------------------------

def check_signature(sums, key):
    """Checks the signature of SHA256SUMS with a public key."""
    if not key:
        say('skip', 'signature', 'no public key was given. So it is not known who made these files: give --key FILE')
        return
    for ending, tools in (('.minisig', ['minisign']), ('.sig', ['signify-openbsd', 'signify'])):
        if os.path.exists(sums + ending):
            break
    else:
        say('FAIL', 'signature', 'there is no %s.minisig and no %s.sig. Download the signature to the same folder' % (sums, sums))
        return
    tool = next((tool for tool in tools if shutil.which(tool)), None)
    if not tool:
        say('FAIL', 'signature', '%s is not installed, so the signature cannot be checked. Install it (Debian: apt-get '
            'install %s)' % (tools[-1], tools[0]))
        return
    status, said = run([tool, '-V', '-p', key, '-m', sums, '-x', sums + ending])
    if status:
        say('FAIL', 'signature', '%s was not signed with this key. Do not use the files. %s says: %s' % (sums, tool, said))
    else:
        say('ok', 'signature')


def sums_of(path):
    """Returns {name: checksum} of a file SHA256SUMS, or None if a line has another form."""
    found = {}
    for line in read(path).decode('utf-8', 'replace').splitlines():
        match = re.fullmatch(r'([0-9a-f]{64}) [ *]([^/\\]+)', line)
        if not match:
            return None
        found[match.group(2)] = match.group(1)
    return found


def check_checksums(sums, archive):
    """Checks the files of the release that lie beside SHA256SUMS.  Returns {name: checksum}."""
    listed = sums_of(sums)
    if not listed:
        say('FAIL', 'checksums', '%s %s. Download it again' %
            (sums, 'is empty' if listed == {} else 'has a line that is not "CHECKSUM  NAME"'))
        return {}
    if archive and os.path.basename(archive) not in listed:
        say('FAIL', 'checksums', '%s does not list %s. Do both files belong to one release?' % (sums, os.path.basename(archive)))
        return listed
    paths = {name: os.path.join(os.path.dirname(sums), name) for name in listed}
    if archive:
        paths[os.path.basename(archive)] = archive
    there = [name for name in listed if os.path.exists(paths[name])]
    wrong = [name for name in there if digest(read(paths[name])) != listed[name]]
    if wrong:
        say('FAIL', 'checksums', 'another content than was released: %s. Do not use it, download it again' % ', '.join(wrong))
    elif there:
        say('ok', 'checksums')
    else:
        say('skip', 'checksums', 'none of the files that %s lists lies beside it' % sums)
    return listed


def unpack(archive, to):
    """Unpacks the archive into the folder `to`.  Returns the folder of the files in it, or ends the script."""
    files, seconds = [], 0
    if archive.endswith('.zip'):
        with zipfile.ZipFile(archive) as packed:
            for entry in packed.infolist():
                files.append((entry.filename, entry.external_attr >> 16, packed.read(entry)))
    else:
        with tarfile.open(archive) as packed:
            for entry in packed:
                if not entry.isfile():
                    say('FAIL', 'unpacked', '%s in %s is not a file' % (entry.name, archive))
                    end()
                files.append((entry.name, entry.mode, packed.extractfile(entry).read()))
                seconds = entry.mtime
    tops = {path.split('/')[0] for path, _, _ in files}
    if len(tops) != 1 or any('..' in path.split('/') or path.startswith('/') or '\\' in path for path, _, _ in files):
        say('FAIL', 'unpacked', '%s has files outside of one folder. It is no archive of a release' % archive)
        end()
    for path, mode, content in files:
        path = os.path.join(to, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'wb') as f:
            f.write(content)
        os.chmod(path, 0o755 if mode & 0o100 else 0o644)
        if seconds:
            os.utime(path, (seconds, seconds))
    return os.path.join(to, tops.pop())


#-- what is in the archive ---------------------------------------------------------------------------------------------

def check_joined(folder):
    status, said = run([sys.executable, '-B', os.path.join(folder, 'src', 'join.py'), '--check'])
    if status:
        say('FAIL', 'joined', 'the joined files are not what src/ joins to:\n' + said)
    else:
        say('ok', 'joined')


def source_id(folder):
    """Returns the identifier of src/, computed as src/join.py does, but not by code of the archive."""
    src = os.path.join(folder, 'src')
    paths = list(JOINED)
    for where, folders, names in os.walk(src):
        folders[:] = [name for name in folders if name != '__pycache__']
        if where != src:
            paths += [os.path.relpath(os.path.join(where, name), src).replace(os.sep, '/') for name in names]
    lines = ['%s  %s\n' % (digest(read(os.path.join(src, path))), path) for path in sorted(paths)]
    return digest(''.join(lines).encode('utf-8'))[:16]


def macro(folder, name):
    """Returns the text of a macro of the header, or None."""
    found = re.search(rb'^#define %s "([^"\n]*)"$' % name.encode('ascii'), read(os.path.join(folder, 'opdispatch.h')), re.M)
    return found.group(1).decode('utf-8') if found else None


def check_identifier(folder):
    said, computed = macro(folder, 'OPD_SOURCE_ID'), source_id(folder)
    if said != computed:
        say('FAIL', 'identifier', 'OPD_SOURCE_ID of opdispatch.h is "%s", but src/ has the identifier %s' % (said, computed))
    else:
        say('ok', 'identifier (%s)' % said)


def check_list(folder, where, listed):
    """The .spdx.json beside SHA256SUMS agrees with the header and the checksums."""
    name = 'opdispatch-%s.spdx.json' % macro(folder, 'OPD_VERSION')
    path = os.path.join(where, name)
    if not os.path.exists(path):
        say('skip', 'list', 'there is no %s beside %s' % (name, SUMS))
        return
    try:
        package = json.loads(read(path).decode('utf-8'))['packages'][0]
        file, sums = package['packageFileName'], [row['checksumValue'] for row in package['checksums']]
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        say('FAIL', 'list', '%s is no list of a release in the form SPDX. Download it again' % name)
        return
    want = {'packageFileName': 'opdispatch-%s.tar.gz' % macro(folder, 'OPD_VERSION'),
            'versionInfo': macro(folder, 'OPD_VERSION'), 'sourceInfo': 'OPD_SOURCE_ID %s' % macro(folder, 'OPD_SOURCE_ID')}
    wrong = ['%s is "%s", not "%s"' % (key, package.get(key), value) for key, value in want.items() if package.get(key) != value]
    if listed.get(file) not in sums:
        wrong.append('the checksum of %s is another one than in %s' % (file, SUMS))
    say(*('FAIL', 'list', '%s: %s' % (name, '; '.join(wrong))) if wrong else ('ok', 'list'))


def compare(name, packed, listed, where):
    """Compares an archive that was packed again with the released one.  Returns why they differ, or ''."""
    if name not in listed:
        return '%s does not list %s' % (SUMS, name)
    if digest(read(packed)) == listed[name]:
        return ''
    released = os.path.join(where, name)
    if name.endswith('.gz') and os.path.exists(released) and gzip.decompress(read(released)) == gzip.decompress(read(packed)):
        print('(%s: the same .tar, which this zlib compresses to other bytes)' % name)
        return ''
    return '%s has other bytes after it was packed again' % name


def check_reproduced(name, command, to, listed, where, **more):
    """Packs the archives again with a command, and compares them with the checksums."""
    status, said = run([sys.executable, '-B'] + command + ['--to', to], **more)
    if status:
        say('FAIL', name, 'packing fails: ' + said)
        return
    archives = sorted(file for file in os.listdir(to) if file.endswith(('.tar.gz', '.zip')))
    wrong = [why for why in (compare(file, os.path.join(to, file), listed, where) for file in archives) if why]
    if wrong:
        say('FAIL', name, '; '.join(wrong) + '. Was a file changed, added or removed? Unpack the archive again, and compare '
            'both folders with diff -r. Another version of zlib can also be the reason: then check the .tar.gz itself')
    else:
        say('ok', name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('what', nargs='?', metavar='ARCHIVE or FOLDER', help='the archive, or the folder of its files')
    parser.add_argument('--key', metavar='FILE', help='the public key of the project')
    parser.add_argument('--sums', metavar='FILE', help='the file SHA256SUMS')
    parser.add_argument('--repository', metavar='FOLDER', help='a repository with the tag of the version')
    o = parser.parse_args()
    what = o.what or os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if not os.path.exists(what):
        sys.exit('there is no %s: give the archive, or the folder of the unpacked archive' % what)
    archive = what if os.path.isfile(what) else None
    where = os.path.dirname(os.path.abspath(what))
    sums = o.sums or os.path.join(where, SUMS)
    listed = {}
    if os.path.exists(sums):
        check_signature(sums, o.key)
        listed = check_checksums(os.path.abspath(sums), archive)
    elif archive or o.key or o.sums:
        say('FAIL', 'checksums', 'there is no %s. Download it to the folder of the archive, or name it: --sums FILE' % sums)
    else:
        say('skip', 'signature, checksums, list, reproduced', 'there is no %s: name it with --sums FILE' % sums)
    if counts['FAIL']:
        print('The rest was not checked, because it runs scripts of the archive.')
        end()
    with tempfile.TemporaryDirectory(prefix='opd_verify.') as tmp:
        folder = unpack(archive, tmp) if archive else what
        for name in ('opdispatch.h', 'opdispatch_cuda.cu', 'src/join.py', 'src/archive.py'):
            if not os.path.exists(os.path.join(folder, name)):
                sys.exit('%s has no %s: it is no release of opdispatch' % (what, name))
        check_joined(folder)
        check_identifier(folder)
        if listed:
            beside = os.path.dirname(os.path.abspath(sums))
            check_list(folder, beside, listed)
            again = [os.path.join(folder, 'src', 'archive.py'), '--unpacked', folder]
            if archive and archive.endswith('.zip') and 'SOURCE_DATE_EPOCH' not in os.environ:
                say('skip', 'reproduced', 'a .zip does not have the exact time of its files: check the .tar.gz, or set '
                    'SOURCE_DATE_EPOCH to the time of the tagged commit')
            else:
                check_reproduced('reproduced', again, os.path.join(tmp, 'again'), listed, beside)
            if o.repository:
                again = [os.path.join(o.repository, 'src', 'archive.py'), 'v%s' % macro(folder, 'OPD_VERSION')]
                check_reproduced('reproduced from the tag', again, os.path.join(tmp, 'from_tag'), listed, beside)
    end()


if __name__ == '__main__':
    try:
        main()
    except (OSError, EOFError, ValueError, KeyError, tarfile.TarError, zipfile.BadZipFile) as error:
        print('FAIL: %s' % error)
        sys.exit(1)
