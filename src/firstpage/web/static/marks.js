// Marks in documents: words of the query, and words in which near-duplicates differ.  They are CSS
// highlights, which change nothing in a document: neither its elements nor what a selection copies.

import { queryStems, stem, words } from "./words.js";

const MAX_TEXT = 400_000; // characters of a document that are searched
const MAX_WORDS = 20_000; // of a document that is compared
const MAX_EDITS = 1_500; // inserted and deleted words
const MIN_COMMON = 0.6; // fraction of the words of both that near-duplicates share

/** Whether this browser can mark words without changing a document. */
export const supported = typeof Highlight !== "undefined" && Boolean(CSS.highlights);

/** Marks the words of a document that have a stem of the query, or removes the marks. */
export function markQuery(doc, query, on) {
  const stems = on ? queryStems(query) : new Set();
  const ranges = [];
  if (stems.size) {
    for (const word of wordsOf(doc)) if (stems.has(stem(word.word))) ranges.push(range(doc, word));
  }
  set(doc, "query", ranges);
  return ranges.length;
}

/** Marks the words in which two near-duplicates differ, or removes the marks; returns whether there
 * are any. */
export function markDifferences(left, right, on) {
  const sides = [left, right].map((doc) => (on ? Array.from(wordsOf(doc)) : []));
  const [a, b] = sides.map((side) => side.map(({ word }) => word));
  const changed = on && nearDuplicates(a, b) ? differences(a, b) : null;
  const own = changed ?? [[], []];
  [left, right].forEach((doc, i) => set(doc, "difference", runs(doc, sides[i], own[i])));
  return Boolean(changed && (own[0].length || own[1].length));
}

function set(doc, name, ranges) {
  const view = doc.defaultView;
  if (!supported || !view?.CSS?.highlights) return;
  if (ranges.length) view.CSS.highlights.set(name, new view.Highlight(...ranges));
  else view.CSS.highlights.delete(name);
}

/** Yields the words of the visible text, each with its text node and offsets. */
function* wordsOf(doc) {
  const hidden = (node) => node.parentElement?.closest("style, script, [hidden]");
  const walker = doc.createTreeWalker(doc.body, 4); // text nodes
  let searched = 0;
  while (walker.nextNode() && searched < MAX_TEXT) {
    const node = walker.currentNode;
    if (hidden(node)) continue;
    searched += node.data.length;
    for (const word of words(node.data)) yield { ...word, node };
  }
}

function range(doc, first, last = first) {
  const created = doc.createRange();
  created.setStart(first.node, first.start);
  created.setEnd(last.node, last.end);
  return created;
}

/** Returns a range per run of adjacent changed words. */
function runs(doc, all, changed) {
  const ranges = [];
  for (let i = 0; i < changed.length; i += 1) {
    const first = changed[i];
    while (changed[i + 1] === changed[i] + 1 && all[changed[i + 1]].node === all[first].node) i += 1;
    ranges.push(range(doc, all[first], all[changed[i]]));
  }
  return ranges;
}

/** Whether two texts share most of their words, in any order: a quick test before they are compared. */
function nearDuplicates(a, b) {
  if (!a.length || !b.length || Math.max(a.length, b.length) > MAX_WORDS) return false;
  const counts = new Map();
  for (const word of a) counts.set(word, (counts.get(word) ?? 0) + 1);
  let common = 0;
  for (const word of b) {
    const count = counts.get(word) ?? 0;
    if (count) [common] = [common + 1, counts.set(word, count - 1)];
  }
  return (2 * common) / (a.length + b.length) >= MIN_COMMON;
}

/** Returns the words of `a` and of `b` that are not common to both, by Myers' algorithm; null if there
 * are too many. */
export function differences(a, b) {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let [n, m] = [a.length, b.length];
  while (n > start && m > start && a[n - 1] === b[m - 1]) [n, m] = [n - 1, m - 1];
  const path = shortestEdits(a.slice(start, n), b.slice(start, m));
  return path && path.map((side) => side.map((i) => i + start));
}

function shortestEdits(a, b) {
  const most = Math.min(a.length + b.length, MAX_EDITS);
  const ends = new Int32Array(2 * most + 3); // furthest end on each diagonal
  const history = [];
  for (let edits = 0; edits <= most; edits += 1) {
    history.push(ends.slice(most - edits, most + edits + 3));
    for (let k = -edits; k <= edits; k += 2) {
      const down = k === -edits || (k !== edits && ends[most + k] < ends[most + k + 2]);
      let x = down ? ends[most + k + 2] : ends[most + k] + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x += 1;
      ends[most + 1 + k] = x;
      if (x >= a.length && x - k >= b.length) return walkBack(a.length, b.length, history);
    }
  }
  return null;
}

/** Returns the deleted and the inserted words along the shortest path. */
function walkBack(x, y, history) {
  const [deleted, inserted] = [[], []];
  for (let edits = history.length - 1; edits > 0; edits -= 1) {
    const ends = history[edits]; // before this edit; diagonal k is at edits + 1 + k
    const k = x - y;
    const down = k === -edits || (k !== edits && ends[edits + k] < ends[edits + k + 2]);
    const before = down ? ends[edits + k + 2] : ends[edits + k];
    const at = down ? before - (k + 1) : before; // the word that this edit inserts or deletes
    if (down) inserted.push(at);
    else deleted.push(at);
    [x, y] = down ? [before, before - (k + 1)] : [before, before - (k - 1)];
  }
  return [deleted.reverse(), inserted.reverse()];
}
