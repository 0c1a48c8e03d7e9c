// Words and their stems, as the package's text analysis has them (firstpage/search/analyzer.py): lower
// case, runs of letters and digits, ideographs one by one, English stop words, Snowball's English stems.

const UNSPACED = "\\u0e00-\\u0e7f\\u3040-\\u30ff\\u3400-\\u4dbf\\u4e00-\\u9fff\\uf900-\\ufaff\\u{20000}-\\u{3fffd}";
const WORD = new RegExp(`[${UNSPACED}]|(?:(?![${UNSPACED}])[\\p{L}\\p{N}])(?:(?![${UNSPACED}])[\\p{L}\\p{N}\\p{M}\\u00ad\\u200c\\u200d\\u2060\\ufeff])*`, "gu");
const INVISIBLE = /[\u00ad\u200c\u200d\u2060\ufeff]/g;
const STOP_WORDS = new Set(
  ("a an and are as at be but by for if in into is it no not of on or such that the their then there " +
    "these they this to was will with").split(" "),
);

/** Yields the words of a text: {word, start, end}; a possessive s is not a word. */
export function* words(text) {
  for (const match of text.matchAll(WORD)) {
    const start = match.index;
    const possessive = /^s$/i.test(match[0]) && /[\p{L}\p{N}]['’]$/u.test(text.slice(Math.max(0, start - 3), start));
    if (!possessive) yield { word: normalized(match[0]), start, end: start + match[0].length };
  }
}

function normalized(word) {
  return word.replace(INVISIBLE, "").normalize("NFKC").toLowerCase();
}

/** Returns the stems of a query; its stop words count only if it has no other words. */
export function queryStems(query) {
  const all = Array.from(words(query), ({ word }) => word);
  const informative = all.filter((word) => !STOP_WORDS.has(word));
  return new Set((informative.length ? informative : all).map(stem));
}

const V = "[aeiouy]";
const C = "[^aeiouyY]";
const DOUBLE = /(?:bb|dd|ff|gg|mm|nn|pp|rr|tt)$/;
const SHORT_END = new RegExp(`(?:^${V}[^aeiouy]|[^aeiouy]${V}[^aeiouywxY])$`);
const EXCEPTIONS = {
  skis: "ski", skies: "sky", dying: "die", lying: "lie", tying: "tie", idly: "idl", gently: "gentl",
  ugly: "ugli", early: "earli", only: "onli", singly: "singl",
};
const INVARIANT = new Set("sky news howe atlas cosmos bias andes inning outing canning herring earring proceed exceed succeed".split(" "));
const STEP2 = [
  ["ization", "ize"], ["ational", "ate"], ["fulness", "ful"], ["ousness", "ous"], ["iveness", "ive"],
  ["tional", "tion"], ["biliti", "ble"], ["lessli", "less"], ["entli", "ent"], ["ation", "ate"],
  ["alism", "al"], ["aliti", "al"], ["ousli", "ous"], ["iviti", "ive"], ["fulli", "ful"], ["enci", "ence"],
  ["anci", "ance"], ["abli", "able"], ["izer", "ize"], ["ator", "ate"], ["alli", "al"], ["bli", "ble"],
];
const STEP3 = [
  ["ational", "ate"], ["tional", "tion"], ["alize", "al"], ["icate", "ic"], ["iciti", "ic"], ["ical", "ic"],
  ["ness", ""], ["ful", ""],
];
const STEP4 = /(?:ement|ance|ence|able|ible|ment|ant|ent|ism|ate|iti|ous|ive|ize|al|er|ic)$/;

/** Returns the stem of an English word (Snowball, "Porter2"); other words stay as they are. */
export function stem(word) {
  if (word.length < 3 || !/^[a-z0-9]+$/.test(word)) return word;
  if (Object.hasOwn(EXCEPTIONS, word)) return EXCEPTIONS[word];
  if (INVARIANT.has(word)) return word;
  let w = word.replace(/^y/, "Y").replace(/([aeiou])y/g, "$1Y");
  const [r1, r2] = regions(w);
  w = step1(w, r1);
  if (INVARIANT.has(w)) return w;
  w = step2(w, r1);
  w = step3(w, r1, r2);
  const ending = w.match(STEP4)?.[0];
  if (ending) w = w.length - ending.length >= r2 ? w.slice(0, -ending.length) : w;
  else if (/[st]ion$/.test(w) && w.length - 3 >= r2) w = w.slice(0, -3);
  return step5(w, r1, r2).toLowerCase();
}

/** Returns where R1 and R2 start: behind the first non-vowel after a vowel, and again. */
function regions(w) {
  const behind = (from) => {
    const match = w.slice(from).match(new RegExp(`${V}${C}|${V}Y`));
    return match ? from + match.index + 2 : w.length;
  };
  const prefix = w.match(/^(?:gener|commun|arsen|past|univers|later|emerg|organ|inter)/)?.[0];
  const r1 = prefix ? prefix.length : behind(0);
  return [r1, behind(r1)];
}

function step1(w, r1) {
  if (/sses$/.test(w)) w = w.slice(0, -2);
  else if (/ie[sd]$/.test(w)) w = w.slice(0, w.length > 4 ? -2 : -1);
  else if (/[^us]s$/.test(w) && hasVowelBefore(w)) w = w.slice(0, -1);
  if (INVARIANT.has(w)) return w;
  const eed = w.match(/eed(?:ly)?$/)?.[0];
  const ing = w.match(/(?:ed|ing)(?:ly)?$/)?.[0];
  if (eed) {
    if (w.length - eed.length >= r1) w = w.slice(0, -eed.length) + "ee";
  } else if (ing && new RegExp(V).test(w.slice(0, -ing.length))) {
    w = w.slice(0, -ing.length);
    if (/(?:at|bl|iz)$/.test(w)) w += "e";
    else if (DOUBLE.test(w)) w = /^[aeo]..$/.test(w) ? w : w.slice(0, -1);
    else if (endsShort(w) && r1 >= w.length) w += "e";
  }
  return w.replace(/(?<=.[^aeiouy])[yY]$/, "i");
}

function endsShort(w) {
  return SHORT_END.test(w) || w === "past";
}

/** Whether there is a vowel before the letter that precedes a final s. */
function hasVowelBefore(w) {
  return new RegExp(V).test(w.slice(0, -2));
}

function step2(w, r1) {
  for (const [ending, other] of STEP2) {
    if (w.endsWith(ending)) return w.length - ending.length >= r1 ? w.slice(0, -ending.length) + other : w;
  }
  if (/logi$/.test(w)) return w.length - 3 >= r1 ? w.slice(0, -1) : w;
  if (/[cdeghkmnrt]li$/.test(w) && w.length - 2 >= r1) return w.slice(0, -2);
  return w;
}

function step3(w, r1, r2) {
  for (const [ending, other] of STEP3) {
    if (w.endsWith(ending)) return w.length - ending.length >= r1 ? w.slice(0, -ending.length) + other : w;
  }
  return w.endsWith("ative") && w.length - 5 >= r2 ? w.slice(0, -5) : w;
}

function step5(w, r1, r2) {
  const before = w.slice(0, -1);
  if (w.endsWith("e") && (w.length - 1 >= r2 || (w.length - 1 >= r1 && !endsShort(before)))) return before;
  return w.endsWith("ll") && w.length - 1 >= r2 ? before : w;
}
