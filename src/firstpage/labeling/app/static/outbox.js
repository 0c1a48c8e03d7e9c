// Answers that are not yet acknowledged.  An entry stays in local storage until the server has
// accepted or finally refused it, so neither a network failure nor a closed tab loses a judgment.
// Every retry sends the same key, so that the server records it once.

import { Refused, post } from "./api.js";

const PREFIX = "firstpage.outbox.";
const person = document.querySelector('meta[name="person"]')?.content ?? "";
const RETRY_DELAYS = [500, 1000, 2000, 4000, 8000];

function store(entry) {
  try {
    localStorage.setItem(PREFIX + entry.body.key, JSON.stringify(entry));
  } catch {
    // Without storage an answer is kept as long as this page.
  }
}

function remove(entry) {
  try {
    localStorage.removeItem(PREFIX + entry.body.key);
  } catch {
    // Nothing was stored.
  }
}

/** Returns the unacknowledged entries of this person, oldest first, of one task or of all. */
export function pending(task = null) {
  const entries = [];
  try {
    for (const name of Object.keys(localStorage)) {
      if (!name.startsWith(PREFIX)) continue;
      const entry = JSON.parse(localStorage.getItem(name)); // as `store` wrote it
      if (entry.person === person && (task === null || entry.task === task)) entries.push(entry);
    }
  } catch {
    // Without storage there are no entries.
  }
  return entries.sort((a, b) => a.createdAt - b.createdAt);
}

export function entry(task, path, body) {
  return { task, path, body, person, createdAt: Date.now() };
}

/** Resolves after a delay, or as soon as the network is back. */
function delay(ms) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    window.addEventListener("online", () => (clearTimeout(timer), resolve()), { once: true });
  });
}

/** Whether a retry may help: no network, or a busy or restarting server. */
function isTransient(error) {
  return !(error instanceof Refused) || error.status >= 500 || error.status === 429;
}

/**
 * Sends an entry until the server accepts it; `onRetry(error, tries)` is called after each failure.
 * Rejects only with errors that a retry cannot fix; 401 and 403 (signed out) keep the entry.
 */
export async function deliver(item, onRetry = () => {}) {
  store(item);
  for (let tries = 1; ; tries += 1) {
    try {
      const body = await post(item.path, item.body);
      remove(item);
      return body;
    } catch (error) {
      if (!isTransient(error)) {
        if (error.status !== 401 && error.status !== 403) remove(item);
        throw error;
      }
      onRetry(error, tries);
      await delay(RETRY_DELAYS[Math.min(tries, RETRY_DELAYS.length) - 1]);
    }
  }
}
