"""CPU time to choose an assessor's next question: the adaptive strategy, 33 to 10,000 documents.

    python benchmarks/choose.py

A simulated assessor answers with the noise that the model assumes, after answers about random pairs
that make as many documents joint as the belief keeps.  The time of a question is that of processing
the answer and choosing the next question.  It grows with n^2 up to 128 documents, of which all
pairs are considered, with 128 n up to 500 joint documents, and slowly beyond.

Held equal: k, the number of questions, the noise of the assessor, and one thread.
"""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parent))

from common import show, versions
from firstpage.labeling import Adaptive, Answer, Compare, TopKTask

QUESTIONS, K = 60, 10


def question_times(n: int) -> list[float]:
    """Return the CPU seconds of each question after the first five."""
    rng = np.random.default_rng(n)
    utilities = rng.normal(size=n)

    def answer(first: int, second: int) -> Answer:
        perceived = utilities[first] - utilities[second] + rng.normal()
        return Answer(0 if abs(perceived) < 0.4 else int(np.sign(perceived)))

    pairs = [rng.choice(n, 2, replace=False) for _ in range(min(n // 2, 500))]
    past = tuple((Compare(int(a), int(b)), answer(a, b)) for a, b in pairs)
    scores = tuple(0.5 * utilities + rng.normal(size=n))
    run = Adaptive(budget=len(past) + QUESTIONS, confidence=0.95).start(
        TopKTask(n, K, prior=scores, past=past)
    )
    times = []
    while run.question is not None:
        outcome = answer(*run.question.documents)
        start = time.process_time()
        run.answer(outcome)
        times.append(time.process_time() - start)
    return times[5:]


def main() -> None:
    threadpool_limits(1)  # as the server does
    rows = []
    for n in (33, 50, 200, 500, 1000, 3000, 10_000):
        times = 1000 * np.array(question_times(n))
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        rows.append(
            [
                f"{n:,}",
                f"{np.median(times):.1f} ms",
                f"{times.max():.1f} ms",
                f"{memory:.0f} MB",
            ]
        )
    show(
        "CPU time to choose the next question, adaptive strategy",
        ["documents", "median", "maximum", "memory of the process"],
        rows,
        f"Target: 50 ms and 500 MB with 10,000 documents. {versions('numpy', 'scipy')}",
    )


if __name__ == "__main__":
    main()
