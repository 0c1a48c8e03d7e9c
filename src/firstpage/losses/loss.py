"""What a loss is: parameters, traits, and a reading of the truth that kernels can run over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np

from firstpage.data.truth import Truth
from firstpage.errors import FirstpageError
from firstpage.types import Array, Floats, Ints


@dataclass(frozen=True, eq=False)
class Term:
    """A loss as plain arrays, of which a device computes it.

    kind    one of few losses of lists:
            plackett_luce  sum of mass * log(sum of weight * exp(score), from here on down)
                           - pull * score
            pairs          sum over u, v, place of v >= end of u, of
                           up_u * low_v * log(1 + exp(s_v - s_u))
            softmax        log(sum of weight * exp(score)) - sum of share * score
            cosine         (1 - unit . score / |score|) / 2, where lengths below the factor count
                           as that
            squared        sum of weight * (score - label)^2 / 2
            permutations   cross entropy of the permutations of a few documents
            Documents are read from best to worst label; `mass` stands with the first document of
            its level
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


Run = Callable[[], object]


class IncompatibleComponents(FirstpageError, ValueError):
    """A loss, a scorer or a solver lacks what another part relies on."""


@dataclass(frozen=True)
class Traits:
    """What solvers may ask of a loss.

    quadratic: its curvature is the same for all scores.
    """

    smooth: bool = True
    convex: bool = True
    quadratic: bool = False


class Target(Protocol):
    """A truth prepared for one loss.  Slices of queries can be evaluated apart.

    Arrays are handed over once and used by every run: `scores` and `grad` have one number a
    document of the queries lo:hi, `values` one a query.
    """

    def stiffness(self) -> Floats:
        """A number a query: at equal scores it bends as this times the covariance of features."""
        ...

    def terms(self) -> list[Term] | None:
        """The loss as a device computes it; None where only the host can."""
        ...

    def bind(self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats) -> Run:
        """A run that writes the value of each query and the slope by each score."""
        ...

    def bind_curvature(self, lo: int, hi: int, scores: Floats, out: Floats) -> Run:
        """A run that writes the second derivative by each score, or a bound above it."""
        ...


class Loss:
    """Base of all losses.  A loss maps scores and truth to one value a query; lower is better.

    Subclasses are frozen dataclasses with `target`.
    """

    traits: ClassVar[Traits] = Traits()

    def target(self, truth: Truth, weights: Floats | None = None) -> Target:
        """The truth as this loss reads it; `weights` are the documents', as if copied."""
        raise AssertionError(f"{type(self).__name__} has no target")  # every subclass has its own

    def value_grad(
        self, scores: Floats, truth: Truth, weights: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """The value of every query, and its slope by every score."""
        scores = np.ascontiguousarray(scores, np.float64)
        values, grad = np.empty(len(truth)), np.empty(len(scores))
        self.target(truth, weights).bind(0, len(truth), scores, values, grad)()
        return values, grad

    def curvature(self, scores: Floats, truth: Truth, weights: Floats | None = None) -> Floats:
        """The second derivative of a query's value by each of its scores (or a bound above)."""
        scores = np.ascontiguousarray(scores, np.float64)
        out = np.empty(len(scores))
        self.target(truth, weights).bind_curvature(0, len(truth), scores, out)()
        return out


def safe_inverse(values: Floats) -> Floats:
    """1 / value, and 0 where there is nothing to divide by: such queries say nothing."""
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)


def flat(out: Floats) -> Run:
    """The curvature of a piecewise linear loss: none."""

    def run() -> None:
        out[:] = 0.0

    return run
