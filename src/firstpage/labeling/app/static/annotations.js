// What an answer can have besides its outcome: reasons, which are tags, and grades of further aspects.

const reasons = [...document.querySelectorAll("[data-reason]")];
const aspects = [...document.querySelectorAll("[data-aspect]")];

/** Chooses or unchooses a reason. */
export function toggle(button) {
  button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
}

/** Chooses or unchooses reason number `index`; returns false if there is none. */
export function toggleNumber(index) {
  if (!reasons[index]) return false;
  toggle(reasons[index]);
  return true;
}

/** Clears everything, before another question. */
export function clear() {
  for (const button of reasons) button.setAttribute("aria-pressed", "false");
  for (const field of aspects) for (const choice of field.querySelectorAll("input")) choice.checked = false;
}

/** Returns the aspects that have no grade yet, and moves the focus to the first. */
export function missing() {
  const open = aspects.filter((field) => !field.querySelector("input:checked"));
  open[0]?.querySelector("input").focus();
  return open.map((field) => field.dataset.aspect);
}

/** Returns the fields of an answer; none if nothing was chosen. */
export function fields() {
  const chosen = reasons.filter((button) => button.getAttribute("aria-pressed") === "true").map((b) => b.dataset.reason);
  const graded = aspects.flatMap((field) => {
    const choice = field.querySelector("input:checked");
    return choice ? [[field.dataset.aspect, Number(choice.value)]] : [];
  });
  return {
    ...(chosen.length && { reasons: chosen }),
    ...(graded.length && { aspects: Object.fromEntries(graded) }),
  };
}
