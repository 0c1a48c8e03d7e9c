// Marks in documents: words of the query, and words in which near-duplicates differ.  They are CSS
// highlights, which change nothing in a document: neither its elements nor what a selection copies.

import { queryStems, stem, words } from "./words.js";

const MAX_TEXT = 400_000; // characters of a document that are searched
const MAX_WORDS = 20_000; // of a document that is compared
const MAX_EDITS = 1_500; // inserted and deleted words
const MAX_PAIRS = 40_000; // of blocks, one of each document, that are compared
const MIN_MOVED = 5; // words of a block that counts as the same at another place of a text
const MIN_COMMON = 0.6; // fraction of the words of both that near-duplicates share

// The background of a query word covers that of a difference, whose underline stays.
const PRIORITIES = { difference: 0, query: 1 };
// A row of a table and a list of properties are one block: their cells mean nothing elsewhere.
const BLOCKS = "li, p, h1, h2, h3, h4, h5, h6, dl, tr, caption, pre, blockquote, figcaption, address, "
  + "article, section, header, footer, nav, aside, main, div, body";

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

/** Marks the words in which near-duplicates differ, or removes the marks; returns whether there are any.
 *
 * A block of text that both documents have, wherever it is, is equal.  `itemwise` compares the other
 * blocks one with one, as the results of two lists; otherwise the documents are compared as a whole, and
 * short blocks only in their order. */
export function markDifferences(left, right, on, itemwise = false) {
  const sides = [left, right].map((doc) => (on ? Array.from(wordsOf(doc)) : []));
  const comparable = on && sides.every((side) => side.length <= MAX_WORDS);
  const similar = comparable && (itemwise || commonFraction(...sides) >= MIN_COMMON);
  const changed = similar ? changedWords(sides, itemwise) : [[], []];
  [left, right].forEach((doc, i) => set(doc, "difference", runs(doc, sides[i], changed[i])));
  return changed.some((side) => side.length > 0);
}

/** Returns the numbers of the changed words of both sides, in order. */
function changedWords(sides, itemwise) {
  const [left, right] = sides.map(blocksOf);
  const least = itemwise ? 1 : MIN_MOVED;
  const unequal = [unequalBlocks(left, right, least), unequalBlocks(right, left, least)];
  const pairs = itemwise ? similarPairs(sides, ...unequal) : [unequal.map((blocks) => blocks.flat())];
  const changed = [[], []];
  for (const pair of pairs) {
    const texts = pair.map((numbers, i) => numbers.map((number) => sides[i][number].word));
    const edits = differences(...texts) ?? [[], []];
    edits.forEach((positions, i) => changed[i].push(...positions.map((at) => pair[i][at])));
  }
  return changed.map((numbers) => numbers.sort((a, b) => a - b));
}

/** Returns the blocks of a text, each as the numbers of its words. */
function blocksOf(all) {
  const blocks = new Map();
  all.forEach(({ node }, number) => {
    const block = node.parentElement.closest(BLOCKS);
    if (!blocks.has(block)) blocks.set(block, { numbers: [], text: "" });
    const entry = blocks.get(block);
    entry.numbers.push(number);
    entry.text += ` ${all[number].word}`;
  });
  return [...blocks.values()];
}

/** Returns the blocks that are not among the others, or have fewer than `least` words; repeated ones count. */
function unequalBlocks(blocks, others, least) {
  const unmatched = counted(others.map(({ text }) => text));
  const unequal = blocks.filter(({ numbers, text }) => numbers.length < least || !take(unmatched, text));
  return unequal.map(({ numbers }) => numbers);
}

/** Returns pairs of blocks that are near-duplicates, the most similar first, each block at most once. */
function similarPairs(sides, left, right) {
  const similar = [];
  if (left.length * right.length > MAX_PAIRS) return similar;
  const texts = [left, right].map((blocks, i) => blocks.map((numbers) => numbers.map((n) => sides[i][n])));
  texts[0].forEach((a, i) => {
    texts[1].forEach((b, j) => {
      const value = commonFraction(a, b);
      if (value >= MIN_COMMON) similar.push({ value, pair: [left[i], right[j]] });
    });
  });
  const used = new Set();
  return similar.sort((x, y) => y.value - x.value).flatMap(({ pair }) => {
    if (pair.some((block) => used.has(block))) return [];
    pair.forEach((block) => used.add(block));
    return [pair];
  });
}

function set(doc, name, ranges) {
  const view = doc.defaultView;
  if (!supported || !view?.CSS?.highlights) return;
  if (!ranges.length) return view.CSS.highlights.delete(name);
  const highlight = new view.Highlight(...ranges);
  highlight.priority = PRIORITIES[name];
  view.CSS.highlights.set(name, highlight);
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

/** Returns the fraction of the words of both texts that they share, in any order: a quick comparison. */
function commonFraction(a, b) {
  const unmatched = counted(a.map(({ word }) => word));
  const common = b.filter(({ word }) => take(unmatched, word)).length;
  return (2 * common) / (a.length + b.length || 1);
}

function counted(values) {
  const counts = new Map();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
}

/** Takes one value of the counted ones; returns false if none is there. */
function take(counts, value) {
  const count = counts.get(value) ?? 0;
  if (count) counts.set(value, count - 1);
  return count > 0;
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
