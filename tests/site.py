#!/usr/bin/env python3
"""Uses the site that examples/site/build.py wrote in headless Chromium, for tests/site.sh.

    site.py FOLDER NAME...     runs these checks on the site in FOLDER; `files` and `links` need no browser

Prints a line for each check: its name, and what is wrong.
"""
import glob
import html.parser
import os
import re
import sys
import time
import urllib.parse

import web
from web import need

# What a reader types into the search, and the place to which the first result leads.
SEARCHES = {
    'opd_softmax': 'examples/guide/reference/operators_reduce.html#atensoftmaxint',
    'dead tensor': 'examples/guide/tensors.html#dead-tensors',
    'from numpy': 'examples/guide/tensors.html#from-numpy',
    'opd_adam_new': 'examples/guide/reference/training.html#opd_sgd_new-opd_adam_new-opd_adamw_new',
    'cheat sheet': 'examples/guide/cheat-sheet.html',
    'OPD_SCOPE': 'examples/guide/reference/scopes.html',
}
MOST_BYTES = 18_000_000


class Links(html.parser.HTMLParser):
    """The links, anchors and resources of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors, self.loads = [], {''}, []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.anchors.update(attrs[name] for name in ('id', 'name') if attrs.get(name))
        if tag == 'a' and attrs.get('href'):
            self.links.append(attrs['href'])
        elif tag == 'link' and attrs.get('rel') in ('next', 'prev'):
            self.links.append(attrs['href'])
        elif tag in ('link', 'script', 'img', 'iframe', 'source'):
            self.loads += [attrs[name] for name in ('href', 'src') if attrs.get(name)]


class Site:
    def __init__(self, folder):
        self.folder, self.driver, self.origin, self.said = folder, None, None, []
        self.server = web.serve(folder)
        self.origin = 'http://127.0.0.1:%d/' % self.server.server_address[1]

    def pages(self):
        paths = glob.glob(os.path.join(self.folder, '**', '*.html'), recursive=True)
        return sorted(os.path.relpath(path, self.folder) for path in paths)

    def read(self, page):
        with open(os.path.join(self.folder, page), encoding='utf-8') as f:
            return f.read()

    def js(self, text, *args):
        return self.driver.execute_script(text, *args)

    def open(self, page, width=1200, height=900, dark=False, origin=None):
        self.driver = self.driver or web.browser()
        call = self.driver.execute_cdp_cmd
        call('Emulation.setDeviceMetricsOverride',
             {'width': width, 'height': height, 'deviceScaleFactor': 1, 'mobile': width < 600})
        call('Emulation.setEmulatedMedia',
             {'features': [{'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'}]})
        self.driver.get((origin or self.origin) + page)

    def only_own_requests(self, page):
        """The page asks no other host, and the console has no error."""
        asked = self.js("return performance.getEntriesByType('resource').map(entry => entry.name)")
        foreign = [name for name in asked if not name.startswith((self.origin, 'data:', 'blob:', 'file:'))]
        need(not foreign, '%s asks other hosts: %s' % (page, foreign))
        said = [entry['message'] for entry in self.driver.get_log('browser') if entry['level'] == 'SEVERE']
        need(not said, 'on %s, the console says %s' % (page, said[:3]))

    def until(self, holds, what, seconds=20):
        end = time.time() + seconds
        while True:
            got = holds()
            if got:
                return got
            need(time.time() < end, what)
            time.sleep(0.05)

    def search(self, text):
        """Types a text into the search, and clicks the first result.  Returns the place to which it leads."""
        # The dialog of the search is in a shadow tree.
        tree = "const root = [...document.querySelectorAll('*')].find(e => e.shadowRoot)?.shadowRoot; "
        self.js("document.querySelector('.md-search__button').click()")
        there = tree + "return root && root.querySelector('input')"
        field = self.until(lambda: self.js(there), 'no field for the search')
        field.send_keys(text)
        # Results come after each key.  A server's page writes the text into their addresses, a file's does not.
        typed = text if self.driver.current_url.startswith('http') else ''
        if not typed:
            time.sleep(2)
        click = ("const a = root.querySelector('ol a');"
                 "return a && new URL(a.href).searchParams.get('h') === arguments[0] && (a.click(), true)")
        self.until(lambda: self.js(tree + click, typed), 'no result for ' + text)
        self.until(lambda: '?h=' in self.driver.current_url, 'the first result for %s leads nowhere' % text)
        return re.sub(r'\?[^#]*', '', self.driver.current_url)


def check_files(site):
    files = [path for path in glob.glob(os.path.join(site.folder, '**'), recursive=True) if os.path.isfile(path)]
    size = sum(map(os.path.getsize, files))
    print('size: %d pages, %d files, %d bytes' % (len(site.pages()), len(files), size), file=sys.stderr)
    need(size <= MOST_BYTES, '%d bytes, at most %d' % (size, MOST_BYTES))
    needless = [path for path in files if path.endswith(('.map', '.md', '.toml'))]
    need(not needless, 'needless files: %s' % needless[:5])


def check_links(site):
    """No broken link: the targets and anchors of all links exist.  Each page is the target of a link, and loads nothing
    from other hosts."""
    pages = {page: Links(site.read(page)) for page in site.pages()}
    wrong, reached = [], {'index.html'}
    for page, found in pages.items():
        for link in found.links + found.loads:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme in ('http', 'https', 'data', 'mailto'):
                if link in found.loads and parts.scheme != 'data':
                    wrong.append('%s loads %s' % (page, link))
                continue
            path = urllib.parse.unquote(parts.path)
            target = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
            if os.path.isdir(os.path.join(site.folder, target)):
                target = os.path.join(target, 'index.html')
            if not os.path.isfile(os.path.join(site.folder, target)):
                wrong.append('%s has a link to %s, which does not exist' % (page, link))
            elif target in pages and urllib.parse.unquote(parts.fragment) not in pages[target].anchors:
                wrong.append('%s has a link to %s: no such section' % (page, link))
            if target != page:
                reached.add(target)
    wrong += ['no page has a link to ' + page for page in pages if page not in reached]
    need(not wrong, '%d: %s' % (len(wrong), '; '.join(wrong[:5])))
    need(len(pages) > 90, 'only %d pages' % len(pages))


def check_search(site):
    for text, wanted in SEARCHES.items():
        site.open('index.html')
        place = site.search(text)
        need(place.startswith(site.origin + wanted), 'the first result for "%s" is %s, not %s' % (text, place, wanted))
        if '#' in wanted:
            site.until(lambda: site.js("const r = document.getElementById(decodeURIComponent(location.hash.slice(1)))"
                                       ".getBoundingClientRect(); return r.top >= 0 && r.top < innerHeight"),
                       'the first result for "%s" does not show its section' % text)
        site.only_own_requests(place)


def check_search_without_server(site):
    folder = 'file://' + os.path.abspath(site.folder) + '/'
    site.open('examples/guide.html', origin=folder)
    place = site.search('from numpy')
    need(place == folder + SEARCHES['from numpy'], 'opened as a file, the first result for "from numpy" is ' + place)
    site.only_own_requests(place)


def check_picture(site):
    for width, height in ((1200, 900), (375, 812)):
        site.open('index.html', width=width, height=height)
        box = site.js("const r = document.querySelector('svg.call').getBoundingClientRect(); return [r.top, r.bottom]")
        need(0 < box[0] and box[1] <= height, 'the picture is at %s of a screen of %d' % (box, height))
        size = site.js("const s = document.querySelector('svg.call'); return s.clientWidth / s.viewBox.baseVal.width *"
                       "parseFloat(getComputedStyle(s).fontSize)")
        need(size >= 12, 'the text of the picture has %.1f pixels' % size)
    names = site.js("const s = document.querySelector('svg.call'); return s.getAttribute('aria-labelledby').split(' ')"
                    ".map(id => document.getElementById(id).textContent)")
    need(all(names), 'the picture has no text for those who do not see it')


def check_phone(site):
    """No page is wider than a phone.  To save time, the contents of each page are put into one page."""
    site.open('examples/index.html', width=375, height=812)
    found = site.driver.execute_async_script("""
        const [pages, done] = arguments, here = document.querySelector('article'), wide = {};
        (async () => {
            for (const page of pages) {
                const text = await (await fetch('/' + page)).text();
                const article = new DOMParser().parseFromString(text, 'text/html').querySelector('article');
                if (!article) { continue; }                          // the page in examples/web has its own test
                for (const picture of article.querySelectorAll('img')) {
                    picture.src = new URL(picture.getAttribute('src'), location.origin + '/' + page);
                }
                here.innerHTML = article.innerHTML;
                const width = Math.max(document.documentElement.scrollWidth, document.body.scrollWidth);
                wide[page] = Math.max(width, here.getBoundingClientRect().right);
            }
            done(wide);
        })();""", site.pages())
    need(len(found) > 90, 'only %d pages' % len(found))
    wrong = ['%s: %d' % pair for pair in found.items() if pair[1] > 375]
    need(not wrong, 'wider than 375: %s' % wrong[:5])
    for page in ('index.html', 'examples/guide/macros.html', 'examples/guide/reference/operators_reduce.html'):
        site.open(page, width=375, height=812)
        wide = site.js('return document.documentElement.scrollWidth')
        need(wide <= 375, '%s is %d wide in a window of 375' % (page, wide))
        site.only_own_requests(page)


def check_dark(site):
    colours = ("const bright = c => c.match(/[\\d.]+/g).slice(0, 3).reduce((sum, x) => sum + Number(x), 0);"
               "const of = (e, name) => bright(getComputedStyle(e)[name]);"
               "const e = document.querySelector.bind(document);"
               "return [of(document.body, 'backgroundColor'), of(e('.md-typeset p'), 'color'),"
               "of(e('.call rect'), 'fill'), of(e('.call text'), 'fill'),"
               "of(e('.md-typeset pre > code'), 'backgroundColor'), of(e('.md-typeset pre > code'), 'color')]")

    def shows(dark, what):
        found = site.js(colours)
        for paper, ink in zip(found[::2], found[1::2]):
            need(paper < ink - 250 if dark else paper > ink + 250, '%s: brightness %d on %d' % (what, ink, paper))

    for dark in (False, True):
        site.open('index.html', dark=dark)
        shows(dark, 'a %s system' % ('dark' if dark else 'light'))
    site.open('index.html', dark=False)
    for _ in range(3):                                  # the button goes round: as the system, light, dark
        scheme = site.js("return document.body.getAttribute('data-md-color-scheme')")
        shows(scheme == 'slate', 'chosen by the button, ' + scheme)
        seen = site.js("const next = [...document.querySelectorAll('.md-header__option label')].find(l => !l.hidden);"
                       "next.click(); return document.body.getAttribute('data-md-color-scheme')")
        if seen == 'slate':
            shows(True, 'chosen by the button')
            break
    need(seen == 'slate', 'the button does not choose dark colours')


def check_digits(site):
    """The page that trains in a browser is one of the site, if it was built."""
    page = 'examples/web/index.html'
    site.open('examples/index.html')
    need(site.js("return [...document.links].some(a => a.href.endsWith(arguments[0]))", page), 'no link to ' + page)
    site.open(page)
    site.until(lambda: site.js('return document.body.dataset.state') == 'ready', page + ' does not load', 60)
    site.only_own_requests(page)


def main():
    if sys.argv[1:] in (['-h'], ['--help']):
        print(__doc__)
        return 0
    if len(sys.argv) < 3 or sys.argv[1].startswith('-'):
        print('site.py: needs a folder and names of checks (see --help)', file=sys.stderr)
        return 2
    site = Site(sys.argv[1])
    try:
        for name in sys.argv[2:]:
            web.run_check(name, globals()['check_' + name], site)
    finally:
        if site.driver:
            site.driver.quit()
        site.server.shutdown()
    return 0


if __name__ == '__main__':
    sys.exit(main())
