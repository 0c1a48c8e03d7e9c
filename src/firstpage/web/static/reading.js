// Which keys scroll, and what.  A key that may be meant for reading on never answers: up and down
// are free for answers only where neither a document nor the page can be scrolled, and never
// inside a document; left and right, inside a document that is wider than its frame, are not.

const LINE = 60; // pixels
const VISIBLE = 96; // pixels of the documents that show they are there
const LINES = { ArrowDown: 1, ArrowUp: -1 };
const PAGES = { PageDown: 1, PageUp: -1 };
const SIDEWAYS = ["ArrowLeft", "ArrowRight"];
const OURS = ["g", "Escape", "?"]; // heard also while the guidelines are read

function pageScrolls() {
  const root = document.scrollingElement;
  return root.scrollHeight - root.clientHeight > 2;
}

export const answersTop = () => document.querySelector(".answers .big:not([hidden])").getBoundingClientRect().top;
const documents = () => document.querySelector("#main").getBoundingClientRect();

/** Must the page scroll before the documents are wholly in view? */
function documentsGoOn() {
  const root = document.scrollingElement;
  const rest = root.scrollHeight - root.clientHeight - root.scrollTop;
  return rest > 2 && documents().bottom > answersTop() + 8;
}

/** Is so little of the documents in view that one may not know that they are there? */
export function documentsHidden() {
  return documents().top > answersTop() - VISIBLE;
}

export class Reading {
  /** `stuck(sideways)` is told where a key was meant for scrolling and nothing moved. */
  constructor(panes, stuck) {
    this.panes = panes;
    this.stuck = stuck;
    this.used = null; // the pane that pointer, wheel or finger was in last
  }

  use(pane) {
    this.used = pane;
  }

  /** True: it scrolled; false: the browser scrolls, or nothing does; null: the key is free. */
  press(key, event) {
    if (event.target.ownerDocument !== document) return this.#inside(key, event.target.ownerDocument);
    if (event.target.closest("#guide")) return OURS.includes(key) ? null : false;
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
    const [down, right] = [LINES[key] ?? 0, SIDEWAYS.includes(key) ? (key === "ArrowRight" ? 1 : -1) : 0];
    if (!down && !(right && pane?.overflows("x"))) return null;
    if (!pane?.canScroll(right, down)) this.stuck(Boolean(right));
    return false;
  }

  #line(down) {
    const long = this.panes.filter((pane) => pane.overflows("y"));
    if (!long.length) return pageScrolls() ? false : null;
    if (down > 0 && documentsGoOn()) return false;
    const meant = long.includes(this.used) ? [this.used] : long;
    if (meant.some((pane) => pane.canScroll(0, down))) {
      for (const pane of meant) pane.scroll(down * LINE);
      return true;
    }
    this.stuck(false);
    return !pageScrolls();
  }

  #page(down) {
    if (down > 0 && documentsGoOn()) return false;
    const able = this.panes.filter((pane) => pane.canScroll(0, down));
    for (const pane of able) pane.page(down);
    return able.length > 0 || !pageScrolls();
  }
}
