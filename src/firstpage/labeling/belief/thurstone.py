"""What one answer says about the difference of two utilities: Thurstone's model with ties.

The assessor sees the difference d of two utilities with a normal error of variance 1, and answers
"first" above `margin`, "second" below -margin, and "neither" between (Glenn and David 1960).  So
the unit of all utilities is the error of one answer.
"""

from __future__ import annotations

from math import exp, expm1, log, pi, sqrt

import numpy as np
from scipy.special import log_ndtr, ndtr

from firstpage.types import Floats

HALF_LOG_TAU = 0.5 * log(2 * pi)
NEVER = 1e-300


def moments(
    mean: float, variance: float, outcome: int, margin: float
) -> tuple[float, float, float]:
    """log chance of an answer about d ~ N(mean, variance), and its two derivatives by the mean.

    The derivatives g and h give d's moments after the answer exactly: mean + variance g, and
    variance + variance^2 h (h < 0).
    """
    scale = sqrt(variance + 1.0)
    if outcome == 0:
        return _tie(mean / scale, margin / scale, scale)
    t = (outcome * mean - margin) / scale
    chance = float(log_ndtr(t))
    ratio = exp(-0.5 * t * t - HALF_LOG_TAU - chance)
    return chance, outcome * ratio / scale, -ratio * (ratio + t) / (scale * scale)


def _tie(t: float, width: float, scale: float) -> tuple[float, float, float]:
    """Of |d + error| < margin; t and width are in units of `scale`.

    Both ends are mirrored into the lower tail, where logarithms keep their digits.
    """
    sign = -1.0 if t > 0 else 1.0
    low, high = -width - abs(t), width - abs(t)
    top = float(log_ndtr(high))
    chance = top + log(-expm1(float(log_ndtr(low)) - top))
    at_low = exp(-0.5 * low * low - HALF_LOG_TAU - chance)
    at_high = exp(-0.5 * high * high - HALF_LOG_TAU - chance)
    slope = at_high - at_low  # by -|t|'s opposite: towards 0
    bend = low * at_low - high * at_high - slope * slope
    return chance, sign * slope / scale, bend / (scale * scale)


def information(mean: Floats, variance: Floats, margin: float) -> Floats:
    """E[g^2]: how far an answer is expected to move the mean of d, squared, per variance^2.

    At most about 2/pi / (variance + 1), at mean 0; next to nothing where the answer is foreseen.
    """
    scale = np.sqrt(variance + 1.0)
    size = np.abs(mean)  # either sign says as much, and in this tail a tie keeps its digits
    up, down = (size - margin) / scale, (-size - margin) / scale
    p_up, p_down = ndtr(up), ndtr(down)
    f_up, f_down = np.exp(-0.5 * up * up), np.exp(-0.5 * down * down)
    tie = np.maximum(ndtr(-up) - p_down, NEVER)
    total = f_up**2 / np.maximum(p_up, NEVER) + f_down**2 / np.maximum(p_down, NEVER)
    total += (f_up - f_down) ** 2 / tie
    found: Floats = total / (2 * pi * scale * scale)
    return found
