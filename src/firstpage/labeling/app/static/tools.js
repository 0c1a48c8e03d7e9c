// The meaning of keys and buttons in each tool.  `left` and `right` are the documents shown.

/** Side by side: `b` (or up) opens "which is bad?".  Up and down arrive here only if nothing can be
 * scrolled (reading.js). */
const PAIRS = {
  plain: {
    ArrowLeft: "left",
    ArrowRight: "right",
    e: "tie",
    ArrowDown: "tie",
    ArrowUp: "bad",
    b: "bad",
  },
  bad: {
    ArrowLeft: "left-bad",
    ArrowRight: "right-bad",
    ArrowUp: "both-bad",
    b: "both-bad",
    ArrowDown: "cancel",
    Escape: "cancel",
  },
};

const FIVE = { 1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth" };
const KEYS = { pairs: PAIRS, grades: { plain: {} }, lists: { plain: FIVE } };
const COMMON = {
  s: "skip", c: "comment", u: "undo", p: "pause", d: "describe", t: "titles", g: "guide", "?": "help", Escape: "leave",
  v: "view", h: "highlight", j: "reflow", x: "differences", z: "zoom",
};

const READING = ["d", "t", "g", "?", "v", "h", "j", "x", "z"]; // also while "which is bad?" is open

const ANSWERS = {
  pairs: {
    left: () => ({ outcome: 1, bad: [], side: "left" }),
    right: () => ({ outcome: -1, bad: [], side: "right" }),
    tie: () => ({ outcome: 0, bad: [], side: "both" }),
    "left-bad": ({ left }) => ({ outcome: -1, bad: [left.key], side: "right" }),
    "right-bad": ({ right }) => ({ outcome: 1, bad: [right.key], side: "left" }),
    "both-bad": ({ left, right }) => ({ outcome: 0, bad: [left.key, right.key], side: "none" }),
  },
  grades: {},
  lists: five([2, 1, 0, -1, -2], (outcome) => (outcome > 0 ? "left" : outcome < 0 ? "right" : "both")),
};

function five(outcomes, side) {
  const names = Object.values(FIVE);
  return Object.fromEntries(
    names.map((name, i) => [name, () => ({ outcome: outcomes[i], bad: [], side: side(outcomes[i]) })]),
  );
}

/** Adds the grades of the project: each button has its number and its key. */
export function addGrades(buttons) {
  for (const { dataset } of buttons) {
    const outcome = Number(dataset.grade);
    KEYS.grades.plain[dataset.key] = dataset.action;
    ANSWERS.grades[dataset.action] = () => ({ outcome, bad: [], side: "left" });
  }
}

/** Returns the action of a key, or undefined. */
export function action(tool, mode, key) {
  return KEYS[tool][mode]?.[key] ?? (mode === "plain" || READING.includes(key) ? COMMON[key] : undefined);
}

/** Returns the answer of an action to a question, or undefined if it is not an answer. */
export function answer(tool, name, question) {
  return ANSWERS[tool][name]?.(question);
}
