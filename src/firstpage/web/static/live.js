// Reloads a section of the page while it is visible.

const section = document.querySelector("[data-live]");
const note = document.querySelector("#live-note");
let last = section?.innerHTML;

async function refresh() {
  if (document.hidden || section.contains(document.activeElement)) return;
  try {
    const reply = await fetch(section.dataset.live, { headers: { Accept: "text/html" } });
    if (!reply.ok || reply.redirected) throw new Error(String(reply.status));
    const text = await reply.text();
    if (text !== last) section.innerHTML = last = text; // from our own server
    note.textContent = "live";
  } catch {
    note.textContent = "no connection; trying again";
  }
}

if (section) {
  setInterval(refresh, 1000 * Number(section.dataset.every));
  document.addEventListener("visibilitychange", refresh);
}
