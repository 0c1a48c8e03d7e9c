// Keyboard: / searches, j k and arrows move, Enter opens.  The page works without this script.

import { listen } from "./keys.js";

const box = document.getElementById("q");
const sides = [...document.querySelectorAll(".side")];
const results = sides.map((side) => [...side.querySelectorAll(".result")]);
const place = { side: 0, row: -1 };

/** Selects a result, and marks the same document on the other side. */
function select(side, row) {
  if (!results[side]?.length) return false;
  place.side = side;
  place.row = Math.max(0, Math.min(row, results[side].length - 1));
  const chosen = results[side][place.row];
  chosen.focus({ preventScroll: true });
  chosen.scrollIntoView({ block: "nearest", inline: "nearest" });
  return true;
}

function twins(chosen) {
  for (const result of results.flat()) {
    const twin = chosen && result !== chosen && result.dataset.document === chosen.dataset.document;
    result.classList.toggle("twin", Boolean(twin));
  }
}

function open() {
  const chosen = results[place.side]?.[place.row];
  const details = chosen?.contains(document.activeElement) && chosen.querySelector("details");
  if (!details || document.activeElement !== chosen) return false;
  details.open = !details.open;
  return true;
}

const KEYS = {
  "/": () => Boolean(box) && (box.focus(), box.select(), true),
  j: () => select(place.side, place.row + 1),
  ArrowDown: () => select(place.side, place.row + 1),
  k: () => select(place.side, place.row - 1),
  ArrowUp: () => place.row >= 0 && select(place.side, place.row - 1),
  h: () => select(0, place.row),
  ArrowLeft: () => place.row >= 0 && select(0, place.row),
  l: () => select(1, place.row),
  ArrowRight: () => place.row >= 0 && select(1, place.row),
  Enter: open,
};

listen(document, (key) => KEYS[key]?.() ?? false, () => {});
box?.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !box.value) box.blur();
  else if (event.key === "ArrowDown" && select(0, 0)) event.preventDefault();
});
document.addEventListener("focusin", (event) => {
  const chosen = event.target.closest?.(".result");
  twins(chosen);
  if (!chosen) return;
  place.side = results.findIndex((side) => side.includes(chosen));
  place.row = results[place.side].indexOf(chosen);
});
// A second click sends nothing.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post") return;
  if (form.dataset.sent) event.preventDefault();
  form.dataset.sent = "yes";
});
// With an event log: opening a document is a click, which is sent once.
const query = document.querySelector("[data-query]")?.dataset.query;
const clicked = new Set();

function sendClick(event) {
  const chosen = event.target.open && event.target.closest(".result");
  if (!query || !chosen || clicked.has(chosen)) return;
  clicked.add(chosen);
  const attributes = {
    object: { object_id: chosen.dataset.document },
    position: { ordinal: Number(chosen.value) },
  };
  const click = {
    action_name: "click",
    query_id: query,
    event_id: `${query}/${chosen.value}`,
    timestamp: new Date().toISOString(),
    event_attributes: attributes,
  };
  const headers = { "Content-Type": "application/json" };
  fetch("/events", { method: "POST", headers, body: JSON.stringify(click), keepalive: true })
    .then((response) => response.status === 503 && clicked.delete(chosen))
    .catch(() => clicked.delete(chosen));
}

document.addEventListener("toggle", sendClick, true);
