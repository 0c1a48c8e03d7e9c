// A whole result list on one page: each grade is saved at once, in any order.

import { uniqueKey } from "./api.js";
import { deliver, entry, pending } from "./outbox.js";
import { Timer } from "./timer.js";

const list = document.querySelector("[data-rate]");
const status = document.querySelector("#save-status");
const rest = document.querySelector("[data-rest]");
const timer = new Timer({ awayAfter: Number(list.dataset.away) });
let shownAt = new Date().toISOString();
let saving = Promise.resolve(); // changes are saved one after the other
let unsaved = 0;
let failed = false;

function showRetry() {
  status.textContent = "Not saved yet. Your grade is saved in this browser and will be sent automatically.";
}

function ungraded() {
  return [...list.children].filter((item) => !item.querySelector("[aria-pressed='true']"));
}

function showProgress() {
  const missing = ungraded().length;
  document.querySelector("#rated").textContent = `${list.children.length - missing} of ${list.children.length} graded`;
  rest.hidden = !missing || missing === list.children.length;
  document.querySelector("#finish").hidden = missing > 0 || unsaved > 0;
}

function press(item, grade) {
  for (const button of item.querySelectorAll("[data-grade]")) button.setAttribute("aria-pressed", String(button.dataset.grade === grade));
}

/** Time without input is counted as absence once it is longer than the project allows. */
function input() {
  if (timer.due) {
    timer.ask();
    timer.away();
  }
  timer.input();
}

/** Returns the path and the body of a new grade, or of a changed one. */
function change(item, outcome) {
  const step = { seq: Number(list.dataset.seq), key: uniqueKey(), outcome, bad: [] };
  if (item.dataset.index) return ["revise", { ...step, index: Number(item.dataset.index) }];
  const times = { shown_at: shownAt, answered_at: new Date().toISOString(), spans: timer.take() };
  return ["answers", { ...step, left: item.dataset.key, right: null, ...times }];
}

async function save(item, grade, before) {
  if (failed) return void press(item, before);
  status.textContent = "Saving…";
  const [path, body] = change(item, Number(grade));
  try {
    const state = await deliver(entry(list.dataset.task, `${list.dataset.rate}/${path}`, body), showRetry);
    list.dataset.seq = state.seq;
    item.dataset.index ??= state.judgments - 1;
    shownAt = new Date().toISOString();
    status.textContent = "Saved";
  } catch (error) {
    failed = true; // what follows would meet the same: the page is reloaded first
    press(item, before);
    const signedOut = error.status === 401 || error.status === 403;
    const link = document.createElement("a");
    link.href = signedOut ? `/login?next=${encodeURIComponent(location.pathname)}` : location.pathname;
    link.textContent = signedOut ? "Sign in to continue." : "Reload the page to continue.";
    status.replaceChildren(`Not saved. ${error.message} `, link);
  }
}

function grade(item, value) {
  const before = item.querySelector("[aria-pressed='true']")?.dataset.grade ?? null;
  if (failed || before === value) return;
  press(item, value);
  unsaved += 1;
  showProgress();
  saving = saving.then(() => save(item, value, before)).then(() => {
    unsaved -= 1;
    showProgress();
  });
}

list.addEventListener("click", (event) => {
  const button = event.target.closest("[data-grade]");
  if (button) grade(button.closest("li"), button.dataset.grade);
});
rest.addEventListener("click", () => {
  for (const item of ungraded()) grade(item, "0");
});

const EVENTS = ["pointermove", "keydown", "wheel", "scroll"];
for (const kind of EVENTS) window.addEventListener(kind, input, { passive: true });

/** Hides the title of a loaded document, which is above it, and applies the colors of the page. */
function adopt(frame) {
  const doc = frame.contentDocument;
  if (!doc?.body) return;
  for (const kind of EVENTS) doc.addEventListener(kind, input, { passive: true });
  doc.querySelector("html.own > body > h1:first-child")?.toggleAttribute("hidden", true);
  const theme = doc.documentElement.className === "own" ? (document.documentElement.dataset.theme ?? "") : "light";
  doc.documentElement.style.colorScheme = theme;
  frame.style.colorScheme = theme;
}
for (const frame of list.querySelectorAll("iframe")) {
  frame.addEventListener("load", () => adopt(frame));
  adopt(frame);
}
window.addEventListener("beforeunload", (event) => unsaved && !failed && event.preventDefault());

/** Sends grades that an earlier visit could not send; the page is then loaded again. */
async function start() {
  const unsent = pending(list.dataset.task);
  for (const item of unsent) await deliver(item, showRetry).catch(() => null);
  if (unsent.length && !pending(list.dataset.task).length) return location.reload();
  showProgress();
  timer.start();
}

start();
