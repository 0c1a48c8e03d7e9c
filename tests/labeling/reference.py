"""Plain forms of the sorting strategies, with an oracle in place of yields."""

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
    """Return the top k and the rest by Algorithm 1 of Niu et al. 2012, line by line."""
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
    strategy: Strategy, task: TopKTask, respond: Callable[[Question], Answer]
) -> tuple[TopK, list[Question]]:
    """Run a strategy to its end; return its top k and its questions."""
    questions = strategy.questions(task)
    questions_asked: list[Question] = []
    try:
        question = next(questions)
        while True:
            questions_asked.append(question)
            question = questions.send(respond(question))
    except StopIteration as end:
        return end.value, questions_asked


def by_merit(merit: list[float]) -> Callable[[Question], Answer]:
    """Return an assessor who knows the merit; equal merit is a tie."""

    def respond(question: Question) -> Answer:
        if isinstance(question, Compare):
            a, b = merit[question.first], merit[question.second]
            return Answer((a > b) - (a < b))
        return Answer(int(merit[question.document]))

    return respond
