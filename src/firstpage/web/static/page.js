// On every page: the light switch, answers left over from a lost network, small helps for forms.

import { deliver, waiting } from "./outbox.js";

const root = document.documentElement;

function dark() {
  const chosen = root.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function toggle() {
  root.dataset.theme = dark() ? "light" : "dark";
  try {
    localStorage.setItem("firstpage.theme", root.dataset.theme);
  } catch {
    // Then for this page only.
  }
  window.dispatchEvent(new Event("themechange"));
}

async function copy(button) {
  const field = document.querySelector(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(field.value);
  } catch {
    field.select(); // the clipboard is only there over TLS
    document.execCommand("copy");
  }
  button.textContent = "Copied";
}

/** A form marked so asks once more, in a dialog of the page, before it does what cannot be undone. */
function confirmFirst(form, event) {
  const dialog = document.getElementById(form.dataset.confirm);
  if (!dialog || form.dataset.sure) return;
  event.preventDefault();
  dialog.returnValue = "";
  dialog.addEventListener("close", () => {
    if (dialog.returnValue !== "yes") return;
    form.dataset.sure = "yes";
    form.requestSubmit();
  }, { once: true });
  dialog.showModal();
}

/** On a phone: which of two documents is in view, and a tap to see the other. */
function swipes() {
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
  if (event.target.closest("[data-theme-toggle]")) toggle();
  const copier = event.target.closest("[data-copy]");
  if (copier) copy(copier);
});
document.addEventListener("submit", (event) => {
  if (event.target.dataset.confirm) confirmFirst(event.target, event);
});
swipes();
dropZones();
// The judging page sends its own; elsewhere a left-over answer goes out quietly.
if (!document.querySelector("[data-judge]")) {
  for (const item of waiting()) deliver(item).catch(() => {});
}
