"""Learned fusion: a ranker on features of what several systems say about a document.

Aggregation is below the rankers in the layers of the package, because TopRank aggregates; so the
fusion that trains a ranker is here, and the features that it reads are in `aggregation/features`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from firstpage.core import (
    DataError,
    Floats,
    Ints,
    ParameterError,
    parameter_names,
    parse_call,
    split_arguments,
)
from firstpage.data import Dataset, Qrels, Run, join_labels, match_queries, query_rows, sort_groups
from firstpage.evaluation.aggregation import (
    FAMILIES,
    Ballots,
    HeldOut,
    aggregate,
    as_runs,
    check_families,
    check_tuned_measure,
    fold_of_query,
    fusion_features,
    query_values,
)
from firstpage.evaluation.measures import evaluate
from firstpage.evaluation.measures import measure as parse_measure
from firstpage.learning.rankers.base import Ranker
from firstpage.learning.rankers.registry import load as load_ranker
from firstpage.learning.rankers.registry import ranker as parse_ranker

BASELINE = "RRF"  # the method that the gain on held-out queries is measured against
MIN_QUERIES = 4  # judged queries: two folds, each with an inner choice


@dataclass(eq=False)
class LearnedFusion:
    """Fusion by a ranker that is trained on judged queries.

    The features of a document are, per system, whether it lists the document, functions of the rank
    and the normalized score, and over all systems how far they agree.  Systems are matched by the
    names of their runs.

    Parameters
    ----------
    ranker : str, Ranker, or sequence of these, default "ListNet"
        The ranker; of several, the one that is best in an inner cross-validation of the training
        queries.
    features : sequence of str, optional
        The families of features: "presence", "rank", "score" and "agreement", by default all.
    folds : int, default 5
        The number of folds of the judged queries, by which held-out results are computed.
    measure : str, default "NDCG@10"
        The measure of the choice among rankers and of the held-out results.
    seed : int, default 0
        Seed of the folds.

    Attributes
    ----------
    systems_ : tuple of str
        The names of the systems, in alphabetical order.
    ranker_ : Ranker
        The ranker, fitted on all judged queries.
    held_out_ : HeldOut
        The measure of each judged query, by a model that was trained without it, beside that of
        reciprocal rank fusion; not of a loaded model.

    Examples
    --------
    >>> import firstpage as fp
    >>> data = fp.Synthetic(queries=12, docs=8, features=3, seed=0).dataset()
    >>> ids = list(data.docids)
    >>> runs = [fp.Run.from_arrays(data.qid, ids, data.X[:, i], f"s{i}") for i in range(3)]
    >>> qrels = fp.Qrels.from_arrays(data.qid, ids, data.y)
    >>> fusion = fp.LearnedFusion(folds=3).fit(runs, qrels)
    >>> fusion.systems_
    ('s0', 's1', 's2')
    >>> len(fusion.fuse(runs))
    12
    """

    ranker: Any = "ListNet"
    features: Any = FAMILIES
    folds: int = 5
    measure: str = "NDCG@10"
    seed: int = 0

    def fit(self, runs: Sequence[Any], qrels: Any) -> Self:
        """Train on the judged queries of the runs.

        Parameters
        ----------
        runs : sequence of Run, dict, path or data frame
            A run per system, with distinct names; one without a name has that of its file, or a
            number.
        qrels : Qrels or dict
            Judgments of some of the queries; documents without one count as not relevant.

        Returns
        -------
        LearnedFusion
            The fusion itself, fitted.

        Raises
        ------
        DataError
            If names are missing or repeated, or if fewer than four queries are judged.
        """
        check_tuned_measure(parse_measure(self.measure))
        candidates = self._candidates()
        systems = sorted(_named_runs(runs), key=lambda run: run.name)
        data, report = self._training_data(systems, qrels)
        fold = fold_of_query(len(data), self.folds, self.seed)
        scores, chosen = np.empty(data.n_docs), []
        for number in range(int(fold.max()) + 1):
            fitted = self._best_fit(candidates, data[fold != number], self.seed + number + 1)
            chosen.append(repr(fitted))
            held_out = np.flatnonzero(fold == number)
            scores[query_rows(data.offsets, held_out)] = fitted.predict(data[held_out])
        self.systems_ = tuple(run.name for run in systems)
        self.ranker_ = self._best_fit(candidates, data, self.seed)
        self.ranker_.training_["fusion"] = {
            "systems": list(self.systems_),
            "features": list(check_families(self.features)),
        }
        assert data.docids is not None
        self._held_out_run = Run(data.queries, data.offsets, data.docids, scores, "learned")
        self.held_out_ = self._held_out(systems, report, chosen)
        return self

    def fuse(self, runs: Sequence[Any], name: str = "learned") -> Run:
        """Return the fused run; systems are matched by the names of the runs.

        Parameters
        ----------
        runs : sequence of Run, dict, path or data frame
            A run per system of the model, in any order.
        name : str, default "learned"
            The name of the resulting run.

        Returns
        -------
        Run
            All documents of the runs, best first, with the scores of the model.

        Raises
        ------
        DataError
            If a system of the model has no run, or a run no system.
        """
        self._check_fitted()
        data = self._data(self._ballots(_named_runs(runs)))
        return _ranked_run(data, self.ranker_.predict(data), name)

    def fit_fuse(self, runs: Sequence[Any], qrels: Any, name: str = "learned") -> Run:
        """Train, and return the fused run of the same runs without leakage.

        A judged query is ranked by a model that was trained on the other folds, so that the run may
        be evaluated with the judgments; other queries by the model of all judged ones.

        Parameters
        ----------
        runs : sequence of Run, dict, path or data frame
            A run per system, with distinct names; one without a name has that of its file, or a
            number.
        qrels : Qrels or dict
            Judgments of some of the queries.
        name : str, default "learned"
            The name of the resulting run.

        Returns
        -------
        Run
            All documents of the runs, best first.

        Raises
        ------
        DataError
            If names are missing or repeated, or if fewer than four queries are judged.
        """
        self.fit(runs, qrels)
        data = self._data(self._ballots(_named_runs(runs)))
        scores = self.ranker_.predict(data)
        held_out = self._held_out_run
        partner = match_queries(held_out.queries, data.queries)
        scores[query_rows(data.offsets, partner)] = held_out.values
        return _ranked_run(data, scores, name)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a model file, which `firstpage aggregate --model` and `LearnedFusion.load` read.

        It is the model file of the ranker, whose training record names systems and features.

        Parameters
        ----------
        path : path
            The file.
        """
        self._check_fitted()
        self.ranker_.save(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> LearnedFusion:
        """Read a fusion from its model file.

        Parameters
        ----------
        path : path
            A file that `save` wrote.

        Returns
        -------
        LearnedFusion
            The fusion, ready to `fuse`.

        Raises
        ------
        DataError
            If the file is damaged, or the model of something else.
        """
        fitted = load_ranker(path)
        recipe = fitted.training_.get("fusion")
        if not isinstance(recipe, dict) or {"systems", "features"} - recipe.keys():
            raise DataError(
                f"{os.fspath(path)}: is not a model of a fusion; `firstpage aggregate --method "
                "learned --save-model` writes one."
            )
        fusion = cls(type(fitted).__name__, check_families(recipe["features"]))
        fusion.systems_ = tuple(map(str, recipe["systems"]))
        fusion.ranker_ = fitted
        return fusion

    def to_dict(self) -> dict[str, Any]:
        """Return a summary as JSON-serializable values, as `--json` prints it.

        Returns
        -------
        dict
            The ranker, the systems, the features, and the results on held-out queries.
        """
        summary: dict[str, Any] = {
            "method": "learned",
            "ranker": repr(self.ranker_),
            "systems": list(self.systems_),
            "features": list(check_families(self.features)),
        }
        if hasattr(self, "held_out_"):
            summary["held_out"] = self.held_out_.to_dict()
        return summary

    def __str__(self) -> str:
        if not hasattr(self, "ranker_"):
            return repr(self)
        families = ", ".join(check_families(self.features))
        line = f"learned fusion of {len(self.systems_)} systems: {self.ranker_!r} on {families}"
        return f"{line}\n{self.held_out_}" if hasattr(self, "held_out_") else line

    # --- data

    def _candidates(self) -> list[Ranker]:
        single = isinstance(self.ranker, (str, Ranker))
        texts = [self.ranker] if single or not isinstance(self.ranker, Iterable) else self.ranker
        rankers = [parse_ranker(text) if isinstance(text, str) else text for text in texts]
        if not rankers or not all(isinstance(ranker, Ranker) for ranker in rankers):
            raise DataError(f"ranker must be a ranker, its name, or several; got {self.ranker!r}.")
        return rankers

    def _ballots(self, runs: list[Run]) -> Ballots:
        """Return the ballots of the runs in the order of the model's systems."""
        by_name = {run.name: run for run in runs}
        missing = [name for name in self.systems_ if name not in by_name]
        unknown = [name for name in by_name if name not in self.systems_]
        if missing or unknown:
            problem = f"has no run of {_listed(missing)}" if missing else ""
            problem += " and " * bool(missing and unknown)
            problem += f"does not know {_listed(unknown)}" if unknown else ""
            raise DataError(
                f"the fusion of {_listed(self.systems_)} {problem}; systems are matched by the "
                "names (tags) of the runs."
            )
        return _all_candidates([by_name[name] for name in self.systems_])

    def _data(self, ballots: Ballots) -> Dataset:
        features, names = fusion_features(ballots, check_families(self.features))
        assert ballots.docids is not None
        labels = np.zeros(len(features))
        return Dataset(features, labels, ballots.offsets, ballots.queries, ballots.docids, names)

    def _training_data(self, runs: list[Run], qrels: Any) -> tuple[Dataset, Qrels]:
        """Return the documents of the judged queries with features and labels."""
        judged = Qrels.from_dict(qrels) if isinstance(qrels, Mapping) else qrels
        if not isinstance(judged, Qrels):
            raise DataError(f"learned fusion needs judgments (Qrels); got {qrels!r}.")
        data = self._data(_all_candidates(runs))
        shared = np.flatnonzero(match_queries(data.queries, judged.queries) >= 0)
        if len(shared) < MIN_QUERIES:
            raise DataError(
                f"{len(shared)} queries of the runs are judged, and learned fusion needs at least "
                f"{MIN_QUERIES}."
            )
        (labeled,), _ = join_labels([data[shared]], judged)
        return labeled, judged

    def _check_fitted(self) -> None:
        if not hasattr(self, "ranker_"):
            raise DataError("this fusion is not fitted; call fit, or load a model file.")

    # --- training

    def _best_fit(self, candidates: list[Ranker], data: Dataset, seed: int) -> Ranker:
        """Return the best of the rankers by an inner cross-validation, fitted on all of `data`."""
        best = candidates[0]
        if len(candidates) > 1:
            fold = fold_of_query(len(data), self.folds, seed)
            means = [self._inner_mean(ranker, data, fold) for ranker in candidates]
            best = candidates[int(np.argmax(means))]
        fitted: Ranker = clone(best).fit(data)
        return fitted

    def _inner_mean(self, ranker: Ranker, data: Dataset, fold: Ints) -> float:
        scores: Floats = np.empty(data.n_docs)
        for number in range(int(fold.max()) + 1):
            held_out = np.flatnonzero(fold == number)
            fitted = clone(ranker).fit(data[fold != number])
            scores[query_rows(data.offsets, held_out)] = fitted.predict(data[held_out])
        return evaluate(scores, data, measures=[self.measure])[self.measure]

    def _held_out(self, runs: list[Run], qrels: Qrels, chosen: list[str]) -> HeldOut:
        """Return the measure of the held-out rankings, beside the baseline's."""
        held_out = self._held_out_run
        judged = qrels.select_queries(match_queries(held_out.queries, qrels.queries))
        baseline = aggregate(runs, BASELINE).run
        rows = match_queries(held_out.queries, baseline.queries)
        values = [
            query_values(run, judged, self.measure)
            for run in (held_out, baseline.select_queries(rows))
        ]
        return HeldOut(self.measure, values[0], values[1], BASELINE, tuple(chosen), self.seed)


def parse_fusion(text: str, **parameters: Any) -> LearnedFusion:
    """Return the fusion that a text denotes, such as `learned(ranker=[ListNet, LambdaMART])`."""
    _, inside = parse_call(text)
    allowed = parameter_names(LearnedFusion)
    for name in inside:
        if name not in allowed:
            raise ParameterError(
                f"learned has no parameter {name!r} (it has: {', '.join(allowed)})."
            )
    for name in ("ranker", "features"):
        value = inside.get(name)
        if isinstance(value, str) and value.startswith("["):
            inside[name] = tuple(word.strip() for word in split_arguments(value[1:-1]))
    if repeated := [name for name in parameters if name in inside]:
        raise ParameterError(f"{text!r}: {repeated[0]} is given twice.")
    return LearnedFusion(**{**parameters, **inside})


def _named_runs(runs: Sequence[Any]) -> list[Run]:
    """Return runs with distinct names; runs without one have that of their file, or a number."""
    named = [
        run if run.name else replace(run, name=Path(run.source).name or f"system {a}")
        for a, run in enumerate(as_runs(runs), 1)
    ]
    names = [run.name for run in named]
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise DataError(
            f"two runs have the name {repeated[0]!r}; learned fusion tells systems apart by the "
            "names (tags) of their runs."
        )
    return named


def _all_candidates(runs: list[Run]) -> Ballots:
    return Ballots.from_runs(runs, depth=None)


def _ranked_run(data: Dataset, scores: Floats, name: str) -> Run:
    """Return a run with the documents of each query best first."""
    assert data.docids is not None
    order, sorted_scores = sort_groups(scores, data.offsets)
    return Run(data.queries, data.offsets, data.docids[order], sorted_scores, name)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + ", .." * (len(names) > 5)
