// Keeps a part of the page fresh while somebody looks at it.

const part = document.querySelector("[data-live]");
const note = document.querySelector("#live-note");
let last = part?.innerHTML;

async function refresh() {
  if (document.hidden || part.contains(document.activeElement)) return;
  try {
    const reply = await fetch(part.dataset.live, { headers: { Accept: "text/html" } });
    if (!reply.ok || reply.redirected) throw new Error(String(reply.status));
    const text = await reply.text();
    if (text !== last) part.innerHTML = last = text; // our own server's part of this page
    note.textContent = "live";
  } catch {
    note.textContent = "no connection; trying again";
  }
}

if (part) {
  setInterval(refresh, 1000 * Number(part.dataset.every));
  document.addEventListener("visibilitychange", refresh);
}
