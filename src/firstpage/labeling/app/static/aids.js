// Aids for reading, each switched on or off with a key or in the dialog "View", and remembered: words of
// the query are marked, lines that a program wrapped are joined, differences of near-duplicates are marked.

import { markDifferences, markQuery, supported } from "./marks.js";

const STORAGE_KEY = "firstpage.view.";
export const AIDS = {
  highlight: { label: "Query words", can: supported },
  reflow: { label: "Joined lines", can: true },
  differences: { label: "Differences", can: supported },
};
const on = Object.fromEntries(Object.keys(AIDS).map((name) => [name, remembered(name)]));

function remembered(name) {
  try {
    return localStorage.getItem(STORAGE_KEY + name) !== "off";
  } catch {
    return true;
  }
}

export function isOn(name) {
  return on[name] && AIDS[name].can;
}

/** Switches an aid on or off; returns what a status line says. */
export function set(name, value = !on[name]) {
  on[name] = value;
  try {
    localStorage.setItem(STORAGE_KEY + name, value ? "on" : "off");
  } catch {
    // Without storage it holds for this page.
  }
  return AIDS[name].can ? `${AIDS[name].label}: ${value ? "on" : "off"}` : "This browser cannot mark words.";
}

/** Applies the aids to the shown documents, `lists` or others; returns whether differences are marked. */
export function apply(documents, query, lists) {
  const loaded = documents.filter((doc) => doc?.body);
  for (const doc of loaded) {
    doc.documentElement.classList.toggle("reflow", isOn("reflow"));
    if (supported) markQuery(doc, query, isOn("highlight"));
  }
  return supported && loaded.length === 2 && markDifferences(...loaded, isOn("differences"), lists);
}

/** Shows the aids in the dialog "View"; `changed(name)` is called when one is switched. */
export function bind(changed) {
  for (const box of document.querySelectorAll("[data-aid]")) {
    const name = box.dataset.aid;
    box.checked = isOn(name);
    box.disabled = !AIDS[name].can;
    box.addEventListener("change", () => {
      set(name, box.checked);
      changed(name);
    });
  }
}

/** Updates the dialog after a key has switched an aid. */
export function refresh() {
  for (const box of document.querySelectorAll("[data-aid]")) box.checked = isOn(box.dataset.aid);
}
