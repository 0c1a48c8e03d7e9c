// Reloads a section of the page while it is visible.

const section = document.querySelector("[data-live]");
const note = document.querySelector("#live-note");
let last = section?.innerHTML;

/** Replaces the section, whose tables stay scrolled. */
function show(text) {
  const offsets = Array.from(section.querySelectorAll(".scroll"), (box) => box.scrollLeft);
  section.innerHTML = last = text; // from our own server
  section.querySelectorAll(".scroll").forEach((box, i) => { box.scrollLeft = offsets[i] ?? 0; });
}

async function refresh() {
  if (document.hidden || section.contains(document.activeElement)) return;
  try {
    const reply = await fetch(section.dataset.live, { headers: { Accept: "text/html" } });
    if (!reply.ok || reply.redirected) throw new Error(String(reply.status));
    const text = await reply.text();
    if (text !== last) show(text);
    note.textContent = "live";
  } catch {
    note.textContent = "no connection; trying again";
  }
}

if (section) {
  setInterval(refresh, 1000 * Number(section.dataset.every));
  document.addEventListener("visibilitychange", refresh);
}
