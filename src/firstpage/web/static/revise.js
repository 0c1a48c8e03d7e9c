// Changing an answer given before: each change is saved at once, or put back with a word why.

import { post, unique } from "./api.js";

const table = document.querySelector("[data-revise]");
const said = document.querySelector("#said");

/** "1", "0", "-1:left", "0:both": an outcome, and which documents are called bad. */
function meaning(select) {
  const [outcome, side] = select.value.split(":");
  const { left, right } = select.dataset;
  const bad = { left: [left], right: [right], both: [left, right] }[side] ?? [];
  return { outcome: Number(outcome), bad };
}

async function change(select) {
  const body = { seq: Number(table.dataset.seq), key: unique(), at: Number(select.dataset.at), ...meaning(select) };
  said.textContent = "Saving…";
  try {
    const state = await post(`${table.dataset.revise}/revise`, body);
    table.dataset.seq = state.seq;
    // What was asked after it may no longer stand: show the list as it now is, and say so there.
    location.assign(`${location.pathname}?note=saved`);
  } catch (error) {
    if (error.body?.state) table.dataset.seq = error.body.state.seq;
    said.textContent = `Not saved. ${error.message}`;
    select.value = select.dataset.before;
  }
}

for (const select of table?.querySelectorAll("select") ?? []) {
  select.dataset.before = select.value;
  select.addEventListener("change", () => change(select));
}
