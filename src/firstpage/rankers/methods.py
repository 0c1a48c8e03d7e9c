"""The rankers that learn by themselves, by name: `ListMLE`, `top-k ListMLE`, `AdaRank.MAP`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from firstpage.errors import DataError
from firstpage.rankers.boosted import AdaRank, FocusedBoost, RankBoost
from firstpage.rankers.ranker import Ranker
from firstpage.rankers.smooth import FocusedNet, ListMLE, ListNet, RankCosine, RankNet, Regression
from firstpage.rankers.svm import SVMMAP, FocusedSVM, RankSVM, TopMargin, TopSlack
from firstpage.rankers.trees.lambdamart import LambdaMART
from firstpage.registry import Registry, by_class_name, canonical_name, parse_call

_ALL: tuple[type[Ranker], ...] = (
    Regression, RankNet, ListNet, ListMLE, RankCosine, FocusedNet,
    RankSVM, SVMMAP, FocusedSVM, TopMargin, TopSlack,
    RankBoost, AdaRank, FocusedBoost, LambdaMART,
)  # fmt: skip
METHODS: dict[str, type[Ranker]] = by_class_name(*_ALL)
# As papers call a ranker with one of its parameters.
CALLED: dict[str, tuple[str, dict[str, Any]]] = {
    "adarankmap": ("AdaRank", {"maximize": "AP"}),
    "adarankndcg": ("AdaRank", {"maximize": "NDCG@10"}),
}
TOP = 10  # the depth of "top-k .." where k is not said


def create_ranker(text: str, known: Mapping[str, type[Ranker]] = METHODS, **given: Any) -> Ranker:
    """The ranker that a text names, as `ListMLE(k=10)`; "top-k" in front asks for that form."""
    name, inside = parse_call(text)
    given = {**inside, **given}
    bare = canonical_name(name)
    if bare.startswith("topk") and bare not in map(canonical_name, known):
        bare = bare.removeprefix("topk")
        given.setdefault("k", TOP)
        if given["k"] is None:
            raise DataError(f"{text!r} needs k, the depth of its top-k form.")
    if bare in CALLED:
        name, more = CALLED[bare]
        bare, given = canonical_name(name), {**more, **given}
    return Registry("ranker", known).instance(bare if bare != canonical_name(name) else name, given)
