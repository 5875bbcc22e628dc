// A page that is opened as a file, without a server, cannot start a worker.  Then the script of the search runs in a
// hidden frame instead.
if (location.protocol === 'file:') {
    window.Worker = class extends EventTarget {
        constructor(url) {
            super();
            this.frame = document.body.appendChild(document.createElement('iframe'));
            this.frame.hidden = true;
            this.inside = this.frame.contentWindow;
            const say = data => this.dispatchEvent(new MessageEvent('message', { data }));
            this.inside.postMessage = data => setTimeout(say, 0, data);
            const script = this.inside.document.createElement('script');
            this.loaded = new Promise(done => { script.onload = done; });
            script.src = url;
            this.inside.document.body.append(script);
            this.addEventListener('message', event => this.onmessage && this.onmessage(event));
        }
        postMessage(data) { this.loaded.then(() => this.inside.onmessage({ data })); }
        terminate() { this.frame.remove(); }
    };
}
