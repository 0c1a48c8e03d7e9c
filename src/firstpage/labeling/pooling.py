"""Pooling: which documents of several runs are judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, log2

import numpy as np

from firstpage.core import DataError
from firstpage.data import Run, sort_groups

METHODS = ("depth", "rrf", "random", "stratified")
RRF_CONSTANT = 60  # Cormack, Clarke and Buettcher (2009)
FIRST_STRATUM = 10  # ranks; each following stratum ends at twice the rank


def pool(
    runs: Mapping[str, Run] | Sequence[Run], depth: int = 50, method: str = "depth", seed: int = 0
) -> Run:
    """Return the documents of several runs that are to be judged.

    Parameters
    ----------
    runs : mapping of str to Run, or sequence of Run
        The runs.
    depth : int, default 50
        The number of documents per query; a query has fewer if its runs have fewer.
    method : {"depth", "rrf", "random", "stratified"}, default "depth"
        - `"depth"`: the union of the first documents of each run, rank by rank;
        - `"rrf"`: the first documents by reciprocal rank fusion, the sum of 1 / (60 + rank);
        - `"random"`: a uniform sample of all documents of the runs;
        - `"stratified"`: a sample with as many documents of the best ranks 1 to 10, 11 to 20, 21 to
          40, 41 to 80 and so on, as far as there are so many.
    seed : int, default 0
        The seed of samples.

    Returns
    -------
    Run
        The documents of each query with their scores by reciprocal rank fusion.

    Raises
    ------
    DataError
        If there is no run, or a parameter is not valid.

    References
    ----------
    G. V. Cormack, C. L. A. Clarke and S. Buettcher (2009). Reciprocal Rank Fusion Outperforms
    Condorcet and Individual Rank Learning Methods. SIGIR.

    Examples
    --------
    >>> import firstpage as fp
    >>> first = fp.Run.from_dict({"q": {"a": 3, "b": 2, "c": 1}})
    >>> second = fp.Run.from_dict({"q": {"c": 3, "d": 2, "a": 1}})
    >>> sorted(fp.labeling.pool([first, second], depth=3).to_dict()["q"])
    ['a', 'b', 'c']
    """
    listed = list(runs.values()) if isinstance(runs, Mapping) else list(runs)
    if not listed:
        raise DataError("there are no runs to pool.")
    tables = [ranked_documents(run) for run in listed]
    pooled: dict[str, dict[str, float]] = {}
    for query in dict.fromkeys(query for table in tables for query in table):
        rankings = [table[query] for table in tables if query in table]
        scores = fused_scores(rankings)
        chosen = pooled_documents(rankings, depth, method, seed, query)
        pooled[query] = {document: scores[document] for document in chosen}
    return Run.from_dict(pooled, f"pool-{method}")


def ranked_documents(run: Run) -> dict[str, list[str]]:
    """Return the documents of each query, the best score first; ties keep their order."""
    order, _ = sort_groups(run.values, run.offsets)
    ids, ends = list(run.docids), run.offsets.tolist()
    return {
        query: [ids[row] for row in order[lo:hi].tolist()]
        for query, lo, hi in zip(run.queries, ends, ends[1:], strict=False)
    }


def pooled_documents(
    rankings: Sequence[Sequence[str]],
    depth: int,
    method: str = "depth",
    seed: int = 0,
    query: str = "",
) -> list[str]:
    """Return the documents of one query that are to be judged, from its ranking in each run."""
    if method not in METHODS:
        raise DataError(f"method must be one of {', '.join(METHODS)}; got {method!r}.")
    if isinstance(depth, bool) or not isinstance(depth, int) or depth < 1:
        raise DataError(f"depth must be an integer of at least 1; got {depth!r}.")
    best_ranks = _best_ranks(rankings)
    scores = fused_scores(rankings)
    fused = sorted(best_ranks, key=lambda document: -scores[document])
    if method == "rrf" or len(fused) <= depth:
        return fused[:depth]
    by_rank = sorted(best_ranks, key=best_ranks.__getitem__)
    if method == "depth":
        return by_rank[:depth]
    rng = np.random.default_rng([seed, *query.encode()])
    shuffled = [by_rank[i] for i in rng.permutation(len(by_rank)).tolist()]
    chosen = set(
        shuffled[:depth] if method == "random" else _stratified(shuffled, best_ranks, depth)
    )
    return [document for document in fused if document in chosen]


def fused_scores(rankings: Sequence[Sequence[str]]) -> dict[str, float]:
    """Return the score of each document by reciprocal rank fusion."""
    scores: dict[str, float] = {}
    for ranking in rankings:
        for rank, document in enumerate(ranking, 1):
            scores[document] = scores.get(document, 0.0) + 1.0 / (RRF_CONSTANT + rank)
    return scores


def _best_ranks(rankings: Sequence[Sequence[str]]) -> dict[str, int]:
    """Return the best rank of each document, from 1; documents of equal rank by run."""
    ranks: dict[str, int] = {}
    for rank in range(max(map(len, rankings), default=0)):
        for ranking in rankings:
            if rank < len(ranking):
                ranks.setdefault(ranking[rank], rank + 1)
    return ranks


def _stratified(shuffled: Sequence[str], best_ranks: Mapping[str, int], depth: int) -> list[str]:
    """Return documents taken from each stratum of ranks in turn."""
    strata: dict[int, list[str]] = {}
    for document in shuffled:
        strata.setdefault(_stratum(best_ranks[document]), []).append(document)
    chosen: list[str] = []
    turn = 0
    while len(chosen) < depth:
        chosen += [strata[s][turn] for s in sorted(strata) if turn < len(strata[s])]
        turn += 1
    return chosen[:depth]


def _stratum(rank: int) -> int:
    """Return the number of a rank's stratum: 1 to 10, 11 to 20, 21 to 40, and so on."""
    return max(0, ceil(log2(rank / FIRST_STRATUM)))
