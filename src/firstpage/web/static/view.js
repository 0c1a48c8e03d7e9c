// What the judging page shows, apart from the documents.

const one = (selector) => document.querySelector(selector);

function range([low, high]) {
  if (high <= 0) return "the last one";
  if (low === high) return `${low} to go`;
  return low > 1 ? `${low} to ${high} to go` : `at most ${high} to go`;
}

/** "23 judged, 40 to 60 to go", and the same as a bar: done, certainly remaining, possibly remaining. */
export function progress({ asked, remaining }) {
  one("#progress").textContent = `${asked} judged, ${range(remaining)}`;
  const all = Math.max(asked + remaining[1], 1);
  const ends = { part: asked, sure: asked + remaining[0], some: asked + remaining[1] };
  for (const [name, end] of Object.entries(ends)) one(`#bar .${name}`).setAttribute("width", (100 * end) / all);
}

/** Saved, saving, or not yet: said to eyes and ears. `kind` is a class. */
export function status(text, kind = "") {
  const line = one("#status");
  line.textContent = text;
  line.className = `status ${kind}`;
}

/** A message that stays until the next answer; null takes it away. */
export function notice(text, link = null) {
  const box = one("#notice");
  box.replaceChildren();
  box.hidden = !text;
  if (!text) return;
  box.append(text);
  if (link) {
    const a = document.createElement("a");
    [a.href, a.textContent] = link;
    box.append(" ", a);
  }
}

/** Tells a screen reader what is open now. */
export function announce(state, tool) {
  const { left, right } = state.question;
  const what = tool === "grades"
    ? `Document: ${left.title || left.key}.`
    : `Left: ${left.title || left.key}. Right: ${right.title || right.key}.`;
  one("#announce").textContent = `Question ${state.asked + 1}: ${one("#question").textContent} ${what}`;
  one("#main").dataset.question = `${state.task}:${state.seq}`;
}

/** What can be done at any time: it is no answer. */
export const ALWAYS = ["help", "pause", "describe", "titles", "guide", "leave"];

/** Which buttons can be pressed: all answers wait while one is being saved.  They are not
 * truly disabled, for that would take the focus from those who go by Tab and Enter. */
export function enable(open, canUndo) {
  for (const button of document.querySelectorAll("[data-action]")) {
    const name = button.dataset.action;
    if (ALWAYS.includes(name)) continue;
    button.setAttribute("aria-disabled", String(!open || (name === "undo" && !canUndo)));
  }
}

export function options({ ties, bad }) {
  for (const part of document.querySelectorAll("[data-if='ties']")) part.hidden = !ties;
  for (const part of document.querySelectorAll("[data-if='bad']")) part.hidden = !bad;
}

/** Plain answers, or "which one is bad?". */
export function mode(name) {
  one("#question").textContent = one("#question").dataset[name];
  const groups = document.querySelectorAll("[data-mode-group]");
  const inside = [...groups].some((g) => g.contains(document.activeElement));
  for (const group of groups) group.hidden = group.dataset.modeGroup !== name;
  if (inside) one(`[data-mode-group='${name}'] button`)?.focus();
}

/** On a phone: brings the document that is new into view. */
export function bring(side) {
  const lane = one("#main");
  lane.scrollTo({ left: side === "right" ? lane.scrollWidth : 0, behavior: "instant" });
}

/** Marks the side that won for a moment. */
export function chosen(side) {
  one("#main").dataset.chosen = side ?? "";
}

export function commented(yes) {
  const button = one("[data-action='comment']");
  if (button) button.setAttribute("aria-pressed", String(yes));
}
