"""How long an assessor's next question takes to choose: the adaptive strategy at four sizes.

    python benchmarks/choose.py

Answers by an assessor who errs as the model says; the time of one question is that of taking in the
answer and choosing the next one.  Choosing is two products of n x n matrices, so it grows with n^2
up to 128 documents, of which all pairs are looked at, and with 128 n beyond.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parent))

from common import show, versions
from firstpage.labeling.strategies.adaptive import Adaptive
from firstpage.labeling.strategies.strategy import Answer, TopKTask

QUESTIONS, K = 100, 10


def timed(n: int) -> list[float]:
    """Seconds of each question but the first few."""
    rng = np.random.default_rng(n)
    utilities = rng.normal(size=n)
    steps = Adaptive(budget=QUESTIONS, confidence=None).questions(TopKTask(n, K))
    question, times = next(steps), []
    for _ in range(QUESTIONS - 1):
        apart = utilities[question.first] - utilities[question.second] + rng.normal()
        began = time.perf_counter()
        question = steps.send(Answer(0 if abs(apart) < 0.4 else int(np.sign(apart))))
        times.append(time.perf_counter() - began)
    return times[5:]


def main() -> None:
    threadpool_limits(1)  # as the server does
    rows = []
    for n, bar in ((33, None), (50, 50), (200, None), (1000, 500)):
        times = 1000 * np.array(timed(n))
        rows.append([
            str(n), f"{np.median(times):.1f} ms", f"{times.max():.1f} ms",
            "" if bar is None else f"{bar} ms",
        ])  # fmt: skip
    show(
        "The next question of the adaptive strategy",
        ["documents", "median", "longest", "bar"],
        rows,
    )
    print(versions("numpy", "scipy"))


if __name__ == "__main__":
    main()
