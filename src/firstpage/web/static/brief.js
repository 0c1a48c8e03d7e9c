// What may be too long for its lines: the description of a query, the titles of documents.
// Each is shown whole or folded, by a button and a key; the button is there only where it matters.

const one = (selector) => document.querySelector(selector);

class Fold {
  constructor(box, text) {
    Object.assign(this, { box, text, button: box.querySelector("button"), whole: false });
  }

  show(whole = this.whole) {
    this.whole = whole;
    this.box.classList.add("folded");
    const cut = this.text.scrollHeight > this.text.clientHeight + 1;
    this.box.classList.toggle("folded", !whole);
    this.button.hidden = !cut;
    this.button.setAttribute("aria-expanded", String(whole));
    this.button.firstElementChild.textContent = whole ? "Less" : "More";
  }
}

const description = new Fold(one("#brief"), one("#description"));
const titles = [...document.querySelectorAll(".heading")].map((box) => new Fold(box, box.querySelector(".title")));
let shown = null; // the query whose description is on the screen
let chosen = false; // its reader unfolded or folded it by hand, so it stays so

/** A question is open: the first one of a query shows the description whole, later ones fold it. */
export function show({ query, question }) {
  const fresh = JSON.stringify([query.text, query.description]);
  one("#query").textContent = query.text;
  description.text.textContent = (query.description ?? "").replace(/\n\s*\n/g, "\n"); // paragraphs are lines
  description.box.hidden = !query.description;
  for (const { text } of titles) text.textContent = question[text.id.replace("-title", "")]?.title || "";
  if (fresh !== shown) [shown, chosen, description.whole] = [fresh, false, true];
  else if (!chosen) description.whole = false;
  fit();
}

/** Something has another size now. */
export function fit() {
  for (const fold of [description, ...titles]) fold.show();
}

export function toggleDescription() {
  chosen = true;
  description.show(!description.whole);
}

/** Both titles at once: they are read one beside the other. */
export function toggleTitles() {
  const whole = !titles[0].whole;
  for (const fold of titles) fold.show(whole);
}

window.addEventListener("resize", fit);
