"""Estimates of the value of a policy from the log of another one, on arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from firstpage.core import DataError, Floats, Ints

OffPolicyMethod = Literal["ips", "snips", "dm", "dr"]
METHODS = get_args(OffPolicyMethod)


@dataclass(frozen=True)
class PolicyEstimate:
    """The value of a policy, estimated from the log of another one.

    Attributes
    ----------
    value, low, high : float
        The mean reward per row and its confidence interval; infinite bounds for a single group.
    error : float
        The standard error, from the variance between groups.
    effective_rows : float
        How many rows of equal weight are as good as those of the log (Kish).
    rows, groups : int
        The number of rows, and of independent groups of rows.
    method : str
        The estimator.

    Examples
    --------
    >>> import firstpage as fp
    >>> estimate = fp.clicks.off_policy([1, 0, 1, 0], [2, 2, 0, 0])
    >>> estimate.value, estimate.effective_rows
    (0.5, 2.0)
    """

    value: float
    low: float
    high: float
    error: float
    effective_rows: float
    rows: int
    groups: int
    method: str


def off_policy(
    reward: Any,
    weight: Any,
    *,
    method: OffPolicyMethod = "ips",
    predicted: Any = None,
    expected: Any = None,
    clip: float | None = None,
    group: Any = None,
    level: float = 0.95,
) -> PolicyEstimate:
    """Estimate the mean reward of a new policy from rows that another policy logged.

    Parameters
    ----------
    reward : array-like of float
        The reward of each row, such as a click.
    weight : array-like of float
        The probability of the row's action under the new policy, divided by the logged one.
    method : {"ips", "snips", "dm", "dr"}, default "ips"
        Inverse propensity scoring; the same divided by the mean weight (self-normalized); the
        reward model alone (direct method); both together (doubly robust).
    predicted : array-like of float, optional
        For "dr": what a reward model predicts for the logged action of each row.
    expected : array-like of float, optional
        For "dm" and "dr": the mean prediction over the actions of the new policy.
    clip : float, optional
        The largest weight; larger ones count as this, which makes estimates too small.
    group : array-like, optional
        The query or user of each row; rows of a group are not independent.  By default all are.
    level : float, default 0.95
        The confidence level of the interval.

    Returns
    -------
    PolicyEstimate
        The value with its interval (linearized, Student's t over groups).

    Raises
    ------
    DataError
        If arrays do not fit each other, a weight is negative or infinite (a logged propensity of
        0), or no row has a weight.

    References
    ----------
    Horvitz and Thompson, 1952 (ips); Swaminathan and Joachims, NIPS 2015 (snips); Dudik et al.,
    "Doubly robust policy evaluation and learning", ICML 2011.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.clicks.off_policy([1, 0, 0], [2, 2, 0], method="snips").value
    0.5
    """
    if method not in METHODS:
        raise DataError(f"the method is one of {', '.join(METHODS)}; got {method!r}.")
    if clip is not None and not clip > 0:
        raise DataError(f"clip must be above 0; got {clip!r}.")
    names = {"dm": ("expected",), "dr": ("predicted", "expected")}.get(method, ())
    given = {"reward": reward, "weight": weight, "predicted": predicted, "expected": expected}
    arrays = {}
    for name in ("reward", "weight", *names):
        if given[name] is None:
            raise DataError(f"{method} needs {name}: the numbers of a reward model.")
        arrays[name] = np.asarray(given[name], np.float64)
        if arrays[name].shape != (np.size(reward),) or not np.isfinite(arrays[name]).all():
            raise DataError(f"{name} must be one finite number per row of reward.")
    r, w = arrays["reward"], arrays["weight"]
    if not (w >= 0).all() or (method != "dm" and not w.any()):
        raise DataError("weights must be at least 0, and one above 0: the log has no support.")
    w = w if clip is None else np.minimum(w, clip)
    if method == "snips":
        value = float(w @ r / w.sum())
        sums = w * (r - value) / w.mean()
    else:
        terms = 0.0 * r if method == "dm" else w * (r - arrays.get("predicted", 0))
        terms = terms + arrays.get("expected", 0)
        value = float(terms.mean())
        sums = terms - value
    if group is not None:
        if np.shape(group) != r.shape:
            raise DataError("group must be one value per row of reward.")
        sums = np.bincount(np.unique(group, return_inverse=True)[1], sums)
    error, half = clustered_error(sums, len(r), level)
    effective = len(r) if method == "dm" else effective_size(w)
    return PolicyEstimate(
        value, value - half, value + half, error, effective, len(r), len(sums), method
    )


def effective_size(weights: Floats, counts: Floats | Ints | int = 1) -> float:
    """Return how many rows of equal weight are as good as these (Kish)."""
    squares = float((counts * weights**2).sum())
    return float((counts * weights).sum()) ** 2 / squares if squares > 0 else 0.0


def clustered_error(sums: Floats, n: int, level: float) -> tuple[float, float]:
    """Return the standard error of a mean of n rows, and half its interval (Student's t).

    `sums` are the sums of the influence of the rows of each independent group.
    """
    from scipy.special import stdtrit

    if not 0 < level < 1:
        raise DataError(f"the confidence level is between 0 and 1; got {level!r}.")
    groups = len(sums)
    if groups < 2:
        return math.inf, math.inf
    error = math.sqrt(float(sums @ sums) * groups / (groups - 1)) / n
    return error, float(stdtrit(groups - 1, (1 + level) / 2)) * error
