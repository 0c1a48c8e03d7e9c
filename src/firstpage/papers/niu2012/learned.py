"""Ten rankers with two kinds of truth: fitted on a fold, tuned on validation data, tested.

The truths of the same queries are grades, and the order of the first ten.  MQ2007 has grades and
MQ2007-list a full order of the same documents.  Where there is no such list, the first ten are
drawn from the grades, with ties in a random order.  The queries of the user study are simulated
(`user_study_folds`).

Rankers of a family have the same grids: one grid of C for the three SVMs, one grid of penalties for
the nets and ListMLE, and the same weak rankers, rounds and stopping rules for the boosted rankers,
which are run with either kind of weak rankers.  For focused rankers beta is tuned, too; they are
also tested at beta = .5, where their grids are no larger than those of the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from firstpage.core import DataError, Floats
from firstpage.data import Dataset, Ids, Synthetic, intersect, offsets_from_lengths, read_folds
from firstpage.evaluation.measures import evaluate
from firstpage.labeling import top_labels
from firstpage.learning.rankers import Ranker, ranker, tune
from firstpage.learning.solvers import RATES
from firstpage.papers.niu2012.labeling import FOLDS, Crowd, K, assignment, label_query
from firstpage.papers.niu2012.printed import CUTS, GRADED, TOP_K
from firstpage.papers.study.letor_protocol import draw_seed, load_fold, measure_rows
from firstpage.papers.study.registry import DATASETS
from firstpage.papers.study.study import Row

MQ2007_ALONE = "MQ2007 without -list"
SIMULATED_STUDY = "simulated study"
FEATURES = 44  # as TD2003 has
CORRELATION = 0.6  # of features and utility, so that values are about as printed


@dataclass(frozen=True, eq=False)
class TwoTruths:
    """Queries with grades, and the same queries with labels 10 .. 1, 0 of the top ten."""

    graded: Dataset
    top_k: Dataset

    def with_truth(self, truth: str) -> Dataset:
        """Return the queries with one kind of truth."""
        return self.graded if truth == "graded" else self.top_k


@dataclass(frozen=True, eq=False)
class FoldSplit:
    """Training, validation and test queries of a fold."""

    train: TwoTruths
    valid: TwoTruths
    test: TwoTruths


def dataset_name(folder: str, optional_folder: str | None) -> str:
    """Return the name of the data in a folder, also where they are a substitute."""
    base = Path(folder).name
    name = next((s.name for s in DATASETS.values() if base in s.folders), base)
    return MQ2007_ALONE if name == "MQ2007" and optional_folder is None else name


def letor_split(folder: str, optional_folder: str | None, number: int, seed: int) -> FoldSplit:
    """Return a fold of MQ2007, joined with MQ2007-list or, without it, with random orders."""
    fold = load_fold(folder, number)
    if "valid" not in fold.splits:
        raise DataError(f"{folder}: fold {number} has no validation data to tune parameters on.")
    ordered = None
    if optional_folder is not None and dataset_name(folder, optional_folder) == "MQ2007":
        ordered = _read_orders(optional_folder)
    return FoldSplit(
        *(_two_truths(data, ordered, seed) for data in (fold.train, fold.valid, fold.test))
    )


def _two_truths(data: Dataset, ordered: Dataset | None, seed: int) -> TwoTruths:
    if ordered is None:
        return TwoTruths(data, data.with_labels(data.truth.top_k(K, seed)))
    shared, order = intersect(data, ordered)
    return TwoTruths(shared, shared.with_labels(order.top_k(K)))


@lru_cache(maxsize=1)
def _read_orders(folder: str) -> Dataset:
    """Return all lists of a folder, without features; its folds may differ from those of grades."""
    labels, lengths, queries, docids = [], list[int](), list[str](), list[str]()
    for fold in read_folds(folder):
        test = fold.test
        if test.docids is None:
            raise DataError(f"{folder}: the lists have no document ids (#docid = ..).")
        labels.append(test.y)
        lengths += test.lengths.tolist()
        queries += [str(q) for q in test.queries]
        docids += [str(d) for d in test.docids]
    y = np.concatenate(labels)
    return Dataset(
        np.zeros((len(y), 1), np.float32),
        y,
        offsets_from_lengths(lengths),
        Ids.from_values(queries),
        Ids.from_values(docids),
        None,
        folder,
    )


def user_study_folds(rng: np.random.Generator) -> list[FoldSplit]:
    """Return folds of 50 queries with 50 documents, judged as in the user study of the paper.

    The utility of a document is partly a linear function of its features, partly noise.  One
    simulated assessor labels the top ten of a query by comparing pairs; another one grades it.
    """
    generator = Synthetic(50, 50, FEATURES, noise=0.0, seed=draw_seed(rng))
    data = generator.dataset()
    hidden = rng.standard_normal(data.n_docs)
    utility = (
        CORRELATION * generator.true_utility(np.asarray(data.X))
        + np.sqrt(1 - CORRELATION**2) * hidden
    )
    grades, tops = np.empty(data.n_docs), np.empty(data.n_docs)
    assert data.docids is not None
    labeler_of = assignment([str(q) for q in data.queries], 1, draw_seed(rng))
    folds: dict[str, list[int]] = {}
    for q, name in enumerate(data.queries):
        rows = slice(int(data.offsets[q]), int(data.offsets[q + 1]))
        docids = [str(d) for d in data.docids[rows]]
        judgments = label_query(Crowd(), utility[rows], rng)
        top = top_labels([docids[i] for i in judgments.top], docids, K)
        tops[rows] = [top[d] for d in docids]
        grades[rows] = judgments.grades
        folds.setdefault(labeler_of[str(name)], []).append(q)
    data_by_truth = TwoTruths(data.with_labels(grades), data.with_labels(tops))
    return _rotate_folds(data_by_truth, [np.array(folds[key]) for key in sorted(folds)])


def _rotate_folds(data_by_truth: TwoTruths, fold_rows: list[np.ndarray]) -> list[FoldSplit]:
    """Return splits with three folds for training, one for validation, one for testing."""

    def join(*numbers: int) -> TwoTruths:
        rows = np.concatenate([fold_rows[n % FOLDS] for n in numbers])
        return TwoTruths(data_by_truth.graded[rows], data_by_truth.top_k[rows])

    return [FoldSplit(join(i, i + 1, i + 2), join(i + 3), join(i + 4)) for i in range(FOLDS)]


LETOR_TRUTH = "graded, LETOR's tool"
CURVE_MEASURES = {"graded": ("NDCG@5", "NDCG@10", "ERR"), "top-k": ("kNDCG@5", "kNDCG@10", "kERR")}
COSTS = (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0)
PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
# The paper prints no grids; these are those of its authors in Lan et al. (2013), section 4.1.
PRINTED_COSTS = (
    1e-5, 1e-4, 1e-3, 1e-2, *(round(0.1 * i, 1) for i in range(1, 11)), 10.0, 100.0, 1000.0,
)  # fmt: skip
PRINTED_SOLVERS = tuple(f"gd(rate={rate:g}, max_iter=500)" for rate in RATES)
PRINTED_ROUNDS = 500
WEAK_RANKERS = ("features", "stumps")
ALL_BETAS = [round(0.05 * i, 2) for i in range(21)]  # as in the paper
FIXED_BETA = 0.5  # of focused rankers without tuning of beta
Values = dict[tuple[str, str], Floats]  # by truth and measure: one value per query


@dataclass(frozen=True)
class RankerSpec:
    """A ranker and the grid of its parameters.

    Attributes
    ----------
    text : str
        The ranker with its parameters.
    printed : str
        Its name in the tables of the paper.
    grid : mapping
        Values of the parameters that are tuned on validation data.
    top_k : bool
        It needs a top-k truth, so that equal grades are put into a random order.
    focused : bool
        It has a parameter beta, which is tuned, too.
    """

    text: str
    printed: str
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    top_k: bool = False
    focused: bool = False

    def full_protocol(self) -> tuple[dict[str, Any], Mapping[str, Sequence[Any]]]:
        """Return the parameters and the grid of the paper's protocol: all values of C, or the rate
        and the iteration of gradient descent without a penalty, or 500 rounds."""
        if "C" in self.grid:
            return {}, {"C": PRINTED_COSTS}
        if "l2" in self.grid:
            return {"l2": 0.0}, {"solver": PRINTED_SOLVERS}
        return {"rounds": PRINTED_ROUNDS}, {}

    def create(self, truth: str, seed: int, **params: Any) -> Ranker:
        """Return the unfitted ranker."""
        measure = "NDCG@10" if truth == "graded" else "kNDCG@10"
        ties = {"ties": "random"} if self.top_k else {}
        return ranker(self.text, measure=measure, seed=seed, threads=1, **ties, **params)


def boosted_name(name: str, weak: str) -> str:
    """Return the name of a boosted ranker with a kind of weak rankers."""
    return f"{name}, {weak}"


def fixed_beta_name(model: str) -> str:
    """Return the name of a focused ranker without tuning of beta."""
    return f"{model}, beta = {FIXED_BETA:g}"


def _boosting(name: str, focused: bool = False) -> dict[str, RankerSpec]:
    return {
        boosted_name(name, weak): RankerSpec(f"{name}(weak={weak})", name, {}, focused, focused)
        for weak in WEAK_RANKERS
    }


RANKERS: Mapping[str, RankerSpec] = {
    "SVM-MAP": RankerSpec("SVMMAP", "SVM-MAP", {"C": COSTS}),
    "RankSVM": RankerSpec("RankSVM", "RankSVM", {"C": COSTS}),
    "FocusedSVM": RankerSpec("FocusedSVM", "FocusedSVM", {"C": COSTS}, True, True),
    **_boosting("AdaRank"),
    **_boosting("RankBoost"),
    **_boosting("FocusedBoost", focused=True),
    "ListNet": RankerSpec("ListNet", "ListNet", {"l2": PENALTIES}),
    "RankNet": RankerSpec("RankNet", "RankNet", {"l2": PENALTIES}),
    "FocusedNet": RankerSpec("FocusedNet", "FocusedNet", {"l2": PENALTIES}, True, True),
    "Top-k ListMLE": RankerSpec("ListMLE(k=10)", "Top-k ListMLE", {"l2": PENALTIES}, True),
}


def ten_rankers(weak: str) -> list[str]:
    """Return the rows of the paper's ten rankers, the boosted ones with these weak rankers."""
    suffixes = [boosted_name("", other) for other in WEAK_RANKERS if other != weak]
    return [model for model in RANKERS if not any(model.endswith(end) for end in suffixes)]


def evaluate_on_letor(
    rng: np.random.Generator,
    model: str,
    truth: str,
    fold: int,
    betas: list[float],
    folder: str,
    optional_folder: str | None = None,
    normalize: str | None = None,
    printed: bool = False,
) -> list[Row]:
    """Return the rows of one ranker on one fold; `printed` selects the paper's protocol."""
    seed = draw_seed(rng)
    split = letor_split(folder, optional_folder, fold, seed)
    data = dataset_name(folder, optional_folder)
    return _rows([split], model, truth, betas, seed, data, normalize, printed)


def evaluate_on_user_study(
    rng: np.random.Generator, model: str, truth: str, betas: list[float], printed: bool = False
) -> list[Row]:
    """Return the rows of one ranker on a simulated user study; each run has its own study."""
    folds = user_study_folds(rng)
    return _rows(folds, model, truth, betas, draw_seed(rng), SIMULATED_STUDY, printed=printed)


def _rows(
    folds: Sequence[FoldSplit],
    model: str,
    truth: str,
    betas: list[float],
    seed: int,
    data: str,
    normalize: str | None = None,
    printed: bool = False,
) -> list[Row]:
    """Return the rows of the tuned ranker and, for focused rankers, of every beta."""
    spec = RANKERS[model]
    extra, grid = spec.full_protocol() if printed else ({}, spec.grid)
    tuned_values: list[Values] = []
    values_by_beta: dict[float, list[Values]] = {}
    for split in folds:
        train, valid = split.train.with_truth(truth), split.valid.with_truth(truth)
        best = -np.inf
        for beta in betas if spec.focused else [None]:
            params = {} if beta is None else {"beta": beta}
            candidate = spec.create(truth, seed, normalize=normalize, **params, **extra)
            tuned = tune(candidate, train, valid, grid=grid or {"seed": [seed]})
            values = query_values(tuned.best, split.test, truth)
            if beta is not None:
                values_by_beta.setdefault(beta, []).append(values)
            if tuned.score > best:
                best, best_values = tuned.score, values
        tuned_values.append(best_values)
    labels = {"data": data, "model": model}
    rows = _measure_rows(_concatenate(tuned_values), labels)
    if FIXED_BETA in values_by_beta:
        rows += _measure_rows(
            _concatenate(values_by_beta[FIXED_BETA]), {**labels, "model": fixed_beta_name(model)}
        )
    for beta, fold_values in values_by_beta.items():
        curve = {
            key: v for key, v in _concatenate(fold_values).items() if key in _curve_keys(truth)
        }
        rows += _measure_rows(curve, {**labels, "beta": beta})
    return rows


def query_values(model: Ranker, test: TwoTruths, truth: str) -> Values:
    """Return the values per query: by grades, also with LETOR's conventions, or by the top ten."""
    data = test.with_truth(truth)
    scores = model.predict(data)
    if truth == "top-k":
        evaluation = evaluate(scores, data, measures=list(TOP_K))
        return {("top-k", m): evaluation.per_query(m) for m in TOP_K}
    # section 3.3.2 uses the largest label of the query, the usual definition that of the scale
    scale_err = f"ERR(max={int(max(test.graded.y.max(), 1))})"
    names = {**{m: m for m in GRADED}, "ERR": scale_err, "ERR(max=query)": "ERR(max=query)"}
    default = evaluate(scores, data, measures=list(names.values()))
    cuts = [f"NDCG@{n}" for n in CUTS]
    letor = evaluate(scores, data, measures=cuts, convention="letor")
    return {
        **{("graded", m): default.per_query(name) for m, name in names.items()},
        **{(LETOR_TRUTH, m): letor.per_query(m) for m in cuts},
    }


def _concatenate(folds: Sequence[Values]) -> Values:
    return {key: np.concatenate([values[key] for values in folds]) for key in folds[0]}


def _curve_keys(truth: str) -> list[tuple[str, str]]:
    return [(truth, m) for m in CURVE_MEASURES[truth]]


def _measure_rows(values: Values, labels: Mapping[str, Any]) -> list[Row]:
    rows: list[Row] = []
    for truth in dict.fromkeys(truth for truth, _ in values):
        truth_values = {m: v for (t, m), v in values.items() if t == truth}
        rows += measure_rows(truth_values, {**labels, "truth": truth})
    return rows
