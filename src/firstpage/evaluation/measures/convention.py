"""Conventions: what tools define differently under the same measure name.

docs/conventions.md has a table of them, generated from this module.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any, Literal, get_args

import numpy as np

from firstpage.core import MeasureError

Ties = Literal["average", "file", "docid", "shuffle", "worst"]
Gain = Literal["exp", "linear"]
Discount = Literal["log2", "letor"]
Queries = Literal["judged", "run"]
WithoutRelevant = Literal["zero", "skip", "one"]

CHOICES = {
    "ties": get_args(Ties),
    "gain": get_args(Gain),
    "discount": get_args(Discount),
    "queries": get_args(Queries),
    "without_relevant": get_args(WithoutRelevant),
}


@dataclass(frozen=True, init=False, repr=False)
class Convention:
    """How rankings and judgments are interpreted when measures are computed.

    Tools define measures of the same name differently.  A convention fixes these definitions:
    "default", "trec" (trec_eval), "letor" (the LETOR evaluation tool), "lightgbm" and "xgboost"
    (their metrics ndcg and map).  ``fp.Convention("trec", ties="file")`` is that of trec_eval with
    another order of equal scores.  A setting of None is that of the named convention.

    Parameters
    ----------
    name : str or Convention, default "default"
        Convention whose settings apply where no other is given.
    ties : {"average", "file", "docid", "shuffle", "worst"}, optional
        Order of documents with equal scores.  "average" takes the exact expectation over all
        orders of the tied documents; "file" keeps the order of the input; "docid" sorts by document
        id, descending; "shuffle" is random, determined by `seed`; "worst" puts the least relevant
        document first.
    gain : {"exp", "linear"}, optional
        Gain of DCG and NDCG where the measure sets none: 2^label - 1, or the label.
    discount : {"log2", "letor"}, optional
        Discount of DCG and NDCG where the measure sets none: 1 / log2(1 + rank), or
        1, 1, 1 / log2(3), 1 / log2(4), ...
    rel : float, optional
        Smallest label that counts as relevant in measures of binary relevance.
    queries : {"judged", "run"}, optional
        Queries that enter the means.  "judged": every query with judgments, with value 0 where
        the run lacks it; "run": only judged queries that the run contains.
    without_relevant : {"zero", "skip", "one"}, optional
        Value of a query without relevant documents: one that has no judged label of at least `rel`.
        "zero": 0; "one": 1 in measures that divide by what an ideal ranking has, such as NDCG, AP
        and Recall, 0 in the others; "skip": the query does not enter the means of any measure.
    depth : int, optional
        Number of documents per query that are read from a run; all without a depth.
    single : bool, optional
        Whether scores are rounded to float32 before they are compared, as trec_eval does.
    strict_cutoff : bool, optional
        Whether NDCG@k of a list with fewer than k documents is 0.
    negative_unjudged : bool, optional
        Whether judgments below 0 count as unjudged; this affects bpref and Judged.
    condensed : bool, optional
        Whether unjudged documents are removed from the rankings, after `depth` applies, as by
        trec_eval's option -J.
    seed : int, optional
        Seed of random tie orders and of bootstrap and randomization tests; any integer.

    Raises
    ------
    MeasureError
        If there is no convention of this name, or a setting has an invalid value.

    Examples
    --------
    >>> import firstpage as fp
    >>> strict = fp.Convention("trec", ties="worst", rel=2)
    >>> strict
    Convention('trec', ties='worst', rel=2.0)
    >>> run, qrels = {"q": {"a": 1, "b": 1}}, {"q": {"a": 1, "b": 2}}
    >>> fp.evaluate(run, qrels, measures="RR", convention=strict)
    1 queries, convention trec(ties=worst, rel=2)
    RR  0.5000
    >>> fp.Convention(strict, depth=100)  # the same with another setting
    Convention('trec', ties='worst', rel=2.0, depth=100)
    """

    name: str = "default"
    ties: Ties = "average"
    gain: Gain = "exp"
    discount: Discount = "log2"
    rel: float = 1.0
    queries: Queries = "judged"
    without_relevant: WithoutRelevant = "zero"
    depth: int | None = None
    single: bool = False
    strict_cutoff: bool = False
    negative_unjudged: bool = False
    condensed: bool = False
    seed: int = 0

    def __init__(
        self,
        name: str | Convention = "default",
        *,
        ties: Ties | None = None,
        gain: Gain | None = None,
        discount: Discount | None = None,
        rel: float | None = None,
        queries: Queries | None = None,
        without_relevant: WithoutRelevant | None = None,
        depth: int | None = None,
        single: bool | None = None,
        strict_cutoff: bool | None = None,
        negative_unjudged: bool | None = None,
        condensed: bool | None = None,
        seed: int | None = None,
    ) -> None:
        settings = dict(locals())
        del settings["self"], settings["name"]
        replaced = {setting: value for setting, value in settings.items() if value is not None}
        base = vars(name) if isinstance(name, Convention) else named_settings(name)
        vars(self).update({**base, **_checked(replaced)})

    def _changes(self) -> dict[str, Any]:
        """Return the settings that differ from those of the convention of this name."""
        base = named_settings(self.name)
        return {name: value for name, value in vars(self).items() if value != base[name]}

    def __repr__(self) -> str:
        changes = [f"{name}={value!r}" for name, value in self._changes().items()]
        return f"Convention({', '.join([repr(self.name), *changes])})"

    def __str__(self) -> str:
        changes = [f"{name}={value_text(value)}" for name, value in self._changes().items()]
        return self.name + (f"({', '.join(changes)})" if changes else "")


CONVENTIONS: dict[str, dict[str, Any]] = {  # the settings that differ from the default ones
    "default": {},
    "trec": {
        "ties": "docid",
        "gain": "linear",
        "queries": "run",
        "single": True,
        "negative_unjudged": True,
    },
    "letor": {"ties": "file", "discount": "letor", "strict_cutoff": True},
    "lightgbm": {"ties": "file", "without_relevant": "one"},
    "xgboost": {"ties": "file", "without_relevant": "one", "single": True},
}


def named_settings(name: str) -> dict[str, Any]:
    """Return the name and all settings of a convention."""
    if not isinstance(name, str) or name not in CONVENTIONS:
        near = get_close_matches(str(name), CONVENTIONS, 1, 0.4)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise MeasureError(
            f"there is no convention {name!r}; there are {', '.join(CONVENTIONS)}.{hint}"
        )
    default = {each.name: each.default for each in fields(Convention)}
    return {**default, "name": name, **CONVENTIONS[name]}


def _checked(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings as plain numbers; refuse wrong values."""
    for name, value in settings.items():
        if name in CHOICES:
            if value not in CHOICES[name]:
                options = ", ".join(CHOICES[name])
                raise MeasureError(f"{name} must be one of {options}; got {value!r}.")
        elif name == "rel":
            if not isinstance(value, (int, float, np.number)) or not np.isfinite(value):
                raise MeasureError(f"rel must be a finite number; got {value!r}.")
            settings[name] = float(value)
        elif name == "depth":
            if not isinstance(value, (int, np.integer)) or value < 1:
                raise MeasureError(f"depth must be an integer of at least 1; got {value!r}.")
            settings[name] = int(value)
        elif name == "seed":
            if not isinstance(value, (int, np.integer)):
                raise MeasureError(f"seed must be an integer; got {value!r}.")
            settings[name] = int(value) % 2**63  # any integer is accepted
        elif not isinstance(value, (bool, np.bool_)):
            raise MeasureError(f"{name} must be True or False; got {value!r}.")
    return settings


def value_text(value: object) -> str:
    """Return a setting as texts of measures and conventions write it, such as true and 2."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, tuple):
        return "[" + ", ".join(value_text(v) for v in value) + "]"
    return str(value)
