"""What the paper says of its curves, held against ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from firstpage.papers.lan2013.lists import FULL, MEASURES, Depth
from firstpage.papers.study.claims import alike, every, greater, no_greater
from firstpage.papers.study.study import Cells, Claim
from firstpage.types import Floats

KNEE = {"RankSVM": 10, "RankNet": 10, "ListMLE": 10, "RankBoost": 20}  # where curves flatten
MODELS = tuple(KNEE)
DROPPING = ("RankSVM", "RankNet", "ListMLE")  # on MQ2007-list
MARGIN = 0.01
Judge = Callable[[Cells], Claim]


def judged(*judges: Judge) -> Callable[[Cells], list[Claim]]:
    """The claims of an entry."""
    return lambda cells: [judge(cells) for judge in judges]


def rises(cells: Cells) -> Claim:
    return every(
        "performance rises from k = 1 to k = 10 (RankBoost: 20), for all rankers and measures",
        [_more(cells, model, m, KNEE[model], 1) for model in MODELS for m in MEASURES],
    )


def stable(last: Depth, **whose: Any) -> Judge:
    """Held to the k, of all between the knee and the last, where a curve is farthest away."""

    def judge(cells: Cells) -> Claim:
        until = "the full order" if last == FULL else f"k = {last}"
        parts = [_farthest(cells, model, m, last) for model in MODELS for m in MEASURES]
        return every(
            f"from k = 10 (RankBoost: 20) to {until} it keeps within {MARGIN} of its value there",
            parts, **whose,
        )  # fmt: skip

    return judge


def sufficient(cells: Cells) -> Claim:
    parts = [
        no_greater(f"{model}, {m}", _at(cells, model, m, FULL), _at(cells, model, m, KNEE[model]),
                   MARGIN, ", full order against top k")
        for model in MODELS for m in MEASURES
    ]  # fmt: skip
    return every(
        f"the top 10 (RankBoost: 20) is sufficient: the full order gains less than {MARGIN}", parts
    )


def as_good(measure: str) -> Judge:
    """The same of another measure."""

    def judge(cells: Cells) -> Claim:
        parts = [
            no_greater(model, _at(cells, model, measure, FULL),
                       _at(cells, model, measure, KNEE[model]), MARGIN,
                       ", full order against top k")
            for model in MODELS
        ]  # fmt: skip
        text = f"so it is by {measure}: the full order gains less than {MARGIN}"
        return every(text, parts, whose="ours")

    return judge


def drops(high: Depth, low: Depth, models: Sequence[str] = DROPPING, **whose: Any) -> Judge:
    def judge(cells: Cells) -> Claim:
        told = "the full order" if low == FULL else f"k = {low}"
        return every(
            f"{', '.join(models)} drop when k exceeds {high} (k = {high} is above {told})",
            [_more(cells, model, m, high, low) for model in models for m in MEASURES], **whose,
        )  # fmt: skip

    return judge


def below_top_1(cells: Cells) -> Claim:
    return every(
        f"the full order is worse than the top 1 for {', '.join(DROPPING)}",
        [_more(cells, model, m, 1, FULL) for model in DROPPING for m in MEASURES],
    )


def hump(cells: Cells) -> Claim:
    """The shape in one sentence."""
    parts = [
        _more(cells, "ListMLE", m, 20, other) for m in MEASURES for other in (1, FULL)
    ]  # fmt: skip
    return every("ListMLE rises and collapses: k = 20 is above k = 1 and the full order", parts,
                 whose="ours")  # fmt: skip


def _at(cells: Cells, model: str, measure: str, k: Depth) -> Floats:
    return cells.at(model=model, measure=measure, k=k)


def _more(cells: Cells, model: str, measure: str, better: Depth, worse: Depth) -> Claim:
    return greater(
        f"{model}, {measure}",
        _at(cells, model, measure, better), _at(cells, model, measure, worse),
    )  # fmt: skip


def _farthest(cells: Cells, model: str, measure: str, last: Depth) -> Claim:
    knee = _at(cells, model, measure, KNEE[model])
    later = [k for k in cells.names("k") if _after(k, KNEE[model]) and not _after(k, last)]
    far = max(later, key=lambda k: abs(_at(cells, model, measure, k).mean() - knee.mean()))
    return alike(
        f"{model}, {measure}, farthest at k = {far}", _at(cells, model, measure, far), knee, MARGIN
    )


def _after(k: Depth, other: Depth) -> bool:
    """Whether k is deeper; the full order is the deepest."""
    if isinstance(k, str) or isinstance(other, str):
        return isinstance(k, str) and not isinstance(other, str)
    return k > other
