"""Losses as terms: what a device needs to compute them, in plain arrays.

`Target.terms` returns them, or None for a loss that is computed on the host.  A term is one of few
kinds of list losses:

plackett_luce  sum of mass * log(sum of weight * exp(score), from here on down) - pull * score
pairs          sum over u, v, place of v >= end of u, of up_u * low_v * log(1 + exp(s_v - s_u))
softmax        log(sum of weight * exp(score)) - sum of share * score
cosine         (1 - unit . score / |score|) / 2, where lengths below the factor count as that
squared        sum of weight * (score - label)^2 / 2
permutations   cross entropy of the permutations of a few documents

Documents are read from best to worst label; `mass` stands with the first document of its level.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from firstpage.types import Array, Floats, Ints


@dataclass(frozen=True, eq=False)
class Term:
    """One term.

    rows    numbers of the documents by name, in the order of rows
    factor  of each query; what the value and its slope are multiplied by (of a cosine: a length)
    less    what is taken off each query's value afterwards
    share   what the term counts in a sum
    lists   of permutations: the documents of each query
    """

    kind: str
    rows: Mapping[str, Floats]
    factor: Floats
    less: Floats | None = None
    share: float = 1.0
    lists: ShortLists | None = None

    def times(self, share: float) -> Term:
        return replace(self, share=share * self.share)


@dataclass(frozen=True, eq=False)
class ShortLists:
    """Documents of queries, as numbers inside them, and how likely each subset is ever left.

    reach[starts[table[q]]:] has a number for each of the 2^n subsets of the query's list.
    """

    docs: Array
    firsts: Ints
    table: Ints
    starts: Ints
    reach: Floats
