// Keys that scroll.  A key that scrolls never answers: up and down answer only if neither a document
// nor the page can be scrolled, and never inside a document; left and right do not answer inside a
// document that is wider than its frame.

const LINE = 60; // pixels
const MIN_VISIBLE = 96; // pixels of the documents
const LINES = { ArrowDown: 1, ArrowUp: -1 };
const PAGES = { PageDown: 1, PageUp: -1 };
const SIDEWAYS = ["ArrowLeft", "ArrowRight"];
const PAGE_KEYS = ["g", "Escape", "?"]; // handled also inside the guidelines

function pageScrolls() {
  const root = document.scrollingElement;
  return root.scrollHeight - root.clientHeight > 2;
}

export const answersTop = () => document.querySelector(".answers .big:not([hidden])").getBoundingClientRect().top;
const documentsBox = () => document.querySelector("#main").getBoundingClientRect();

/** Whether the page must scroll before the documents are fully in view. */
function documentsBelow() {
  const root = document.scrollingElement;
  const below = root.scrollHeight - root.clientHeight - root.scrollTop;
  return below > 2 && documentsBox().bottom > answersTop() + 8;
}

/** Whether so little of the documents is in view that they may be overlooked. */
export function documentsHidden() {
  return documentsBox().top > answersTop() - MIN_VISIBLE;
}

export class Reading {
  /** `onEnd(sideways)` is called if a scrolling key had no effect. */
  constructor(panes, onEnd) {
    this.panes = panes;
    this.onEnd = onEnd;
    this.used = null; // the pane of the last pointer event
  }

  use(pane) {
    this.used = pane;
  }

  /** Returns true if it scrolled, false if the browser handles the key, null if the key can answer. */
  press(key, event) {
    if (event.target.ownerDocument !== document) return this.#inside(key, event.target.ownerDocument);
    if (event.target.closest("#guide")) return PAGE_KEYS.includes(key) ? null : false;
    if (key === " ") {
      return event.target.closest("button, a") ? false : this.#page(event.shiftKey ? -1 : 1);
    }
    if (key in PAGES) return this.#page(PAGES[key]);
    if (key in LINES) return this.#line(LINES[key]);
    return null;
  }

  #inside(key, doc) {
    const pane = this.panes.find((p) => p.document === doc);
    if (key in PAGES) return this.#page(PAGES[key]);
    if (key === " ") return false;
    const [dy, dx] = [LINES[key] ?? 0, SIDEWAYS.includes(key) ? (key === "ArrowRight" ? 1 : -1) : 0];
    if (!dy && !(dx && pane?.overflows("x"))) return null;
    if (!pane?.canScroll(dx, dy)) this.onEnd(Boolean(dx));
    return false;
  }

  #line(down) {
    const long = this.panes.filter((pane) => pane.overflows("y"));
    if (!long.length) return pageScrolls() ? false : null;
    if (down > 0 && documentsBelow()) return false;
    const targets = long.includes(this.used) ? [this.used] : long;
    if (targets.some((pane) => pane.canScroll(0, down))) {
      for (const pane of targets) pane.scroll(down * LINE);
      return true;
    }
    this.onEnd(false);
    return !pageScrolls();
  }

  #page(down) {
    if (down > 0 && documentsBelow()) return false;
    const scrollable = this.panes.filter((pane) => pane.canScroll(0, down));
    for (const pane of scrollable) pane.page(down);
    return scrollable.length > 0 || !pageScrolls();
  }
}
