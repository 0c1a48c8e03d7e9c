"""Conventions: what different tools mean by the same measure.

One table of them is in docs/conventions.md, made from here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Literal, get_args

import numpy as np

from firstpage.errors import MeasureError

Ties = Literal["average", "file", "docid", "shuffle", "worst"]
Queries = Literal["judged", "run"]


@dataclass(frozen=True)
class Convention:
    """How rankings and truth are read.

    ties     "average": the exact expectation over all orders of documents with equal scores;
             "file": as they stand; "docid": by name, downward; "shuffle": at random by
             `seed`; "worst": the least relevant first.
    gain     of DCG and NDCG where the measure does not name one: "exp" or "linear".
    discount "log2": 1/log2(1+place); "letor": 1, 1, 1/log2(3), 1/log2(4), ..
    rel      labels from this on count as relevant in binary measures.
    queries  "judged": every query with judgments counts, 0 where the run misses it;
             "run": only queries that the run has.
    depth    documents beyond this place of a run do not exist.  None: all do.
    single   scores are rounded to float32 before they are compared, as trec_eval does.
    strict_cutoff  NDCG@k of a list shorter than k is 0.
    negative_unjudged  judgments below 0 count as none at all (matters to bpref and Judged).
    """

    name: str = "default"
    ties: Ties = "average"
    gain: str = "exp"
    discount: str = "log2"
    rel: float = 1.0
    queries: Queries = "judged"
    depth: int | None = None
    single: bool = False
    strict_cutoff: bool = False
    negative_unjudged: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for value, options, name in (
            (self.ties, get_args(Ties), "ties"),
            (self.queries, get_args(Queries), "queries"),
        ):
            if value not in options:
                raise MeasureError(f"{name} must be one of {', '.join(options)}; got {value!r}.")
        depth = self.depth
        if depth is not None and (not isinstance(depth, (int, np.integer)) or depth < 1):
            raise MeasureError(f"depth must be at least 1 and whole, and is {depth}.")
        if not np.isfinite(self.rel):
            raise MeasureError(f"rel must be a finite number, and is {self.rel}.")
        object.__setattr__(self, "seed", int(self.seed) % 2**63)  # any whole number will do


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
    )
}


def convention(which: str | Convention = "default", **changes: Any) -> Convention:
    """A named convention, with single settings changed; None leaves a setting as it is."""
    if isinstance(which, Convention):
        found = which
    elif which in CONVENTIONS:
        found = CONVENTIONS[which]
    else:
        near = get_close_matches(which, CONVENTIONS, 1, 0.4)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise MeasureError(
            f"there is no convention {which!r}; there are {', '.join(CONVENTIONS)}.{hint}"
        )
    return replace(found, **{name: v for name, v in changes.items() if v is not None})
