/* The worker of index.html: trains the network, so that the page stays free, and answers the page's questions.

   Messages of the page: {ask: 'run' | 'pause' | 'reset'}, {ask: 'classify', pixels}, {ask: 'image', number},
   {ask: 'explain', how}.
   Messages to the page: {is: 'ready' | 'step' | 'epoch' | 'done' | 'reset' | 'filters' | 'answer' | 'path', ...}, and
   {is: 'trouble', text, fatal, memory}. */
'use strict';

const EPOCHS = 12, SEED = 0;
const next = new MessageChannel();       /* ends a turn without the 4 ms that setTimeout waits */
let running = false, waiting = false, profiling = false;
let trained = 0, tested = 0, seconds = 0, times = new Map();

var Module = {onRuntimeInitialized: begin, onAbort: reason => trouble(String(reason), true)};
self.onunhandledrejection = event => trouble(String(event.reason), true);
try { importScripts('digits_web.js'); } catch (error) {
    trouble('digits_web.js is missing: the command in examples/web/digits_web.c builds it. (' + error + ')', true);
}

//-- calls of digits_web.c ---------------------------------------------------------------------------------------------

function trouble(text, fatal = false) {
    running = false;
    postMessage({is: 'trouble', text, fatal, memory: /memory|allocat/i.test(text)});
}
/* Returns the text at an address; if it is NULL, tells the page of the failure, and returns null. */
function textOf(address) {
    if (!address) { trouble(UTF8ToString(_web_error())); }
    return address ? UTF8ToString(address) : null;
}
/* Returns whether a result is -1, a failure, and tells the page of it. */
function failed(result) {
    if (result < 0) { trouble(UTF8ToString(_web_error())); }
    return result < 0;
}
function floats(address, count) { return HEAPF32.slice(address >> 2, (address >> 2) + count); }
/* Calls `use` with the address of a copy of these bytes, and returns its result; -1 if there is no memory. */
function withCopy(bytes, use) {
    const address = _malloc(bytes.length);
    if (!address) { trouble('out of memory'); return -1; }
    HEAPU8.set(bytes, address);
    const result = use(address);
    _free(address);
    failed(result);
    return result;
}

async function begin() {
    const response = await fetch('../data/digits.txt');
    if (!response.ok) { throw new Error('../data/digits.txt: the server says ' + response.status); }
    const text = new Uint8Array(await response.arrayBuffer()), ended = new Uint8Array(text.length + 1);
    ended.set(text);                     /* and a zero */
    const images = withCopy(ended, _web_data);
    if (images < 0 || failed(_web_reset(EPOCHS, SEED))) { return; }
    next.port1.onmessage = turn;
    self.onmessage = event => answers[event.data.ask](event.data);
    postMessage({is: 'ready', version: UTF8ToString(_web_version()), epochs: EPOCHS, steps: _web_steps_an_epoch()});
    tellFilters();
}

//-- training ----------------------------------------------------------------------------------------------------------

function go() {
    if (!waiting) { waiting = true; next.port2.postMessage(0); }
}
/* Does one batch, or the test after an epoch.  Before the next turn, messages of the page are answered. */
function turn() {
    waiting = false;
    if (!running) { return; }
    if (tested < trained ? test() : step()) {
        if (tested === EPOCHS) { running = false; postMessage({is: 'done'}); } else { go(); }
    }
}
function step() {
    if (!profiling && failed(_web_profile_begin())) { return false; }
    profiling = true;
    const start = performance.now(), count = _web_step();
    if (failed(count)) { return false; }
    seconds += (performance.now() - start) / 1000;
    postMessage({is: 'step', loss: _web_loss(), accuracy: _web_accuracy()});
    if (count > trained) { trained = count; addTimes(); }
    return true;
}
function test() {
    const accuracy = _web_test();
    if (failed(accuracy)) { return false; }
    tested = trained;
    const rows = [...times].map(([name, row]) => ({name, ...row})).sort((a, b) => b.ns - a.ns);
    postMessage({is: 'epoch', epoch: trained, accuracy, rows, seconds, memory: _web_memory()});
    tellFilters();
    return true;
}
/* Adds the profile of an epoch to `times`. */
function addTimes() {
    profiling = false;
    for (const line of (textOf(_web_profile()) || '').trim().split('\n')) {
        const [name, calls, ns] = line.split('\t'), row = times.get(name) || {calls: 0, ns: 0};
        if (name) { times.set(name, {calls: row.calls + Number(calls), ns: row.ns + Number(ns)}); }
    }
}
function tellFilters() {
    const address = _web_filters();
    if (address) { postMessage({is: 'filters', filters: floats(address, 16 * 9)}); }
}

//-- answers to the page -----------------------------------------------------------------------------------------------

function classify(pixels, label = null) {
    const digit = withCopy(new Uint8Array(Float32Array.from(pixels).buffer), _web_classify);
    if (digit < 0) { return; }
    postMessage({is: 'answer', digit, label, pixels, probabilities: floats(_web_probabilities(), 10),
                 responses: floats(_web_responses(), 16 * 64)});
}
const answers = {
    run() { running = true; go(); },
    pause() { running = false; },
    reset() {
        running = false;
        if (profiling) { addTimes(); }
        trained = tested = seconds = 0;
        times.clear();
        postMessage({is: 'reset'});
        if (!failed(_web_reset(EPOCHS, SEED))) { tellFilters(); }
    },
    classify({pixels}) { classify(pixels); },
    image({number}) {
        const image = _web_test_image(number);
        classify(floats(_web_pixels(image), 64), _web_label(image));
    },
    explain({how}) {
        const text = textOf(_web_explain(how));
        if (text !== null) { postMessage({is: 'path', how, text}); }
    },
};
