#!/usr/bin/env python3
"""Writes the documents as HTML with a search: build/site, a folder that any server of files can serve.

usage: python3 examples/site/build.py [--to FOLDER]

Needs a package (python3 -m pip install -r examples/site/requirements.txt), and no network.  The pages are the Markdown
files of the repository, as they are on GitHub.  A copy of them is changed where GitHub differs from the generator:
links to other files lead to copies of these files, and a name such as `examples/digits.c` becomes a link.  The menu has
the order of the lists in examples/guide.md and examples/guide/reference/README.md.  If the page in examples/web was
built, it is part of the site; else its name is printed.
"""
import argparse
import glob
import importlib.util
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PAGES = ['README.md', 'examples/*.md', 'examples/guide/*.md', 'examples/guide/reference/*.md', 'bench/*.md',
         'bench/tables/*.md', 'src/README.md', 'tests/*.md']
GUIDE, REFERENCE = 'examples/guide.md', 'examples/guide/reference/'
# Settings of single pages: the search leaves out lists of names; wide code needs the place of the table of contents.
NO_SEARCH = 'search: { exclude: true }'
SETTINGS = {REFERENCE + 'index.md': NO_SEARCH, REFERENCE + 'operators.md': NO_SEARCH + '\nhide: [toc]',
            'examples/guide/cheat-sheet.md': 'hide: [toc]'}
WEB = ['examples/web/index.html', 'examples/web/worker.js', 'examples/web/digits_web.js',
       'examples/web/digits_web.wasm', 'examples/data/digits.txt']
NEEDLESS = ['sitemap.xml', '404.html', 'assets/stylesheets/classic', 'assets/images/favicon.png']
STATIC = ['site.css', 'icon.svg', 'iframe-worker.js']
PICTURE = 'examples/guide/call.svg'


def read(name):
    with open(os.path.join(ROOT, name), encoding='utf-8') as f:
        return f.read()


def exists(name):
    return os.path.exists(os.path.join(ROOT, name))


class Site:
    """The copy of the pages in the folder `to`, from which the generator makes the site."""

    def __init__(self, to):
        self.to, self.pages = to, sorted(os.path.relpath(path, ROOT).replace(os.sep, '/') for pattern in PAGES
                                         for path in glob.glob(os.path.join(ROOT, pattern)))
        self.has_web = all(exists(name) for name in WEB)

    def write(self, name, text):
        path = os.path.join(self.to, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)

    def copy(self, name, as_name):
        os.makedirs(os.path.dirname(os.path.join(self.to, as_name)), exist_ok=True)
        shutil.copyfile(os.path.join(ROOT, name), os.path.join(self.to, as_name))

    def place(self, name):
        """Returns the name that a file has in the site, or None if there is no such file.  Copies files that are no
        pages: code as text, which browsers show."""
        if name == REFERENCE + 'index.md':
            return REFERENCE + 'names.md'                        # a folder has one first page, which is its README.md
        if name in self.pages:
            return name
        if os.path.isdir(os.path.join(ROOT, name)):
            if name + '/README.md' not in self.pages:
                self.write(name + '/README.md', '# %s\n\n' % name + ''.join(
                    '- [%s](%s)\n' % (title(page), posixpath.basename(page)) for page in self.inside(name)))
            return name + '/README.md'
        if not exists(name):
            return None
        as_name = name if name.endswith(('.svg', '.png')) or (name == WEB[0] and self.has_web) else name + '.txt'
        self.copy(name, as_name)
        return as_name

    def inside(self, folder):
        return [page for page in self.pages if posixpath.dirname(page) == folder]

    def link(self, page, target):
        """Returns a link of a page as the site has it."""
        path, mark, anchor = target.partition('#')
        if re.match(r'\w+:', target) or not path:
            return target
        place = self.place(posixpath.normpath(posixpath.join(posixpath.dirname(page), path)))
        if not place:
            sys.exit('%s has a link to %s, which does not exist' % (page, target))
        return posixpath.relpath(place, posixpath.dirname(page) or '.') + mark + anchor

    def named(self, page, name):
        """Returns a file name of a page as code, with a link if it names an example."""
        for folder in ['.', 'examples'] if page == 'examples/README.md' else ['.']:
            path = posixpath.normpath(posixpath.join(folder, name.rstrip('/')))
            if path == 'examples/web':
                path = WEB[0]
            if path.startswith('examples/') and os.path.isfile(os.path.join(ROOT, path)):
                return '[`%s`](%s)' % (name, self.link(page, posixpath.relpath(path, posixpath.dirname(page) or '.')))
        return '`%s`' % name

    def text(self, page, text):
        """Returns a part of a page between blocks of code, in the generator's Markdown."""
        text = re.sub(r'\]\(([^()\s]+)\)', lambda m: '](%s)' % self.link(page, m.group(1)), text)
        text = re.sub(r'(?<!\[)`([\w./-]+)`(?!\])', lambda m: self.named(page, m.group(1)), text)
        text = re.sub(r'^  (?=- )', '    ', text, flags=re.M)                    # lists in lists
        text = re.sub(r'^((?!- |\d+\. | |\n).*\n)(?=- )', r'\1\n', text, flags=re.M)     # lists below a paragraph
        return re.sub(r'\\$', '  ', text, flags=re.M)                            # line breaks

    def page(self, page):
        text = read(page)
        if page == 'README.md':
            # The picture follows the colours that the reader chooses only if it is a part of the page.
            text = re.sub(r'^!\[.*\]\(%s\)\n\n' % PICTURE, '', text, count=1, flags=re.M)
            head, first, rest = text.split('\n\n', 2)
            text = '%s\n\n%s\n\n<div>\n%s</div>\n\n%s' % (head, first, read(PICTURE), rest)
        parts = re.split(r'^(```.*?^```$|<div>.*?^</div>$)', text, flags=re.M | re.S)
        parts[::2] = [self.text(page, part) for part in parts[::2]]
        head = '---\n%s\n---\n\n' % SETTINGS[page] if page in SETTINGS else ''
        self.write(self.place(page), head + ''.join(parts))


def title(page):
    return re.search(r'^# (.*)', read(page), re.M).group(1).replace('`', '')


def linked(page, text, site):
    """Returns the menu of the pages to which a text links, in its order."""
    folder, found = posixpath.dirname(page), re.findall(r'^(?:- |\| )\[([^\]]*)\]\(([^)#]*)\)', text, re.M)
    return [{label[0].upper() + label[1:]: site.place(posixpath.normpath(posixpath.join(folder, to)))}
            for label, to in found]


def menu(site):
    """Returns the menu: lists of {title: page or list}."""
    guide, reference = read(GUIDE).split('## Topics')[0], read(REFERENCE + 'README.md')
    parts = re.split(r'^(?!- )(\S.*):\n\n(?=- )', guide, flags=re.M)
    functions, operators = reference.split('## Operators')
    more = linked(GUIDE, parts[-1], site)
    web = [{'Digits in a browser': WEB[0]}] if site.has_web else []
    return [
        {'Home': 'README.md'},
        {'Guide': [GUIDE] + [{head: linked(GUIDE, text, site)} for head, text in zip(parts[1:-2:2], parts[2:-2:2])] +
         [{'More': [one for one in more if not list(one.values())[0].endswith('README.md')]}]},
        {'Examples': ['examples/README.md'] + web},
        {'Reference': [REFERENCE + 'README.md', {'All functions, types and macros': REFERENCE + 'names.md'},
                       {'All operators': REFERENCE + 'operators.md'},
                       {'Functions': linked(REFERENCE, functions, site)},
                       {'Operators': linked(REFERENCE, operators, site)}]},
        {'Speed': ['bench/README.md', {'Tables': site.inside('bench/tables')}]},
        {'Contributing': ['src/README.md', 'tests/README.md', 'tests/coverage.md']}]


def named_in(value):
    """Returns the pages of a menu."""
    if isinstance(value, str):
        return [value]
    return [page for one in (value.values() if isinstance(value, dict) else value) for page in named_in(one)]


def toml(value):
    if isinstance(value, dict):
        return '{ %s }' % ', '.join('%s = %s' % (json.dumps(key), toml(one)) for key, one in value.items())
    return '[%s]' % ', '.join(map(toml, value)) if isinstance(value, list) else json.dumps(value)


def prepare(work):
    """Writes what the generator needs into the folder `work`: the pages, and the settings with the menu."""
    site = Site(os.path.join(work, 'pages'))
    for page in site.pages:
        site.page(page)
    for name in WEB if site.has_web else []:
        site.copy(name, name)
    for name in STATIC:
        shutil.copy(os.path.join(HERE, name), site.to)
    pages = menu(site)
    missing = {site.place(page) for page in site.pages} - set(named_in(pages))
    if missing:
        sys.exit('no list that makes the menu has %s: see examples/site/build.py --help' % ', '.join(sorted(missing)))
    with open(os.path.join(HERE, 'zensical.toml'), encoding='utf-8') as f:
        settings = f.read().replace('[project]\n', '[project]\nnav = %s\n' % toml(pages), 1)
    with open(os.path.join(work, 'zensical.toml'), 'w', encoding='utf-8') as f:
        f.write(settings)
    if not site.has_web:
        print('skip examples/web: it is not built (see the first comment of examples/web/digits_web.c)')


def generate(work):
    """Runs the generator.  If a page is wrong, prints what it says, and ends."""
    done = subprocess.run([sys.executable, '-m', 'zensical', 'build', '--strict'], cwd=work, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        sys.exit(re.sub(r'\x1b\[[0-9;]*m', '', done.stdout.split('Traceback')[0]))        # without colours


def smaller(path):
    """Leaves out the indentation and empty lines of a page, which are nearly half of it, but not those of code."""
    with open(path, encoding='utf-8') as f:
        parts = re.split(r'(<pre.*?</pre>)', f.read(), flags=re.S)
    parts[::2] = [re.sub(r'\s*\n\s*', '\n', part) for part in parts[::2]]
    with open(path, 'w', encoding='utf-8') as f:
        f.write(''.join(parts))


def finish(made):
    """Removes needless files, and makes the pages smaller.  Returns the number of pages."""
    for name in NEEDLESS:
        path = os.path.join(made, name)
        shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
    pages = glob.glob(os.path.join(made, '**', '*.html'), recursive=True)
    for path in pages:
        smaller(path)
    return len(pages)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--to', metavar='FOLDER', default=os.path.join(ROOT, 'build', 'site'))
    to = os.path.abspath(parser.parse_args().to)
    if not importlib.util.find_spec('zensical'):
        sys.exit('%s has no package zensical. Install it: python3 -m pip install -r examples/site/requirements.txt' %
                 sys.executable)
    work = to + '.pages'
    shutil.rmtree(work, ignore_errors=True)
    prepare(work)
    generate(work)
    count = finish(os.path.join(work, 'site'))
    shutil.rmtree(to, ignore_errors=True)
    os.rename(os.path.join(work, 'site'), to)
    shutil.rmtree(work)
    print('%s: %d pages' % (os.path.relpath(to), count))


if __name__ == '__main__':
    main()
