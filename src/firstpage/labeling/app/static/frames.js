// The documents.  Each side has a few frames, of which one is shown.  A frame is never moved or loaded
// twice, so a document that stays does not flash or lose its scroll position.  A document whose content
// came with its question is put into an empty frame, which the browser has cached; the frame's policy
// and sandbox are those of a document's own page.

const MAX_FRAMES = 8;
const RETRY_DELAY = 1500; // milliseconds until a document that failed to load is requested again
const SLACK = 4; // pixels by which a document may exceed its frame and still count as fully visible
const CHECK_INTERVAL = 400; // milliseconds between checks for more below: images load late, frames grow

export class Pane {
  /** `contents` maps URLs to known contents, `emptyUrl` is the page of an empty frame.
   * `adopt(document)` is called with every loaded document, to listen to its keys.
   * `cue` is shown while there is more of the document below its frame. */
  constructor({ root, label, cue, contents, emptyUrl, adopt }) {
    Object.assign(this, { root, label, cue, contents, emptyUrl, adopt });
    this.frames = new Map();
    this.spare = null; // an empty frame that is loaded already
    this.url = null;
    setInterval(() => this.mark(), CHECK_INTERVAL);
  }

  /** The shown document; null until it is loaded. */
  get document() {
    return this.frames.get(this.url)?.contentDocument ?? null;
  }

  /** Whether the document is larger than its frame, along "x" or "y". */
  overflows(axis) {
    const root = this.document?.scrollingElement;
    if (!root) return false;
    return axis === "x" ? root.scrollWidth - root.clientWidth > SLACK : root.scrollHeight - root.clientHeight > SLACK;
  }

  /** Whether it can scroll further, by the signs of `dx` and `dy`. */
  canScroll(dx, dy) {
    const root = this.document?.scrollingElement;
    if (!root) return false;
    const end = { x: root.scrollWidth - root.clientWidth, y: root.scrollHeight - root.clientHeight };
    const can = (direction, offset, max) => (direction > 0 ? offset < max - SLACK : direction < 0 && offset > 1);
    return can(dx, root.scrollLeft, end.x) || can(dy, root.scrollTop, end.y);
  }

  /** Shows or hides the cue that there is more below. */
  mark() {
    const more = this.canScroll(0, 1);
    this.cue.hidden = !more;
    this.root.classList.toggle("more", more);
  }

  /** Shows a document; resolves when it is loaded. */
  async show(doc) {
    const frame = this.#frame(doc.url);
    this.url = doc.url;
    frame.title = `${this.label}: ${doc.title || doc.key}`;
    frame.dataset.kind = doc.kind;
    for (const [url, other] of this.frames) this.#hide(other, url !== doc.url);
    this.#touch(doc.url);
    this.root.setAttribute("aria-busy", "true");
    await frame.ready;
    this.#applyTheme(frame);
    this.root.removeAttribute("aria-busy");
    this.mark();
    this.spare ??= this.#loaded(this.emptyUrl);
  }

  /** Loads documents that may come next, hidden. */
  preload(urls) {
    for (const url of urls.slice(0, MAX_FRAMES - 2)) this.#frame(url);
    this.#prune();
  }

  clear() {
    for (const frame of this.frames.values()) this.#hide(frame, true);
    this.url = null;
  }

  scroll(pixels) {
    this.document?.defaultView.scrollBy({ top: pixels, behavior: "instant" });
    this.mark();
  }

  page(pages) {
    this.scroll(pages * (this.document?.defaultView.innerHeight ?? 0) * 0.85);
  }

  updateTheme() {
    for (const frame of this.frames.values()) this.#applyTheme(frame);
  }

  /** Returns the frame of a document: the present one, an empty one with its content, or its own page. */
  #frame(url) {
    const present = this.frames.get(url);
    if (present) return present;
    const content = this.contents.get(url);
    const frame = content ? this.#empty() : this.#loaded(url);
    if (content) frame.ready = frame.ready.then(() => fill(frame.contentDocument, content));
    frame.dataset.url = url;
    this.frames.set(url, frame);
    return frame;
  }

  #empty() {
    const frame = this.spare ?? this.#loaded(this.emptyUrl);
    this.spare = null;
    return frame;
  }

  /** Returns a new hidden frame that loads a page. */
  #loaded(url) {
    const frame = document.createElement("iframe");
    frame.setAttribute("sandbox", "allow-same-origin");
    frame.referrerPolicy = "no-referrer";
    frame.title = this.label;
    frame.ready = new Promise((loaded) => {
      frame.addEventListener("load", () => {
        // After a network failure the frame has an error page of the browser, without access.
        if (!frame.contentDocument) return setTimeout(() => frame.isConnected && (frame.src = url), RETRY_DELAY);
        this.adopt(frame.contentDocument);
        frame.contentDocument.addEventListener("scroll", () => this.mark(), { passive: true });
        loaded();
      });
    });
    this.#hide(frame, true);
    frame.src = url;
    this.root.append(frame);
    return frame;
  }

  #hide(frame, hide) {
    frame.classList.toggle("hidden", hide);
    frame.inert = hide;
    if (hide) frame.setAttribute("aria-hidden", "true");
    else frame.removeAttribute("aria-hidden");
  }

  /** Applies the colors of the page, except to HTML documents, and hides the title, which is above
   * the frame. */
  #applyTheme(frame) {
    const page = frame.contentDocument?.documentElement;
    if (!page) return;
    page.querySelector(":scope.own > body > h1:first-child")?.toggleAttribute("hidden", true);
    const theme = frame.dataset.kind === "html" ? "light" : document.documentElement.dataset.theme ?? "";
    page.style.colorScheme = theme;
    frame.style.colorScheme = theme;
  }

  #touch(url) {
    const frame = this.frames.get(url);
    this.frames.delete(url);
    this.frames.set(url, frame);
    this.#prune();
  }

  #prune() {
    for (const [url, frame] of this.frames) {
      if (this.frames.size <= MAX_FRAMES) return;
      if (url === this.url) continue;
      frame.remove();
      this.frames.delete(url);
    }
  }
}

/** Puts a content into an empty document; resolves when its images are loaded, or cannot be. */
function fill(doc, { style, body }) {
  doc.documentElement.className = style;
  doc.body.innerHTML = body;
  const loading = [...doc.images].filter((image) => !image.complete);
  const settled = (image) =>
    new Promise((resolve) => {
      for (const kind of ["load", "error"]) image.addEventListener(kind, resolve, { once: true });
    });
  return Promise.all(loading.map(settled));
}
