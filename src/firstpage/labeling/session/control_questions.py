"""Questions beside the strategy's own: repeats, to see whether answers hold, and known answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from firstpage.labeling.session.events import Judged, Kind, Setting

APART = 5  # a question is not repeated before so many others


@dataclass(frozen=True)
class Gold:
    """A question whose answer is known: 1, the left one is better, -1 or 0; or a grade."""

    left: str
    right: str | None
    outcome: int


@dataclass(frozen=True)
class Extras:
    """Which extra question is due.  It depends on the log and the seed alone, so replay agrees."""

    golds: tuple[Gold, ...] = ()

    def due(self, setting: Setting, log: Sequence[Judged]) -> tuple[str, str | None, Kind] | None:
        """The extra question to show now, if any: never the first, never two in a row."""
        if not log or log[-1].kind != "judgment" or not (setting.repeats or setting.golds):
            return None
        plain = [event for event in log if event.kind == "judgment"]
        rng = np.random.default_rng([setting.seed, len(plain), 1])
        chance = rng.random()
        if chance < setting.golds:
            return self._gold(log)
        if chance < setting.golds + setting.repeats:
            return _repeat(plain[:-APART], log, rng)
        return None

    def _gold(self, log: Sequence[Judged]) -> tuple[str, str | None, Kind] | None:
        """The first one not yet asked."""
        seen = {(event.left, event.right) for event in log if event.kind == "gold"}
        for gold in self.golds:
            if (gold.left, gold.right) not in seen:
                return gold.left, gold.right, "gold"
        return None


def _repeat(
    plain: Sequence[Judged], log: Sequence[Judged], rng: np.random.Generator
) -> tuple[str, str | None, Kind] | None:
    """One of the older judgments that was not repeated yet, with sides swapped half of the time."""
    seen = {frozenset((e.left, e.right)) for e in log if e.kind == "repeat"}
    old = [e for e in plain if frozenset((e.left, e.right)) not in seen and not e.skipped]
    if not old:
        return None
    event = old[int(rng.integers(len(old)))]
    if event.right is not None and rng.random() < 0.5:
        return event.right, event.left, "repeat"
    return event.left, event.right, "repeat"
