// Comments, each bound to the question that it was written for.  It stays in this tab until the
// tab is closed: a question that comes back after an undo or a reload still has its comment.

const PREFIX = "firstpage.comment.";
const here = new Map(); // where the browser's store is shut

function name({ task, asked, question }) {
  return PREFIX + JSON.stringify([task, asked, question.left.key, question.right?.key ?? null]);
}

/** The comment on the open question of a state; "" where there is none. */
export function of(state) {
  if (!state?.question) return "";
  try {
    return sessionStorage.getItem(name(state)) ?? "";
  } catch {
    return here.get(name(state)) ?? "";
  }
}

export function keep(state, text) {
  try {
    if (text) sessionStorage.setItem(name(state), text);
    else sessionStorage.removeItem(name(state));
  } catch {
    here.set(name(state), text);
  }
}

export function same(one, other) {
  return Boolean(one?.question && other?.question) && name(one) === name(other);
}
