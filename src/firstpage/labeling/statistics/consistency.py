"""Consistency of single assessors: repeated questions, position bias, circular triads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from firstpage.evaluation.measures import randomization
from firstpage.labeling.statistics.intervals import Proportion, nan_to_none
from firstpage.labeling.statistics.records import Record, counted_records

Statistic = TypeVar("Statistic")


@dataclass(frozen=True)
class SelfConsistency:
    """How often an assessor answered a hidden repeat in the same way.

    Attributes
    ----------
    same_sides, swapped : Proportion
        Equal answers among repeats shown with the same sides, and with swapped sides.
    left_twice, right_twice : int
        Swapped repeats with a changed answer where the left (right) side was chosen both times.
    """

    same_sides: Proportion
    swapped: Proportion
    left_twice: int
    right_twice: int

    @property
    def overall(self) -> Proportion:
        """Equal answers among all repeats."""
        return Proportion(
            self.same_sides.hits + self.swapped.hits, self.same_sides.total + self.swapped.total
        )

    @property
    def p(self) -> float:
        """The exact two-sided p-value that both sides are equally likely among these answers."""
        return sign_test(self.left_twice, self.right_twice)

    def to_dict(self) -> dict[str, Any]:
        """Return the statistics for JSON."""
        return {
            "overall": self.overall.to_dict(),
            "same_sides": self.same_sides.to_dict(),
            "swapped": self.swapped.to_dict(),
            "left_twice": self.left_twice,
            "right_twice": self.right_twice,
            "p": self.p,
        }


@dataclass(frozen=True)
class PositionBias:
    """How often the left document was chosen.

    A document that stays on the screen keeps its side, so that successive answers are not
    independent: a good document wins again on the side where it is.  Only the side of the first
    question of such a run is random; the p-value is that of a randomization test that flips whole
    runs.

    Attributes
    ----------
    left, right, ties : int
        Number of answers for the left document, for the right document, and ties.
    p : float
        Two-sided p-value that the side does not matter.
    """

    left: int
    right: int
    ties: int
    p: float = 1.0

    @property
    def fraction_left(self) -> Proportion:
        """The proportion of answers for the left document, ties excluded."""
        return Proportion(self.left, self.left + self.right)

    def to_dict(self) -> dict[str, Any]:
        """Return the statistics for JSON."""
        return {
            "left": self.left,
            "right": self.right,
            "ties": self.ties,
            "fraction_left": self.fraction_left.to_dict(),
            "p": self.p,
        }


@dataclass(frozen=True)
class Triads:
    """Triples of documents of which an assessor compared all three pairs, without ties.

    Attributes
    ----------
    circular : int
        Number of circular triads: A beats B, B beats C, C beats A.
    complete : int
        Number of triads.
    """

    circular: int
    complete: int

    @property
    def fraction(self) -> float:
        """The fraction of circular triads; 1/4 for random answers."""
        return Proportion(self.circular, self.complete).value

    def to_dict(self) -> dict[str, Any]:
        """Return the counts and the fraction for JSON."""
        return {
            "circular": self.circular,
            "complete": self.complete,
            "fraction": nan_to_none(self.fraction),
        }


def sign_test(first: int, second: int) -> float:
    """Return the exact two-sided p-value that two counts come from a fair coin; 1 for (0, 0)."""
    from scipy.special import bdtr

    return min(1.0, 2.0 * float(bdtr(min(first, second), first + second, 0.5)))


def self_consistency(records: Iterable[Record]) -> SelfConsistency:
    """Compare hidden repeats of pairs with the same assessor's first answer to the pair.

    A repeat whose first answer is not among the records does not count.

    Parameters
    ----------
    records : iterable of Record
        The answers, in the order in which they were given.

    Returns
    -------
    SelfConsistency
        How often the answers are equal, for the same and for swapped sides.

    Examples
    --------
    >>> import firstpage as fp
    >>> first = fp.labeling.Record("q", "ann", "pairs", "a", "b", outcome=1)
    >>> again = fp.labeling.Record("q", "ann", "pairs", "b", "a", outcome=-1, kind="repeat")
    >>> fp.labeling.self_consistency([first, again]).overall.value
    1.0
    """
    counts: Counter[tuple[str, bool]] = Counter()
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
            counts[sides, before.pair == pair] += 1
            if sides == "swapped" and before.outcome == record.outcome != 0:
                counts["left" if record.outcome == 1 else "right", False] += 1
    return SelfConsistency(
        Proportion(counts["same", True], counts["same", True] + counts["same", False]),
        Proportion(counts["swapped", True], counts["swapped", True] + counts["swapped", False]),
        counts["left", False],
        counts["right", False],
    )


def position_bias(records: Iterable[Record]) -> PositionBias:
    """Return the position bias of all answers to pairs but training; sides must be random.

    Parameters
    ----------
    records : iterable of Record
        The answers, in the order in which they were given.

    Returns
    -------
    PositionBias
        How often each side was chosen, and a test that both are equally likely.

    Examples
    --------
    >>> import firstpage as fp
    >>> first = fp.labeling.Record("q", "ann", "pairs", "a", "b", outcome=1)
    >>> again = fp.labeling.Record("q", "ann", "pairs", "b", "a", outcome=-1, kind="repeat")
    >>> bias = fp.labeling.position_bias([first, again])
    >>> bias.left, bias.right
    (1, 1)
    """
    counts: Counter[int | None] = Counter()
    runs: list[int] = []  # answers for the left minus those for the right, per run
    last: dict[tuple[str, str], tuple[Record, int]] = {}  # the previous question and its run
    for record in records:
        if record.pair is None or record.outcome is None or record.kind == "training":
            continue
        counts[record.outcome] += 1
        key = record.assessor, record.query
        before, run = last.get(key, (None, -1))
        if before is None or (before.left != record.left and before.right != record.right):
            run = len(runs)
            runs.append(0)
        runs[run] += record.outcome
        last[key] = record, run
    p = randomization(np.array(runs, np.float64))
    return PositionBias(counts[1], counts[-1], counts[0], p)


def triads(records: Iterable[Record]) -> Triads:
    """Count the circular triads among each assessor's own answers, over all queries.

    Only records that count are used, the last one per pair; pairs with a tie are left out.  The
    circular triads of a tournament are a third of trace(A^3).
    """
    answers: dict[tuple[str, str], dict[tuple[str, str], int]] = {}
    for record in counted_records(records):
        if (pair := record.pair) is not None:
            answers.setdefault((record.assessor, record.query), {})[pair[:2]] = pair[2]
    circular = complete = 0
    for outcomes in answers.values():
        strict = [((a, b) if sign > 0 else (b, a)) for (a, b), sign in outcomes.items() if sign]
        index = {doc: i for i, doc in enumerate(sorted({d for pair in strict for d in pair}))}
        beats = np.zeros((len(index), len(index)))
        for better, worse in strict:
            beats[index[better], index[worse]] = 1
        compared = beats + beats.T
        circular += round(float((beats @ beats * beats.T).sum()) / 3)
        complete += round(float((compared @ compared * compared).sum()) / 6)
    return Triads(circular, complete)


def per_assessor(
    records: Iterable[Record], statistic: Callable[[list[Record]], Statistic]
) -> dict[str, Statistic]:
    """Return a statistic of each assessor's own records, such as `per_assessor(rows, triads)`."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(record.assessor, []).append(record)
    return {name: statistic(groups[name]) for name in sorted(groups)}
