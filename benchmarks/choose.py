"""Time to choose the next question of an assessor: the adaptive strategy with four list lengths.

    python benchmarks/choose.py

A simulated assessor answers with the noise that the model assumes.  The time of a question is that
of processing the answer and choosing the next question.  It grows with n^2 up to 128 documents, of
which all pairs are considered, and with 128 n beyond.

Held equal: k, the number of questions, the noise of the assessor, and one thread.
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


def question_times(n: int) -> list[float]:
    """Return the seconds of each question after the first five."""
    rng = np.random.default_rng(n)
    utilities = rng.normal(size=n)
    steps = Adaptive(budget=QUESTIONS, confidence=None).questions(TopKTask(n, K))
    question, times = next(steps), []
    for _ in range(QUESTIONS - 1):
        perceived = utilities[question.first] - utilities[question.second] + rng.normal()
        start = time.perf_counter()
        question = steps.send(Answer(0 if abs(perceived) < 0.4 else int(np.sign(perceived))))
        times.append(time.perf_counter() - start)
    return times[5:]


def main() -> None:
    threadpool_limits(1)  # as the server does
    rows = []
    for n, target in ((33, None), (50, 50), (200, None), (1000, 500)):
        times = 1000 * np.array(question_times(n))
        rows.append([
            str(n), f"{np.median(times):.1f} ms", f"{times.max():.1f} ms",
            "" if target is None else f"{target} ms",
        ])  # fmt: skip
    show(
        "Time to choose the next question, adaptive strategy",
        ["documents", "median", "maximum", "target"],
        rows,
    )
    print(versions("numpy", "scipy"))


if __name__ == "__main__":
    main()
