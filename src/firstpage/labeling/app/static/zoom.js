// An image of a document over the whole page, larger or smaller, with keys and buttons.

import { open } from "./dialogs.js";

const STEP = 1.5;
const MIN_SCALE = 0.25;
const MAX_SCALE = 12;
const MAX_FIT = 4; // times the size of a small image
const element = (selector) => document.querySelector(selector);

let images = [];
let shown = 0;
let scale = 1; // of the size at which the image fits

/** Opens the zoom with these images, starting with number `first`. */
export async function zoom(list, first = 0) {
  images = list;
  element("#zoom").addEventListener("keydown", press);
  const closed = open("zoom", { z: "" });
  show(first); // now that its box has a size
  await closed;
  element("#zoom").removeEventListener("keydown", press);
  element("#zoom img").removeAttribute("src");
}

function show(number) {
  shown = (number + images.length) % images.length;
  const image = element("#zoom img");
  image.src = images[shown].src;
  image.alt = images[shown].alt || "Image of the document";
  element("#zoom [data-zoom='next']").hidden = images.length < 2;
  resize(1);
}

function resize(value) {
  scale = Math.min(Math.max(value, MIN_SCALE), MAX_SCALE);
  const { naturalWidth, naturalHeight } = images[shown];
  const box = element("#zoom .middle");
  const fit = Math.min(box.clientWidth / naturalWidth, box.clientHeight / naturalHeight, MAX_FIT) || 1;
  const width = Math.max(1, Math.round(naturalWidth * fit * scale));
  element("#zoom img").style.inlineSize = `${width}px`;
  const of = images.length > 1 ? `Image ${shown + 1} of ${images.length}, ` : "";
  element("#zoom-status").textContent = `${of}${Math.round((100 * width) / (naturalWidth || 1))} %`;
}

const ACTIONS = {
  in: () => resize(scale * STEP),
  out: () => resize(scale / STEP),
  fit: () => resize(1),
  next: () => show(shown + 1),
};
const KEYS = { "+": "in", "=": "in", "-": "out", 0: "fit", n: "next" };

function press(event) {
  const action = KEYS[event.key];
  if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  ACTIONS[action]();
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-zoom]");
  if (button) ACTIONS[button.dataset.zoom]();
});
