// The judging page: shows a question, saves the answer, shows the next question.

import * as aids from "./aids.js";
import * as annotations from "./annotations.js";
import { Refused, get, post, uniqueKey } from "./api.js";
import * as brief from "./brief.js";
import * as comments from "./comments.js";
import * as dialogs from "./dialogs.js";
import { Pane } from "./frames.js";
import { listen, listenInside, setShortcuts, shortcutsOn } from "./keys.js";
import { deliver, entry, pending } from "./outbox.js";
import { Reading, answersTop, documentsHidden } from "./reading.js";
import { Timer } from "./timer.js";
import * as tools from "./tools.js";
import * as view from "./view.js";
import { zoom } from "./zoom.js";

const page = document.querySelector("[data-judge]").dataset;
const training = page.mode === "training";
const answers = training ? page.api : `${page.api}/answers`;
const POINTER_EVENTS = ["pointerenter", "pointermove", "pointerdown", "wheel"];
const MIN_ABSENCE = 5000; // milliseconds that the tab must be hidden to count as an absence

const timer = new Timer();
const contents = new Map(); // of the documents that this page has received, by URL
const panes = { left: pane("left") };
if (page.tool !== "grades") panes.right = pane("right");
const reading = new Reading(Object.values(panes), scrollEnded);

let state = null; // the latest state from the server
let busy = true; // no answer is accepted now
let mode = "plain"; // or "bad": which of the two is bad?
let shownAt = null;
let hiddenAt = null;

/** Creates the pane of a side, whose document forwards its events to the page. */
function pane(side) {
  const box = document.querySelector(`[data-pane='${side}']`);
  const adopt = (doc) => {
    listenInside(doc, press, input);
    for (const kind of POINTER_EVENTS) doc.addEventListener(kind, () => reading.use(created), { passive: true });
    doc.addEventListener("click", ({ target }) => target.tagName === "IMG" && zoomImages(target));
  };
  const root = document.querySelector(`#${side}`);
  const created = new Pane({ root, label: page[side], cue: box.querySelector(".below"), contents, emptyUrl: page.frame, adopt });
  for (const kind of POINTER_EVENTS) box.addEventListener(kind, () => reading.use(created), { passive: true });
  return created;
}

function input() {
  timer.input();
}

/** Applies the aids for reading to the shown documents. */
function applyAids() {
  if (!state?.question) return;
  const sides = Object.keys(panes);
  const lists = page.tool === "lists" || sides.every((side) => state.question[side].kind === "list");
  const documents = sides.map((side) => panes[side].document);
  view.differ(aids.apply(documents, state.query.text, lists), lists);
}

function switchAid(name) {
  view.status(aids.set(name));
  aids.refresh();
  applyAids();
}

/** Zooms an image, or the first one of the document in use. */
function zoomImages(image = null) {
  const ordered = Object.values(panes).sort((a, b) => (b === reading.used) - (a === reading.used));
  const images = ordered.flatMap((pane) => [...(pane.document?.images ?? [])]).filter((i) => i.naturalWidth);
  if (!images.length) return view.status("These documents have no images.");
  zoom(images, Math.max(0, images.indexOf(image)));
}

/** Explains which keys answer after a scrolling key had no effect. */
function scrollEnded(sideways) {
  if (sideways) return view.status("← → scroll this document; press Esc first to answer");
  const { ties, bad } = page.tool === "pairs" ? state?.options ?? {} : {};
  const keys = [ties && "E: equally good", bad && "B: bad"].filter(Boolean).join(", ");
  view.status(keys ? `↑ ↓ scroll here. ${keys}` : "End of the document");
}

function setMode(name) {
  mode = name;
  view.mode(name);
  view.status("");
}

/** Shows a state from the server. */
async function open(next) {
  state = next;
  for (const [url, content] of Object.entries(next.documents ?? {})) contents.set(url, content);
  if (next.done) return finish();
  if (next.question && next.tool !== page.tool) return location.reload(); // practice may change tools
  if (!next.question) return closed(next);
  timer.awayAfter = 1000 * (next.options?.away_after ?? 120);
  view.options(next.options ?? {});
  view.progress(next);
  brief.show(next);
  view.commented(Boolean(comments.of(next)));
  setMode("plain");
  annotations.clear();
  const fresh = Object.keys(panes).filter((side) => panes[side].url !== next.question[side].url);
  view.scrollToSide(fresh.length === 1 ? fresh[0] : "left");
  const shown = Object.entries(panes).map(([side, pane]) => pane.show(next.question[side]));
  await Promise.all(shown);
  applyAids();
  view.chosen(null);
  view.announce(next, page.tool);
  busy = false;
  view.enable(true, next.can_undo || Boolean(page.previous));
  shownAt = new Date().toISOString();
  timer.start();
  if (document.body.classList.contains("paused")) timer.pause(); // pause was pressed while the answer was saved
  if (next.message) view.notice(next.message);
  if (Object.values(panes).some((pane) => pane.document?.images.length)) prefetch(next.seq);
}

/** Preloads the documents that may come next, on both sides, where their images would take time. */
async function prefetch(seq) {
  if (training) return;
  try {
    const { documents } = await get(`${page.api}/prefetch`);
    if (state.seq !== seq || busy) return;
    for (const pane of Object.values(panes)) pane.preload(documents);
  } catch {
    // Without it the next question only takes a moment longer.
  }
}

/** Shows why there is no question: returned, closed, or practice comes first. */
function closed({ message, query }) {
  document.querySelector("#query").textContent = query?.text ?? "";
  document.querySelector("#question").hidden = true;
  Object.values(panes).forEach((pane) => pane.clear());
  view.notice(message ?? "There is no open question.", [page.back, "Back to my queries"]);
}

function finish() {
  timer.take({ stop: true });
  location.assign(page.done);
}

function showRetry(error, tries) {
  view.status("Not saved yet", "late");
  const cause = error instanceof Refused ? "The server is busy." : "No connection.";
  if (tries > 1 || !(error instanceof Refused)) {
    view.notice(`${cause} Your answer is saved in this browser and will be sent automatically.`);
  }
}

/** Sends a change, and shows the next state. */
async function send(item, done, side = null) {
  busy = true;
  view.enable(false);
  view.chosen(side);
  view.status("Saving…");
  try {
    const next = await deliver(item, showRetry);
    view.notice(null);
    if (training && "correct" in next) await explain(next);
    await open(next);
    view.status(training ? "" : done, "good");
  } catch (error) {
    await refused(error);
  }
}

function isSignedOut(error) {
  return error.status === 401 || error.status === 403;
}

function signedOut() {
  const address = `/login?next=${encodeURIComponent(location.pathname)}`;
  const saved = pending().length > 0;
  view.status(saved ? "Not saved yet" : "Not saved", "late");
  if (saved) view.notice("You were signed out. Your last action is saved in this browser:", [address, "sign in to send it."]);
  else view.notice("You were signed out, and your last action was not saved:", [address, "sign in, then repeat it."]);
}

/** Shows why the server refused a request, and the current state. */
async function refused(error) {
  view.chosen(null);
  if (isSignedOut(error)) return signedOut();
  const before = state;
  const current = error.body?.state ?? (await get(`${page.api}?contents=true`).catch(() => null));
  if (!current) return view.notice(`${error.message} Reload the page to continue.`);
  await open(current);
  view.status("");
  const unsent = comments.same(before, state) ? "" : comments.of(before);
  const reason = error.status === 422 ? `Not saved: reload the page, then answer again. (${error.message})` : error.message;
  view.notice(unsent ? `${reason} Your comment on the previous question was not sent: “${unsent}”` : reason);
}

/** Shows the open question as it was: a request that is not repeated had no answer. */
function unanswered(message) {
  busy = false;
  view.enable(true, state.can_undo || Boolean(page.previous));
  view.status("");
  view.notice(`No connection. ${message} Try again when you are online.`);
  timer.start();
}

function documentId(url) {
  return Number(url.slice(url.lastIndexOf("/") + 1));
}

function judge(answer, extra = {}) {
  const unanswered = extra.skipped ? [] : annotations.missing();
  if (unanswered.length) return view.status(`First grade: ${unanswered.join(", ")}`, "late");
  const { left, right } = state.question;
  const body = {
    seq: state.seq,
    key: uniqueKey(),
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
    known: training ? null : Array.from(contents.keys(), documentId),
    ...(extra.skipped ? {} : annotations.fields()),
    ...extra,
  };
  return send(entry(page.task, answers, body), "Saved", answer.side);
}

/** Sends time that belongs to no answer, once: the page may be closing, so there is no retry. */
function sendSpans(spans) {
  if (training || !spans.length) return;
  post(`${page.api}/spans`, { key: uniqueKey(), spans }, true).catch((error) => console.warn(error));
}

async function explain({ correct, explanation }) {
  document.querySelector("#explain-title").textContent = correct ? "That is correct" : "Not quite";
  document.querySelector("#explain-text").textContent = explanation || "";
  document.querySelector("#explain").dataset.correct = String(correct);
  await dialogs.open("explain");
}

/** Undoes the last answer of the previous query. */
async function undoPrevious() {
  const api = `/api/v1/tasks/${page.previous}`;
  busy = true;
  view.enable(false);
  view.status("Undoing…");
  sendSpans(timer.take({ stop: true }));
  try {
    const { seq } = await get(api);
    await deliver(entry(page.previous, `${api}/undo`, { seq, key: uniqueKey() }), showRetry);
    location.assign(`/tasks/${page.previous}?undone`);
  } catch (error) {
    if (!(error instanceof Refused)) return unanswered("Nothing was undone.");
    if (isSignedOut(error)) return signedOut();
    await open(await get(page.api));
    view.notice(`Nothing was undone. ${error.message}`);
  }
}

const actions = {
  bad: () => state.options.bad && setMode("bad"),
  cancel: () => setMode("plain"),
  undo() {
    if (!state.can_undo) return page.previous ? undoPrevious() : view.status("There is nothing to undo.");
    sendSpans(timer.take({ stop: true }));
    return send(entry(page.task, `${page.api}/undo`, { seq: state.seq, key: uniqueKey() }), "Undone");
  },
  async skip() {
    const choice = await dialogs.skip();
    if (!choice || busy) return;
    if (!choice.wholeQuery) return judge({ outcome: 0, bad: [] }, { skipped: true, reason: choice.reason });
    sendSpans(timer.take({ stop: true }));
    busy = true;
    try {
      await post(`${page.api}/skip`, { reason: choice.reason });
      location.assign(page.back);
    } catch (error) {
      if (!(error instanceof Refused)) return unanswered("The query was not returned.");
      await refused(error);
    }
  },
  async comment() {
    if (training) return;
    const commentedState = state;
    const text = await dialogs.comment(comments.of(commentedState));
    comments.save(commentedState, text);
    view.commented(Boolean(text));
    if (text) view.status("The comment will be sent with your answer");
  },
  async pause() {
    timer.pause();
    document.body.classList.add("paused");
    await dialogs.open("pause", { p: "go", enter: "go" });
    document.body.classList.remove("paused");
    timer.resume();
  },
  help: () => dialogs.open("help", { "?": "" }),
  view: () => dialogs.open("view", { v: "" }),
  zoom: () => zoomImages(),
  highlight: () => switchAid("highlight"),
  reflow: () => switchAid("reflow"),
  differences: () => switchAid("differences"),
  describe: brief.toggleDescription,
  titles: brief.toggleTitles,
  guide: () => dialogs.guide(),
  /** Leaves the guidelines or a document, so that keys answer again. */
  leave() {
    if (document.querySelector("#guide").open) return dialogs.guide(false);
    document.querySelector("#main").focus({ preventScroll: true });
  },
};

/** Performs the action of a key or a button; returns false if it has none now. */
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
  if (page.tool === "pairs" && !busy && /^[1-9]$/.test(key) && !event.repeat) return annotations.toggleNumber(Number(key) - 1);
  return event.repeat || act(tools.action(page.tool, mode, key)); // a key that is held down answers once
}

async function askIfAway() {
  if (timer.kind !== "active" || document.querySelector("dialog:modal")) return;
  timer.ask();
  const answer = await dialogs.open("away", { y: "reading", n: "away" });
  if (answer === "away") timer.away();
  else timer.reading();
}

function addListeners() {
  listen(document, press, input);
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-action], [data-below]");
    if (button?.dataset.below === "page") document.querySelector("#main").scrollIntoView();
    else if (button?.dataset.below) panes[button.dataset.below].page(1);
    else if (button?.dataset.reason) annotations.toggle(button);
    else if (button) act(button.dataset.action);
  });
  // A clicked button does not keep the focus: the space bar, pressed to scroll, would click it again.
  document.addEventListener("mousedown", (event) => {
    if (event.target.closest("[data-action], [data-below]")) event.preventDefault();
  });
  const cue = document.querySelector("[data-below='page']");
  const mark = () => {
    cue.hidden = !documentsHidden();
    cue.style.insetBlockEnd = `${window.innerHeight - answersTop() + 6}px`;
  };
  for (const kind of ["scroll", "resize"]) window.addEventListener(kind, mark, { passive: true });
  new ResizeObserver(mark).observe(document.querySelector(".query"));
  setInterval(() => timer.due && askIfAway(), 1000);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) hiddenAt = performance.now();
    else if (hiddenAt !== null && performance.now() - hiddenAt > MIN_ABSENCE) askIfAway();
  });
  window.addEventListener("pagehide", () => sendSpans(timer.take()));
  window.addEventListener("themechange", () => Object.values(panes).forEach((pane) => pane.updateTheme()));
  const box = document.querySelector("#single-keys");
  box.checked = shortcutsOn();
  box.addEventListener("change", () => setShortcuts(box.checked));
  aids.bind(applyAids);
  // In the choices of an aspect, arrows choose; all other keys do what they do elsewhere.
  document.querySelector(".aspects")?.addEventListener("keydown", (event) => {
    if (event.key.length > 1 || event.key === " " || event.ctrlKey || event.altKey || event.metaKey) return;
    if (press(event.key.toLowerCase(), event)) event.preventDefault();
  });
  const grades = document.querySelectorAll("[data-grade]");
  tools.addGrades(grades);
  for (const button of grades) if (button.dataset.color) button.style.setProperty("--grade", button.dataset.color);
}

/** Sends answers that an earlier visit could not send, then shows the open question. */
async function start() {
  addListeners();
  let outboxError = null;
  for (const item of pending(page.task)) {
    try {
      view.status("Sending saved answers…");
      await deliver(item, showRetry);
    } catch (error) {
      if (isSignedOut(error)) return signedOut();
      outboxError = error.message;
    }
  }
  view.status("");
  for (let tries = 1; ; tries += 1) {
    try {
      const first = await get(`${page.api}?contents=true`);
      if (first.question && "first" in page) await dialogs.introduce();
      await open(first);
      if (page.previous) view.status("Saved", "good");
      if (location.search === "?undone") view.status("Undone", "good");
      return view.notice(outboxError ?? state.message);
    } catch (error) {
      if (error instanceof Refused && error.status < 500) return view.notice(error.message);
      view.notice("No connection. Trying again…");
      await new Promise((resolve) => setTimeout(resolve, Math.min(1000 * tries, 8000)));
    }
  }
}

start();
