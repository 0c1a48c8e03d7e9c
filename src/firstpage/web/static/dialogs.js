// Questions beside the question: pause, away, skip, comment, help.  Each is a <dialog> of the page.

const one = (selector) => document.querySelector(selector);

/** Opens a dialog; resolves with the value of the button that closed it, "" for Escape. */
export function ask(name, keys = {}) {
  const dialog = one(`#${name}`);
  dialog.returnValue = "";
  return new Promise((done) => {
    const press = (event) => {
      const value = keys[event.key.toLowerCase()];
      if (value === undefined || event.target.closest("textarea, input[type='text']")) return;
      event.preventDefault();
      dialog.close(value);
    };
    // Leaving such a question unanswered is no answer.
    const stay = (event) => dialog.hasAttribute("data-must") && event.preventDefault();
    dialog.addEventListener("keydown", press);
    dialog.addEventListener("cancel", stay);
    dialog.addEventListener(
      "close",
      () => {
        dialog.removeEventListener("keydown", press);
        dialog.removeEventListener("cancel", stay);
        done(dialog.returnValue);
      },
      { once: true },
    );
    dialog.showModal();
  });
}

/** A reason for skipping: {reason, whole} or null. */
export async function skip() {
  const form = one("#skip form");
  form.reset();
  const value = await ask("skip");
  if (value !== "one" && value !== "whole") return null;
  const data = new FormData(form);
  const said = String(data.get("words") ?? "").trim();
  const reason = [data.get("reason"), said].filter(Boolean).join(": ");
  return { reason: reason || "no reason given", whole: value === "whole" };
}

/** The comment as it now reads.  Escape keeps what was typed; only the button Cancel drops it. */
export async function comment(before) {
  const box = one("#comment textarea");
  box.value = before;
  const value = await ask("comment");
  return value === "drop" ? before : box.value.trim();
}

/** Guidelines beside the documents where there is room, else over them. */
const BESIDE = matchMedia("(min-width: 64rem) and (min-height: 30rem)");

const TURNS = { ArrowDown: 60, ArrowUp: -60, PageDown: 300, PageUp: -300 };

/** Before the first question, the guidelines; resolves when the reader starts. */
export async function introduce() {
  const guide = one("#guide");
  const turn = ({ key }) => guide.querySelector(".middle").scrollBy({ top: TURNS[key] ?? 0 });
  guide.classList.add("first");
  guide.addEventListener("keydown", turn);
  await ask("guide");
  guide.removeEventListener("keydown", turn);
  guide.classList.remove("first");
}

/** Shows or hides the guidelines.  Beside the documents they take no focus: keys still answer. */
export function guide(show = !one("#guide").open) {
  const panel = one("#guide");
  const focused = document.activeElement;
  if (show && !BESIDE.matches) return ask("guide", { g: "" });
  if (show) panel.show();
  else panel.close();
  if (panel.contains(document.activeElement)) document.activeElement.blur();
  if (show) focused?.focus({ preventScroll: true });
  one("[data-action='guide'][aria-expanded]").setAttribute("aria-expanded", String(show));
}
