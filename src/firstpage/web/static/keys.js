// The keyboard.  One listener for the page and for every document in a frame.

const STORE = "firstpage.keys";

/** Is somebody writing?  A field of a dialog that was just closed may still hold the focus. */
function typing(target) {
  const field = target?.closest?.("input, textarea, select, [contenteditable]");
  return Boolean(field) && !field.closest("dialog:not([open])");
}

export function shortcutsOn() {
  try {
    return localStorage.getItem(STORE) !== "off";
  } catch {
    return true;
  }
}

/** Single keys can be switched off for those who dictate or whose fingers stray. */
export function setShortcuts(on) {
  try {
    localStorage.setItem(STORE, on ? "on" : "off");
  } catch {
    // Then they stay as they are.
  }
}

/** `press(key, event)` returns true where the key meant something here; then nothing else hears it. */
export function listen(target, press, input) {
  const heard = (event) => {
    input();
    if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
    if (typing(event.target) || document.querySelector("dialog:modal")) return;
    if (event.shiftKey && event.key.startsWith("Arrow")) return; // that marks text
    if (press(event.key.length === 1 ? event.key.toLowerCase() : event.key, event)) event.preventDefault();
  };
  target.addEventListener("keydown", heard);
  for (const kind of ["pointerdown", "pointermove", "wheel", "touchstart", "scroll"]) {
    target.addEventListener(kind, input, { passive: true, capture: true });
  }
}

/** Do our listeners work in a document whose own scripts are off?  Some browsers say no. */
function heard(doc) {
  let yes = false;
  doc.addEventListener("firstpage", () => (yes = true), { once: true });
  doc.dispatchEvent(new Event("firstpage"));
  return yes;
}

/** Then the page takes the focus back from the frame, so that keys are not swallowed there. */
function returnFocus(doc) {
  window.addEventListener("blur", () => {
    if (document.activeElement?.contentDocument === doc) setTimeout(() => window.focus(), 0);
  });
}

/** A document in a frame: its keys are ours, its links and forms lead nowhere. */
export function listenInside(doc, press, input) {
  listen(doc, press, input);
  if (!heard(doc)) returnFocus(doc);
  doc.addEventListener("click", (event) => {
    if (event.target?.closest?.("a, area")) event.preventDefault();
  });
  doc.addEventListener("submit", (event) => event.preventDefault());
}
