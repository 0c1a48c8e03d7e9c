"""Prediction-powered means: few human labels, many machine labels, valid intervals.

The machine's values f are known for all N queries, the people's values y for a random sample S with
inclusion probabilities p.  The estimate is the mean of the machine's values plus the weighted mean
of its errors on the sample,

    theta = m mean(f) + sum_S w (y - m f) / sum_S w,    w = 1 / p.

m = 1 is the estimator of Angelopoulos et al. (2023), m = 0 uses people alone, and the m that
minimizes the estimated variance is the power tuning of PPI++ (Angelopoulos, Duchi, Zrnic 2023).
The variance of the errors y - m f is estimated as if two more queries had been drawn on which f is
unrelated to y.  Without them, a machine that errs rarely would often show no error on the sample,
and have an interval of no width.  With m = 0 they change nothing.

For a fixed m the bias is that of a ratio, of order 1 / n, and 0 for equal probabilities: the
machine's errors cannot bias the estimate, only widen its interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from firstpage.core import Bools, DataError, Floats, MeasureError
from firstpage.evaluation.measures.significance import t_tails

Target = Literal["population", "queries"]
GUARD_QUERIES = 2  # more queries, on which the machine is taken to know nothing, in the variance
MIN_DRAWN = 3  # with fewer sampled queries there is no variance of a tuned estimate


@dataclass(frozen=True)
class PoweredMean:
    """A prediction-powered mean.

    `value`, `error` and `freedom` are the estimate, its standard error and the degrees of freedom
    of its t-distribution; `machine_weight` is m.  `equivalent_queries` is the size of a simple
    random sample of queries, judged by people alone, that has the same standard error.
    """

    value: float
    error: float
    freedom: int
    machine_weight: float
    equivalent_queries: float

    def interval(self, level: float) -> tuple[float, float]:
        """Return the bounds of the confidence interval."""
        from scipy.special import stdtrit  # quantile of Student's t

        half = float(stdtrit(self.freedom, (1 + level) / 2)) * self.error
        return self.value - half, self.value + half

    def p_value(self) -> float:
        """Return the two-sided p-value of the hypothesis that the mean is 0.

        A sample of equal values has no deviation; its p-value is that of the sign test.
        """
        if self.error == 0:
            return 1.0 if self.value == 0 else float(0.5**self.freedom)
        return 2 * min(t_tails(self.value / self.error, self.freedom))


def powered_mean(
    human: Floats,
    machine: Floats,
    probabilities: Floats,
    drawn: Bools,
    machine_weight: float | None = None,
    target: Target = "population",
    inner: tuple[Floats, int] | None = None,
) -> PoweredMean:
    """Return the prediction-powered mean of one value per query.

    `human` has one value per drawn query, the other arrays one per query; `machine_weight` is None
    for power tuning.  The target is the mean over the population that the queries were drawn from,
    or the mean over these queries alone, whose interval omits the variance between queries.
    `inner` has the variances of human values that are estimates, and their degrees of freedom.
    """
    sampled, p = machine[drawn], probabilities[drawn]
    tuned = machine_weight is None
    count, parameters = len(human), 2 if tuned else 1
    weights = 1 / p
    total = weights.sum()
    human_mean, sampled_mean = weights @ human / total, weights @ sampled / total
    residual, deviation = human - human_mean, sampled - sampled_mean
    # Contribution of each query to the variance of the design; 0 where it was certain to be drawn.
    variance_weights = (1 - p) * weights**2
    if machine_weight is None:
        denominator = variance_weights @ deviation**2
        machine_weight = (
            float(variance_weights @ (deviation * residual) / denominator) if denominator else 0.0
        )
    gap = machine.mean() - sampled_mean
    residual = residual - machine_weight * deviation
    factors = _regression_factors(weights, deviation, gap) if tuned else 1.0
    design = float(variance_weights @ (factors * residual) ** 2) / total**2
    between = float(weights @ (human - human_mean) ** 2) / total * count / (count - 1)
    within = float(weights @ deviation**2) / total * count / (count - 1)
    unrelated = (between + machine_weight**2 * within) * float(variance_weights.sum()) / total**2
    freedom = count - parameters
    # The mean over the sample and the guard's queries: residuals, and unrelated values.
    design = (count * design + GUARD_QUERIES * unrelated) / (freedom + GUARD_QUERIES)
    complete = design + between / len(machine)  # has the variances within: `between` has them
    if inner is not None:
        inside = float(weights @ inner[0])
        between = max(between - inside / total, 0.0)
        design, inside = design + inside / total**2, inside / total**2
        if target == "queries" and design > 0:  # Satterthwaite
            terms = (design - inside) ** 2 / freedom + inside**2 / inner[1]
            freedom = round(design**2 / terms)
    return PoweredMean(
        float(human_mean + machine_weight * gap),
        math.sqrt(complete if target == "population" else design),
        freedom,
        machine_weight,
        between / complete if complete else math.nan,
    )


def _regression_factors(weights: Floats, deviation: Floats, gap: float) -> Floats | float:
    """Return the factors by which a tuned estimate depends on each value (g-weights).

    They account for the error of the tuned weight: a sample whose machine values have another mean
    than those of all queries has a wider interval (Särndal, Swensson and Wretman 1992, 6.6).
    """
    variance = weights @ deviation**2 / weights.sum()
    return 1.0 if variance == 0 else 1 + gap * deviation / variance


def check_request(drawn: int, machine_weight: float | None, target: str, level: float) -> None:
    """Raise if an estimate cannot be computed with these settings."""
    if drawn < MIN_DRAWN:
        raise DataError(f"the sample has {drawn} queries; estimates need at least {MIN_DRAWN}.")
    if machine_weight is not None and not math.isfinite(machine_weight):
        raise MeasureError(f"machine_weight must be a finite number; got {machine_weight!r}.")
    if target not in get_args(Target):
        raise MeasureError(f"target must be {' or '.join(get_args(Target))}; got {target!r}.")
    if not 0 < level < 1:
        raise MeasureError(f"level must be between 0 and 1; got {level!r}.")
