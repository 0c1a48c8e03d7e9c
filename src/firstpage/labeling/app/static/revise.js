// Changes of earlier answers: each change is saved at once, or reverted with an error message.

import { uniqueKey } from "./api.js";
import { deliver, entry } from "./outbox.js";

const table = document.querySelector("[data-revise]");
const status = document.querySelector("#save-status");
let saving = false;

/** Parses "1", "0", "-1:left" or "0:both": an outcome, and which documents are marked bad. */
function parseAnswer(row) {
  const [outcome, side] = row.querySelector("[data-answer]").value.split(":");
  const { left, right } = row.dataset;
  const bad = { left: [left], right: [right], both: [left, right] }[side] ?? [];
  return { outcome: Number(outcome), bad };
}

/** Returns the reasons and aspects of a row; those that the page does not offer stay as they are. */
function annotations(row) {
  const reasons = [...row.querySelectorAll("[data-reason]")];
  const aspects = [...row.querySelectorAll("[data-aspect]")];
  const graded = aspects.filter((s) => s.value).map((s) => [s.dataset.aspect, Number(s.value)]);
  return {
    ...(reasons.length && { reasons: reasons.filter((box) => box.checked).map((box) => box.value) }),
    ...(aspects.length && { aspects: Object.fromEntries(graded) }),
  };
}

function showRetry() {
  status.textContent = "Not saved yet. Your change is saved in this browser and will be sent automatically.";
}

function showSignedOut() {
  const link = document.createElement("a");
  link.href = `/login?next=${encodeURIComponent(location.pathname)}`;
  link.textContent = "sign in to send it.";
  status.replaceChildren("You were signed out. Your change is saved in this browser: ", link);
}

async function change(row, revert) {
  if (row.querySelector("[data-answer]").value === "skipped") {
    status.textContent = "Not saved. This question was skipped; choose an answer first.";
    return revert();
  }
  if (saving) {
    status.textContent = "Not saved. Please wait until the change before is saved.";
    return revert();
  }
  const { seq, revise } = table.dataset;
  const body = { seq: Number(seq), key: uniqueKey(), index: Number(row.dataset.index), ...parseAnswer(row), ...annotations(row) };
  status.textContent = "Saving…";
  saving = true;
  try {
    const state = await deliver(entry(revise.split("/").at(-1), `${revise}/revise`, body), showRetry);
    table.dataset.seq = state.seq;
    // Later judgments may have changed: reload the list.
    location.assign(`${location.pathname}?note=saved`);
  } catch (error) {
    if (error.status === 401 || error.status === 403) return showSignedOut();
    saving = false;
    if (error.body?.state) table.dataset.seq = error.body.state.seq;
    status.textContent = `Not saved. ${error.message}`;
    revert();
  }
}

for (const row of table?.querySelectorAll("tr[data-index]") ?? []) {
  for (const select of row.querySelectorAll("select")) {
    const before = select.value;
    select.addEventListener("change", () => change(row, () => { select.value = before; }));
  }
  for (const box of row.querySelectorAll("[data-reason]")) {
    box.addEventListener("change", () => change(row, () => { box.checked = !box.checked; }));
  }
}
