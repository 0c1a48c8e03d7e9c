"""Method and weights of a fusion of stages, chosen on judged queries: `tune_fusion`.

All variants are measured once for all queries; folds and tests read this table of values.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from firstpage.core import Bools, Chart, DataError, Floats, Table, Tabular, curves, stacked, warn
from firstpage.data import (
    Ids,
    Qrels,
    Run,
    Truth,
    join_documents,
    match_queries,
    offsets_from_lengths,
)
from firstpage.evaluation.aggregation.aggregation import as_runs
from firstpage.evaluation.aggregation.ballots import Ballots
from firstpage.evaluation.aggregation.fusion import rounded
from firstpage.evaluation.aggregation.stage_fusion import (
    StageFusion,
    StageMean,
    StageNormalization,
    StageTable,
    StageWeighting,
)
from firstpage.evaluation.aggregation.tuning import (
    check_tuned_measure,
    fold_of_query,
    judged_runs,
    query_values,
)
from firstpage.evaluation.aggregation.weights import judgments_of_runs
from firstpage.evaluation.measures.base import (
    Convention,
    Measure,
    measured_values,
    needs_of,
    rank_lists,
)
from firstpage.evaluation.measures.inputs import check_judgments
from firstpage.evaluation.measures.lists import Retrieved
from firstpage.evaluation.measures.registry import MeasureLike
from firstpage.evaluation.measures.registry import measure as parse_measure
from firstpage.evaluation.measures.significance import (
    adjust_p_values,
    difference_interval,
    format_p,
    mean_intervals,
    p_phrase,
    p_value,
    paired_differences,
)

EQUAL = "equal weights"  # reciprocal rank fusion with these, the baseline
TUNED = "tuned fusion"
ALPHA = 0.05
ROUNDS = 100_000  # of the randomization test
RANK_CONSTANTS = (60.0, 1.0, 5.0, 20.0, 200.0)
WEIGHT_STEPS = {2: 10, 3: 7}  # weights are multiples of 1 / steps, by the number of stages
FACTORS = (0.25, 0.5, 2.0, 4.0)  # of the weight of one stage, where there are more stages
CURVE_WEIGHTS = 21
MEANS: dict[StageNormalization, tuple[StageMean, ...]] = {
    "min-max": ("arithmetic", "geometric", "harmonic"),
    "l2": ("arithmetic", "geometric", "harmonic"),
    "z-score": ("arithmetic",),
    "dbsf": ("arithmetic",),
}


def candidate_fusions(
    stages: Sequence[str], floor: float = 0.001, weighting: StageWeighting = "term"
) -> list[StageFusion]:
    """Return the fusions that `tune_fusion` tries, the simplest first.

    Parameters
    ----------
    stages : sequence of str
        The names of the stages.
    floor : float, default 0.001
        As in `StageFusion`.
    weighting : {"term", "rank"}, default "term"
        As in `StageFusion`.

    Returns
    -------
    list of StageFusion
        Reciprocal rank fusion with several constants, and the means of normalized scores that
        OpenSearch and Qdrant offer; each with several weights.

    Examples
    --------
    >>> import firstpage as fp
    >>> fusions = fp.aggregation.candidate_fusions(["bm25", "dense"])
    >>> len(fusions), str(fusions[0])
    (117, 'rrf(k=60; bm25 1, dense 1)')
    """
    names = tuple(stages)
    base = StageFusion(stages=names, floor=floor, weighting=weighting)
    weights = _weights(len(names))
    fusions = [
        replace(base, weights=w, rank_constant=c)
        for c, w in itertools.product(RANK_CONSTANTS, weights)
    ]
    for normalization, means in MEANS.items():
        scores = replace(base, method="scores", normalization=normalization)
        fusions += [
            replace(scores, mean=m, weights=w) for m, w in itertools.product(means, weights)
        ]
    return fusions


def _weights(stages: int) -> list[tuple[float, ...]]:
    """Return the weights to try for so many stages, equal ones first."""
    equal = (1.0,) * stages
    if stages not in WEIGHT_STEPS:
        one = np.eye(stages, dtype=bool)
        return [equal, *(tuple(np.where(row, f, 1.0).tolist()) for f in FACTORS for row in one)]
    steps = WEIGHT_STEPS[stages]
    parts = (w for w in itertools.product(range(1, steps), repeat=stages) if sum(w) == steps)
    unequal = (w for w in parts if len(set(w)) > 1)
    return [equal, *(tuple(part / steps for part in w) for w in unequal)]


@dataclass(frozen=True, eq=False)
class JudgedStages:
    """The stages' lists of judged queries, by which variants of a fusion are measured."""

    table: StageTable
    truth: Truth
    retrieved: Retrieved
    measure: Measure
    alone: Floats  # the values of each stage's own run

    @classmethod
    def from_runs(
        cls, runs: Sequence[Run], names: Sequence[str], qrels: Qrels, measure: Measure
    ) -> JudgedStages:
        """Join the runs with the judgments of the queries that at least one run has."""
        judged = judgments_of_runs(runs, qrels)
        listed = judged_runs(runs, judged)
        for name, run in zip(names, listed, strict=True):
            if missing := len(judged) - len(run):
                warn(
                    f"{name}: {missing} of the {len(judged)} judged queries are not in the run "
                    "and count 0 for this stage alone."
                )
        ballots = Ballots.from_runs(listed, depth=None)
        judged = judged.select_queries(match_queries(ballots.queries, judged.queries))
        assert ballots.docids is not None
        documents = Run(
            ballots.queries, ballots.ends, ballots.docids, np.zeros(len(ballots.documents))
        )
        rows = join_documents(documents, judged, np.arange(len(judged)))
        return cls(
            StageTable.from_ballots(ballots),
            Truth(judged.values, judged.offsets, judged.queries),
            Retrieved(ballots.ends, rows),
            measure,
            np.array([query_values(run, judged, str(measure)) for run in listed]),
        )

    def values(self, fusions: Sequence[StageFusion]) -> Floats:
        """Return the measure of each fusion on each query."""
        convention, known = Convention("default"), {}
        needs = needs_of([self.measure], convention)
        out = np.empty((len(fusions), len(self.truth.queries)))
        for row, fusion in enumerate(fusions):
            key = (fusion.normalization, fusion.floor)
            if fusion.method == "scores" and key not in known:
                known[key] = self.table.normalized(*key)
            points = rounded(fusion.points(self.table, known.get(key)))
            lists = rank_lists(points, self.truth, convention, None, self.retrieved, needs)
            out[row] = measured_values(self.measure, lists, convention)
        return out


@dataclass(frozen=True, eq=False)
class TunedFusion(Tabular):
    """A fusion of stages with method and weights chosen on judged queries.

    As a data frame (`to_pandas`, `to_polars`) it has one row per query: the values of the tuned
    fusion, of equal weights, and of each stage.

    Attributes
    ----------
    fusion : StageFusion
        The fusion to use: the best one on all queries; reciprocal rank fusion with equal weights,
        where tuning brings nothing.
    best : StageFusion
        The best fusion on all queries.
    measure : str
        The measure.
    queries : Ids
        The judged queries.
    values : ndarray of shape (n_queries,)
        The measure of each query by the fusion that is best on the other folds: the nested
        estimate.
    baseline : ndarray of shape (n_queries,)
        The measure of each query by reciprocal rank fusion with equal weights.
    stage_values : ndarray of shape (n_stages, n_queries)
        The measure of each query by each stage alone.
    choices : tuple of StageFusion
        What each fold chose.
    seed : int
        The seed of folds, tests and intervals.
    judged : JudgedStages
        The lists of the stages, joined with the judgments; `curve` measures other weights by it.

    Examples
    --------
    >>> import firstpage as fp
    >>> words = {"p": {"a": 2, "b": 1}, "q": {"b": 2, "a": 1}}
    >>> vectors = {"p": {"c": 3, "a": 2}, "q": {"a": 1}}
    >>> qrels = {"p": {"a": 1}, "q": {"a": 1}}
    >>> tuned = fp.aggregation.tune_fusion([words, vectors], qrels, measure="RR", folds=2)
    >>> tuned.fusion
    StageFusion(rrf(k=60; stage 1 1, stage 2 1))
    >>> tuned.is_tuned, tuned.values.tolist(), tuned.baseline.tolist()
    (False, [1.0, 1.0], [1.0, 1.0])
    """

    fusion: StageFusion
    best: StageFusion
    measure: str
    queries: Ids
    values: Floats
    baseline: Floats
    stage_values: Floats
    choices: tuple[StageFusion, ...]
    seed: int
    judged: JudgedStages

    @property
    def is_tuned(self) -> bool:
        """Whether the fusion to use is the tuned one."""
        return self.fusion is self.best

    @property
    def fusion_values(self) -> Floats:
        """The measure of each query by the fusion to use: `values` or `baseline`."""
        return self.values if self.is_tuned else self.baseline

    @cached_property
    def differences(self) -> dict[str, tuple[float, float, float, float]]:
        """The fusion to use minus each other system, by its name.

        Mean difference, the bounds of its 95% bootstrap interval, and the p-value of Fisher's
        randomization test with Holm's correction.
        """
        others = dict(zip(self.fusion.stages, self.stage_values, strict=True))
        if self.is_tuned:
            others = {EQUAL: self.baseline, **others}
        rows = [paired_differences(self.fusion_values, values) for values in others.values()]
        p = [p_value(row, "randomization", ROUNDS, self.seed) for row in rows]
        adjusted = adjust_p_values(np.array(p), "holm")
        return {
            name: (float(row.mean()), *difference_interval(row, self.seed), float(value))
            for name, row, value in zip(others, rows, adjusted, strict=True)
        }

    def is_better_than(self, name: str, alpha: float = ALPHA) -> bool:
        """Return whether the fusion to use is significantly better than another system.

        Parameters
        ----------
        name : str
            The name of a stage, or "equal weights".
        alpha : float, default 0.05
            The level of the corrected p-value.

        Returns
        -------
        bool
            True if its mean is higher and p is below `alpha`.

        Raises
        ------
        DataError
            If there is no such system.
        """
        if name not in (EQUAL, *self.fusion.stages):
            raise DataError(
                f"there is no system {name!r}; there are {EQUAL} and "
                f"{', '.join(self.fusion.stages)}."
            )
        if name not in self.differences:
            return False  # equal weights, which are what is used
        difference, _, _, p = self.differences[name]
        return difference > 0 and p < alpha

    @property
    def worse_than(self) -> tuple[str, ...]:
        """The stages that are significantly better alone than the fusion to use."""
        return tuple(
            name
            for name, (difference, _, _, p) in self.differences.items()
            if difference < 0 and p < ALPHA and name != EQUAL
        )

    @property
    def verdict(self) -> str:
        """What tuning brings, and where a stage alone is better: one line."""
        tuned, equal = float(self.values.mean()), float(self.baseline.mean())
        if not self.is_tuned:
            text = (
                f"Tuning brings nothing: {self.measure} is {tuned:.4f}, and {equal:.4f} with equal "
                "weights, which are kept."
            )
        else:
            difference, _, _, p = self.differences[EQUAL]
            significance = "" if p < ALPHA else ", not significant"
            text = (
                f"Tuning gains {difference:+.4f} {self.measure} over equal weights "
                f"({p_phrase(p)}{significance})."
            )
        equal_to = [
            name
            for name in self.fusion.stages
            if name not in self.worse_than and not self.is_better_than(name)
        ]
        if equal_to:
            text += f" The fusion is not significantly better than {' and '.join(equal_to)} alone."
        for name in self.worse_than:
            difference, _, _, p = self.differences[name]
            text += (
                f" The fusion is significantly worse than {name} alone ({difference:+.4f}, "
                f"{p_phrase(p)}): use {name} alone."
            )
        return text

    def held_out_run(self, runs: Sequence[Any]) -> Run:
        """Fuse the judged queries, each by the fusion that is best on the other folds.

        Parameters
        ----------
        runs : sequence of Run, dict or path
            The runs that `tune_fusion` had.

        Returns
        -------
        Run
            The run of which `values` are the measure; that of equal weights where tuning brings
            nothing.
        """
        listed = as_runs(runs)
        if not self.is_tuned:
            return self.fusion.fuse_runs(listed)
        fold = fold_of_query(len(self.queries), len(self.choices), self.seed)
        queries, docids, values, lengths = self.queries[:0], self.queries[:0], [], []
        for number, choice in enumerate(self.choices):
            fused = choice.fuse_runs(listed)
            rows = match_queries(self.queries[np.flatnonzero(fold == number)], fused.queries)
            part = fused.select_queries(rows)
            queries = Ids.concatenate(queries, part.queries)
            docids = Ids.concatenate(docids, part.docids)
            values.append(part.values)
            lengths.append(np.diff(part.offsets))
        offsets = offsets_from_lengths(np.concatenate(lengths))
        return Run(queries, offsets, docids, np.concatenate(values), "hybrid")

    def curve(self) -> dict[str, list[tuple[float, float, float, float]]]:
        """Return the quality by the weight of the last stage.

        The other stages share the remaining weight as in the best fusion.

        Returns
        -------
        dict
            For the best fusion ("best") and for reciprocal rank fusion ("rrf"), the weight from 0
            to 1, the mean of the measure on all queries, and the bounds of its 95% bootstrap
            interval.
        """
        others = np.array(self.best.weights[:-1])
        others = others / others.sum() if others.any() else np.full(len(others), 1 / len(others))
        grid = np.linspace(0.0, 1.0, CURVE_WEIGHTS)
        weights = [(*((1 - w) * others).tolist(), float(w)) for w in grid]
        rrf = StageFusion(stages=self.best.stages, weighting=self.best.weighting)
        lines = {}
        for name, fusion in {"best": self.best, "rrf": rrf}.items():
            values = self.judged.values([replace(fusion, weights=w) for w in weights])
            bounds = mean_intervals(values, self.seed)
            lines[name] = [
                (float(w), float(mean), low, high)
                for w, mean, (low, high) in zip(grid, values.mean(axis=1), bounds, strict=True)
            ]
        return lines

    def plot(self) -> Chart:
        """Return a chart of the quality by the weight of the last stage.

        Returns
        -------
        Chart
            A chart that notebooks show; `save` writes it to a file.
        """
        title = f"{self.measure} by the weight of {self.best.stages[-1]}, with 95 % intervals"
        return stacked([(weight_drawing(self), title)], title)

    def report(self) -> str:
        """Return the table of means and differences, what was chosen, and the verdict.

        Returns
        -------
        str
            A text of several lines.
        """
        return f"{self.summary_table().text()}\nfusion: {self.fusion}\n{self.verdict}"

    __str__ = report
    __repr__ = report

    def to_dict(self) -> dict[str, Any]:
        """Return the results as JSON-serializable values.

        Returns
        -------
        dict
            The fusion, means, differences, the choices of the folds, and the verdict.
        """
        stages = dict(zip(self.fusion.stages, self.stage_values.mean(axis=1), strict=True))
        means = {TUNED: self.values.mean(), EQUAL: self.baseline.mean(), **stages}
        keys = ("difference", "low", "high", "p_corrected")
        return {
            "fusion": self.fusion.to_dict(),
            "best": self.best.to_dict(),
            "measure": self.measure,
            "queries": len(self.queries),
            "means": {name: float(mean) for name, mean in means.items()},
            "differences": {
                name: dict(zip(keys, row, strict=True)) for name, row in self.differences.items()
            },
            "choices": [choice.to_dict() for choice in self.choices],
            "verdict": self.verdict,
        }

    def _frame_columns(self) -> dict[str, Any]:
        """Return the values of each query."""
        columns: dict[str, Any] = {"query": [str(query) for query in self.queries]}
        columns |= {TUNED: self.values, EQUAL: self.baseline}
        return columns | dict(zip(self.fusion.stages, self.stage_values, strict=True))

    def summary_table(self) -> Table:
        """Return the mean of each system, and the differences of the fusion to use."""
        stages = dict(zip(self.fusion.stages, self.stage_values, strict=True))
        rows = []
        for name, values in {TUNED: self.values, EQUAL: self.baseline, **stages}.items():
            cells = ["", "", ""]
            if name in self.differences:
                difference, low, high, p = self.differences[name]
                cells = [f"{difference:+.4f}", f"{low:+.4f} to {high:+.4f}", format_p(p)]
            rows.append([name, f"{values.mean():.4f}", *cells])
        title = (
            f"{len(self.queries)} queries, each held out of the choice of the tuned fusion; "
            "gain: fusion minus system"
        )
        head = ["system", self.measure, "gain", "95% interval", "p holm"]
        return Table(head, rows, title)


def weight_drawing(tuned: TunedFusion) -> str:
    """Return a line chart (SVG) of the quality by the weight of the last stage."""
    measured, last = tuned.curve(), tuned.best.stages[-1]
    name, simple = tuned.best.label, f"rrf, k = {StageFusion().rank_constant:g}"
    if tuned.best.method == "rrf":
        name = f"rrf, k = {tuned.best.rank_constant:g}"
    series = {name: measured["best"], simple: measured["rrf"]}
    return curves(
        {key: [(weight, mean) for weight, mean, _, _ in row] for key, row in series.items()},
        f"{tuned.measure} by the weight of {last}",
        f"weight of {last}",
        tuned.measure,
        {name: [(low, high) for _, _, low, high in measured["best"]]},
        {simple} - {name},
    )


def tune_fusion(
    runs: Sequence[Any],
    qrels: Any,
    measure: MeasureLike = "NDCG@10",
    folds: int = 5,
    seed: int = 0,
    *,
    stages: Sequence[str] | None = None,
    fusions: Sequence[StageFusion] | None = None,
) -> TunedFusion:
    """Choose method and weights of a fusion of stages by nested cross-validation.

    Each fold takes the fusion that is best on the other folds, and is measured with it.  This
    estimate is compared with reciprocal rank fusion with equal weights and with each stage alone.
    The result is the fusion that is best on all queries; reciprocal rank fusion with equal weights,
    if the estimate is not better than that.

    Parameters
    ----------
    runs : sequence of Run, dict or path
        A run per stage.
    qrels : Qrels or dict
        Judgments.  Those queries count that at least one run has.
    measure : str or Measure, default "NDCG@10"
        A measure that is better when higher, and a mean over the queries.
    folds : int, default 5
        The number of folds.
    seed : int, default 0
        The seed of folds, tests and intervals.
    stages : sequence of str, optional
        The names of the stages; by default those of the runs, if they are different.
    fusions : sequence of StageFusion, optional
        The fusions to choose from; by default those of `candidate_fusions`.  Of several that are
        equally good the first one is chosen.

    Returns
    -------
    TunedFusion
        The fusion, the results on held-out queries, and their differences.

    Raises
    ------
    DataError
        If there are fewer than two runs or judged queries, a name or the stages of a fusion do not
        fit the runs, or the measure of every run is 0.
    MeasureError
        If the measure does not go with these judgments.

    Examples
    --------
    >>> import firstpage as fp
    >>> words = {"p": {"a": 2, "b": 1}, "q": {"b": 2, "a": 1}}
    >>> vectors = {"p": {"c": 3, "a": 2}, "q": {"a": 1}}
    >>> qrels = {"p": {"a": 1}, "q": {"a": 1}}
    >>> tuned = fp.aggregation.tune_fusion([words, vectors], qrels, measure="RR", folds=2)
    >>> tuned.is_better_than("stage 1")
    False
    """
    parsed = as_runs(runs)
    if len(parsed) < 2:
        raise DataError("fusion needs at least two runs, one per stage.")
    names = _stage_names(parsed, stages)
    tried = candidate_fusions(names) if fusions is None else list(fusions)
    wrong = [fusion for fusion in tried if fusion.stages != names]
    if wrong or not tried:
        others = ", ".join(wrong[0].stages) if wrong else "none"
        raise DataError(f"fusions must be of the stages {', '.join(names)}; got {others}.")
    value = parse_measure(measure)
    check_tuned_measure(value)
    check_judgments([value], qrels)
    qrels = Qrels.from_dict(qrels) if isinstance(qrels, Mapping) else qrels
    judged = JudgedStages.from_runs(parsed, names, qrels, value)
    if not judged.alone.any():
        raise DataError(
            f"{getattr(qrels, 'source', '') or 'qrels'}: {value} of every run is 0 on all "
            f"{judged.alone.shape[1]} judged queries, so nothing can be chosen by it; are the ids "
            "of documents the same?"
        )
    table = judged.values([StageFusion(stages=names), *tried])
    baseline, table = table[0], table[1:]
    fold = fold_of_query(len(baseline), folds, seed)
    values, choices = np.empty(len(baseline)), []
    for number in range(int(fold.max()) + 1):
        chosen = _best(table, fold != number)
        values[fold == number] = table[chosen, fold == number]
        choices.append(tried[chosen])
    best = tried[_best(table, np.ones(len(baseline), bool))]
    gain = float(paired_differences(values, baseline).mean())
    return TunedFusion(
        best if gain > 0 else StageFusion(stages=names),
        best,
        str(value),
        judged.truth.queries,
        values,
        baseline,
        judged.alone,
        tuple(choices),
        seed,
        judged,
    )


def _best(table: Floats, train: Bools) -> int:
    """Return the first row with the greatest mean over the training queries."""
    return int(np.argmax(np.round(table[:, train].mean(axis=1), 12)))


def _stage_names(runs: Sequence[Run], stages: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of the stages: as given, those of the runs, or numbers."""
    names = tuple(run.name for run in runs) if stages is None else tuple(map(str, stages))
    if stages is None and (not all(names) or len(set(names)) < len(names)):
        names = tuple(f"stage {number}" for number in range(1, len(runs) + 1))
    if len(names) != len(runs) or len(set(names)) < len(names):
        raise DataError(
            f"stages must name each of the {len(runs)} runs once; got {', '.join(names)}."
        )
    if {EQUAL, TUNED} & set(names):
        raise DataError(f"a stage cannot be called {EQUAL!r} or {TUNED!r}.")
    return names
