// Looks into chosen files before they are imported: what is in them, or file:line of what is wrong.

const form = document.querySelector("[data-preview]");
const box = document.querySelector("#preview");
let latest = 0;

/** Only the files of the chosen format are shown and sent. */
function fit() {
  const format = new FormData(form).get("format");
  for (const part of form.querySelectorAll("[data-formats]")) {
    const wanted = part.dataset.formats.split(" ").includes(format);
    part.hidden = !wanted;
    const field = part.querySelector("input");
    field.disabled = !wanted;
    field.required = wanted && field.hasAttribute("data-needed");
  }
}

/** What the server says where it does not even look: the file is too large, or one is signed out. */
function said(text) {
  try {
    return JSON.parse(text).detail;
  } catch {
    return "The server cannot look into this now.";
  }
}

async function look() {
  const mine = (latest += 1);
  const ready = [...form.querySelectorAll("[data-needed]:enabled")].every((field) => field.files.length);
  if (!ready) return box.replaceChildren();
  box.textContent = "Reading…";
  try {
    const reply = await fetch(form.dataset.preview, { method: "POST", body: new FormData(form) });
    const text = await reply.text();
    if (mine !== latest) return;
    if (!reply.ok) return (box.textContent = said(text));
    // Our own server's page part: names in it were escaped there.
    const page = new DOMParser().parseFromString(text, "text/html");
    box.replaceChildren(...page.body.childNodes);
  } catch {
    if (mine === latest) box.textContent = "No connection; choose the file again to look into it.";
  }
}

form.addEventListener("change", (event) => {
  if (event.target.name === "format") fit();
  look();
});
fit();
