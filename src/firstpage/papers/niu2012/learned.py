"""Ten rankers under two truths: fitted on a fold, chosen on validation data, tested by query.

The truths of the same queries are grades, and the order of the first ten.  MQ2007 has grades and
MQ2007-list a full order of the same documents.  Where there is no such list, the first ten are
drawn from the grades, equals in a random order.  The queries of the user study are simulated: see
`study_folds`.

What a family compares has the same settings to choose from: one grid of C for the three SVMs, one
grid of penalties for the nets and ListMLE, and the same weak rankers, rounds and stopping rules for
the boosted rankers, which are run with either kind of weak rankers.  Focused rankers choose beta as
well; they are also tested at beta = .5, where they choose from no more settings than the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.data.folds import read_folds
from firstpage.data.groups import offsets_from_lengths
from firstpage.data.ids import Ids
from firstpage.data.joins import intersect
from firstpage.data.synthetic import Synthetic
from firstpage.errors import DataError
from firstpage.labeling.statistics.relations import top_labels
from firstpage.measures.evaluate import evaluate
from firstpage.papers.niu2012.labeling import FOLDS, Crowd, K, assignment, labeled
from firstpage.papers.niu2012.printed import CUTS, GRADED, TOP_K
from firstpage.papers.study.letor_protocol import fold, rows_of, seed_of
from firstpage.papers.study.registry import SOURCES
from firstpage.papers.study.study import Row
from firstpage.rankers.ranker import Ranker
from firstpage.rankers.registry import ranker
from firstpage.rankers.selection.tuning import tune
from firstpage.types import Floats

ALONE = "MQ2007 without -list"
STUDY = "simulated study"
FEATURES = 44  # as TD2003 has
CORRELATION = (
    0.6  # correlation of what features tell with utility: levels come out about as printed
)


@dataclass(frozen=True, eq=False)
class Both:
    """Some queries: the same documents with grades, and with labels 10 .. 1, 0 of the top ten."""

    graded: Dataset
    top_k: Dataset

    def under(self, truth: str) -> Dataset:
        return self.graded if truth == "graded" else self.top_k


@dataclass(frozen=True, eq=False)
class Parts:
    """A fold."""

    train: Both
    valid: Both
    test: Both


def called(folder: str, beside: str | None) -> str:
    """What the data of a folder are, whatever they stand for."""
    base = Path(folder).name
    found = next((s.name for s in SOURCES.values() if base in s.folders), base)
    return ALONE if found == "MQ2007" and beside is None else found


def letor_parts(folder: str, beside: str | None, number: int, seed: int) -> Parts:
    """A fold of MQ2007, joined with MQ2007-list where that is there; else with orders drawn."""
    read = fold(folder, number)
    if "valid" not in read.paths:
        raise DataError(f"{folder}: fold {number} has no validation data to choose parameters on.")
    ordered = None
    if beside is not None and called(folder, beside) == "MQ2007":
        ordered = _orders(beside)
    return Parts(*(_both(part, ordered, seed) for part in (read.train, read.valid, read.test)))


def _both(data: Dataset, ordered: Dataset | None, seed: int) -> Both:
    if ordered is None:
        return Both(data, data.with_labels(data.truth.top_k(K, seed)))
    shared, order = intersect(data, ordered)
    return Both(shared, shared.with_labels(order.top_k(K)))


@lru_cache(maxsize=1)
def _orders(folder: str) -> Dataset:
    """All lists of a folder, without features: its folds may be cut otherwise than the grades'."""
    labels, lengths, queries, docids = [], list[int](), list[str](), list[str]()
    for each in read_folds(folder):
        part = each.test
        if part.docids is None:
            raise DataError(f"{folder}: the lists name no documents (#docid = ..).")
        labels.append(part.y)
        lengths += part.lengths.tolist()
        queries += [str(q) for q in part.queries]
        docids += [str(d) for d in part.docids]
    y = np.concatenate(labels)
    return Dataset(
        np.zeros((len(y), 1), np.float32), y,
        offsets_from_lengths(lengths),
        Ids.from_values(queries), Ids.from_values(docids), None, folder,
    )  # fmt: skip


def study_folds(rng: np.random.Generator) -> list[Parts]:
    """50 queries of 50 documents, judged by five simulated people as in the paper's user study.

    A document's utility is in part what its features tell (a linear function), in part what they do
    not.  One person labels a query's top ten, comparing pairs; another one grades it.
    """
    recipe = Synthetic(50, 50, FEATURES, noise=0.0, seed=seed_of(rng))
    data = recipe.dataset()
    hidden = rng.standard_normal(data.n_docs)
    utility = (
        CORRELATION * recipe.true_utility(np.asarray(data.X)) + np.sqrt(1 - CORRELATION**2) * hidden
    )
    grades, tops = np.empty(data.n_docs), np.empty(data.n_docs)
    assert data.docids is not None
    deal = assignment([str(q) for q in data.queries], 1, seed_of(rng))
    folds: dict[str, list[int]] = {}
    for q, name in enumerate(data.queries):
        rows = slice(int(data.offsets[q]), int(data.offsets[q + 1]))
        docids = [str(d) for d in data.docids[rows]]
        found = labeled(Crowd(), utility[rows], rng)
        top = top_labels([docids[i] for i in found.top], docids, K)
        tops[rows] = [top[d] for d in docids]
        grades[rows] = found.grades
        folds.setdefault(deal[str(name)], []).append(q)
    whole = Both(data.with_labels(grades), data.with_labels(tops))
    return _rotated(whole, [np.array(folds[key]) for key in sorted(folds)])


def _rotated(whole: Both, parts: list[np.ndarray]) -> list[Parts]:
    """Three parts to train, one to choose, one to test on."""

    def of(*numbers: int) -> Both:
        rows = np.concatenate([parts[n % FOLDS] for n in numbers])
        return Both(whole.graded[rows], whole.top_k[rows])

    return [Parts(of(i, i + 1, i + 2), of(i + 3), of(i + 4)) for i in range(FOLDS)]


LETOR = "graded, LETOR's tool"
SHOWN = {"graded": ("NDCG@5", "NDCG@10", "ERR"), "top-k": ("kNDCG@5", "kNDCG@10", "kERR")}
COSTS = (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0)
PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
WEAK = ("features", "stumps")
ALL_BETAS = [round(0.05 * i, 2) for i in range(21)]  # as in the paper
HALF = 0.5  # the beta of focused rankers that do not choose one
Values = dict[tuple[str, str], Floats]  # by kind of truth and measure


@dataclass(frozen=True)
class Method:
    """A ranker, and what is chosen on validation data.

    printed  its name in the paper's tables
    top_k    it reads a top-k truth, so that equal grades are put into a random order for it
    focused  it has a beta, and all are tried
    """

    text: str
    printed: str
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    top_k: bool = False
    focused: bool = False

    def made(self, truth: str, seed: int, **more: Any) -> Ranker:
        measure = "NDCG@10" if truth == "graded" else "kNDCG@10"
        ties = {"ties": "random"} if self.top_k else {}
        return ranker(self.text, measure=measure, seed=seed, threads=1, **ties, **more)


def boosted(name: str, weak: str) -> str:
    """Return the name of a boosted ranker's row: the same ranker with either weak rankers."""
    return f"{name}, {weak}"


def at_half(model: str) -> str:
    """Return the name of a focused ranker's row without a choice of beta."""
    return f"{model}, beta = {HALF:g}"


def _boosting(name: str, focused: bool = False) -> dict[str, Method]:
    return {
        boosted(name, weak): Method(f"{name}(weak={weak})", name, {}, focused, focused)
        for weak in WEAK
    }


METHODS: Mapping[str, Method] = {
    "SVM-MAP": Method("SVMMAP", "SVM-MAP", {"C": COSTS}),
    "RankSVM": Method("RankSVM", "RankSVM", {"C": COSTS}),
    "FocusedSVM": Method("FocusedSVM", "FocusedSVM", {"C": COSTS}, True, True),
    **_boosting("AdaRank"),
    **_boosting("RankBoost"),
    **_boosting("FocusedBoost", focused=True),
    "ListNet": Method("ListNet", "ListNet", {"l2": PENALTIES}),
    "RankNet": Method("RankNet", "RankNet", {"l2": PENALTIES}),
    "FocusedNet": Method("FocusedNet", "FocusedNet", {"l2": PENALTIES}, True, True),
    "Top-k ListMLE": Method("ListMLE(k=10)", "Top-k ListMLE", {"l2": PENALTIES}, True),
}


def ten(weak: str) -> list[str]:
    """Return the rows of the paper's ten rankers, the boosted ones with these weak rankers."""
    other = [boosted("", one) for one in WEAK if one != weak]
    return [model for model in METHODS if not any(model.endswith(end) for end in other)]


def on_letor(
    rng: np.random.Generator, model: str, truth: str, fold: int, betas: list[float], folder: str,
    beside: str | None = None, normalize: str | None = None,
) -> list[Row]:  # fmt: skip
    """One ranker on one fold."""
    seed = seed_of(rng)
    parts = letor_parts(folder, beside, fold, seed)
    return _rows([parts], model, truth, betas, seed, called(folder, beside), normalize)


def on_study(rng: np.random.Generator, model: str, truth: str, betas: list[float]) -> list[Row]:
    """One ranker on all folds of a simulated user study; a run is a study of its own."""
    folds = study_folds(rng)
    return _rows(folds, model, truth, betas, seed_of(rng), STUDY)


def _rows(
    folds: Sequence[Parts], model: str, truth: str, betas: list[float], seed: int, data: str,
    normalize: str | None = None,
) -> list[Row]:  # fmt: skip
    """Rows of what validation chose, and for focused rankers of every beta."""
    method = METHODS[model]
    chosen: list[Values] = []
    swept: dict[float, list[Values]] = {}
    for parts in folds:
        train, valid = parts.train.under(truth), parts.valid.under(truth)
        best = -np.inf
        for beta in betas if method.focused else [None]:
            more = {} if beta is None else {"beta": beta}
            candidate = method.made(truth, seed, normalize=normalize, **more)
            tuned = tune(candidate, train, valid, grid=method.grid or {"seed": [seed]})
            values = tested(tuned.best, parts.test, truth)
            if beta is not None:
                swept.setdefault(beta, []).append(values)
            if tuned.score > best:
                best, kept = tuned.score, values
        chosen.append(kept)
    labels = {"data": data, "model": model}
    rows = _told(_joined(chosen), labels)
    if HALF in swept:
        rows += _told(_joined(swept[HALF]), {**labels, "model": at_half(model)})
    for beta, each in swept.items():
        shown = {key: v for key, v in _joined(each).items() if key in _keys(truth)}
        rows += _told(shown, {**labels, "beta": beta})
    return rows


def tested(model: Ranker, test: Both, truth: str) -> Values:
    """Values by query: grades by the paper's formula and by LETOR's tool, or those of the top."""
    data = test.under(truth)
    scores = model.predict(data)
    if truth == "top-k":
        found = evaluate(scores, data, measures=list(TOP_K))
        return {("top-k", m): found.per_query(m) for m in TOP_K}
    # 3.3.2 takes the greatest label of the query, the usual definition that of the scale
    scale = f"ERR(max={int(max(test.graded.y.max(), 1))})"
    names = {**{m: m for m in GRADED}, "ERR": scale, "ERR(max=query)": "ERR(max=query)"}
    usual = evaluate(scores, data, measures=list(names.values()))
    cuts = [f"NDCG@{n}" for n in CUTS]
    tool = evaluate(scores, data, measures=cuts, convention="letor")
    return {
        **{("graded", m): usual.per_query(given) for m, given in names.items()},
        **{(LETOR, m): tool.per_query(m) for m in cuts},
    }


def _joined(folds: Sequence[Values]) -> Values:
    return {key: np.concatenate([each[key] for each in folds]) for key in folds[0]}


def _keys(truth: str) -> list[tuple[str, str]]:
    return [(truth, m) for m in SHOWN[truth]]


def _told(values: Values, labels: Mapping[str, Any]) -> list[Row]:
    found: list[Row] = []
    for truth in dict.fromkeys(truth for truth, _ in values):
        own = {m: v for (t, m), v in values.items() if t == truth}
        found += rows_of(own, {**labels, "truth": truth})
    return found
