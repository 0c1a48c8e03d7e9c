"""All rankers except TopRank by name: `ListMLE`, `top-k ListMLE`, `AdaRank.MAP`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from firstpage.core import DataError, Registry, by_class_name, canonical_name, parse_call
from firstpage.learning.rankers.base import Ranker
from firstpage.learning.rankers.boosted import AdaRank, FocusedBoost, RankBoost
from firstpage.learning.rankers.direct import CoordinateAscent, LambdaRank, PLRank, YetiRank
from firstpage.learning.rankers.smooth import (
    FocusedNet,
    ListMLE,
    ListNet,
    LossRanker,
    RankCosine,
    RankNet,
    Regression,
)
from firstpage.learning.rankers.svm import SVMMAP, FocusedSVM, RankSVM, TopMargin, TopSlack
from firstpage.learning.rankers.trees.lambdamart import LambdaMART

_ALL: tuple[type[Ranker], ...] = (
    Regression, RankNet, ListNet, ListMLE, RankCosine, FocusedNet,
    RankSVM, SVMMAP, FocusedSVM, TopMargin, TopSlack,
    RankBoost, AdaRank, FocusedBoost, LambdaMART, PLRank, LambdaRank,
    YetiRank, CoordinateAscent, LossRanker,
)  # fmt: skip
METHODS: dict[str, type[Ranker]] = by_class_name(*_ALL)
# Names that papers give to a ranker with certain parameters.
PAPER_NAMES: dict[str, tuple[str, dict[str, Any]]] = {
    "adarankmap": ("AdaRank", {"maximize": "AP"}),
    "adarankndcg": ("AdaRank", {"maximize": "NDCG@10"}),
}
DEFAULT_K = 10  # of "top-k .." without k


def create_ranker(
    text: str, known: Mapping[str, type[Ranker]] = METHODS, **parameters: Any
) -> Ranker:
    """Return the ranker that a text such as `ListMLE(k=10)` or "top-k ListMLE" names.

    `module:Name` is a ranker of the user's own.
    """
    name, in_text = parse_call(text)
    parameters = {**in_text, **parameters}
    if ":" in name:
        return Registry("ranker", known).instance(name, parameters)
    base_name = canonical_name(name)
    if base_name.startswith("topk") and base_name not in map(canonical_name, known):
        base_name = base_name.removeprefix("topk")
        parameters.setdefault("k", DEFAULT_K)
        if parameters["k"] is None:
            raise DataError(f"{text!r} needs k, the depth of its top-k form.")
    if base_name in PAPER_NAMES:
        name, preset = PAPER_NAMES[base_name]
        base_name, parameters = canonical_name(name), {**preset, **parameters}
    spelled = base_name if base_name != canonical_name(name) else name  # for error messages
    return Registry("ranker", known).instance(spelled, parameters)
