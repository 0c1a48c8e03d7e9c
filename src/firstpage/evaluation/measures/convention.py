"""Conventions: what tools define differently under the same measure name.

docs/conventions.md has a table of them, generated from this module.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Literal, get_args

import numpy as np

from firstpage.core import MeasureError

Ties = Literal["average", "file", "docid", "shuffle", "worst"]
Queries = Literal["judged", "run"]
WithoutRelevant = Literal["zero", "skip", "one"]


@dataclass(frozen=True)
class Convention:
    """How rankings and judgments are interpreted when measures are computed.

    Tools define measures of the same name differently.  A convention fixes these definitions:
    "default", "trec" (trec_eval), "letor" (the LETOR evaluation tool), "lightgbm" and "xgboost"
    (their metrics ndcg and map) are predefined.

    Parameters
    ----------
    name : str, default "default"
        Name of the convention, shown in results.
    ties : {"average", "file", "docid", "shuffle", "worst"}, default "average"
        Order of documents with equal scores.  "average" takes the exact expectation over all
        orders of the tied documents; "file" keeps the order of the input; "docid" sorts by document
        id, descending; "shuffle" is random, determined by `seed`; "worst" puts the least relevant
        document first.
    gain : {"exp", "linear"}, default "exp"
        Gain of DCG and NDCG where the measure sets none: 2^label - 1, or the label.
    discount : {"log2", "letor"}, default "log2"
        Discount of DCG and NDCG where the measure sets none: 1 / log2(1 + rank), or
        1, 1, 1 / log2(3), 1 / log2(4), ...
    rel : float, default 1.0
        Smallest label that counts as relevant in measures of binary relevance.
    queries : {"judged", "run"}, default "judged"
        Queries that enter the means.  "judged": every query with judgments, with value 0 where
        the run lacks it; "run": only judged queries that the run contains.
    without_relevant : {"zero", "skip", "one"}, default "zero"
        Value of a query without relevant documents: one that has no judged label of at least `rel`.
        "zero": 0; "one": 1 in measures that divide by what an ideal ranking has, such as NDCG, AP
        and Recall, 0 in the others; "skip": the query does not enter the means of any measure.
    depth : int, optional
        Number of documents per query that are read from a run.  None reads all.
    single : bool, default False
        Whether scores are rounded to float32 before they are compared, as trec_eval does.
    strict_cutoff : bool, default False
        Whether NDCG@k of a list with fewer than k documents is 0.
    negative_unjudged : bool, default False
        Whether judgments below 0 count as unjudged; this affects bpref and Judged.
    condensed : bool, default False
        Whether unjudged documents are removed from the rankings, after `depth` applies, as by
        trec_eval's option -J.
    seed : int, default 0
        Seed of random tie orders and of bootstrap and randomization tests; any integer.

    Raises
    ------
    MeasureError
        If a setting has an unknown or invalid value.

    Examples
    --------
    >>> import firstpage as fp
    >>> strict = fp.Convention("strict", ties="worst", rel=2)
    >>> evaluation = fp.evaluate(
    ...     [1.0, 1.0], [0, 2], qid=["q", "q"], measures="RR", convention=strict
    ... )
    >>> evaluation["RR"]
    0.5
    """

    name: str = "default"
    ties: Ties = "average"
    gain: str = "exp"
    discount: str = "log2"
    rel: float = 1.0
    queries: Queries = "judged"
    without_relevant: WithoutRelevant = "zero"
    depth: int | None = None
    single: bool = False
    strict_cutoff: bool = False
    negative_unjudged: bool = False
    condensed: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for value, options, name in (
            (self.ties, get_args(Ties), "ties"),
            (self.queries, get_args(Queries), "queries"),
            (self.without_relevant, get_args(WithoutRelevant), "without_relevant"),
        ):
            if value not in options:
                raise MeasureError(f"{name} must be one of {', '.join(options)}; got {value!r}.")
        depth = self.depth
        if depth is not None and (not isinstance(depth, (int, np.integer)) or depth < 1):
            raise MeasureError(f"depth must be an integer of at least 1; got {depth}.")
        if not isinstance(self.rel, (int, float, np.number)) or not np.isfinite(self.rel):
            raise MeasureError(f"rel must be a finite number; got {self.rel!r}.")
        object.__setattr__(self, "seed", int(self.seed) % 2**63)  # any integer is accepted


CONVENTIONS = {
    c.name: c
    for c in (
        Convention(),
        Convention(
            "trec",
            ties="docid",
            gain="linear",
            queries="run",
            single=True,
            negative_unjudged=True,
        ),
        Convention("letor", ties="file", discount="letor", strict_cutoff=True),
        Convention("lightgbm", ties="file", without_relevant="one"),
        Convention("xgboost", ties="file", without_relevant="one", single=True),
    )
}


def resolve_convention(convention: str | Convention = "default", **changes: Any) -> Convention:
    """Return a convention, by name or as it is, with the settings in `changes` replaced.

    A change of None leaves the setting as it is.
    """
    if isinstance(convention, Convention):
        base = convention
    elif convention in CONVENTIONS:
        base = CONVENTIONS[convention]
    else:
        near = get_close_matches(convention, CONVENTIONS, 1, 0.4)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise MeasureError(
            f"there is no convention {convention!r}; there are {', '.join(CONVENTIONS)}.{hint}"
        )
    return replace(base, **{name: value for name, value in changes.items() if value is not None})
