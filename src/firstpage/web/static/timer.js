// How long a question took: spans of work, pause and absence, by a clock that never jumps.
// No page, no events in here: clock and inputs come in, spans go out.

export class Timer {
  /** `awayAfter`: seconds without any input after which we ask rather than guess. */
  constructor({ awayAfter = 120, now = () => performance.now(), origin = performance.timeOrigin } = {}) {
    this.awayAfter = awayAfter * 1000;
    this.now = now;
    this.origin = origin;
    this.kind = null; // null: no question is shown; else active, paused or asking
    this.spans = [];
    this.from = this.last = 0;
  }

  /** A question is on the screen. */
  start() {
    if (this.kind !== null) return;
    this.kind = "active";
    this.from = this.last = this.now();
  }

  /** The person did something. */
  input() {
    if (this.kind === "active") this.last = this.now();
  }

  /** Time since the last input, in milliseconds; 0 unless somebody should be working. */
  get quiet() {
    return this.kind === "active" ? this.now() - this.last : 0;
  }

  get due() {
    return this.quiet >= this.awayAfter;
  }

  pause() {
    if (this.kind === "asking") this.gone();
    this.#close("paused");
  }

  resume() {
    if (this.kind === "paused") this.#close("active");
    this.last = this.now();
  }

  /** "Are you still working?" is on the screen; what came since the last input is undecided. */
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
  gone() {
    if (this.kind !== "asking") return;
    this.#add("active", this.from, this.last);
    this.#add("away", this.last, this.now());
    this.kind = "active";
    this.from = this.last = this.now();
  }

  /** All spans so far; the clock goes on from here, or stops with the question. */
  take({ stop = false } = {}) {
    if (this.kind === "asking") this.gone();
    if (this.kind !== null) this.#close(this.kind);
    const spans = this.spans;
    this.spans = [];
    if (stop) this.kind = null;
    return spans;
  }

  /** Milliseconds of one kind not yet taken. */
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
