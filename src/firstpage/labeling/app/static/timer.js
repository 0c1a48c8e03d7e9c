// The time of a question as spans of activity, pause and absence, by a monotonic clock.
// Independent of the page: the clock and the inputs are passed in.

export class Timer {
  /** `awayAfter`: seconds without input after which the assessor is asked. */
  constructor({ awayAfter = 120, now = () => performance.now(), origin = performance.timeOrigin } = {}) {
    this.awayAfter = awayAfter * 1000;
    this.now = now;
    this.origin = origin;
    this.kind = null; // null: no question is shown; else active, paused or asking
    this.spans = [];
    this.from = this.last = 0;
  }

  /** Starts when a question is shown. */
  start() {
    if (this.kind !== null) return;
    this.kind = "active";
    this.from = this.last = this.now();
  }

  /** Records an input of the assessor. */
  input() {
    if (this.kind === "active") this.last = this.now();
  }

  /** Milliseconds since the last input; 0 unless active. */
  get idle() {
    return this.kind === "active" ? this.now() - this.last : 0;
  }

  get due() {
    return this.idle >= this.awayAfter;
  }

  pause() {
    if (this.kind === "asking") this.away();
    this.#close("paused");
  }

  resume() {
    if (this.kind === "paused") this.#close("active");
    this.last = this.now();
  }

  /** "Are you still working?" is shown; the time since the last input is undecided. */
  ask() {
    if (this.kind === "active") this.kind = "asking";
  }

  /** "Yes, I was reading." */
  reading() {
    if (this.kind !== "asking") return;
    this.kind = "active";
    this.last = this.now();
  }

  /** "No, I was away": since the last input. */
  away() {
    if (this.kind !== "asking") return;
    this.#add("active", this.from, this.last);
    this.#add("away", this.last, this.now());
    this.kind = "active";
    this.from = this.last = this.now();
  }

  /** Returns and removes all spans so far; `stop` ends the timing of the question. */
  take({ stop = false } = {}) {
    if (this.kind === "asking") this.away();
    if (this.kind !== null) this.#close(this.kind);
    const spans = this.spans;
    this.spans = [];
    if (stop) this.kind = null;
    return spans;
  }

  /** Returns the milliseconds of one kind that were not taken yet. */
  total(kind) {
    const past = this.spans.filter((s) => s.kind === kind).reduce((sum, s) => sum + s.ms, 0);
    return past + (this.kind === kind ? this.now() - this.from : 0);
  }

  #close(next) {
    if (this.kind === null) return;
    this.#add(this.kind, this.from, this.now());
    this.kind = next;
    this.from = this.now();
  }

  #add(kind, from, to) {
    const ms = Math.round(to - from);
    if (ms <= 0) return;
    this.spans.push({ kind, ms, start: new Date(this.origin + from).toISOString() });
  }
}
