"""Methods by name: `skr`, `Borda`, `rrf(c=20)`, `local-kemeny(start=copeland)`."""

from __future__ import annotations

from typing import Any

from firstpage.aggregation.kemeny import BestInsertion, ExactKemeny, LocalKemeny
from firstpage.aggregation.method import Method
from firstpage.aggregation.positional import RRF, Borda, Copeland
from firstpage.aggregation.supervised_kemeny import Kemeny, KwikSort, SupervisedKemeny
from firstpage.registry import PartError, Registry, by_class_name, split

METHODS: dict[str, type[Method]] = by_class_name(
    SupervisedKemeny, Kemeny, Borda, RRF, Copeland, KwikSort, LocalKemeny, BestInsertion,
    ExactKemeny,
)  # fmt: skip
REGISTRY = Registry(
    "aggregation method", METHODS, {"skr": "SupervisedKemeny", "exact": "ExactKemeny"}
)


def method(text: str | Method, **given: Any) -> Method:
    """The method that a text names, with its parameters."""
    if isinstance(text, Method):
        return text
    if not isinstance(text, str):
        raise PartError(f"a method is a name such as skr or Borda; got {text!r}.")
    name, inside = split(text)
    given = {**inside, **given}
    if isinstance(given.get("start"), str):
        given["start"] = method(given["start"])
    return REGISTRY.instance(name, given)


def about() -> list[tuple[str, str]]:
    """(name, one line) of every method."""
    return [(name, cls.about) for name, cls in METHODS.items()]
