// Keyboard shortcuts: one listener for the page and for every document in a frame.

const STORAGE_KEY = "firstpage.keys";

/** Whether the target is a text field, other than of a dialog that was just closed. */
function typing(target) {
  const field = target?.closest?.("input, textarea, select, [contenteditable]");
  return Boolean(field) && !field.closest("dialog:not([open])");
}

export function shortcutsOn() {
  try {
    return localStorage.getItem(STORAGE_KEY) !== "off";
  } catch {
    return true;
  }
}

/** Switches single-key shortcuts on or off, for example for dictation. */
export function setShortcuts(on) {
  try {
    localStorage.setItem(STORAGE_KEY, on ? "on" : "off");
  } catch {
    // Without storage the setting does not change.
  }
}

/** Listens to keys; `press(key, event)` returns true if the key is handled. */
export function listen(target, press, input) {
  const onKey = (event) => {
    input();
    if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
    if (typing(event.target) || document.querySelector("dialog:modal")) return;
    if (event.shiftKey && event.key.startsWith("Arrow")) return; // selects text
    if (press(event.key.length === 1 ? event.key.toLowerCase() : event.key, event)) event.preventDefault();
  };
  target.addEventListener("keydown", onKey);
  for (const kind of ["pointerdown", "pointermove", "wheel", "touchstart", "scroll"]) {
    target.addEventListener(kind, input, { passive: true, capture: true });
  }
}

/** Whether listeners work in a document without scripts; in some browsers they do not. */
function receivesEvents(doc) {
  let received = false;
  doc.addEventListener("firstpage", () => (received = true), { once: true });
  doc.dispatchEvent(new Event("firstpage"));
  return received;
}

/** Returns the focus from the frame to the page, so that keys are not lost. */
function returnFocus(doc) {
  window.addEventListener("blur", () => {
    if (document.activeElement?.contentDocument === doc) setTimeout(() => window.focus(), 0);
  });
}

/** Listens inside a document in a frame, and disables its links and forms. */
export function listenInside(doc, press, input) {
  listen(doc, press, input);
  if (!receivesEvents(doc)) returnFocus(doc);
  doc.addEventListener("click", (event) => {
    if (event.target?.closest?.("a, area")) event.preventDefault();
  });
  doc.addEventListener("submit", (event) => event.preventDefault());
}
