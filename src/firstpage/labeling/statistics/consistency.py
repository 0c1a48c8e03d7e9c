"""Is one person consistent?  Repeated questions, the side that is chosen, circles of three."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from firstpage.labeling.statistics.intervals import Proportion, defined
from firstpage.labeling.statistics.records import Record, judged
from firstpage.measures.significance import randomization

Found = TypeVar("Found")


@dataclass(frozen=True)
class SelfConsistency:
    """Hidden repeats of a person's own questions: how often the answer was the same.

    `same_sides` were shown as before, `swapped` the other way round.  Of the swapped ones
    whose answer changed, `stuck_left` chose the left side both times and `stuck_right` the
    right; by `p` (exact, two-sided) the two are equally frequent when the side does not matter.
    """

    same_sides: Proportion
    swapped: Proportion
    stuck_left: int
    stuck_right: int

    @property
    def overall(self) -> Proportion:
        """Both kinds of repeats together."""
        return Proportion(
            self.same_sides.hits + self.swapped.hits, self.same_sides.total + self.swapped.total
        )

    @property
    def p(self) -> float:
        return even_p(self.stuck_left, self.stuck_right)

    def to_dict(self) -> dict[str, Any]:
        return {
            "overall": self.overall.to_dict(),
            "same_sides": self.same_sides.to_dict(),
            "swapped": self.swapped.to_dict(),
            "stuck_left": self.stuck_left,
            "stuck_right": self.stuck_right,
            "p": self.p,
        }


@dataclass(frozen=True)
class PositionBias:
    """How often the left side won, ties aside.

    A document that stays on the screen keeps its side, so that answers in succession are not
    independent: what is good wins again on the side where it is.  What was drawn at random is the
    side of the first of such a run; `p` (two-sided) is the chance of as uneven a count if every
    run had been drawn the other way round as likely.
    """

    left: int
    right: int
    ties: int
    p: float = 1.0

    @property
    def share(self) -> Proportion:
        return Proportion(self.left, self.left + self.right)

    def to_dict(self) -> dict[str, Any]:
        return {
            "left": self.left, "right": self.right, "ties": self.ties,
            "share_left": self.share.to_dict(), "p": self.p,
        }  # fmt: skip


@dataclass(frozen=True)
class Triads:
    """Threes of documents of which a person compared all three pairs, without ties."""

    circular: int
    complete: int

    @property
    def share(self) -> float:
        """The share of circles (A beats B beats C beats A); a quarter if answers were chance."""
        return Proportion(self.circular, self.complete).value

    def to_dict(self) -> dict[str, Any]:
        return {"circular": self.circular, "complete": self.complete, "share": defined(self.share)}


def even_p(one: int, other: int) -> float:
    """The exact two-sided p that two counts come from a fair coin; 1 where nothing was counted."""
    from scipy.special import bdtr

    return min(1.0, 2.0 * float(bdtr(min(one, other), one + other, 0.5)))


def self_consistency(records: Iterable[Record]) -> SelfConsistency:
    """All hidden repeats of pairs against the same person's first answer to the pair.

    A repeat whose first answer is not among the records does not count.
    """
    found: Counter[tuple[str, bool]] = Counter()
    first: dict[tuple[str, str, str, str], Record] = {}
    for record in records:
        pair = record.pair
        if pair is None or record.kind not in ("judgment", "repeat"):
            continue
        key = record.assessor, record.query, *pair[:2]
        before = first.get(key)
        if record.kind == "judgment":
            first.setdefault(key, record)
        elif before is not None and before.pair is not None:
            sides = "same" if before.left == record.left else "swapped"
            found[sides, before.pair == pair] += 1
            if sides == "swapped" and before.outcome == record.outcome != 0:
                found["left" if record.outcome == 1 else "right", False] += 1
    return SelfConsistency(
        Proportion(found["same", True], found["same", True] + found["same", False]),
        Proportion(found["swapped", True], found["swapped", True] + found["swapped", False]),
        found["left", False],
        found["right", False],
    )


def position_bias(records: Iterable[Record]) -> PositionBias:
    """All answers to pairs except training; sides must have been drawn at random."""
    count: Counter[int | None] = Counter()
    runs: list[int] = []  # answers for the left less those for the right
    last: dict[tuple[str, str], tuple[Record, int]] = {}  # what was on the screen, and its run
    for record in records:
        if record.pair is None or record.outcome is None or record.kind == "training":
            continue
        count[record.outcome] += 1
        person = record.assessor, record.query
        before, run = last.get(person, (None, -1))
        if before is None or (before.left != record.left and before.right != record.right):
            run = len(runs)
            runs.append(0)
        runs[run] += record.outcome
        last[person] = record, run
    p = randomization(np.array(runs, np.float64))
    return PositionBias(count[1], count[-1], count[0], p)


def triads(records: Iterable[Record]) -> Triads:
    """Circles among a person's own answers, summed over people and queries.

    Only answers that count are read, the last one of a pair; pairs with a tie are left out.
    Circles of a tournament are the closed walks of length three, a third of trace(A^3).
    """
    answers: dict[tuple[str, str], dict[tuple[str, str], int]] = {}
    for record in judged(records):
        if (pair := record.pair) is not None:
            answers.setdefault((record.assessor, record.query), {})[pair[:2]] = pair[2]
    circular = complete = 0
    for given in answers.values():
        strict = [((a, b) if sign > 0 else (b, a)) for (a, b), sign in given.items() if sign]
        number = {doc: i for i, doc in enumerate(sorted({d for pair in strict for d in pair}))}
        beats = np.zeros((len(number), len(number)))
        for better, worse in strict:
            beats[number[better], number[worse]] = 1
        compared = beats + beats.T
        circular += round(float((beats @ beats * beats.T).sum()) / 3)
        complete += round(float((compared @ compared * compared).sum()) / 6)
    return Triads(circular, complete)


def each_assessor(
    records: Iterable[Record], work: Callable[[list[Record]], Found]
) -> dict[str, Found]:
    """The same work on each person's own records, by name: `each_assessor(rows, triads)`."""
    parts: dict[str, list[Record]] = {}
    for record in records:
        parts.setdefault(record.assessor, []).append(record)
    return {name: work(parts[name]) for name in sorted(parts)}
