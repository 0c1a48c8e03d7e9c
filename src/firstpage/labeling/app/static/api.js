// Requests to the server: JSON in and out, with the CSRF token of this page.

const token = document.querySelector('meta[name="csrf-token"]')?.content ?? "";

/** A response with an error status; `body` is its JSON. */
export class Refused extends Error {
  constructor(status, body) {
    super(body?.detail && typeof body.detail === "string" ? body.detail : `The server answered with status ${status}.`);
    this.status = status;
    this.body = body;
  }
}

async function reply(response) {
  const body = await response.json().catch(() => null);
  if (!response.ok) throw new Refused(response.status, body);
  return body;
}

export async function get(path) {
  return reply(await fetch(path, { headers: { Accept: "application/json" } }));
}

export async function post(path, body, keepalive = false) {
  const headers = { "Content-Type": "application/json", "X-CSRF-Token": token };
  return reply(await fetch(path, { method: "POST", headers, body: JSON.stringify(body), keepalive }));
}

/** A unique key of a request; it also works if the page is not served over TLS. */
export function uniqueKey() {
  if (crypto.randomUUID) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
}
