"""All rankers by name."""

from __future__ import annotations

from typing import Any

from firstpage.rankers.methods import METHODS, made
from firstpage.rankers.ranker import Ranker
from firstpage.rankers.toprank import TopRank

RANKERS: dict[str, type[Ranker]] = {**METHODS, "TopRank": TopRank}


def ranker(text: str, **given: Any) -> Ranker:
    """The ranker that a text names, as `ListMLE(k=10)`; "top-k" in front asks for that form."""
    return made(text, RANKERS, **given)


def about() -> list[tuple[str, str, str]]:
    """(name, one line, paper) of every ranker."""
    return [(name, cls._about, cls._paper) for name, cls in RANKERS.items()]
