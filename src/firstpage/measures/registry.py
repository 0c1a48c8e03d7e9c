"""From a text such as `NDCG(gain=linear)@10` to a measure, and the list of all there are."""

from __future__ import annotations

import os
import re
import types
from collections.abc import Iterable
from dataclasses import Field, fields, replace
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, get_args, get_origin, get_type_hints

from firstpage.data.preferences.utility import MeasureSource, Utility, refers_to_file
from firstpage.errors import DataError, MeasureError
from firstpage.measures.binary import (
    AP,
    RBP,
    RR,
    Judged,
    P,
    Recall,
    Rprec,
    SetF,
    SetP,
    SetR,
    Success,
    bpref,
)
from firstpage.measures.graded import DCG, ERR, NDCG, MeanNDCG, kERR, kNDCG
from firstpage.measures.learned import LEARNED
from firstpage.measures.measure import CONVENTIONS, Measure
from firstpage.measures.order import RBO, WKT, PairAccuracy, Perm01, Tau, TopK01, nwppref, ppref
from firstpage.registry import pieces, plain

Named = str | Measure | Utility  # what a measure may be given as
MEASURES: tuple[type[Measure], ...] = (
    NDCG, DCG, MeanNDCG, ERR, kNDCG, kERR,
    AP, P, Recall, RR, Rprec, Success, bpref, Judged, RBP, SetP, SetR, SetF,
    ppref, nwppref, Tau, PairAccuracy, RBO, WKT, TopK01, Perm01,
)  # fmt: skip

# Other tools' names for the same things.
ALIASES = {
    "map": "AP", "mrr": "RR", "mr": "RR", "reciprank": "RR", "precision": "P", "prec": "P",
    "pre": "P", "r": "Recall", "hitrate": "Success", "hit": "Success", "rprecision": "Rprec",
    "setrecall": "SetR", "setprecision": "SetP", "kappandcg": "kNDCG", "kappaerr": "kERR",
    "kendall": "Tau", "kendalltau": "Tau", "compat": "RBO", "compatibility": "RBO",
}  # fmt: skip
TREC_CUT = re.compile(r"(ndcg_cut|map_cut|p|recall|success)[_.](\d+)", re.IGNORECASE)
TREC_NAMES = {
    "ndcg_cut": "NDCG",
    "map_cut": "AP",
    "p": "P",
    "recall": "Recall",
    "success": "Success",
}
FORM = re.compile(r"\s*([^\W\d][\w\-κ]*?)\s*(?:\((.*)\))?\s*(?:@\s*([^@()]*))?\s*", re.DOTALL)


def _plain(name: str) -> str:
    """Names are compared without case, hyphens and underscores."""
    return plain(name.replace("κ", "k"))


BY_NAME = {_plain(cls.__name__): cls for cls in MEASURES}
BY_NAME |= {alias: BY_NAME[_plain(name)] for alias, name in ALIASES.items()}


def measure(text: Named, of: Utility | str | os.PathLike[str] | None = None) -> Measure:
    """The measure that a text names, such as `NDCG@10`, `ERR`, `kNDCG(k=10)@5`, `ndcg_cut_10`.

    A learned one by its file, as in `NDCG(measure.json)@10`, or by what it is made `of`:
    `measure("NDCG@10", of=utility)`.  A Utility by itself is its DCG.
    """
    if isinstance(text, Utility):
        text, of = "DCG", text if of is None else of
    if isinstance(text, Measure) and of is None:
        return text
    if not isinstance(text, str):
        raise MeasureError(f"a measure is a text such as NDCG@10; got {text!r}.")
    found = _learned(text, of)
    return _parsed(text) if found is None else found


def _learned(text: str, of: Utility | str | os.PathLike[str] | None) -> Measure | None:
    """A DCG or NDCG of a measure file, which is read anew: it may have changed."""
    match = FORM.fullmatch(text)
    cls = BY_NAME.get(_plain(match[1])) if match else None
    inside = (match[2] if match else None) or ""
    if of is None and (cls is None or cls.__name__ not in LEARNED or not refers_to_file(inside)):
        return None
    if match is None or cls is None or cls.__name__ not in LEARNED:
        raise MeasureError(f"only DCG and NDCG can be made of a utility or its file; not {text!r}.")
    cutoff = None if match[3] is None else _whole(match[3], text)
    try:
        source = MeasureSource.parse(inside)
        if of is not None and source.file:
            raise DataError(f"{text!r} names a file itself; drop it, or what it is made of.")
        if of is not None and not isinstance(of, Utility):
            source, of = replace(source, file=os.fspath(of)), None
        utility = source.read() if of is None else source.select(of)
        return LEARNED[cls.__name__](utility, source, cutoff)
    except DataError as error:
        raise MeasureError(str(error)) from None


@lru_cache(1024)
def _parsed(text: str) -> Measure:
    if match := TREC_CUT.fullmatch(text.strip()):
        text = f"{TREC_NAMES[match[1].lower()]}@{match[2]}"
    match = FORM.fullmatch(text)
    if match is None:
        raise MeasureError(
            f"cannot read the measure {text!r}; it must look like NDCG@10 or NDCG(gain=linear)@10."
        )
    name, inside, cutoff = match.groups()
    cls = BY_NAME.get(_plain(name))
    if cls is None:
        raise _unknown(name)
    given = _parameters(cls, inside or "", text)
    if cutoff is not None:
        if not any(f.name == "cutoff" for f in fields(cls)):
            raise MeasureError(f"{text!r}: {cls.__name__} takes no cut-off.")
        given["cutoff"] = _whole(cutoff, text)
    return cls(**given)


def measures(texts: Named | Iterable[Named]) -> list[Measure]:
    """Several at once."""
    return [measure(text) for text in listed(texts)]


def listed(texts: Named | Iterable[Named]) -> list[Named]:
    """One or several, as a list."""
    return [texts] if isinstance(texts, (str, Measure, Utility)) else list(texts)


def by_text(texts: Named | Iterable[Named]) -> dict[str, Measure]:
    """Measures by the texts that were typed, or by their own; one asked for twice counts once."""
    found = [(text, measure(text)) for text in listed(texts)]
    return {text if isinstance(text, str) else str(one): one for text, one in found}


def _unknown(name: str) -> MeasureError:
    shown = {_plain(cls.__name__): cls.__name__ for cls in MEASURES}
    near = get_close_matches(_plain(name), BY_NAME, 3, 0.5)
    names = list(dict.fromkeys(shown.get(n) or BY_NAME[n].__name__ for n in near))
    if names:
        return MeasureError(f"there is no measure {name!r}. Nearest: {', '.join(names)}.")
    return MeasureError(f"there is no measure {name!r}. There are: {', '.join(shown.values())}.")


def _whole(text: str, whole: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise MeasureError(
            f"{whole!r}: the cut-off must be a whole number; got {text!r}."
        ) from None


def _parameters(cls: type[Measure], inside: str, whole: str) -> dict[str, Any]:
    """`gain=linear, rel=2` as arguments of the measure, converted by its field's types."""
    known = {f.name: f for f in fields(cls) if f.name != "cutoff"}
    hints = get_type_hints(cls)
    given: dict[str, Any] = {}
    for item in filter(str.strip, pieces(inside)):
        name, equals, value = (part.strip() for part in item.partition("="))
        if not equals or name not in known:
            options = ", ".join(known) or "none"
            learned = not equals and cls.__name__ in LEARNED
            hint = f", and a measure file is named by file={name}" if learned else ""
            raise MeasureError(
                f"{whole!r}: {cls.__name__} has no parameter {name!r} (it has: {options}); "
                f"parameters read name=value{hint}."
            )
        if name in given:
            raise MeasureError(f"{whole!r}: {name} is given twice.")
        given[name] = _convert(value, hints[name], known[name], whole)
    return given


def _convert(value: str, hint: Any, field: Field[Any], whole: str) -> Any:
    options = get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if value.startswith("[") and any(get_origin(o) is tuple for o in options):
        try:
            return tuple(float(v) for v in value.strip("[]").split(","))
        except ValueError:
            raise MeasureError(f"{whole!r}: {value} is not a list of numbers.") from None
    if bool in options:
        if value.lower() in ("true", "false"):
            return value.lower() == "true"
        raise MeasureError(f"{whole!r}: {field.name} must be true or false; got {value!r}.")
    for kind in (int, float):
        if kind in options:
            try:
                return kind(value)
            except ValueError:
                continue
    if str in options:
        return value
    raise MeasureError(f"{whole!r}: {field.name} must be a number; got {value!r}.")


def forms() -> list[tuple[str, str]]:
    """(`NDCG(gain, discount)@n`, what it is) of every measure."""
    found = []
    for cls in MEASURES:
        names = [f.name for f in fields(cls)]
        given = ", ".join(name for name in names if name != "cutoff")
        form = cls.__name__ + (f"({given})" if given else "") + ("@n" if "cutoff" in names else "")
        found.append((form, cls.about + (" (lower is better)" if cls.lower_is_better else "")))
    found += [(f"{name}(file, form, segment)@n", cls.about) for name, cls in LEARNED.items()]
    return found


def conventions() -> dict[str, dict[str, Any]]:
    """Every setting of every convention."""
    return {
        name: {f.name: getattr(c, f.name) for f in fields(c) if f.name != "name"}
        for name, c in CONVENTIONS.items()
    }
