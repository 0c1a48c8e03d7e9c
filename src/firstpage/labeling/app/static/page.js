// On every page: unsent answers, and helpers for forms.

import { deliver, pending } from "./outbox.js";

async function copy(button) {
  const field = document.querySelector(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(field.value);
  } catch {
    field.select(); // the clipboard is available only over TLS
    document.execCommand("copy");
  }
  button.textContent = "Copied";
}

/** Asks for confirmation in a dialog before a form is sent, by the form or the button that says so. */
function confirmFirst(form, button, event) {
  const dialog = document.getElementById(button?.dataset.confirm ?? form.dataset.confirm);
  const confirmed = form.dataset.confirmed;
  delete form.dataset.confirmed;
  if (!dialog || confirmed) return;
  event.preventDefault();
  dialog.returnValue = "";
  dialog.addEventListener("close", () => {
    if (dialog.returnValue !== "yes") return;
    form.dataset.confirmed = "yes";
    form.requestSubmit(button);
  }, { once: true });
  dialog.showModal();
}

const RESEND_AFTER = 10_000; // milliseconds; by then the browser may have given up, unless it uploads
const PATIENCE = 500; // milliseconds before the page says that it waits

/** Sends a form once: a second click does nothing while the first is answered, and the page says so.
 * An upload may take any time, so it is sent again only after the page was left or reloaded. */
function sendOnce(form, button, event) {
  if (form.dataset.sent) return event.preventDefault();
  form.dataset.sent = "yes";
  const uploads = [...form.querySelectorAll("input[type='file']")].some((field) => field.files.length);
  if (!uploads) setTimeout(() => delete form.dataset.sent, RESEND_AFTER);
  const note = document.createElement("p");
  note.className = "soft waiting";
  note.setAttribute("role", "status");
  (button?.closest(".row") ?? button ?? form.lastElementChild).after(note);
  setTimeout(() => { note.textContent = uploads ? "Please wait. To cancel, reload the page." : "Please wait…"; }, PATIENCE);
}

/** After going back, every form can be sent again. */
function forgetSent() {
  for (const note of document.querySelectorAll(".waiting")) note.remove();
  for (const form of document.querySelectorAll("[data-sent]")) delete form.dataset.sent;
}

/** On a phone: marks which document is in view, and scrolls to the other one. */
function sideButtons() {
  const lane = document.querySelector(".documents");
  const buttons = [...document.querySelectorAll("[data-view]")];
  if (!lane || !buttons.length) return;
  const mark = () => {
    const right = lane.scrollLeft > (lane.scrollWidth - lane.clientWidth) / 2;
    for (const b of buttons) b.setAttribute("aria-pressed", String((b.dataset.view === "right") === right));
  };
  lane.addEventListener("scroll", mark, { passive: true });
  for (const b of buttons) {
    b.addEventListener("click", () => lane.scrollTo({ left: b.dataset.view === "right" ? lane.scrollWidth : 0 }));
  }
}

function dropZones() {
  for (const zone of document.querySelectorAll(".drop")) {
    const field = zone.querySelector("input[type='file']");
    zone.addEventListener("dragover", (event) => (event.preventDefault(), zone.classList.add("over")));
    zone.addEventListener("dragleave", () => zone.classList.remove("over"));
    zone.addEventListener("drop", (event) => {
      event.preventDefault();
      zone.classList.remove("over");
      field.files = event.dataTransfer.files;
    });
  }
}

document.addEventListener("click", (event) => {
  const copier = event.target.closest("[data-copy]");
  if (copier) copy(copier);
});
document.addEventListener("submit", (event) => {
  const { target: form, submitter: button } = event;
  if (form.method !== "post") return;
  confirmFirst(form, button, event);
  if (!event.defaultPrevented) sendOnce(form, button, event);
});
window.addEventListener("pageshow", forgetSent);

/** Shows that an answer of an earlier visit was refused.  If nobody is signed in, it stays stored. */
function showRefused(error) {
  if (error.status === 401 || error.status === 403) return;
  addNote("alert").textContent = `An answer from an earlier visit was not saved. ${error.message}`;
}

function addNote(role) {
  const note = document.createElement("p");
  note.className = "note warn";
  note.setAttribute("role", role);
  document.querySelector("#main").prepend(note);
  return note;
}

/** Sends what earlier visits could not send, and says so if it has to wait. */
async function sendPending() {
  let note = null;
  const wait = () => {
    note ??= addNote("status");
    note.textContent = "No connection. Answers from an earlier visit are saved in this browser and will be sent automatically.";
  };
  const send = (item) => deliver(item, wait).then(() => true, showRefused);
  const sent = await Promise.all(pending().map(send));
  note?.remove();
  if (sent.includes(true) && document.querySelector("[data-revise]")) location.reload(); // it shows older answers
}

sideButtons();
dropZones();
// The judging page sends its own unsent answers; other pages send them in the background.
if (!document.querySelector("[data-judge]")) sendPending();
