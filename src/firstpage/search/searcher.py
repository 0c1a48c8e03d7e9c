"""Search: the first stage's candidates, ranked by a model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from firstpage.core import Array, DataError, Floats, Ints
from firstpage.data import Dataset, Ids, offsets_from_lengths
from firstpage.learning.models import FittedRanker, Model, as_model
from firstpage.search.features import TextFeatures
from firstpage.search.first_stage import FirstStageLike, with_kind
from firstpage.search.forward import Matcher
from firstpage.search.index import Index

CANDIDATES = 100  # documents of the first stage that a model ranks
DEPTH = 10  # documents of a result, or all candidates of a model if there are fewer


@dataclass(frozen=True, eq=False)
class SearchResults:
    """The ranked documents of a query.

    Attributes
    ----------
    text : str
        What was typed.
    ids : tuple of str
        The ids of the documents, the best first.
    scores : ndarray
        Their scores by the model, or by the first stage without a model.
    first_stage_ranks : ndarray
        The rank of each in the first stage, starting at 1.
    stage_ranks : tuple of dict of str to int
        The rank of each in the list of every stage that lists it: "bm25", "dense".
    n_candidates : int
        The number of documents of the first stage.
    reasons : tuple of tuple of (str, float)
        What adds most to the score of each document: names of features with their contributions,
        the largest first.  Empty unless `explain` was given.
    corrected : tuple of (str, str)
        Words that no document contains, with the terms that stand for them.

    Examples
    --------
    >>> import os, tempfile
    >>> import firstpage as fp
    >>> documents = [{"id": "d1", "title": "Red shoes"}, {"id": "d2", "title": "Red coat"}]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     index = fp.Index.from_documents(documents, os.path.join(folder, "shop.index"))
    ...     fp.Searcher(index).search("red").n_candidates
    2
    """

    text: str
    ids: tuple[str, ...]
    scores: Floats
    first_stage_ranks: Array
    n_candidates: int
    reasons: tuple[tuple[tuple[str, float], ...], ...] = ()
    stage_ranks: tuple[dict[str, int], ...] = ()
    corrected: tuple[tuple[str, str], ...] = ()

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"SearchResults({self.text!r}: {len(self)} of {self.n_candidates} candidates)"

    def __str__(self) -> str:
        lines = [f"{self.text}: {len(self)} of {self.n_candidates} candidates"]
        rows = zip(self.ids, self.scores, self.first_stage_ranks, strict=True)
        for rank, (name, score, before) in enumerate(rows, 1):
            moved = "" if before == rank else f" (first stage: {before})"
            lines.append(f"{rank:>4}. {score:10.4f}  {name}{moved}")
            if self.reasons:
                reasons = (f"{feature} {value:+.3f}" for feature, value in self.reasons[rank - 1])
                lines.append(f"{'':17}{', '.join(reasons)}")
        return "\n".join(lines)


class Searcher:
    """Searches an index, and ranks what it finds by a model.

    Parameters
    ----------
    index : Index or path
        The index.
    model : Ranker, Model or path, optional
        A model trained on features of this index; without one, results are those of the first
        stage.
    candidates : int, default 100
        The number of documents of the first stage that the model ranks.
    own : sequence of str, optional
        The functions that the model may use as features of one's own, as "module:function" or
        "name=module:function".  A model file may call no other function.
    first : {"bm25", "dense", "hybrid"}, BM25 or FirstStage, optional
        How documents are retrieved; by default as for the features that the model was trained on,
        and without a model as the index stores it.

    Raises
    ------
    DataError
        If the model uses a function that `own` does not name, it was not trained on features of
        texts, or the index does not fit it.

    Examples
    --------
    >>> import os, tempfile
    >>> import firstpage as fp
    >>> documents = [{"id": "d1", "title": "Red shoes"}, {"id": "d2", "title": "Red coat"}]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     index = fp.Index.from_documents(documents, os.path.join(folder, "shop.index"))
    ...     fp.Searcher(index).search("shoe").ids
    ('d1',)
    """

    def __init__(
        self,
        index: Index | str | os.PathLike[str],
        model: FittedRanker | Model | str | os.PathLike[str] | None = None,
        candidates: int = CANDIDATES,
        own: Sequence[str] = (),
        first: FirstStageLike = None,
    ) -> None:
        if candidates < 1:
            raise DataError(f"candidates must be at least 1; got {candidates}.")
        self.index = index if isinstance(index, Index) else Index(index)
        self.candidates = candidates
        self.model = None if model is None else as_model(model)
        self.features: TextFeatures | None = None
        if self.model is not None:
            recipe = self.model.training.get("data", {}).get("recipe")
            if recipe is None:
                raise DataError(
                    f"{self.model.source}: was not trained on features of texts, so it cannot rank "
                    "what a search finds; train on the output of `firstpage features` (Parquet or "
                    "npz)."
                )
            self.features = TextFeatures.from_recipe(
                self.index, recipe, self.model.source, [own] if isinstance(own, str) else own
            )
        usual = self.index.first_stage if self.features is None else self.features.first_stage
        self.first_stage = self.index.stage(with_kind(usual, first))

    def search(self, text: str, depth: int | None = None, explain: int = 0) -> SearchResults:
        """Return the best documents for a typed text.

        Parameters
        ----------
        text : str
            What was typed; no character has a special meaning.
        depth : int, optional
            The number of documents; by default 10, or all candidates of the model if there are
            fewer.
        explain : int, default 0
            The number of features that are named as reasons of each score.

        Returns
        -------
        SearchResults
            The documents, the best first.

        Raises
        ------
        DataError
            If the depth is below 1, or greater than the number of candidates that a model ranks.
        """
        depth = self._depth(depth)
        forward = self.index.forward
        query, matcher = forward.query(text, self.first_stage.typos), Matcher(forward)
        found = self.index.retrieve(query, self._limit(depth), self.first_stage, matcher)
        rows, scores, order = found.rows, found.scores, np.arange(len(found))
        reasons: tuple[tuple[tuple[str, float], ...], ...] = ()
        if self.features is not None and self.model is not None and len(rows):
            X = self.features.compute(query, rows, matcher)
            scores = self.model.predict(_one_query(X, self.features.names))
            order = np.lexsort((np.arange(len(rows)), -scores))
            if explain:
                reasons = _reasons(self.model, X, order[:depth], explain)
        best = order[:depth]
        ids = tuple(forward.ids[row] for row in rows[best].tolist())
        ranks = found.ranks()
        return SearchResults(
            text,
            ids,
            scores[best],
            best + 1,
            len(rows),
            reasons,
            tuple(ranks[i] for i in best.tolist()),
            query.corrected,
        )

    def _limit(self, depth: int) -> int:
        """Return the number of documents of the first stage."""
        return self.candidates if self.model is not None else max(depth, self.candidates)

    def _depth(self, depth: int | None) -> int:
        """Return the number of documents to return; refuse one that no ranking has."""
        if depth is None:
            return min(DEPTH, self._limit(DEPTH))
        if depth < 1:
            raise DataError(f"depth must be at least 1; got {depth}.")
        if depth > self._limit(depth):
            raise DataError(
                f"the depth is {depth:,}, and the model ranks {self.candidates:,} candidates; "
                "choose a smaller depth or more candidates."
            )
        return depth


def _reasons(
    model: Model, X: Array, rows: Ints, count: int
) -> tuple[tuple[tuple[str, float], ...], ...]:
    """Return the largest contributions to the scores of some candidates."""
    names, contributions = model.contributions(X, np.array([0, len(X)]), rows)
    values = contributions.values
    largest = np.argsort(-np.abs(values), axis=1, kind="stable")[:, :count]
    return tuple(
        tuple((names[c], float(values[i, c])) for c in columns)
        for i, columns in enumerate(largest.tolist())
    )


def _one_query(X: Array, names: Sequence[str]) -> Dataset:
    """Return the features of one query's candidates as data without labels."""
    offsets = offsets_from_lengths(np.array([len(X)]))
    labels = np.full(len(X), np.nan)
    return Dataset(X, labels, offsets, Ids.from_values(["query"]), None, tuple(names), "search")
