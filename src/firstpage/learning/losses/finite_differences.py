"""The derivatives of a loss of one's own, checked by finite differences on a few queries.

A gradient with the wrong sign would otherwise end in a model of weights 0, or in one that ranks
backwards.  Kinks cause no false alarm: a derivative is correct if it lies between the differences
to both sides, for any of three steps.  Jumps cause none either, where the loss is smooth between
them: it is also correct if it equals the differences to both sides for a step that is so short
that rounding may hide a wrong derivative, but does not imitate a correct one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from firstpage.core import DataError, Floats, Ints
from firstpage.data import Truth

QUERIES = 3
DIRECTIONS = 2  # beside that of the gradient
STEPS = (1e-4, 1e-3, 1e-2)  # the last one for losses that are computed in float32
SHORT_STEPS = (1e-7, 1e-6, 1e-5)  # between jumps, such as those of weights by rank in long lists
TOLERANCE = 1e-2  # relative error of a derivative
ROUNDING = 1e-7  # of a value, relative; enough for steps of 1e-2 in float32
SHORT_ROUNDING = 1e-14  # of a value in float64, relative
ValueGrad = Callable[[Floats], tuple[float, Floats]]


def checked_queries(truth: Truth) -> Ints:
    """Return a few queries, spread over the truth: those with different labels if there are any."""
    differ = with_different_labels(truth)
    chosen = differ if len(differ) else np.flatnonzero(truth.lengths > 0)
    if not len(chosen):
        return chosen
    return np.unique(chosen[np.linspace(0, len(chosen) - 1, QUERIES).astype(np.int64)])


def with_different_labels(truth: Truth) -> Ints:
    """Return the queries in which not all labels are equal."""
    filled = np.flatnonzero(truth.lengths > 0)
    if not len(filled):
        return filled
    starts = truth.offsets[filled]
    highest = np.maximum.reduceat(truth.labels, starts)
    return filled[highest > np.minimum.reduceat(truth.labels, starts)]


def check_gradient(
    name: str, query: str, function: ValueGrad, size: int, smooth: bool
) -> str | None:
    """Raise unless the gradient of a query's value agrees with finite differences.

    Losses that are not smooth may have a substitute gradient: unless that is reversed, the
    difference is returned as a message.  Values that do not change agree with any substitute.
    """
    rng = np.random.default_rng(0)
    scores = rng.normal(size=size)
    value, gradient = function(scores)
    if not np.isfinite(value) or not np.isfinite(gradient).all():
        return None
    for number, direction in enumerate(_directions(gradient, rng)):
        derivative = float(gradient @ direction)
        sides = list(_informative_differences(function, scores, direction, value, derivative))
        if not sides or any(_agrees(derivative, *pair, smooth) for pair in sides):
            continue
        if _agrees_between_jumps(function, scores, direction, value, derivative):
            continue
        numeric = sum(sides[0]) / 2
        numbers = (
            f"in query {query!r} its derivative in one direction is {derivative:.4g}, and finite "
            f"differences of the value give {numeric:.4g}"
        )
        # A substitute may differ in sign in random directions, but not in its own.
        if not smooth and not (number == 0 and _reversed(derivative, sides)):
            return (
                f"the gradient of the loss {name} is not that of its value: {numbers}. As "
                "smooth=False declares, it is used as a substitute."
            )
        reverse = not smooth or abs(derivative + numeric) <= TOLERANCE * abs(derivative)
        remedy = (
            "reverse its sign"
            if reverse
            else "correct value_grad, or declare traits = fp.extend.Traits(convex=False, "
            "smooth=False) if the gradient takes a weight as constant on purpose"
        )
        raise DataError(f"the gradient of the loss {name} is wrong: {numbers}; {remedy}.")
    return None


def _directions(gradient: Floats, rng: np.random.Generator) -> Iterator[Floats]:
    """Return directions of scores, scaled to 1: the gradient's, and random ones."""
    largest = float(np.abs(gradient).max())
    if largest > 0:
        yield gradient / largest
    for _ in range(DIRECTIONS):
        yield rng.uniform(-1, 1, len(gradient))


def _informative_differences(
    function: ValueGrad, scores: Floats, direction: Floats, value: float, derivative: float
) -> Iterator[tuple[float, float]]:
    """Return the differences to both sides, for each step at which rounding cannot explain them."""
    for step in STEPS:
        values = [function(scores + change * direction)[0] for change in (step, -step)]
        sides = (values[0] - value) / step, (value - values[1]) / step
        rounding = ROUNDING * max(map(abs, (value, *values))) / step
        if rounding <= TOLERANCE * max(map(abs, (derivative, *sides))):
            yield sides


def _agrees(derivative: float, ahead: float, behind: float, smooth: bool) -> bool:
    """Return whether a derivative lies between the differences to both sides, within tolerance."""
    if not smooth and ahead == behind == 0:
        return True
    margin = 2 * TOLERANCE * max(abs(derivative), abs(ahead), abs(behind))
    return min(ahead, behind) - margin <= derivative <= max(ahead, behind) + margin


def _agrees_between_jumps(
    function: ValueGrad, scores: Floats, direction: Floats, value: float, derivative: float
) -> bool:
    """Return whether a derivative equals the differences to both sides for a short step.

    A derivative of 0 is not compared: in float32, short steps do not change the value.
    """
    if derivative == 0:
        return False
    for step in SHORT_STEPS:
        values = [function(scores + change * direction)[0] for change in (step, -step)]
        sides = np.array([values[0] - value, value - values[1]]) / step
        rounding = SHORT_ROUNDING * max(map(abs, (value, *values))) / step
        if (np.abs(sides - derivative) <= 2 * TOLERANCE * abs(derivative) + rounding).all():
            return True
    return False


def _reversed(derivative: float, sides: list[tuple[float, float]]) -> bool:
    """Return whether all differences have clearly the opposite sign of a derivative."""
    against = -np.sign(derivative) * np.array(sides)
    return bool((against > TOLERANCE * abs(derivative)).all())


def check_curvature(
    name: str, query: str, function: ValueGrad, curvature: Callable[[Floats], Floats], size: int
) -> None:
    """Raise if a curvature is less than the second derivative of a query's value."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=size)
    bounds = curvature(scores)
    for row in np.unique(np.linspace(0, size - 1, QUERIES).astype(np.int64)).tolist():
        direction = np.zeros(size)
        direction[row] = 1.0
        seconds = []
        for step in STEPS:
            ahead = function(scores + step * direction)[1][row]
            behind = function(scores - step * direction)[1][row]
            rounding = ROUNDING * max(abs(ahead), abs(behind)) / step
            seconds.append((float(ahead - behind) / (2 * step), rounding))
        bound = float(bounds[row])
        if all(bound < (1 - TOLERANCE) * second - rounding for second, rounding in seconds):
            raise DataError(
                f"the curvature of the loss {name} is wrong: in query {query!r} that of document "
                f"{row + 1} is {bound:.4g}, and finite differences of the gradient give "
                f"{seconds[0][0]:.4g}; return the second derivative, or an upper bound."
            )
