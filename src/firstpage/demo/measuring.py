"""The measure step: editors say which first page they like better, and DCGLearn learns why."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from firstpage.data.preferences.preferences import Preferences, factorize
from firstpage.data.preferences.utility import Utility
from firstpage.dcglearn.validation import folds
from firstpage.dcglearn.weights import factors
from firstpage.demo import project as desk
from firstpage.demo.collection import Collection
from firstpage.demo.labeling import K
from firstpage.demo.output import Folder, Teller
from firstpage.demo.project import SimulatedEditor
from firstpage.demo.rankings import MAIN, Compared, difference, page_of
from firstpage.measures.compare import Comparison, Difference, compare
from firstpage.measures.registry import measure
from firstpage.measures.significance import p_value
from firstpage.types import Floats
from firstpage.web.analysis.figures import studied
from firstpage.web.analysis.measure import Learner, learned, preferences
from firstpage.web.analysis.measure import compared as judgments_of
from firstpage.web.exports.make import export
from firstpage.web.store.connect import Store

SIDES = "Which of the two first pages would you rather be shown for this question?"
USUAL = "exp"  # gains 2^grade - 1, as NDCG has them
FOLDS = 5
WORDS = 40  # of a document's text, on a page


@dataclass(frozen=True, eq=False)
class Measured:
    """The learned measure, how far it agrees with editors on questions held out, its verdict."""

    utility: Utility
    judgments: int
    minutes: float
    learned: float  # share of held-out preferences that it agrees with
    usual: float  # and the usual DCG
    p: float  # that they agree equally often, over questions
    found: Comparison  # by the learned measure
    best: str

    @property
    def text(self) -> str:
        return self.found.texts[0]

    def verdict(self, compared: Compared) -> Difference:
        """Its best system against the baseline; the runner-up where that is the baseline."""
        return difference(self.found, self.text, self.best, compared.baseline)


def measured(
    store: Store, collection: Collection, systems: Mapping[str, Floats], compared: Compared,
    folder: Folder, teller: Teller,
) -> Measured:  # fmt: skip
    """Editors compare the first pages of all systems; the measure is learned and put to use."""
    grades = _write_pages(collection, systems, folder)
    project = desk.make(
        store, desk.PAGES, "First pages side by side", SIDES,
        {"queries": folder / "pages.jsonl", "documents": folder / "lists.jsonl"}, tool="lists",
    )  # fmt: skip
    keys = dict.fromkeys(key for key, _ in grades)
    numbers = {text: key for key, text in collection.questions.items()}
    total = desk.deal(store, project, desk.team_of([numbers[text] for text in keys], None))
    team = {
        login: SimulatedEditor(200 + number, "lists", grades)
        for number, login in enumerate(desk.TEAM)
    }
    with teller.counting("questions compared") as progress:
        desk.work(store, project, team, total, progress)
    with store.read() as tx:
        found = learned(tx, project)
        utility = found.known()
        study, _ = studied(tx, project, rounds=1)
        given = preferences(list(judgments_of(tx, project)), utility.grades)
        for name in ("preferences.jsonl", "measure.json"):
            folder.write(name, "".join(export(tx, project, name)))
    by_it = measure(MAIN, of=utility)
    ranked = compare(systems, collection.data, measures=[by_it], baseline=compared.baseline)
    others = {name: ranked.values(ranked.texts[0])[row].mean()
              for row, name in enumerate(ranked.systems) if name != compared.baseline}  # fmt: skip
    return Measured(
        utility, found.judgments, study.effort["lists"].active / 60, *held_out(given, K),
        ranked, max(others, key=lambda name: others[name]),
    )  # fmt: skip


def _write_pages(
    collection: Collection, systems: Mapping[str, Floats], folder: Folder
) -> dict[tuple[str, str], list[int]]:
    """Different first pages of each question, in no telling order; the grades of each."""
    data, rng = collection.data, np.random.default_rng(3)
    asked, shown, grades = [], [], {}
    for number, q in enumerate(data.queries):
        pages = {tuple(page_of(s, data, number, K)): None for s in systems.values()}
        mixed = [list(pages)[i] for i in rng.permutation(len(pages))]
        if len(mixed) < 2:
            continue  # all systems show the same
        asked.append({"query": q, "text": collection.questions[q]})
        for letter, page in zip("ABCDEFGH", mixed, strict=False):
            items = [
                {"id": key, "title": key, "text": _start(collection.documents[key]), "grade": g}
                for key, g in page
            ]
            shown.append({"query": q, "document": letter, "items": items})
            grades[collection.questions[q], letter] = [g for _, g in page]
    for name, rows in (("pages.jsonl", asked), ("lists.jsonl", shown)):
        folder.write(name, "".join(json.dumps(row) + "\n" for row in rows))
    return grades


def _start(text: str) -> str:
    words = text.split()
    return " ".join(words[:WORDS]) + (" .." if len(words) > WORDS else "")


def held_out(given: Preferences, places: int) -> tuple[float, float, float]:
    """How often the learned gains and discounts agree with people on questions that they were
    learned without, how often the usual ones do, and the p-value of the difference.

    Of pages whose grades are the same no measure can tell which is better: they do not count.
    """
    left, right = given.encode(places)
    strict = given[(given.outcome != 0) & (left != right).any(axis=1)]
    assert strict.query is not None
    groups = factorize(strict.query, len(strict))
    usual = Utility.from_dcg(USUAL, given.grades, places).table()
    hits = np.empty((2, len(strict)))
    for train, held in folds(groups, FOLDS, 0):
        learner = Learner(places, threads=1).fit(strict[train])
        hits[0, held] = _hits(factors(learner.weights_).table, strict[held])
        hits[1, held] = _hits(usual, strict[held])
    gaps = [hits[0, groups == g].mean() - hits[1, groups == g].mean() for g in np.unique(groups)]
    p = p_value(np.array(gaps), "randomization", 10_000, 0)
    return float(hits[0].mean()), float(hits[1].mean()), float(p)


def _hits(table: Floats, given: Preferences) -> Floats:
    """1 where a measure agrees, 0 where it does not, a half where it sees no difference."""
    place = np.arange(len(table))
    left, right = (table[place, side].sum(axis=1) for side in given.encode(len(table)))
    sign = np.sign(np.round(left - right, 12)) * np.sign(given.outcome)
    found: Floats = (sign + 1) / 2
    return found
