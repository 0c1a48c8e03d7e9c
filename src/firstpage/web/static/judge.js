// Judging: shows a question, takes an answer, saves it, shows the next.

import { Refused, get, post, unique } from "./api.js";
import * as dialogs from "./dialogs.js";
import { Pane } from "./frames.js";
import { listen, listenInside, setShortcuts, shortcutsOn } from "./keys.js";
import { deliver, entry, waiting } from "./outbox.js";
import { Timer } from "./timer.js";
import * as tools from "./tools.js";
import * as view from "./view.js";

const page = document.querySelector("[data-judge]").dataset;
const training = page.mode === "training";
const answers = training ? page.api : `${page.api}/answers`;
const LOOKED_AWAY = 5000; // a hidden tab for less than this is a glance, not an absence

const timer = new Timer();
const inside = (doc) => listenInside(doc, press, input);
const panes = { left: new Pane(document.querySelector("#left"), page.left, inside) };
if (page.tool !== "grades") panes.right = new Pane(document.querySelector("#right"), page.right, inside);

let state = null; // as the server last told it
let busy = true; // nothing can be answered now
let mode = "plain"; // or "bad": which of the two is bad?
let comment = "";
let shownAt = null;
let hiddenAt = null;

function input() {
  timer.input();
}

function setMode(name) {
  mode = name;
  view.mode(name);
  view.status(name === "bad" ? "Which one is bad?" : "");
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
  view.question(next);
  setMode("plain");
  const fresh = Object.keys(panes).filter((side) => panes[side].url !== next.question[side].url);
  view.bring(fresh.length === 1 ? fresh[0] : "left");
  const shown = Object.entries(panes).map(([side, pane]) => pane.show(next.question[side]));
  await Promise.all(shown);
  view.chosen(null);
  view.announce(next, page.tool);
  busy = false;
  view.enable(true, next.can_undo);
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
async function send(item, side = null) {
  busy = true;
  view.enable(false);
  view.chosen(side);
  view.status("Saving…");
  try {
    const next = await deliver(item, waitingAgain);
    view.notice(null);
    comment = "";
    view.commented(false);
    if (training && "right" in next) await explain(next);
    await open(next);
    view.status(training ? "" : "Saved", "good");
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
  await open(error.body?.state ?? (await get(page.api)));
  view.status("");
  view.notice(error.message);
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
    comment: comment || null,
    shown_at: shownAt,
    answered_at: new Date().toISOString(),
    spans: timer.take({ stop: true }),
    ...extra,
  };
  return send(entry(page.task, answers, body), answer.side);
}

/** Time that belongs to no answer. */
function hand(spans) {
  if (training || !spans.length) return;
  post(`${page.api}/spans`, { key: unique(), spans }, true).catch(() => {});
}

async function explain({ right, explanation }) {
  document.querySelector("#explain-title").textContent = right ? "That is right" : "Not quite";
  document.querySelector("#explain-text").textContent = explanation || "";
  document.querySelector("#explain").dataset.right = String(right);
  await dialogs.ask("explain");
}

const actions = {
  bad: () => state.options.bad && setMode("bad"),
  cancel: () => setMode("plain"),
  undo() {
    if (!state.can_undo) return view.status("There is nothing to undo.");
    hand(timer.take({ stop: true }));
    return send(entry(page.task, `${page.api}/undo`, { seq: state.seq, key: unique() }));
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
    comment = await dialogs.comment(comment);
    view.commented(Boolean(comment));
    if (comment) view.status("Comment goes with your next answer");
  },
  async pause() {
    timer.pause();
    document.body.classList.add("paused");
    await dialogs.ask("pause", { p: "go", enter: "go" });
    document.body.classList.remove("paused");
    timer.resume();
  },
  help: () => dialogs.ask("help", { "?": "" }),
};

/** Does what a key or a button says; false where it means nothing now. */
function act(name) {
  if (name === "tie" && !state?.options.ties) return false;
  if (busy && name !== "help" && name !== "pause") return Boolean(name);
  const answer = name && tools.answer(page.tool, name, state.question);
  if (answer) judge(answer);
  else if (actions[name]) actions[name]();
  else return false;
  return true;
}

function press(key) {
  if (key === "PageDown" || key === "PageUp") {
    for (const pane of Object.values(panes)) pane.scroll(key === "PageDown" ? 1 : -1);
    return true;
  }
  return act(tools.action(page.tool, mode, key));
}

async function stillThere() {
  if (timer.kind !== "active" || document.querySelector("dialog[open]")) return;
  timer.ask();
  const said = await dialogs.ask("away", { y: "reading", n: "gone" });
  if (said === "gone") timer.gone();
  else timer.reading();
}

function watch() {
  listen(document, press, input);
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-action]");
    if (button) act(button.dataset.action);
  });
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
      await open(await get(page.api));
      return view.notice(late ?? state.message);
    } catch (error) {
      if (error instanceof Refused && error.status < 500) return view.notice(error.message);
      view.notice("No connection. Trying again…");
      await new Promise((go) => setTimeout(go, Math.min(1000 * tries, 8000)));
    }
  }
}

begin();
