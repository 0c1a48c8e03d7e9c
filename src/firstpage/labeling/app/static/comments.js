// Comments, each stored for its question until the tab is closed: a question that is shown again
// after an undo or a reload still has its comment.

const PREFIX = "firstpage.comment.";
const fallback = new Map(); // if session storage is not available

function storageKey({ task, judgments, question }) {
  return PREFIX + JSON.stringify([task, judgments, question.left.key, question.right?.key ?? null]);
}

/** Returns the comment on the open question of a state, or "". */
export function of(state) {
  if (!state?.question) return "";
  try {
    return sessionStorage.getItem(storageKey(state)) ?? "";
  } catch {
    return fallback.get(storageKey(state)) ?? "";
  }
}

export function save(state, text) {
  try {
    if (text) sessionStorage.setItem(storageKey(state), text);
    else sessionStorage.removeItem(storageKey(state));
  } catch {
    fallback.set(storageKey(state), text);
  }
}

/** Whether two states have the same open question. */
export function same(first, second) {
  return Boolean(first?.question && second?.question) && storageKey(first) === storageKey(second);
}
