// The judging page, apart from the documents.

const element = (selector) => document.querySelector(selector);

function range([low, high]) {
  if (high <= 0) return "last question";
  if (low === high) return `${low} remaining`;
  return low > 1 ? `${low} to ${high} remaining` : `at most ${high} remaining`;
}

/** Shows "23 judged, 40 to 60 remaining", and the same as a bar: done, minimum, maximum. */
export function progress({ judgments, remaining }) {
  element("#progress").textContent = `${judgments} judged, ${range(remaining)}`;
  const total = Math.max(judgments + remaining[1], 1);
  const ends = { done: judgments, minimum: judgments + remaining[0], maximum: judgments + remaining[1] };
  for (const [name, end] of Object.entries(ends)) element(`#bar .${name}`).setAttribute("width", (100 * end) / total);
}

/** Shows and announces whether the answer is saved. `kind` is a class. */
export function status(text, kind = "") {
  const line = element("#status");
  line.textContent = text;
  line.className = `status ${kind}`;
}

/** Shows a message until the next answer; null removes it. */
export function notice(text, link = null) {
  const box = element("#notice");
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

/** Announces the open question to screen readers. */
export function announce(state, tool) {
  const { left, right } = state.question;
  const documents = tool === "grades"
    ? `Document: ${left.title || left.key}.`
    : `Left: ${left.title || left.key}. Right: ${right.title || right.key}.`;
  element("#announce").textContent = `Question ${state.judgments + 1}: ${element("#question").textContent} ${documents}`;
  element("#main").dataset.question = `${state.task}:${state.seq}`;
}

/** Actions that are always possible, since they are not answers. */
export const ALWAYS = [
  "help", "pause", "describe", "titles", "guide", "leave", "view", "zoom", "highlight", "reflow", "differences",
];

/** Enables or disables the answers, which wait while one is being saved.  They use aria-disabled,
 * since a disabled button would lose the keyboard focus. */
export function enable(open, canUndo) {
  for (const button of document.querySelectorAll("[data-action]")) {
    const name = button.dataset.action;
    if (ALWAYS.includes(name)) continue;
    button.setAttribute("aria-disabled", String(!open || (name === "undo" && !canUndo)));
  }
}

export function options({ ties, bad }) {
  for (const button of document.querySelectorAll("[data-if='ties']")) button.hidden = !ties;
  for (const button of document.querySelectorAll("[data-if='bad']")) button.hidden = !bad;
}

/** Shows the plain answers, or "which one is bad?". */
export function mode(name) {
  element("#question").textContent = element("#question").dataset[name];
  const groups = document.querySelectorAll("[data-mode-group]");
  const inside = [...groups].some((g) => g.contains(document.activeElement));
  for (const group of groups) group.hidden = group.dataset.modeGroup !== name;
  if (inside) element(`[data-mode-group='${name}'] button`)?.focus();
}

/** On a phone: scrolls to the new document. */
export function scrollToSide(side) {
  const lane = element("#main");
  lane.scrollTo({ left: side === "right" ? lane.scrollWidth : 0, behavior: "instant" });
}

/** Shows that differences of near-duplicates are marked: of the documents, or of results in both lists. */
export function differ(yes, lists) {
  const note = element("#differ");
  if (!note) return;
  note.hidden = !yes;
  note.firstElementChild.textContent = lists ? "Some results of the lists" : "These";
}

/** Marks the chosen side until the next question. */
export function chosen(side) {
  element("#main").dataset.chosen = side ?? "";
}

export function commented(yes) {
  const button = element("[data-action='comment']");
  if (button) button.setAttribute("aria-pressed", String(yes));
}
