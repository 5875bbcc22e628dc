#!/usr/bin/env python3
"""Writes the recipe of a package manager for an archive of a release, with its version and checksum.

usage: python3 examples/packaging/write.py RECIPE ARCHIVE [--to FOLDER] [--url ADDRESS] [--maintainer 'NAME <ADDRESS>']

RECIPE is the name of a folder beside this script: debian, vcpkg, conan or meson.  ARCHIVE is opdispatch-VERSION.tar.gz.
The recipe is written to FOLDER/RECIPE.  In its files, these words are replaced:

    @VERSION@       the version, such as 0.9.0
    @COMPATIBLE@    the numbers that compatible versions share, such as 0.9: see examples/guide/releases.md
    @ARCHIVE@       the name of the archive;  @SHA256@, @SHA512@: its checksums
    @URL@           the address from which package managers download the archive; without --url, the file itself
    @DATE@          the time of the files in the archive;  @MAINTAINER@: who answers for the package; without
                    --maintainer, $DEBFULLNAME and $DEBEMAIL

examples/guide/releases.md has the commands that build a package from each recipe.
"""
import argparse
import email.utils
import hashlib
import os
import re
import sys
import tarfile

HERE = os.path.dirname(os.path.abspath(__file__))
RECIPES = sorted(name for name in os.listdir(HERE) if os.path.isdir(os.path.join(HERE, name)) and name != '__pycache__')


def read(path):
    with open(path, 'rb') as f:
        return f.read()


def words_of(archive, url, maintainer):
    """Returns {word: text} for an archive."""
    content = read(archive)
    with tarfile.open(archive) as packed:
        header = next((entry for entry in packed if entry.name.endswith('/opdispatch.h') and entry.name.count('/') == 1), None)
        if header is None:
            sys.exit('%s has no opdispatch.h: give the archive of a release, opdispatch-VERSION.tar.gz' % archive)
        version = re.search(r'^#define OPD_VERSION "(.*)"$', packed.extractfile(header).read().decode('utf-8'), re.M).group(1)
    major, minor = version.split('.')[:2]
    return {'VERSION': version, 'COMPATIBLE': '0.' + minor if major == '0' else major, 'ARCHIVE': os.path.basename(archive),
            'SHA256': hashlib.sha256(content).hexdigest(), 'SHA512': hashlib.sha512(content).hexdigest(),
            'URL': url or 'file://' + os.path.abspath(archive), 'DATE': email.utils.formatdate(header.mtime),
            'MAINTAINER': maintainer}


def write(recipe, words, to):
    """Writes the files of a recipe.  Returns their names."""
    def word(match):
        if match.group(1) not in words:
            sys.exit('%s has the word %s, which this script does not know: it knows %s' % (
                recipe, match.group(0), ', '.join('@%s@' % known for known in words)))
        return words[match.group(1)]

    def filled(text):
        return re.sub('@([A-Z0-9]+)@', word, text)
    written = []
    for folder, _, names in os.walk(os.path.join(HERE, recipe)):
        for path in (os.path.join(folder, name) for name in names):
            target = os.path.join(to, filled(os.path.relpath(path, HERE)))
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, 'wb') as f:
                f.write(filled(read(path).decode('utf-8')).encode('utf-8'))
            os.chmod(target, 0o755 if os.stat(path).st_mode & 0o100 else 0o644)
            written.append(target)
    return sorted(written)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('recipe', choices=RECIPES, metavar='RECIPE')
    parser.add_argument('archive', metavar='ARCHIVE')
    parser.add_argument('--to', metavar='FOLDER', default='.')
    parser.add_argument('--url', metavar='ADDRESS')
    parser.add_argument('--maintainer', metavar='NAME')
    o = parser.parse_args()
    if not o.maintainer and os.environ.get('DEBFULLNAME') and os.environ.get('DEBEMAIL'):
        o.maintainer = '%s <%s>' % (os.environ['DEBFULLNAME'], os.environ['DEBEMAIL'])
    if o.recipe == 'debian' and not o.maintainer:
        parser.error("a package of Debian needs a person who answers for it: give --maintainer 'NAME <ADDRESS>'")
    print('\n'.join(write(o.recipe, words_of(o.archive, o.url, o.maintainer), o.to)))
    return 0


if __name__ == '__main__':
    try:
        sys.exit(main())
    except (OSError, tarfile.TarError) as error:
        sys.exit(str(error))
