"""Expectation maximization of probabilities with Beta priors, accelerated by SQUAREM."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from firstpage.clicks.models.features import estimate_weights
from firstpage.clicks.models.priors import estimate_beta, prior_means
from firstpage.core import Array, Floats, Progress

Values = dict[str, Floats]
Beta = tuple[float, float]
Prior = tuple[Any, Any]  # of all pairs, or of each
BORDER = 1e-12  # distance of extrapolated probabilities from 0 and 1
MAX_CYCLES = 500
PRIOR_ROUNDS = 20
PRIOR_TOLERANCE = 0.01  # relative change of a prior, below which it is not estimated again
MAX_HIDDEN = 10.0  # pseudo-counts of the prior of events that are never observed
ROUGH = 100.0  # factor of the tolerance while priors are estimated


class Counts(NamedTuple):
    """Expected events and occasions of a family of probabilities."""

    hits: Floats
    trials: Floats


class Expected(NamedTuple):
    """The log-likelihood of a log, the expected counts of hidden events, and what pairs tell.

    `evidence` has the counts that a pair's own data are worth, of families with estimated priors.
    """

    log_likelihood: float
    counts: Mapping[str, Counts]
    evidence: Mapping[str, Counts]


@dataclass
class Maximization:
    """The state of a fit: values per family, priors, and the objective of each step.

    The objective is the log-likelihood plus that of the priors' pseudo-counts, which no step of EM
    decreases.  `fixed` has indices of values that are not estimated; `hidden` names families
    whose events are never observed; `design` has the features of pairs, by which the prior of
    attractiveness varies, with the `weights`.
    """

    expect: Callable[[Values], Expected]
    values: Values
    priors: dict[str, Prior]
    fixed: Mapping[str, Array] = field(default_factory=dict)
    impressions: float = 1.0
    objectives: list[float] = field(default_factory=list)
    expected: Expected | None = None
    hidden: Collection[str] = ()
    design: Floats | None = None
    weights: Floats | None = None
    steps: int = 0
    converged: bool = False

    def step(self, values: Values) -> tuple[float, Values]:
        """Return the objective of values, and the values after one step of EM."""
        self.steps += 1
        self.expected = expected = self.expect(values)
        objective, new = expected.log_likelihood, {}
        for name, (a, b) in self.priors.items():
            hits, trials = expected.counts[name]
            new[name] = (a + hits) / (a + b + trials)
            free = values[name]
            if name in self.fixed:
                new[name][self.fixed[name]] = free[self.fixed[name]]
                free = np.delete(free, self.fixed[name])
            objective += float((a * np.log(free)).sum() + (b * np.log1p(-free)).sum())
        return objective, new

    def run(self, iterations: int) -> None:
        """Take so many steps of EM."""
        for _ in range(iterations):
            objective, self.values = self.step(self.values)
            self.objectives.append(objective)

    def accelerate(self, tolerance: float, progress: Progress | None = None) -> None:
        """Maximize by SQUAREM (Varadhan and Roland 2008), on the logits of the values.

        Two steps of EM give a direction and a curvature; an extrapolation that decreases the
        objective is dropped.
        """
        before = -np.inf
        self.converged = False
        for cycle in range(MAX_CYCLES):
            objective, one = self.step(self.values)
            self.objectives.append(objective)
            if progress is not None:
                progress(cycle, MAX_CYCLES)
            if objective - before < tolerance * self.impressions:
                self.converged = True
                return
            before = objective
            middle, two = self.step(one)
            self.objectives.append(middle)
            further, three = self.step(self.extrapolated(self.values, one, two))
            self.values = three if further > middle else two

    def extrapolated(self, start: Values, one: Values, two: Values) -> Values:
        """Return the values of SQUAREM's third scheme, after two steps of EM."""
        first, second, third = (_logits(values) for values in (start, one, two))
        r = {n: second[n] - first[n] for n in start}
        v = {n: third[n] - second[n] - r[n] for n in start}
        for name, index in self.fixed.items():
            r[name][index] = v[name][index] = 0.0
        squares = [sum(float(d[n] @ d[n]) for n in start) for d in (r, v)]
        size = max(np.sqrt(squares[0] / max(squares[1], 1e-300)), 1.0)
        out = {}
        for n in start:
            logit = first[n] + 2 * size * r[n] + size**2 * v[n]
            out[n] = np.clip(1 / (1 + np.exp(-logit)), BORDER, 1 - BORDER)
            if n in self.fixed:
                out[n][self.fixed[n]] = start[n][self.fixed[n]]
        return out

    def estimate_priors(self) -> float:
        """Estimate the priors of families with evidence; return the largest relative change."""
        assert self.expected is not None
        change = 0.0
        for name, (hits, trials) in self.expected.evidence.items():
            old: Prior = self.priors[name]
            new: Prior
            if name == "attractiveness" and self.design is not None:
                self.weights, strength = estimate_weights(self.design, hits, trials)
                mean = prior_means(self.design, self.weights)
                new = strength * mean, strength * (1 - mean)
            else:
                new = estimate_beta(hits, trials, old)
            if name in self.hidden:
                new = self._with_expected_mean(name, min(float(new[0] + new[1]), MAX_HIDDEN))
            ratios = [np.abs(np.log(x / y)).max() for x, y in zip(new, old, strict=True)]
            change = max(change, *ratios)
            self.priors[name] = new
        return change

    def _with_expected_mean(self, name: str, strength: float) -> Prior:
        """Return a prior whose mean is that of the values, weighted by what their data are worth.

        Of events that are never observed this is a step of EM, which cannot overshoot.
        """
        assert self.expected is not None
        weights = self.expected.counts[name].trials
        if not weights.any():  # no occasion of the event: nothing to learn its prior from
            return self.priors[name]
        mean = float(np.average(self.values[name], weights=weights / (weights + strength)))
        return strength * mean, strength * (1 - mean)


def _logits(values: Values) -> Values:
    clipped = {name: np.clip(x, BORDER, 1 - BORDER) for name, x in values.items()}
    return {name: np.log(x / (1 - x)) for name, x in clipped.items()}


def maximize(
    state: Maximization,
    iterations: int | None,
    tolerance: float,
    estimated: bool,
    progress: Progress | None = None,
) -> None:
    """Fit values, and priors if these are estimated; with `iterations` by plain steps of EM."""
    for _ in range(PRIOR_ROUNDS if estimated else 0):
        if iterations is None:
            state.accelerate(ROUGH * tolerance, progress)
        else:
            state.run(min(iterations, 10))
        if state.estimate_priors() < PRIOR_TOLERANCE:
            break
    state.objectives.clear()
    if iterations is None:
        state.accelerate(tolerance, progress)
    else:
        state.run(iterations)
    state.step(state.values)  # the expected counts at the final values
