// Changes of earlier answers: each change is saved at once, or reverted with an error message.

import { post, uniqueKey } from "./api.js";

const table = document.querySelector("[data-revise]");
const status = document.querySelector("#save-status");

/** Parses "1", "0", "-1:left" or "0:both": an outcome, and which documents are marked bad. */
function parseAnswer(select) {
  const [outcome, side] = select.value.split(":");
  const { left, right } = select.dataset;
  const bad = { left: [left], right: [right], both: [left, right] }[side] ?? [];
  return { outcome: Number(outcome), bad };
}

async function change(select) {
  const body = { seq: Number(table.dataset.seq), key: uniqueKey(), index: Number(select.dataset.index), ...parseAnswer(select) };
  status.textContent = "Saving…";
  try {
    const state = await post(`${table.dataset.revise}/revise`, body);
    table.dataset.seq = state.seq;
    // Later judgments may have changed: reload the list.
    location.assign(`${location.pathname}?note=saved`);
  } catch (error) {
    if (error.body?.state) table.dataset.seq = error.body.state.seq;
    status.textContent = `Not saved. ${error.message}`;
    select.value = select.dataset.before;
  }
}

for (const select of table?.querySelectorAll("select") ?? []) {
  select.dataset.before = select.value;
  select.addEventListener("change", () => change(select));
}
