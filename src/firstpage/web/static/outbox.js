// What was answered and not yet acknowledged.  An entry stays in the browser's store until the
// server has said 200 (or that it can never take it), so neither a lost network nor a closed tab
// loses a judgment.  The same key is sent each time: the server records it once.

import { Refused, post } from "./api.js";

const PREFIX = "firstpage.outbox.";
const person = document.querySelector('meta[name="person"]')?.content ?? "";
const WAITS = [500, 1000, 2000, 4000, 8000];

function remember(entry) {
  try {
    localStorage.setItem(PREFIX + entry.body.key, JSON.stringify(entry));
  } catch {
    // Without storage an answer still lives as long as this page.
  }
}

function forget(entry) {
  try {
    localStorage.removeItem(PREFIX + entry.body.key);
  } catch {
    // Nothing was kept.
  }
}

/** Entries of this person that were never acknowledged, oldest first; of one task, or of all. */
export function waiting(task = null) {
  const found = [];
  try {
    for (const name of Object.keys(localStorage)) {
      if (!name.startsWith(PREFIX)) continue;
      const entry = JSON.parse(localStorage.getItem(name));
      if (entry.person === person && (task === null || entry.task === task)) found.push(entry);
    }
  } catch {
    return [];
  }
  return found.sort((a, b) => a.at - b.at);
}

export function entry(task, path, body) {
  return { task, path, body, person, at: Date.now() };
}

function until(ms) {
  return new Promise((go) => {
    const timer = setTimeout(go, ms);
    window.addEventListener("online", () => (clearTimeout(timer), go()), { once: true });
  });
}

/** Whether trying again later may help: no network, a busy or restarting server. */
function passing(error) {
  return !(error instanceof Refused) || error.status >= 500 || error.status === 429;
}

/**
 * Sends until the server has taken it.  `told(error, tries)` is called after each failure.
 * Rejects only with what no retry can mend; 401 and 403 (signed out) keep the entry.
 */
export async function deliver(item, told = () => {}) {
  remember(item);
  for (let tries = 1; ; tries += 1) {
    try {
      const body = await post(item.path, item.body);
      forget(item);
      return body;
    } catch (error) {
      if (!passing(error)) {
        if (error.status !== 401 && error.status !== 403) forget(item);
        throw error;
      }
      told(error, tries);
      await until(WAITS[Math.min(tries, WAITS.length) - 1]);
    }
  }
}
