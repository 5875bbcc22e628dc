#!/usr/bin/env python3
"""Uses the page in examples/web in headless Chromium, for tests/web.sh.

    web.py FOLDER NAME...            runs these checks on the page that was built in FOLDER/examples/web
    web.py FOLDER --picture FILE     trains, draws a digit, and writes a picture of the page; needs Pillow (python3-pil)

Prints a line for each check: its name, and what is wrong.  Each check loads the page anew.
"""
import functools
import http.server
import os
import shutil
import sys
import threading
import time
import traceback

PAGE = 'examples/web/'
DIGITS = {                               # the strokes of a digit, in a square of side 1
    0: [[(.50, .15), (.36, .22), (.30, .40), (.30, .60), (.36, .78), (.50, .85), (.64, .78), (.70, .60), (.70, .40),
         (.64, .22), (.50, .15)]],
    1: [[(.38, .30), (.52, .15), (.52, .85)]],
    2: [[(.32, .30), (.38, .18), (.52, .14), (.64, .20), (.66, .34), (.56, .50), (.42, .66), (.30, .84), (.70, .84)]],
    3: [[(.30, .25), (.40, .17), (.54, .16), (.64, .24), (.62, .38), (.46, .48), (.62, .56), (.68, .70), (.58, .83),
         (.42, .85), (.29, .76)]],
    4: [[(.52, .15), (.30, .58), (.74, .58)], [(.60, .38), (.58, .86)]],
    5: [[(.66, .16), (.38, .16), (.35, .46), (.52, .42), (.66, .52), (.67, .70), (.54, .84), (.34, .80)]],
    6: [[(.60, .14), (.44, .28), (.34, .50), (.34, .70), (.46, .85), (.62, .80), (.66, .64), (.54, .54), (.38, .62)]],
    7: [[(.30, .17), (.70, .17), (.56, .48), (.46, .85)], [(.36, .50), (.66, .50)]],
    8: [[(.52, .48), (.36, .36), (.38, .20), (.52, .14), (.66, .22), (.64, .36), (.50, .48), (.36, .62), (.38, .80),
         (.52, .86), (.66, .78), (.66, .62), (.52, .48)]],
    9: [[(.66, .32), (.54, .46), (.38, .42), (.34, .26), (.46, .15), (.62, .18), (.66, .32), (.65, .60), (.58, .85)]],
}
# Text that the server adds before a file, to simulate browsers that lack something.  The page's address begins with the
# name of the text.
BEFORE = {
    'no_wasm': ('index.html', '<script>delete window.WebAssembly;</script>'),
    'no_simd': ('index.html', '<script>WebAssembly.validate = () => false;</script>'),
    'no_workers': ('index.html', '<script>delete window.Worker;</script>'),
    'no_memory': ('worker.js', 'WebAssembly.instantiateStreaming = WebAssembly.instantiate = async () => {'
                  ' throw new RangeError("WebAssembly.Memory(): could not allocate memory"); };'),
    # From the first message "run" to the third one, memory does not grow and is used up.
    'little_memory': ('worker.js', '''
        const grow = WebAssembly.Memory.prototype.grow;
        let runs = 0, held = [];
        WebAssembly.Memory.prototype.grow = function (pages) {
            if (runs < 3) { throw new RangeError('no memory'); }
            return grow.call(this, pages);
        };
        self.addEventListener('message', event => {
            if (event.data.ask !== 'run') { return; }
            if (++runs === 3) { held.forEach(_free); held = []; return; }
            for (let size = 1 << 22; size >= 1 << 14; size >>= 1) {
                for (let block; (block = _malloc(size)); ) { held.push(block); }
            }
        });'''),
    'no_program': ('digits_web.js', None),
    'no_data': ('digits.txt', None),
    'damaged_data': ('digits.txt', '0123 4\n'),
    'damaged_pixel': ('digits.txt', '0' * 63 + 'z 4\n'),
}


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        name, _, rest = self.path[1:].partition('/')
        if name not in BEFORE:
            return super().do_GET()
        self.path = '/' + rest
        file, text = BEFORE[name]
        path = self.translate_path(self.path)
        path = os.path.join(path, 'index.html') if os.path.isdir(path) else path
        if os.path.basename(path) != file:
            return super().do_GET()
        if text is None:
            return self.send_error(404)
        with open(path, 'rb') as source:
            body = text.encode() + source.read()
        self.send_response(200)
        self.send_header('Content-Type', self.guess_type(path))
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Wrong(Exception):
    pass


def need(condition, text):
    if not condition:
        raise Wrong(text)


class Page:
    def __init__(self, driver, origin):
        self.driver, self.origin = driver, origin

    def open(self, variant='', wait=True, width=1200, height=900, dark=False, scale=1):
        self.size(width, height, scale)
        self.driver.execute_cdp_cmd('Emulation.setEmulatedMedia', {
            'features': [{'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'}]})
        self.driver.get_log('browser')                          # discards older messages
        self.driver.get(self.origin + (variant + '/' if variant else '') + PAGE)
        if wait:
            self.until(lambda: self.state() == 'ready', 60, 'it does not load')

    def size(self, width, height, scale=1):
        self.driver.execute_cdp_cmd('Emulation.setDeviceMetricsOverride', {
            'width': width, 'height': height, 'deviceScaleFactor': scale, 'mobile': width < 600})

    def js(self, text, *args):
        return self.driver.execute_script(text, *args)

    def text(self, id):
        return self.js('return document.getElementById(arguments[0]).innerText', id).replace('\u200b', '')

    def click(self, id):
        element = self.driver.find_element('id', id)
        self.js('arguments[0].scrollIntoView({block: "center"})', element)
        element.click()

    def state(self):
        return self.js('return document.body.dataset.state')

    def trouble(self):
        return self.text('trouble') if self.js("return document.getElementById('trouble').className") else ''

    def until(self, holds, seconds, what):
        end = time.time() + seconds
        while not holds():
            need(time.time() < end,
                 '%s after %d s; state %s, message: %s' % (what, seconds, self.state(), self.trouble()))
            time.sleep(0.05)

    def train(self):
        self.click('start')
        self.until(lambda: self.state() == 'done', 300, 'it has not been trained')

    def steps(self):
        return self.js('return losses.length')

    def test(self):
        text = self.text('test')
        return float(text.split('\u2009')[0]) if '%' in text else None

    def draw(self, digit, kind='mouse'):
        """Draws with the events of a mouse or a finger, and waits for the result."""
        self.click('clear')
        box = self.js("const pad = document.getElementById('pad'); pad.scrollIntoView({block: 'center'});"
                      "const box = pad.getBoundingClientRect(); return [box.left, box.top, box.width]")
        from selenium.webdriver.common.actions.action_builder import ActionBuilder
        from selenium.webdriver.common.actions.pointer_input import PointerInput
        for stroke in DIGITS[digit]:
            actions = ActionBuilder(self.driver, mouse=PointerInput(kind, kind), duration=5)
            pointer = actions.pointer_action
            for i, (x, y) in enumerate(stroke):
                pointer.move_to_location(round(box[0] + x * box[2]), round(box[1] + y * box[2]))
                if i == 0:
                    pointer.pointer_down()
            pointer.pointer_up()
            actions.perform()
        self.until(lambda: self.js('return !busy && !again'), 20, 'no answer')
        return self.text('answer')


#-- checks: each loads the page anew ---------------------------------------------------------------------------------

def check_loads(page):
    page.open()
    page.draw(3)
    page.train()
    said = [entry['message'] for entry in page.driver.get_log('browser')]
    need(not said, 'the console says %s' % said[:3])
    asked = page.js("return performance.getEntriesByType('resource').map(entry => entry.name)")
    foreign = [name for name in asked if not name.startswith((page.origin, 'data:'))]
    need(not foreign, 'it asks other servers: %s' % foreign)
    need('opdispatch 0.' in page.text('about'), 'no version in the footer')


def check_trains(page):
    page.open()
    page.js("window.frames_seen = 0; (function frame() { frames_seen++; requestAnimationFrame(frame); })()")
    page.click('start')
    page.until(lambda: page.steps() > 20, 60, 'no steps')
    page.until(lambda: page.js('return frames_seen') > 5, 10, 'the page is not painted while it trains')
    page.click('start')
    need(page.state() == 'paused', 'Pause does not pause it')
    time.sleep(0.3)
    at = page.steps()
    time.sleep(0.5)
    need(page.steps() == at, 'it trains while it is paused')
    curve = "return document.querySelector('%s .curve').getAttribute('d').length"
    grown = [page.js(curve % chart) for chart in ('#losses', '#accuracies')]
    page.train()
    need(page.steps() == 12 * 23, '%d steps' % page.steps())
    need(all(page.js(curve % chart) > was > 20 for chart, was in zip(('#losses', '#accuracies'), grown)),
         'the curves do not grow')
    need(page.test() >= 95, 'test accuracy %s' % page.test())
    need(page.js("return tests.length") == 12, 'not a test for each epoch')
    need(float(page.text('loss')) < 0.2, 'loss %s' % page.text('loss'))


def check_resets(page):
    page.open()
    page.click('start')
    page.until(lambda: page.steps() > 30, 60, 'no steps')
    first = page.js('return losses.slice(0, 30)')
    page.click('reset')
    page.until(lambda: page.steps() == 0, 10, 'Reset leaves the curve')
    need(page.state() == 'ready' and page.test() is None, 'it is not as it was at the start')
    time.sleep(0.5)
    need(page.steps() == 0, 'it goes on after Reset')
    page.click('start')
    page.until(lambda: page.steps() > 30, 60, 'it does not train again')
    need(page.js('return losses.slice(0, 30)') == first, 'the same seed gives other losses')


def check_draws(page):
    page.open()
    page.train()
    got = {digit: page.draw(digit, 'touch' if digit % 2 else 'mouse') for digit in DIGITS}
    wrong = ['%d as %s' % pair for pair in got.items() if str(pair[0]) != pair[1]]
    need(len(wrong) <= 1, 'it sees ' + ', '.join(wrong))
    page.draw(3)
    shares = page.js("return odds.map(row => parseFloat(row.text.textContent))")
    widths = page.js("return odds.map(row => row.bar.getBoundingClientRect().width)")
    need(abs(sum(shares) - 100) < 1, 'the probabilities add up to %s' % sum(shares))
    need(shares.index(max(shares)) == widths.index(max(widths)) == 3, 'bars %s of %s' % (widths, shares))
    page.click('clear')
    need(page.text('answer') == '', 'Clear leaves an answer')
    page.click('image')
    page.until(lambda: page.text('answer') != '', 10, 'no answer for a test image')
    need('this test image shows a' in page.text('says'), page.text('says'))


def check_filters(page):
    pictures = "return [...document.querySelectorAll('#filters canvas')].map(canvas => canvas.toDataURL())"
    page.open()
    page.until(lambda: page.js('return lastResponses.some(value => value)'), 10, 'no responses')
    before = page.js(pictures)
    need(len(before) == 32 and len(set(before)) > 24,
         '%d pictures, %d of them differ' % (len(before), len(set(before))))
    page.train()
    after = page.js(pictures)
    need(all(a != b for a, b in zip(before[::2], after[::2])), 'a filter looks as it did before the training')


def check_explains(page):
    page.open()
    page.until(lambda: page.text('path'), 10, 'no path')
    running = "return [...document.querySelectorAll('#path .runs b')].map(name => name.textContent)"
    for button, keys in enumerate((['AutogradCPU', 'CPU'], ['CPU'], ['Meta'])):
        page.js("document.getElementById('how').children[arguments[0]].click()", button)
        page.until(lambda: page.js(running) == keys, 10, 'with button %d, not %s run' % (button, keys))
    text = page.js("return document.getElementById('explained').textContent")
    for part in ('digits::bias_relu(Tensor x, Tensor bias) -> Tensor', 'registered at examples/digits.c:', '=> Meta: '):
        need(part in text, 'opd_explain\'s text has no "%s": %s' % (part, text))
    need(page.text('schema') == 'digits::bias_relu(Tensor x, Tensor bias) -> Tensor', page.text('schema'))


def check_times(page):
    page.open()
    page.train()
    rows = page.js("return [...document.querySelectorAll('#table tbody tr, #table tfoot tr')].map("
                   "row => [...row.cells].map(cell => cell.innerText.replace(/\\u200b/g, '').trim()))")
    names = [row[0] for row in rows]
    need('aten::convolution_backward' in names[:3] and names[-1] == 'all', names)
    shares = [float(row[3].rstrip('%\u2009')) for row in rows]
    need(abs(sum(shares[:-1]) - 100) < 1, 'the shares add up to %s' % sum(shares[:-1]))
    calls = dict((row[0], int(row[1].replace(',', ''))) for row in rows)
    need(calls['aten::convolution_backward'] == 2 * 12 * 23, calls)


def check_phone(page):
    for width in (320, 390, 700):
        page.open(width=width, height=700)
        page.train()
        need(page.draw(3, 'touch') == '3', 'a 3, drawn with a finger, is %s' % page.text('answer'))
        page.js("document.querySelector('details').open = true")
        wide = page.js('return document.documentElement.scrollWidth')
        need(wide <= width, 'the page is %d wide in a window of %d' % (wide, width))
        clipped = page.js("return [...document.querySelectorAll('button, td, th, dd')].filter("
                          "e => e.scrollWidth > e.clientWidth + 1).map(e => e.innerText)")
        need(not clipped, '%d wide: no room for %s' % (width, clipped))
    need(page.js("return getComputedStyle(document.getElementById('pad')).touchAction") == 'none',
         'a finger that draws scrolls the page')


def check_dark(page):
    bright = "const c = getComputedStyle(%s).%s.match(/\\d+/g); return Number(c[0]) + Number(c[1]) + Number(c[2])"
    for dark in (False, True):
        page.open(dark=dark)
        page.draw(1)
        for element in ('document.body', "document.querySelector('section')"):
            paper, ink = (page.js(bright % (element, name)) for name in ('backgroundColor', 'color'))
            need((paper < ink - 300) if dark else (paper > ink + 300), '%s: %d on %d' % (element, ink, paper))
        line = page.js("const p = document.getElementById('pad'), n = p.width;"
                       "const d = p.getContext('2d').getImageData(0, 0, n, n).data;"
                       "for (let i = 3; i < d.length; i += 4) { if (d[i] === 255) { return d[i - 1]; } } return -1")
        need(line > 200 if dark else 0 <= line < 60, 'a line of brightness %s' % line)


def lacking(page, variant, *words):
    page.open(variant, wait=False)
    page.until(lambda: page.state() == 'broken', 60, 'it starts')
    said = page.trouble()
    need(all(word in said for word in words), 'the message is: %s' % said)
    need(not page.driver.find_element('id', 'start').is_enabled(), 'it can be started')


def check_missing(page):
    lacking(page, 'no_wasm', 'no WebAssembly,')
    lacking(page, 'no_simd', 'no WebAssembly SIMD', 'Safari since 16.4')
    lacking(page, 'no_workers', 'no Web Workers')
    lacking(page, 'no_program', 'digits_web.js is missing', 'Try again')
    lacking(page, 'no_data', 'digits.txt', '404')
    lacking(page, 'damaged_data', 'digits.txt, image 0 is damaged: a line is not 64 pixels and a label')
    lacking(page, 'damaged_pixel', 'digits.txt, image 0 is damaged: a pixel is not one of 0-9, a-g')
    lacking(page, 'no_memory', 'not enough memory', 'Try again')


def check_memory(page):
    """Without memory, the training pauses with a message.  Once there is memory, it continues, with the same losses."""
    page.open()
    page.train()
    losses = page.js('return losses')
    page.open('little_memory')
    for _ in range(2):
        page.click('start')
        page.until(lambda: page.trouble(), 60, 'no message')
        need('Nothing is lost' in page.trouble() and page.state() == 'paused', page.trouble())
    page.train()
    need(not page.trouble(), 'the message stays: %s' % page.trouble())
    need(page.js('return losses') == losses, 'other losses than with enough memory')


def picture(page, file):
    from PIL import Image
    page.open(width=1160)
    page.train()
    page.draw(3)
    page.js("window.scrollTo(0, 0)")
    page.size(1160, page.js("return Math.ceil(document.querySelector('footer').getBoundingClientRect().bottom) - 18"))
    time.sleep(0.5)
    page.driver.save_screenshot(file)
    Image.open(file).convert('RGB').quantize(256, dither=Image.Dither.NONE).save(file, optimize=True)


def serve(folder):
    """Starts a server of the files in a folder."""
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), functools.partial(Handler, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def browser():
    """Starts headless Chromium."""
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    options = Options()
    options.binary_location = shutil.which('chromium')
    for argument in ('--headless=new', '--no-sandbox', '--disable-gpu', '--hide-scrollbars', '--touch-events=enabled'):
        options.add_argument(argument)
    options.set_capability('goog:loggingPrefs', {'browser': 'ALL'})
    return webdriver.Chrome(service=Service(shutil.which('chromedriver')), options=options)


def run_check(name, check, *arguments):
    """Runs a check, and prints its name and what is wrong."""
    try:
        check(*arguments)
        wrong = ''
    except Wrong as error:
        wrong = str(error)
    except Exception as error:                                  # an exception of selenium
        traceback.print_exc()
        wrong = '%s: %s' % (type(error).__name__, error)
    print(name, ' '.join(wrong.split())[:600], flush=True)


def main():
    if sys.argv[1:] in (['-h'], ['--help']):
        print(__doc__)
        return 0
    if len(sys.argv) < 3:
        print('web.py: needs a folder and names of checks (see --help)', file=sys.stderr)
        return 2
    folder, names = sys.argv[1], sys.argv[2:]
    server, driver = serve(folder), browser()
    try:
        page = Page(driver, 'http://127.0.0.1:%d/' % server.server_address[1])
        if names[0] == '--picture':
            picture(page, names[1])
            return 0
        for name in names:
            run_check(name, globals()['check_' + name], page)
    finally:
        driver.quit()
        server.shutdown()
    return 0


if __name__ == '__main__':
    sys.exit(main())
