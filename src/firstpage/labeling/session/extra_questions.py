"""Questions beside those of the strategy: hidden repeats, known answers and probes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from firstpage.labeling.session.events import RATES, Judgment, Kind, Setting
from firstpage.labeling.session.implied import probe

MIN_REPEAT_DISTANCE = 5  # judgments between a question and its repetition


@dataclass(frozen=True)
class Gold:
    """A question with a known answer.

    Attributes
    ----------
    left, right : str
        The two documents; `right` is None for a grade.
    outcome : int
        1 if the left document is better, -1 if the right one is, 0 if neither is; or the grade.
    """

    left: str
    right: str | None
    outcome: int


@dataclass(frozen=True)
class Extras:
    """Decides which extra question is due: a repeat, a gold question or a probe.

    The decision depends only on the log and the seed, so that a replay repeats it.
    """

    gold_questions: tuple[Gold, ...] = ()
    documents: tuple[str, ...] = ()

    def due(self, setting: Setting, log: Sequence[Judgment]) -> tuple[str, str | None, Kind] | None:
        """Return the extra question to show now, or None; never first, never two in a row."""
        if (
            not log
            or log[-1].kind != "judgment"
            or not any(getattr(setting, name) for name in RATES)
        ):
            return None
        judgments = [event for event in log if event.kind == "judgment"]
        rng = np.random.default_rng([setting.seed, len(judgments), 1])
        draw = rng.random()
        if draw < setting.gold_rate:
            return self._next_gold(log)
        if draw < setting.gold_rate + setting.repeat_rate:
            return _repeat(judgments[:-MIN_REPEAT_DISTANCE], log, rng)
        if draw < setting.gold_rate + setting.repeat_rate + setting.probe_rate:
            pair = probe(self.documents, log, rng)
            return None if pair is None else (*pair, "probe")
        return None

    def _next_gold(self, log: Sequence[Judgment]) -> tuple[str, str | None, Kind] | None:
        """Return the first gold question that is not in the log."""
        seen = {(event.left, event.right) for event in log if event.kind == "gold"}
        for gold in self.gold_questions:
            if (gold.left, gold.right) not in seen:
                return gold.left, gold.right, "gold"
        return None


def _repeat(
    judgments: Sequence[Judgment], log: Sequence[Judgment], rng: np.random.Generator
) -> tuple[str, str | None, Kind] | None:
    """Return a judgment that was not repeated yet, its sides swapped with probability 1/2."""
    repeated = {frozenset((e.left, e.right)) for e in log if e.kind == "repeat"}
    candidates = [
        e for e in judgments if frozenset((e.left, e.right)) not in repeated and not e.skipped
    ]
    if not candidates:
        return None
    event = candidates[int(rng.integers(len(candidates)))]
    if event.right is not None and rng.random() < 0.5:
        return event.right, event.left, "repeat"
    return event.left, event.right, "repeat"
