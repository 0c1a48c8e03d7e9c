"""The interface of losses: parameters, traits, and a truth prepared for the kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from inspect import signature
from itertools import pairwise
from pathlib import Path
from traceback import extract_tb
from typing import Any, Protocol, Self

import numpy as np

from firstpage.core import (
    Array,
    BoundKernel,
    DataError,
    FirstpageError,
    Floats,
    Ints,
    qualified_name,
    warn,
)
from firstpage.data import Truth
from firstpage.learning.losses.finite_differences import (
    check_curvature,
    check_gradient,
    checked_queries,
)


@dataclass(frozen=True, eq=False)
class LossTerm:
    """A loss as plain arrays, from which a device computes it.

    Attributes
    ----------
    kind : str
        The formula, where documents are read from best to worst label:

        plackett_luce
            sum of mass * log(sum of weight * exp(score) from here on down) - coefficient * score;
            the mass of a level belongs to its first document
        pairs
            sum over u, v where position(v) >= end(u) of upper_u * lower_v * log(1 + exp(s_v - s_u))
        softmax
            log(sum of weight * exp(score)) - sum of target * score
        cosine
            (1 - target . score / max(|score|, factor)) / 2
        squared
            sum of weight * (score - label)^2 / 2
        permutations
            cross entropy of the permutations of a few documents
        measure
            a loss that reads a measure, as `measure` has it
    columns : mapping of str to array
        One number per document for each name, in the order of the rows.
    factor : array
        One factor per query, which multiplies the value and the gradient (of a cosine: the least
        length).
    offset : array or None
        One number per query, which is subtracted from the value afterwards.
    weight : float
        The weight of the term in a sum.
    lists : ShortLists or None
        The documents of each query, for permutations.
    measure : LossTarget or None
        The target of a loss that reads a measure, with its arrays.
    """

    kind: str
    columns: Mapping[str, Floats]
    factor: Floats
    offset: Floats | None = None
    weight: float = 1.0
    lists: ShortLists | None = None
    measure: LossTarget | None = None

    def times(self, weight: float) -> LossTerm:
        """Return the term with its weight multiplied."""
        return replace(self, weight=weight * self.weight)


@dataclass(frozen=True, eq=False)
class ShortLists:
    """A few documents per query, and the probability that each subset of them is ever left over.

    `reach[starts[table[q]]:]` has a number for each of the 2^n subsets of the list of query q.
    Documents are numbered inside their query.
    """

    docs: Array
    firsts: Ints
    table: Ints
    starts: Ints
    reach: Floats


class IncompatibleComponents(FirstpageError, ValueError):
    """A loss, a scorer or a solver lacks what another component relies on."""


@dataclass(frozen=True)
class Traits:
    """Properties of a loss that solvers rely on.

    Parameters
    ----------
    smooth : bool, default True
        Whether it is differentiable everywhere.
    convex : bool, default True
        Whether it is convex in the scores.
    quadratic : bool, default False
        Whether its curvature is the same for all scores.
    deterministic : bool, default True
        Whether equal scores have equal values; False where values are estimated from random
        samples, which are others in every evaluation.
    bounded_hessian : bool, default True
        Whether `hessian_scale` bounds the norm of the Hessian, from which rounding errors follow.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.extend.loss("PairwiseHinge").traits.smooth
    False
    """

    smooth: bool = True
    convex: bool = True
    quadratic: bool = False
    deterministic: bool = True
    bounded_hessian: bool = True

    def __and__(self, other: Traits) -> Traits:
        """Return the traits of a sum of two losses."""
        return Traits(
            self.smooth and other.smooth,
            self.convex and other.convex,
            self.quadratic and other.quadratic,
            self.deterministic and other.deterministic,
            self.bounded_hessian and other.bounded_hessian,
        )


class LossTarget(Protocol):
    """A truth prepared for one loss.  Slices of queries can be evaluated independently.

    Arrays are bound once and used by every call: `scores` and `grad` have one number per document
    of the queries lo:hi, `values` has one per query.
    """

    @property
    def upper_bounds(self) -> Floats | None:
        """Upper bounds of the values of the last run, where a search may miss a maximum; None where
        values are exact."""
        return None

    def hessian_scale(self) -> Floats:
        """Return one factor per query: at equal scores the Hessian by the parameters of a linear
        scorer is about this factor times the covariance of the query's features.

        Where the loss is smooth and convex, and its gradient bounded or linear, the factor also
        bounds the norm of the Hessian by the scores, at any scores.
        """
        ...

    def terms(self) -> list[LossTerm] | None:
        """Return the terms from which a device computes the loss; None if only the host can."""
        ...

    def bind_slice(
        self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats
    ) -> BoundKernel:
        """Return a kernel that writes the value of each query and the gradient by the scores."""
        ...

    def bind_curvature(self, lo: int, hi: int, scores: Floats, out: Floats) -> BoundKernel:
        """Return a kernel that writes the second derivative by each score, or an upper bound."""
        ...

    def bind_derivatives(
        self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats, curvature: Floats
    ) -> BoundKernel:
        """Return a kernel that writes all that `bind_slice` and `bind_curvature` write."""
        first = self.bind_slice(lo, hi, scores, values, grad)
        second = self.bind_curvature(lo, hi, scores, curvature)

        def run() -> None:
            first()
            second()

        return run

    def check_derivatives(self, curvature: bool = False) -> None:
        """Raise if the gradient, or the curvature, is wrong on some of the queries.

        Only losses of users are checked.
        """
        return None

    def skip_draws(self, evaluations: int) -> None:
        """Continue as after this many more evaluations of every slice.

        Only losses that draw at random depend on it.
        """
        return None

    def set_evaluation(self, number: int) -> None:
        """Set the number of the next evaluation of every slice.

        Only losses that draw at random depend on it.
        """
        return None

    def number_queries(self, first: int) -> None:
        """Set the number of the first query, where the truth is a shard; before slices are bound.

        Only losses that draw at random depend on it.
        """
        return None

    def freeze(self, scores: Floats) -> None:
        """Fix the true ranking to the one of the highest score under these scores.

        Only for losses whose true ranking depends on the scores.
        """
        raise AssertionError(f"{type(self).__name__} has no true ranking to freeze")

    def thaw(self) -> None:
        """Undo `freeze`."""
        raise AssertionError(f"{type(self).__name__} has no true ranking to thaw")


class OneKernelTarget(LossTarget):
    """Base class of targets whose kernel writes values, gradient and, if asked, curvature."""

    def bind_derivatives(
        self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats, curvature: Floats
    ) -> BoundKernel:
        return self._bind(lo, hi, scores, values, grad, curvature)

    def bind_slice(
        self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats
    ) -> BoundKernel:
        return self._bind(lo, hi, scores, values, grad, np.empty(0))

    def bind_curvature(self, lo: int, hi: int, scores: Floats, out: Floats) -> BoundKernel:
        return self._bind(lo, hi, scores, np.empty(hi - lo), np.empty(len(scores)), out)

    def _bind(
        self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats, curvature: Floats
    ) -> BoundKernel:
        """Return the kernel; it writes no curvature where that array is empty."""
        raise AssertionError(f"{type(self).__name__} has no kernel")  # every subclass has its own


@dataclass(frozen=True, eq=False, kw_only=True)
class SampledTarget(OneKernelTarget):
    """Base class of targets that draw rankings at random, others in every evaluation."""

    samples: int
    seed: int
    evaluations: Ints  # by the first query of a slice: how often it was evaluated
    first_query: Ints  # the number of the first query of the truth

    def skip_draws(self, evaluations: int) -> None:
        self.evaluations[:] += evaluations

    def set_evaluation(self, number: int) -> None:
        self.evaluations[:] = number

    def number_queries(self, first: int) -> None:
        self.first_query[:] = first

    def own_evaluations(self) -> Self:
        """Return the target with evaluations of its own count, from the first one on."""
        return replace(self, evaluations=np.zeros_like(self.evaluations))

    def bind_curvature(self, lo: int, hi: int, scores: Floats, out: Floats) -> BoundKernel:
        # Its rankings are those of the gradient before it.
        return super(SampledTarget, self.own_evaluations()).bind_curvature(lo, hi, scores, out)


class Loss:
    """Base class of all losses.

    A loss maps scores and a truth to one value per query; lower is better.  It never sees features.
    Subclasses are frozen dataclasses.  Those of Firstpage implement `target` with compiled code.
    For a loss of your own it is enough to implement `value_grad`.

    Attributes
    ----------
    traits : Traits
        What solvers may rely on: whether the loss is smooth, convex, quadratic or deterministic.  A
        loss of your own counts as smooth and not convex, unless it sets ``traits`` itself.

    See Also
    --------
    firstpage.extend.loss : Create a loss from its name.
    firstpage.extend.register_loss : Give a loss of your own a name.
    firstpage.LossRanker : Minimize any loss.

    Examples
    --------
    >>> import numpy as np
    >>> import firstpage as fp
    >>> data = fp.Dataset.from_arrays(np.eye(3), [2, 1, 0], [1, 1, 1])
    >>> loss = fp.extend.loss("PlackettLuce")
    >>> values, gradient = loss.value_grad(np.zeros(3), data.truth)
    >>> float(values[0].round(3))
    1.792
    >>> gradient.round(2).tolist()
    [-0.67, -0.17, 0.83]
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        declared = cls.__dict__.get("traits")
        if cls.target is Loss.target and isinstance(declared, Traits):
            cls.traits = replace(declared, bounded_hessian=False)  # type: ignore[method-assign, assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"  # of a class that is not a dataclass

    @property
    def traits(self) -> Traits:
        """What solvers may rely on; subclasses set it to others where the defaults do not hold."""
        if type(self).target is Loss.target:
            return Traits(convex=False, bounded_hessian=False)
        return Traits()

    def target(self, truth: Truth, weights: Floats | None = None) -> LossTarget:
        """Return the truth as this loss reads it, ready for evaluation.

        Parameters
        ----------
        truth : Truth
            The labels of the documents.
        weights : array of float, optional
            One weight per document; a document of weight 2 counts as two copies.

        Returns
        -------
        LossTarget
            The prepared truth, whose slices of queries can be evaluated independently.

        Raises
        ------
        DataError
            If the loss cannot read this truth or these weights.
        """
        if type(self).value_grad is Loss.value_grad:
            raise DataError(
                f"the loss {type(self).__name__} has no method value_grad(self, scores, truth)."
            )
        return _PythonTarget(self, truth, weights)

    def value_grad(
        self, scores: Floats, truth: Truth, weights: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Return the value of every query and the gradient by the scores.

        Parameters
        ----------
        scores : array of float
            One score per document, in the order of the truth.
        truth : Truth
            The labels of the same documents.
        weights : array of float, optional
            One weight per document; a document of weight 2 counts as two copies.

        Returns
        -------
        values : array of float
            One value per query.
        gradient : array of float
            One derivative per document: that of its query's value by its score.

        Raises
        ------
        DataError
            If the loss cannot read this truth or these weights.
        """
        scores = np.ascontiguousarray(scores, np.float64)
        values, grad = np.empty(len(truth)), np.empty(len(scores))
        self.target(truth, weights).bind_slice(0, len(truth), scores, values, grad)()
        return values, grad

    def curvature(self, scores: Floats, truth: Truth, weights: Floats | None = None) -> Floats:
        """Return the second derivative of a query's value by each of its scores.

        Parameters
        ----------
        scores : array of float
            One score per document, in the order of the truth.
        truth : Truth
            The labels of the same documents.
        weights : array of float, optional
            One weight per document; a document of weight 2 counts as two copies.

        Returns
        -------
        array of float
            One number per document: the diagonal of the Hessian, or an upper bound of it.
        """
        scores = np.ascontiguousarray(scores, np.float64)
        out = np.empty(len(scores))
        self.target(truth, weights).bind_curvature(0, len(truth), scores, out)()
        return out


class _PythonTarget(LossTarget):
    """A truth for a loss whose `value_grad` is Python: it is called for each slice of queries."""

    def __init__(self, loss: Loss, truth: Truth, weights: Floats | None) -> None:
        self.loss, self.truth, self.weights = loss, truth, weights
        takes_weights = "weights" in signature(loss.value_grad).parameters
        if weights is not None and not takes_weights:
            raise DataError(
                f"the loss {loss} takes no document weights; give its value_grad a parameter "
                "weights, or leave them out."
            )

    def hessian_scale(self) -> Floats:
        return np.ones(len(self.truth))

    def terms(self) -> None:
        return None

    def bind_slice(
        self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats
    ) -> BoundKernel:
        arguments = self._arguments(lo, hi)

        def run() -> None:
            values[:], grad[:] = self._checked(scores, *arguments)

        return run

    def bind_curvature(self, lo: int, hi: int, scores: Floats, out: Floats) -> BoundKernel:
        """Bind the curvature of the loss.

        Where the loss has none, it is the mean absolute gradient of the query.  With the absolute
        gradient of each document as a lower bound, as trees have it, no step exceeds 1.
        """
        arguments = self._arguments(lo, hi)
        offsets = arguments[0].offsets
        own = type(self.loss).curvature is not Loss.curvature

        def run() -> None:
            if own:
                out[:] = self._checked_curvature(scores, *arguments)
            else:
                magnitude = np.abs(self._checked(scores, *arguments)[1])
                sums = np.add.reduceat(np.append(magnitude, 0.0), offsets[:-1])
                lengths = np.diff(offsets)
                out[:] = np.repeat(sums / np.maximum(lengths, 1), lengths)

        return run

    def check_derivatives(self, curvature: bool = False) -> None:
        if not self.loss.traits.deterministic:
            return
        messages = []
        for q in checked_queries(self.truth).tolist():
            arguments = self._arguments(q, q + 1)
            size, query = len(arguments[0].labels), self.truth.queries[q]

            def function(scores: Floats, arguments: tuple[Any, ...] = arguments) -> Any:
                values, gradient = self._checked(scores, *arguments)
                return float(values[0]), gradient

            def bound(scores: Floats, arguments: tuple[Any, ...] = arguments) -> Floats:
                return self._checked_curvature(scores, *arguments)

            smooth = self.loss.traits.smooth
            messages.append(check_gradient(str(self.loss), query, function, size, smooth))
            if curvature and smooth and type(self.loss).curvature is not Loss.curvature:
                check_curvature(str(self.loss), query, function, bound, size)
        for message in list(filter(None, messages))[:1]:
            warn(message)

    def _checked_curvature(self, scores: Floats, truth: Truth, *weights: Floats) -> Floats:
        """Return the curvature of a user's loss: numbers of at least 0, one per document."""
        result = np.asarray(self.loss.curvature(scores.copy(), truth, *weights), np.float64)
        if result.shape != scores.shape or not (result >= 0).all():
            raise DataError(
                f"the curvature of the loss {self.loss} must be {len(scores)} numbers of at least "
                "0, one per document."
            )
        return result

    def _arguments(self, lo: int, hi: int) -> tuple[Any, ...]:
        """Return the truth of some queries, and the weights of their documents if there are any."""
        ends = self.truth.offsets[lo : hi + 1]
        rows = slice(int(ends[0]), int(ends[-1]))
        part = Truth(self.truth.labels[rows], ends - ends[0], self.truth.queries[lo:hi])
        return (part,) if self.weights is None else (part, self.weights[rows])

    def _checked(self, scores: Floats, truth: Truth, *weights: Floats) -> tuple[Floats, Floats]:
        """Return what the loss returns: finite numbers, one per query and one per document."""
        try:
            values, gradient = self.loss.value_grad(scores.copy(), truth, *weights)
            results = np.asarray(values, np.float64), np.asarray(gradient, np.float64)
        except DataError:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".partition("\n")[0]
            own = [each for each in extract_tb(error.__traceback__) if each.filename != __file__]
            where = f", {Path(own[0].filename).name}:{own[0].lineno}" if own else ""
            raise DataError(
                f"the loss {self.loss} failed ({reason}{where}); value_grad must return one value "
                "per query and one derivative per document."
            ) from error
        for what, array, expected in zip(
            ("value per query", "derivative per document"),
            results,
            (len(truth), len(scores)),
            strict=True,
        ):
            if array.shape != (expected,):
                raise DataError(
                    f"the loss {self.loss} must return one {what}, {expected} here; got an array "
                    f"of shape {array.shape}."
                )
            if np.isnan(array).any() and not np.isnan(scores).any():
                raise DataError(f"the loss {self.loss} returned NaN as a {what}.")
        return results


@dataclass(frozen=True)
class FunctionLoss(Loss):
    """A Python function of the scores and the labels of one query.

    Parameters
    ----------
    function : callable
        ``function(scores, labels)`` returns the value of one query and its gradient by the scores.
    """

    function: Callable[[Floats, Floats], tuple[float, Floats]]

    def value_grad(
        self, scores: Floats, truth: Truth, weights: Floats | None = None
    ) -> tuple[Floats, Floats]:
        if weights is not None:
            raise DataError(f"the loss {self} takes no document weights; leave them out.")
        values, gradient = np.zeros(len(truth)), np.zeros(len(scores))
        for q, (lo, hi) in enumerate(pairwise(truth.offsets.tolist())):
            if hi > lo:
                values[q], gradient[lo:hi] = self.function(scores[lo:hi], truth.labels[lo:hi])
        return values, gradient

    def __str__(self) -> str:
        return qualified_name(self.function)


def safe_inverse(values: Floats) -> Floats:
    """Return 1 / value, and 0 for values that are not positive."""
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)


def zero_curvature(out: Floats) -> BoundKernel:
    """Return a kernel that writes the curvature of a piecewise linear loss, which is 0."""

    def run() -> None:
        out[:] = 0.0

    return run
