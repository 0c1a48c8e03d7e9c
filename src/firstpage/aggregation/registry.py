"""Methods by name: `skr`, `Borda`, `rrf(c=20)`, `local-kemeny(start=copeland)`."""

from __future__ import annotations

from typing import Any

from firstpage.aggregation.kemeny import BestInsertion, ExactKemeny, LocalKemeny
from firstpage.aggregation.method import Method
from firstpage.aggregation.positional import RRF, Borda, Copeland
from firstpage.aggregation.supervised_kemeny import Kemeny, KwikSort, SupervisedKemeny
from firstpage.names import PartError, lookup, parameters, split

METHODS: dict[str, type[Method]] = {
    cls.__name__: cls
    for cls in (
        SupervisedKemeny, Kemeny, Borda, RRF, Copeland, KwikSort, LocalKemeny, BestInsertion,
        ExactKemeny,
    )
}  # fmt: skip
SHORT = {"skr": "SupervisedKemeny", "exact": "ExactKemeny"}


def method(text: str | Method, **given: Any) -> Method:
    """The method that a text names, with its parameters."""
    if isinstance(text, Method):
        return text
    if not isinstance(text, str):
        raise PartError(f"a method is a name such as skr or Borda; got {text!r}.")
    name, inside = split(text)
    known = METHODS | {short: METHODS[name] for short, name in SHORT.items()}
    cls = lookup(name, known, "aggregation method")
    for key in (given := {**inside, **given}):
        if key not in parameters(cls):
            options = ", ".join(parameters(cls)) or "none"
            raise PartError(f"{cls.__name__} has no parameter {key!r} (it has: {options}).")
    return cls(**given)


def about() -> list[tuple[str, str]]:
    """(name, one line) of every method."""
    return [(name, cls.about) for name, cls in METHODS.items()]
