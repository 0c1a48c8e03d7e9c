"""The same queries under two truths: grades, and the order of the first ten.

MQ2007 has grades and MQ2007-list a full order of the same documents.  Where there is no such list,
the first ten are drawn from the grades, equals in a random order.  The queries of the user study
are simulated: see `study_folds`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.data.folds import read_folds
from firstpage.data.groups import offsets_from_lengths
from firstpage.data.ids import Ids
from firstpage.data.joins import intersect
from firstpage.data.synthetic import Synthetic
from firstpage.errors import DataError
from firstpage.labeling.statistics.relations import top_labels
from firstpage.papers.niu2012.assessors import FOLDS, Crowd, K, assignment, labelled
from firstpage.papers.study.letor_protocol import fold, seed_of
from firstpage.papers.study.sources import SOURCES

ALONE = "MQ2007 without -list"
STUDY = "simulated study"
FEATURES = 44  # as TD2003 has
SHOWN = 0.6  # correlation of what features tell with utility: levels come out about as printed


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
    vali: Both
    test: Both


def called(folder: str, beside: str | None) -> str:
    """What the data of a folder are, whatever they stand for."""
    base = Path(folder).name
    found = next((s.name for s in SOURCES.values() if base in s.folders), base)
    return ALONE if found == "MQ2007" and beside is None else found


def letor_parts(folder: str, beside: str | None, number: int, seed: int) -> Parts:
    """A fold of MQ2007, joined with MQ2007-list where that is there; else with orders drawn."""
    read = fold(folder, number)
    if "vali" not in read.paths:
        raise DataError(f"{folder}: fold {number} has no validation data to choose parameters on.")
    ordered = None
    if beside is not None and called(folder, beside) == "MQ2007":
        ordered = _orders(beside)
    return Parts(*(_both(part, ordered, seed) for part in (read.train, read.vali, read.test)))


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
        Ids.of(queries), Ids.of(docids), None, folder,
    )  # fmt: skip


def study_folds(rng: np.random.Generator) -> list[Parts]:
    """50 queries of 50 documents, judged by five simulated people as in the paper's user study.

    A document's utility is in part what its features tell (a linear function), in part what they do
    not.  One person labels a query's top ten, comparing pairs; another one grades it.
    """
    recipe = Synthetic(50, 50, FEATURES, noise=0.0, seed=seed_of(rng))
    data = recipe.dataset()
    hidden = rng.standard_normal(data.n_docs)
    utility = SHOWN * recipe.true_utility(np.asarray(data.X)) + np.sqrt(1 - SHOWN**2) * hidden
    grades, tops = np.empty(data.n_docs), np.empty(data.n_docs)
    assert data.docids is not None
    deal = assignment([str(q) for q in data.queries], 1, seed_of(rng))
    folds: dict[str, list[int]] = {}
    for q, name in enumerate(data.queries):
        rows = slice(int(data.offsets[q]), int(data.offsets[q + 1]))
        docids = [str(d) for d in data.docids[rows]]
        found = labelled(Crowd(), utility[rows], rng)
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
