// The documents.  Each side keeps a small stack of frames: one is shown, others are loaded ahead.
// A frame is never moved or loaded twice, so a document that stays does not flash or lose its place.

const KEEP = 6;
const AGAIN = 1500; // milliseconds until a document that did not come is asked for again
const SLACK = 4; // pixels by which a document may exceed its frame and still be called whole
const LOOK = 400; // milliseconds between looks at what is below: pictures come late, frames grow

export class Pane {
  /** `adopt(document)` is told of every document, so that keys pressed inside it are heard.
   * `cue` is shown while there is more of the document below its frame. */
  constructor(root, label, cue, adopt) {
    this.root = root;
    this.label = label;
    this.cue = cue;
    this.adopt = adopt;
    this.frames = new Map();
    this.url = null;
    setInterval(() => this.mark(), LOOK);
  }

  /** The document shown; null before it is there. */
  get document() {
    return this.frames.get(this.url)?.contentDocument ?? null;
  }

  /** Is it larger than its frame, along "x" or "y"? */
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

  /** Says whether there is more below. */
  mark() {
    const more = this.canScroll(0, 1);
    this.cue.hidden = !more;
    this.root.classList.toggle("more", more);
  }

  /** Shows a document; resolves when it can be read. */
  async show(doc) {
    const frame = this.#frame(doc.url);
    this.url = doc.url;
    frame.title = `${this.label}: ${doc.title || doc.key}`;
    frame.dataset.kind = doc.kind;
    for (const [url, other] of this.frames) this.#veil(other, url !== doc.url);
    this.#touch(doc.url);
    this.root.setAttribute("aria-busy", "true");
    await frame.ready;
    this.#tint(frame);
    this.root.removeAttribute("aria-busy");
    this.mark();
  }

  /** Loads what may come next, out of sight. */
  preload(urls) {
    for (const url of urls.slice(0, KEEP - 2)) this.#frame(url);
    this.#prune();
  }

  clear() {
    for (const frame of this.frames.values()) this.#veil(frame, true);
    this.url = null;
  }

  scroll(pixels) {
    this.document?.defaultView.scrollBy({ top: pixels, behavior: "instant" });
    this.mark();
  }

  page(pages) {
    this.scroll(pages * (this.document?.defaultView.innerHeight ?? 0) * 0.85);
  }

  retint() {
    for (const frame of this.frames.values()) this.#tint(frame);
  }

  #frame(url) {
    const known = this.frames.get(url);
    if (known) return known;
    const frame = document.createElement("iframe");
    frame.setAttribute("sandbox", "allow-same-origin");
    frame.referrerPolicy = "no-referrer";
    frame.title = this.label;
    frame.ready = new Promise((loaded) => {
      frame.addEventListener("load", () => {
        // Where the network failed there is the browser's own page, which nobody may look into.
        if (!frame.contentDocument) return setTimeout(() => frame.isConnected && (frame.src = url), AGAIN);
        this.adopt(frame.contentDocument);
        frame.contentDocument.addEventListener("scroll", () => this.mark(), { passive: true });
        loaded();
      });
    });
    this.#veil(frame, true);
    frame.src = url;
    this.frames.set(url, frame);
    this.root.append(frame);
    return frame;
  }

  #veil(frame, hide) {
    frame.classList.toggle("veiled", hide);
    frame.inert = hide;
    if (hide) frame.setAttribute("aria-hidden", "true");
    else frame.removeAttribute("aria-hidden");
  }

  /** Our own renderings follow the page's colors, and their title is above the frame already;
   * an HTML document keeps its own looks. */
  #tint(frame) {
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
      if (this.frames.size <= KEEP) return;
      if (url === this.url) continue;
      frame.remove();
      this.frames.delete(url);
    }
  }
}
