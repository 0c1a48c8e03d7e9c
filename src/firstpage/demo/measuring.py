"""The measure step: editors compare first pages, and DCGLearn learns their utility."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from firstpage.data.preferences.preferences import Preferences, factorize
from firstpage.data.preferences.utility import Utility
from firstpage.dcglearn.validation import folds
from firstpage.dcglearn.weights import rank_one_factors
from firstpage.demo import project as demo_project
from firstpage.demo.collection import Collection
from firstpage.demo.labeling import K
from firstpage.demo.output import Folder, StepPrinter
from firstpage.demo.project import SimulatedEditor
from firstpage.demo.rankings import MAIN_MEASURE, BaselineComparison, difference, first_page
from firstpage.measures.compare import Comparison, Difference, compare
from firstpage.measures.registry import measure
from firstpage.measures.significance import p_value
from firstpage.types import Floats
from firstpage.web.analysis.figures import project_study
from firstpage.web.analysis.measure import (
    MeasureLearner,
    learned_measure,
    list_judgments,
    preferences,
)
from firstpage.web.exports.make import export
from firstpage.web.store.connect import Store

GUIDELINES = "Which of the two first pages would you rather see for this question?"
STANDARD_GAINS = "exp"  # gains 2^grade - 1, as in NDCG
FOLDS = 5
MAX_WORDS = 40  # of a document's text on a page


@dataclass(frozen=True, eq=False)
class MeasureLearningResult:
    """The learned measure, its agreement with held-out preferences, and its comparison.

    Attributes
    ----------
    utility : Utility
        The learned gains and discounts.
    judgments : int
        Number of pairs of pages compared.
    minutes : float
        Total time in minutes.
    accuracy : float
        Fraction of held-out preferences that the learned measure agrees with.
    standard_accuracy : float
        The same of standard DCG.
    p : float
        P-value that both agree equally often, over questions.
    comparison : Comparison
        All systems under the learned measure.
    best : str
        The best system under the learned measure, apart from the baseline.
    """

    utility: Utility
    judgments: int
    minutes: float
    accuracy: float
    standard_accuracy: float
    p: float
    comparison: Comparison
    best: str

    @property
    def name(self) -> str:
        """The text of the learned measure."""
        return self.comparison.texts[0]

    def verdict(self, compared: BaselineComparison) -> Difference:
        """Return the best learned ranking against the baseline, by the learned measure."""
        return difference(self.comparison, self.name, self.best, compared.baseline)


def learn_measure(
    store: Store, collection: Collection, systems: Mapping[str, Floats],
    compared: BaselineComparison, folder: Folder, printer: StepPrinter,
) -> MeasureLearningResult:  # fmt: skip
    """Let editors compare the first pages of all systems; learn a measure and apply it."""
    grades = _write_pages(collection, systems, folder)
    project = demo_project.create_project(
        store, demo_project.PAGES, "First pages side by side", GUIDELINES,
        {"queries": folder / "pages.jsonl", "documents": folder / "lists.jsonl"}, tool="lists",
    )  # fmt: skip
    questions = dict.fromkeys(question for question, _ in grades)
    numbers = {text: key for key, text in collection.questions.items()}
    keys = [numbers[text] for text in questions]
    total = demo_project.add_tasks(store, project, demo_project.assign_team(keys, None))
    team = {
        login: SimulatedEditor(200 + number, "lists", grades)
        for number, login in enumerate(demo_project.TEAM)
    }
    with printer.progress("questions compared") as progress:
        demo_project.run_assessors(store, project, team, total, progress)
    with store.read() as tx:
        fitted = learned_measure(tx, project)
        utility = fitted.require_utility()
        study, _ = project_study(tx, project, rounds=1)
        pairs = preferences(list(list_judgments(tx, project)), utility.grades)
        for name in ("preferences.jsonl", "measure.json"):
            folder.write(name, "".join(export(tx, project, name)))
    learned_ndcg = measure(MAIN_MEASURE, of=utility)
    comparison = compare(
        systems, collection.data, measures=[learned_ndcg], baseline=compared.baseline
    )
    means = {
        name: comparison.values(comparison.texts[0])[row].mean()
        for row, name in enumerate(comparison.systems)
        if name != compared.baseline
    }
    return MeasureLearningResult(
        utility, fitted.judgments, study.effort["lists"].active / 60,
        *held_out_accuracy(pairs, K), comparison, max(means, key=lambda name: means[name]),
    )  # fmt: skip


def _write_pages(
    collection: Collection, systems: Mapping[str, Floats], folder: Folder
) -> dict[tuple[str, str], list[int]]:
    """Write the distinct first pages of each question in random order; return their grades."""
    data, rng = collection.data, np.random.default_rng(3)
    queries, lists, grades = [], [], {}
    for number, q in enumerate(data.queries):
        pages = {tuple(first_page(s, data, number, K)): None for s in systems.values()}
        shuffled = [list(pages)[i] for i in rng.permutation(len(pages))]
        if len(shuffled) < 2:
            continue  # all systems show the same page
        queries.append({"query": q, "text": collection.questions[q]})
        for letter, page in zip("ABCDEFGH", shuffled, strict=False):
            items = [
                {"id": key, "title": key, "text": _shorten(collection.documents[key]), "grade": g}
                for key, g in page
            ]
            lists.append({"query": q, "document": letter, "items": items})
            grades[collection.questions[q], letter] = [g for _, g in page]
    for name, rows in (("pages.jsonl", queries), ("lists.jsonl", lists)):
        folder.write(name, "".join(json.dumps(row) + "\n" for row in rows))
    return grades


def _shorten(text: str) -> str:
    words = text.split()
    return " ".join(words[:MAX_WORDS]) + (" .." if len(words) > MAX_WORDS else "")


def held_out_accuracy(pairs: Preferences, depth: int) -> tuple[float, float, float]:
    """Return how often the learned and the standard measure agree with held-out preferences.

    The third value is the p-value of the difference, over questions.  Pages with equal grades are
    left out: no measure can distinguish them.
    """
    left, right = pairs.encode(depth)
    strict = pairs[(pairs.outcome != 0) & (left != right).any(axis=1)]
    assert strict.query is not None
    groups = factorize(strict.query, len(strict))
    standard = Utility.from_dcg(STANDARD_GAINS, pairs.grades, depth).table()
    hits = np.empty((2, len(strict)))
    for train, test in folds(groups, FOLDS, 0):
        learner = MeasureLearner(depth, threads=1).fit(strict[train])
        hits[0, test] = _hits(rank_one_factors(learner.weights_).table, strict[test])
        hits[1, test] = _hits(standard, strict[test])
    differences = [
        hits[0, groups == g].mean() - hits[1, groups == g].mean() for g in np.unique(groups)
    ]
    p = p_value(np.array(differences), "randomization", 10_000, 0)
    return float(hits[0].mean()), float(hits[1].mean()), float(p)


def _hits(table: Floats, pairs: Preferences) -> Floats:
    """Return 1 where a measure agrees, 0 where it disagrees, 1/2 where it has no preference."""
    rank = np.arange(len(table))
    left, right = (table[rank, side].sum(axis=1) for side in pairs.encode(len(table)))
    sign = np.sign(np.round(left - right, 12)) * np.sign(pairs.outcome)
    hits: Floats = (sign + 1) / 2
    return hits
