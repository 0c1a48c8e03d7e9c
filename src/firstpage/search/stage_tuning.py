"""Tuning of the first stage on judged queries: BM25, then the fusion with what is found by meaning.

A hybrid is chosen by nested cross-validation, so that its estimate is not that of the best of many
variants on the queries on which they were compared.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from firstpage.core import DataError, FirstpageWarning, Progress
from firstpage.data import Qrels
from firstpage.evaluation.aggregation import TunedFusion, tune_fusion
from firstpage.search.first_stage import STAGES, FirstStage, Kind, Space
from firstpage.search.index import Index
from firstpage.search.retrieval import BM25
from firstpage.search.tuning import CandidatePools

DEPTH = 100  # documents of each stage that are fused
MIN_QUERIES = 10  # judged ones, for nested cross-validation
MEASURE = "NDCG@10"
FOLDS = 5


@dataclass(frozen=True, eq=False)
class TunedStage:
    """A first stage that was chosen on judged queries.

    Attributes
    ----------
    stage : FirstStage
        The first stage to use.
    value : float
        The mean NDCG@10 of its BM25 on these queries.
    fusion : TunedFusion or None
        How the fusion was chosen, and its nested estimate; None if there was nothing to fuse.
    verdict : str
        What was chosen and why, in a line.
    """

    stage: FirstStage
    value: float
    fusion: TunedFusion | None
    verdict: str


class StageTuner:
    """Chooses first stages of an index on some of its judged queries.

    Parameters
    ----------
    index : Index
        The index.
    queries : iterable of (str, str)
        Ids and texts of queries.
    qrels : Qrels
        The judgments.
    kind : {"bm25", "hybrid"}, optional
        What is tuned; by default a hybrid where the index has vectors or a latent space.  The
        latent space is used only where the hybrid is significantly better than BM25.
    seed : int, default 0
        The seed of folds and tests.

    Attributes
    ----------
    pools : CandidatePools
        The documents on which parameters of BM25 are tried.
    """

    def __init__(
        self,
        index: Index,
        queries: Iterable[tuple[str, str]],
        qrels: Qrels,
        kind: Kind | None = None,
        seed: int = 0,
    ) -> None:
        if kind == "dense":
            raise DataError("a dense first stage has nothing to tune; tune bm25 or hybrid.")
        self._index = index
        self._queries = list(queries)
        self._qrels = qrels
        self._seed = seed
        self._space: Space | None = None
        if kind != "bm25":
            self._space = "vectors" if index.vectors is not None else None
            if self._space is None and index.latent is not None:
                self._space = "latent"
        if kind == "hybrid" and self._space is None:
            index.stage("hybrid")  # says what is missing
        self.pools = CandidatePools(index.forward, index.engine, self._queries, qrels)

    def tune(
        self,
        names: Collection[str] | None = None,
        present: BM25 | None = None,
        progress: Progress | None = None,
    ) -> TunedStage:
        """Return the best first stage on these queries.

        Parameters
        ----------
        names : collection of str, optional
            The ids of the queries; by default all.
        present : BM25, optional
            Parameters that are kept unless others are better on these queries.
        progress : callable, optional
            Called with the number of finished steps and the number of all.

        Returns
        -------
        TunedStage
            The first stage, and why.
        """
        scoring, value = self.pools.tune(names, progress)
        if present is not None and self.pools.value(present) >= value:
            scoring, value = present, self.pools.value(present)
        words = replace(self._index.first_stage, kind="bm25", scoring=scoring)
        if self._space is None:
            return TunedStage(words, value, None, "")
        queries = [
            (name, text)
            for name, text in self._queries
            if name in self._qrels.queries and (names is None or name in names)
        ]
        if len(queries) < MIN_QUERIES:
            return self._few_queries(words, value, len(queries))
        stages = [words, replace(words, kind="dense", space=self._space)]
        with warnings.catch_warnings():  # the fusion counts the queries that a stage does not list
            warnings.simplefilter("ignore", FirstpageWarning)
            runs = [self._index.candidates(queries, DEPTH, stage) for stage in stages]
        tuned = tune_fusion(
            runs, self._qrels, MEASURE, min(FOLDS, len(queries)), self._seed, stages=STAGES
        )
        return self._chosen(words, value, tuned)

    def _few_queries(self, words: FirstStage, value: float, count: int) -> TunedStage:
        """Return the usual first stage: too few queries are judged to choose a fusion."""
        assert self._space is not None
        reason = f"{count} judged queries are too few to choose a fusion ({MIN_QUERIES} are needed)"
        if self._space == "latent":
            return TunedStage(words, value, None, f"{reason}, so the latent space is not used.")
        hybrid = replace(words, kind="hybrid", space="vectors")
        return TunedStage(hybrid, value, None, f"{reason}; {hybrid.fusion} is kept.")

    def _chosen(self, words: FirstStage, value: float, tuned: TunedFusion) -> TunedStage:
        """Return the hybrid, or a stage alone where it serves better."""
        assert self._space is not None
        hybrid = replace(words, kind="hybrid", fusion=tuned.fusion, space=self._space)
        if self._space == "latent" and not tuned.is_better_than("bm25"):
            verdict = (
                f"{tuned.measure} by the latent space and words fused is "
                f"{tuned.fusion_values.mean():.4f}, not significantly better than by words alone, "
                f"{tuned.stage_values[0].mean():.4f}, so documents are found by words."
            )
            return TunedStage(words, value, tuned, verdict)
        if tuned.worse_than:
            best = max(
                tuned.worse_than,
                key=lambda name: tuned.stage_values[STAGES.index(name)].mean(),
            )
            alone = words if best == "bm25" else replace(hybrid, kind="dense")
            return TunedStage(alone, value, tuned, tuned.verdict)
        return TunedStage(hybrid, value, tuned, tuned.verdict)
