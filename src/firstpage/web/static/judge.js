// Judging: shows a question, takes an answer, saves it, shows the next.

import { Refused, get, post, unique } from "./api.js";
import * as brief from "./brief.js";
import * as comments from "./comments.js";
import * as dialogs from "./dialogs.js";
import { Pane } from "./frames.js";
import { listen, listenInside, setShortcuts, shortcutsOn } from "./keys.js";
import { deliver, entry, waiting } from "./outbox.js";
import { Reading, answersTop, documentsHidden } from "./reading.js";
import { Timer } from "./timer.js";
import * as tools from "./tools.js";
import * as view from "./view.js";

const page = document.querySelector("[data-judge]").dataset;
const training = page.mode === "training";
const answers = training ? page.api : `${page.api}/answers`;
const USES = ["pointerenter", "pointermove", "pointerdown", "wheel"]; // what tells which document one is at
const LOOKED_AWAY = 5000; // a hidden tab for less than this is a glance, not an absence

const timer = new Timer();
const panes = { left: pane("left") };
if (page.tool !== "grades") panes.right = pane("right");
const reading = new Reading(Object.values(panes), stuck);

let state = null; // as the server last told it
let busy = true; // nothing can be answered now
let mode = "plain"; // or "bad": which of the two is bad?
let shownAt = null;
let hiddenAt = null;

/** A side of the page; what is done in its document is done here. */
function pane(side) {
  const box = document.querySelector(`[data-pane='${side}']`);
  const made = new Pane(document.querySelector(`#${side}`), page[side], box.querySelector(".below"), (doc) => {
    listenInside(doc, press, input);
    for (const kind of USES) doc.addEventListener(kind, () => reading.use(made), { passive: true });
  });
  for (const kind of USES) box.addEventListener(kind, () => reading.use(made), { passive: true });
  return made;
}

function input() {
  timer.input();
}

/** A key was meant for scrolling, and there is no more to scroll: say what answers instead. */
function stuck(sideways) {
  if (sideways) return view.status("← → scroll this document; press Esc first to answer");
  const { ties, bad } = page.tool === "pairs" ? state?.options ?? {} : {};
  const words = [ties && "E: equally good", bad && "B: bad"].filter(Boolean).join(", ");
  view.status(words ? `↑ ↓ scroll here. ${words}` : "The document ends here");
}

function setMode(name) {
  mode = name;
  view.mode(name);
  view.status("");
}

/** Puts a state of the server on the screen. */
async function open(next) {
  state = next;
  if (next.done) return finish();
  if (next.question && next.tool !== page.tool) return location.reload(); // practice may change tools
  if (!next.question) return closed(next);
  timer.awayAfter = 1000 * (next.options?.away_after ?? 120);
  view.options(next.options ?? {});
  view.progress(next);
  brief.show(next);
  view.commented(Boolean(comments.of(next)));
  setMode("plain");
  const fresh = Object.keys(panes).filter((side) => panes[side].url !== next.question[side].url);
  view.bring(fresh.length === 1 ? fresh[0] : "left");
  const shown = Object.entries(panes).map(([side, pane]) => pane.show(next.question[side]));
  await Promise.all(shown);
  view.chosen(null);
  view.announce(next, page.tool);
  busy = false;
  view.enable(true, next.can_undo || Boolean(page.previous));
  shownAt = new Date().toISOString();
  timer.start();
  if (document.body.classList.contains("paused")) timer.pause(); // pressed while the answer was saved
  if (next.message) view.notice(next.message);
  ahead(next.seq);
}

/** What may come next is loaded now, on either side: it may appear on both. */
async function ahead(seq) {
  if (training) return;
  try {
    const { documents } = await get(`${page.api}/ahead`);
    if (state.seq !== seq || busy) return;
    for (const pane of Object.values(panes)) pane.preload(documents);
  } catch {
    // Only a convenience: without it the next question takes a moment longer.
  }
}

/** There is a task and nothing to answer: handed back, closed, or practice comes first. */
function closed({ message, query }) {
  document.querySelector("#query").textContent = query?.text ?? "";
  document.querySelector("#question").hidden = true;
  Object.values(panes).forEach((pane) => pane.clear());
  view.notice(message ?? "There is nothing to answer here.", [page.back, "Back to my queries"]);
}

function finish() {
  timer.take({ stop: true });
  location.assign(page.done);
}

function waitingAgain(error, tries) {
  view.status("Not saved yet", "late");
  const why = error instanceof Refused ? "The server is busy." : "No connection.";
  if (tries > 1 || !(error instanceof Refused)) {
    view.notice(`${why} Your answer is kept here and sent again by itself.`);
  }
}

/** Sends something that changes the log, and shows what came of it. */
async function send(item, done, side = null) {
  busy = true;
  view.enable(false);
  view.chosen(side);
  view.status("Saving…");
  try {
    const next = await deliver(item, waitingAgain);
    view.notice(null);
    if (training && "correct" in next) await explain(next);
    await open(next);
    view.status(training ? "" : done, "good");
  } catch (error) {
    await refused(error);
  }
}

/** The server will not take it: say so, and show how things stand. */
async function refused(error) {
  view.chosen(null);
  if (error.status === 401 || error.status === 403) {
    const back = encodeURIComponent(location.pathname);
    view.status("Not saved yet", "late");
    view.notice("You were signed out. Your answer is kept here:", [`/login?next=${back}`, "sign in to send it."]);
    return;
  }
  const before = state;
  await open(error.body?.state ?? (await get(page.api)));
  view.status("");
  const unsent = comments.same(before, state) ? "" : comments.of(before);
  const why = error.status === 422 ? `Not saved: reload the page, then answer again. (${error.message})` : error.message;
  view.notice(unsent ? `${why} Your comment on the previous question was not sent: “${unsent}”` : why);
}

function judge(answer, extra = {}) {
  const { left, right } = state.question;
  const body = {
    seq: state.seq,
    key: unique(),
    left: left.key,
    right: right?.key ?? null,
    outcome: answer.outcome,
    bad: answer.bad,
    skipped: false,
    reason: null,
    comment: comments.of(state) || null,
    shown_at: shownAt,
    answered_at: new Date().toISOString(),
    spans: timer.take({ stop: true }),
    ...extra,
  };
  return send(entry(page.task, answers, body), "Saved", answer.side);
}

/** Time that belongs to no answer. */
function hand(spans) {
  if (training || !spans.length) return;
  post(`${page.api}/spans`, { key: unique(), spans }, true).catch(() => {});
}

async function explain({ correct, explanation }) {
  document.querySelector("#explain-title").textContent = correct ? "That is correct" : "Not quite";
  document.querySelector("#explain-text").textContent = explanation || "";
  document.querySelector("#explain").dataset.correct = String(correct);
  await dialogs.ask("explain");
}

/** The query before this one had its last question: its last answer is taken back there. */
async function undoBefore() {
  const api = `/api/v1/tasks/${page.previous}`;
  busy = true;
  view.enable(false);
  view.status("Undoing…");
  hand(timer.take({ stop: true }));
  try {
    const { seq } = await get(api);
    await deliver(entry(page.previous, `${api}/undo`, { seq, key: unique() }), waitingAgain);
    location.assign(`/tasks/${page.previous}?undone`);
  } catch (error) {
    await open(await get(page.api));
    view.notice(`Nothing was undone. ${error.message}`);
  }
}

const actions = {
  bad: () => state.options.bad && setMode("bad"),
  cancel: () => setMode("plain"),
  undo() {
    if (!state.can_undo) return page.previous ? undoBefore() : view.status("There is nothing to undo.");
    hand(timer.take({ stop: true }));
    return send(entry(page.task, `${page.api}/undo`, { seq: state.seq, key: unique() }), "Undone");
  },
  async skip() {
    const why = await dialogs.skip();
    if (!why || busy) return;
    if (!why.whole) return judge({ outcome: 0, bad: [] }, { skipped: true, reason: why.reason });
    hand(timer.take({ stop: true }));
    busy = true;
    try {
      await post(`${page.api}/skip`, { reason: why.reason });
      location.assign(page.back);
    } catch (error) {
      await refused(error);
    }
  },
  async comment() {
    if (training) return;
    const asked = state;
    const text = await dialogs.comment(comments.of(asked));
    comments.keep(asked, text);
    view.commented(Boolean(text));
    if (text) view.status("The comment goes with your answer");
  },
  async pause() {
    timer.pause();
    document.body.classList.add("paused");
    await dialogs.ask("pause", { p: "go", enter: "go" });
    document.body.classList.remove("paused");
    timer.resume();
  },
  help: () => dialogs.ask("help", { "?": "" }),
  describe: brief.toggleDescription,
  titles: brief.toggleTitles,
  guide: () => dialogs.guide(),
  /** Out of the guidelines, or out of a document: the keys are the page's again. */
  leave() {
    if (document.querySelector("#guide").open) return dialogs.guide(false);
    document.querySelector("#main").focus({ preventScroll: true });
  },
};

/** Does what a key or a button says; false where it means nothing now. */
function act(name) {
  if (name === "tie" && !state?.options.ties) return false;
  if (busy && !view.ALWAYS.includes(name)) return Boolean(name);
  const answer = name && tools.answer(page.tool, name, state.question);
  if (answer) judge(answer);
  else if (actions[name]) actions[name]();
  else return false;
  return true;
}

function press(key, event) {
  const scrolled = reading.press(key, event);
  if (scrolled !== null) return scrolled;
  if (key !== "?" && !shortcutsOn()) return false;
  return event.repeat || act(tools.action(page.tool, mode, key)); // a key held down answers once
}

async function stillThere() {
  if (timer.kind !== "active" || document.querySelector("dialog:modal")) return;
  timer.ask();
  const said = await dialogs.ask("away", { y: "reading", n: "gone" });
  if (said === "gone") timer.gone();
  else timer.reading();
}

function watch() {
  listen(document, press, input);
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-action], [data-below]");
    if (button?.dataset.below === "page") document.querySelector("#main").scrollIntoView();
    else if (button?.dataset.below) panes[button.dataset.below].page(1);
    else if (button) act(button.dataset.action);
  });
  // A button that was clicked keeps no focus: the space bar, pressed to read on, would click it again.
  document.addEventListener("mousedown", (event) => {
    if (event.target.closest("[data-action], [data-below]")) event.preventDefault();
  });
  const cue = document.querySelector("[data-below='page']");
  const mark = () => {
    cue.hidden = !documentsHidden();
    cue.style.insetBlockEnd = `${window.innerHeight - answersTop() + 6}px`;
  };
  for (const kind of ["scroll", "resize"]) window.addEventListener(kind, mark, { passive: true });
  new ResizeObserver(mark).observe(document.querySelector(".asked"));
  setInterval(() => timer.due && stillThere(), 1000);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) hiddenAt = performance.now();
    else if (hiddenAt !== null && performance.now() - hiddenAt > LOOKED_AWAY) stillThere();
  });
  window.addEventListener("pagehide", () => hand(timer.take()));
  window.addEventListener("themechange", () => Object.values(panes).forEach((pane) => pane.retint()));
  const box = document.querySelector("#single-keys");
  box.checked = shortcutsOn();
  box.addEventListener("change", () => setShortcuts(box.checked));
}

/** First what an earlier visit could not send, then the open question. */
async function begin() {
  watch();
  let late = null;
  for (const item of waiting(page.task)) {
    try {
      view.status("Sending what was kept…");
      await deliver(item, waitingAgain);
    } catch (error) {
      if (error.status === 401 || error.status === 403) return refused(error);
      late = error.message;
    }
  }
  view.status("");
  for (let tries = 1; ; tries += 1) {
    try {
      const first = await get(page.api);
      if (first.question && "first" in page) await dialogs.introduce();
      await open(first);
      if (page.previous) view.status("Saved", "good");
      if (location.search === "?undone") view.status("Undone", "good");
      return view.notice(late ?? state.message);
    } catch (error) {
      if (error instanceof Refused && error.status < 500) return view.notice(error.message);
      view.notice("No connection. Trying again…");
      await new Promise((go) => setTimeout(go, Math.min(1000 * tries, 8000)));
    }
  }
}

begin();
