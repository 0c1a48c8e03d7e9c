"""Plain forms of the sorting strategies, written from SPEC 2.1 with an oracle instead of yields."""

from __future__ import annotations

from collections.abc import Callable

from firstpage.labeling.strategies.strategy import (
    Answer,
    Compare,
    Question,
    Strategy,
    TopK,
    TopKTask,
)

Less = Callable[[int, int], bool]


def heap_label(perm: list[int], k: int, less: Less) -> tuple[list[int], list[int]]:
    """LABEL of SPEC 2.1, line by line: T and F."""
    n = len(perm)
    k = min(k, n)
    h = perm[:k]

    def sift(i: int, m: int) -> None:
        while 2 * i + 1 < m:
            c = 2 * i + 1
            if 2 * i + 2 < m and less(h[2 * i + 2], h[c]):
                c = 2 * i + 2
            if less(h[c], h[i]):
                h[c], h[i] = h[i], h[c]
                i = c
            else:
                return

    for i in range(k // 2 - 1, -1, -1):
        sift(i, k)
    rest = []
    for d in perm[k:]:
        if less(h[0], d):
            rest.append(h[0])
            h[0] = d
            sift(0, k)
        else:
            rest.append(d)
    out = []
    for m in range(k, 0, -1):
        out.append(h[0])
        h[0] = h[m - 1]
        sift(0, m - 1)
    return out[::-1], rest


def play(
    how: Strategy, task: TopKTask, respond: Callable[[Question], Answer]
) -> tuple[TopK, list[Question]]:
    """Run a strategy to its end: what it found, and what it asked."""
    steps = how.questions(task)
    asked: list[Question] = []
    try:
        question = next(steps)
        while True:
            asked.append(question)
            question = steps.send(respond(question))
    except StopIteration as end:
        return end.value, asked


def by_merit(merit: list[float]) -> Callable[[Question], Answer]:
    """An assessor who knows; equal merit is a tie."""

    def respond(question: Question) -> Answer:
        if isinstance(question, Compare):
            a, b = merit[question.first], merit[question.second]
            return Answer((a > b) - (a < b))
        return Answer(int(merit[question.document]))

    return respond
