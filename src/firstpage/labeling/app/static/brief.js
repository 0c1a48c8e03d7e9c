// Texts that may be too long: the description of a query and the titles of documents.  Each is
// shown in full or folded, with a button and a key; the button is hidden if the text fits.

const element = (selector) => document.querySelector(selector);

class Foldable {
  constructor(box, text) {
    Object.assign(this, { box, text, button: box.querySelector("button"), full: false });
  }

  show(full = this.full) {
    this.full = full;
    this.box.classList.add("folded");
    const cut = this.text.scrollHeight > this.text.clientHeight + 1;
    this.box.classList.toggle("folded", !full);
    this.button.hidden = !cut;
    this.button.setAttribute("aria-expanded", String(full));
    this.button.firstElementChild.textContent = full ? "Less" : "More";
  }
}

const description = new Foldable(element("#brief"), element("#description"));
const titles = [...document.querySelectorAll(".heading")].map((box) => new Foldable(box, box.querySelector(".title")));
let shown = null; // the query whose description is shown
let chosen = false; // the assessor has folded or unfolded it, so it stays that way

/** Shows the texts of a question; the description is unfolded only at the first question of a query. */
export function show({ query, question }) {
  const fresh = JSON.stringify([query.text, query.description]);
  element("#query").textContent = query.text;
  description.text.textContent = (query.description ?? "").replace(/\n\s*\n/g, "\n"); // paragraphs become lines
  description.box.hidden = !query.description;
  for (const { text } of titles) text.textContent = question[text.id.replace("-title", "")]?.title || "";
  if (fresh !== shown) [shown, chosen, description.full] = [fresh, false, true];
  else if (!chosen) description.full = false;
  fit();
}

/** Updates the buttons after a change of size. */
export function fit() {
  for (const text of [description, ...titles]) text.show();
}

export function toggleDescription() {
  chosen = true;
  description.show(!description.full);
}

/** Folds or unfolds both titles at once. */
export function toggleTitles() {
  const full = !titles[0].full;
  for (const title of titles) title.show(full);
}

window.addEventListener("resize", fit);
