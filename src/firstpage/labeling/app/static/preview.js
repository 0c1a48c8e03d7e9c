// Previews the chosen files before the import: their content, or the first error with file:line.

const form = document.querySelector("[data-preview]");
const output = document.querySelector("#preview");
let latest = 0;

/** Enables only the files of the chosen format, which the style sheet shows. */
function selectFields() {
  const format = new FormData(form).get("format");
  for (const box of form.querySelectorAll("[data-formats]")) {
    const wanted = box.dataset.formats.split(" ").includes(format);
    const field = box.querySelector("input");
    field.disabled = !wanted;
    field.required = wanted && field.hasAttribute("data-needed");
  }
}

/** Returns the message of an error response, for example if a file is too large. */
function errorMessage(text) {
  try {
    return JSON.parse(text).detail;
  } catch {
    return "The server cannot preview these files now.";
  }
}

async function preview() {
  const request = (latest += 1);
  const ready = [...form.querySelectorAll("[data-needed]:enabled")].every((field) => field.files.length);
  if (!ready) return output.replaceChildren();
  output.textContent = "Reading…";
  try {
    const reply = await fetch(form.dataset.preview, { method: "POST", body: new FormData(form) });
    const text = await reply.text();
    if (request !== latest) return;
    if (!reply.ok) return (output.textContent = errorMessage(text));
    // HTML from our own server, which escapes names.
    const page = new DOMParser().parseFromString(text, "text/html");
    output.replaceChildren(...page.body.childNodes);
  } catch {
    if (request === latest) output.textContent = "No connection; choose the file again to preview it.";
  }
}

form.addEventListener("change", (event) => {
  if (event.target.name === "format") selectFields();
  preview();
});
selectFields();
