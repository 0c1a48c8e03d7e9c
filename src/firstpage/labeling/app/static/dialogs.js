// Dialogs: pause, away, skip, comment, help, guidelines.  Each is a <dialog> of the page.

const element = (selector) => document.querySelector(selector);

/** Opens a dialog; resolves with the value of the button that closed it, or "" for Escape. */
export function open(name, keys = {}) {
  const dialog = element(`#${name}`);
  dialog.returnValue = "";
  return new Promise((done) => {
    const press = (event) => {
      const value = keys[event.key.toLowerCase()];
      if (value === undefined || event.target.closest("textarea, input[type='text']")) return;
      event.preventDefault();
      dialog.close(value);
      finish(value);
    };
    // The answer counts when it is given: the close event is a task that the next key can overtake.
    const finish = (value) => {
      dialog.removeEventListener("keydown", press);
      dialog.removeEventListener("cancel", cancel);
      dialog.removeEventListener("submit", submit);
      dialog.removeEventListener("close", close);
      done(value);
    };
    // A dialog that needs an answer cannot be closed with Escape.
    const cancel = (event) => (dialog.hasAttribute("data-must") ? event.preventDefault() : finish(""));
    const submit = (event) => finish(event.submitter?.value ?? "");
    // The close event of an earlier opening may still come.
    const close = () => dialog.open || finish(dialog.returnValue);
    dialog.addEventListener("keydown", press);
    dialog.addEventListener("cancel", cancel);
    dialog.addEventListener("submit", submit);
    dialog.addEventListener("close", close);
    dialog.showModal();
  });
}

/** Resolves with {reason, wholeQuery}, or null if canceled. */
export async function skip() {
  const form = element("#skip form");
  form.reset();
  const value = await open("skip");
  if (value !== "question" && value !== "whole") return null;
  const data = new FormData(form);
  const comment = String(data.get("words") ?? "").trim();
  const reason = [data.get("reason"), comment].filter(Boolean).join(": ");
  return { reason: reason || "no reason given", wholeQuery: value === "whole" };
}

/** Resolves with the edited comment.  Escape keeps what was typed; only Cancel discards it. */
export async function comment(text) {
  const box = element("#comment textarea");
  box.value = text;
  const value = await open("comment");
  return value === "drop" ? text : box.value.trim();
}

/** Whether the guidelines fit beside the documents; otherwise they are shown over them. */
const FITS_BESIDE = matchMedia("(min-width: 64rem) and (min-height: 30rem)");

const SCROLL_STEPS = { ArrowDown: 60, ArrowUp: -60, PageDown: 300, PageUp: -300 };

/** Shows the guidelines before the first question; resolves when the assessor starts. */
export async function introduce() {
  const guide = element("#guide");
  const scroll = ({ key }) => guide.querySelector(".middle").scrollBy({ top: SCROLL_STEPS[key] ?? 0 });
  guide.classList.add("first");
  guide.addEventListener("keydown", scroll);
  await open("guide");
  guide.removeEventListener("keydown", scroll);
  guide.classList.remove("first");
}

/** Shows or hides the guidelines.  Beside the documents they take no focus, so that keys still answer. */
export function guide(show = !element("#guide").open) {
  const panel = element("#guide");
  const focused = document.activeElement;
  if (show && !FITS_BESIDE.matches) return open("guide", { g: "" });
  if (show) panel.show();
  else panel.close();
  if (panel.contains(document.activeElement)) document.activeElement.blur();
  if (show) focused?.focus({ preventScroll: true });
  element("[data-action='guide'][aria-expanded]").setAttribute("aria-expanded", String(show));
}
