"""The catalog of measures, and the parser of texts such as `NDCG(gain=linear)@10`."""

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
from firstpage.registry import canonical_name, split_arguments

MeasureLike = str | Measure | Utility
MEASURES: tuple[type[Measure], ...] = (
    NDCG, DCG, MeanNDCG, ERR, kNDCG, kERR,
    AP, P, Recall, RR, Rprec, Success, bpref, Judged, RBP, SetP, SetR, SetF,
    ppref, nwppref, Tau, PairAccuracy, RBO, WKT, TopK01, Perm01,
)  # fmt: skip

# Names that other tools use.
ALIASES = {
    "map": "AP", "mrr": "RR", "mr": "RR", "reciprank": "RR", "precision": "P", "prec": "P",
    "pre": "P", "r": "Recall", "hitrate": "Success", "hit": "Success", "rprecision": "Rprec",
    "setrecall": "SetR", "setprecision": "SetP", "kappandcg": "kNDCG", "kappaerr": "kERR",
    "kendall": "Tau", "kendalltau": "Tau", "compat": "RBO", "compatibility": "RBO",
}  # fmt: skip
FILE_PARAMETER = "weights="  # may name a file, which is read at every call: it may have changed
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
    """Return a name without case, hyphens and underscores, for comparison."""
    return canonical_name(name.replace("κ", "k"))


BY_NAME = {_plain(cls.__name__): cls for cls in MEASURES}
BY_NAME |= {alias: BY_NAME[_plain(name)] for alias, name in ALIASES.items()}


def measure(text: MeasureLike, of: Utility | str | os.PathLike[str] | None = None) -> Measure:
    """Parse the text of a measure.

    Case, hyphens and underscores do not matter, and the names of trec_eval work too.
    `firstpage measures` lists all measures with their parameters.

    Parameters
    ----------
    text : str, Measure or Utility
        Text such as "NDCG@10", "ERR", "kNDCG(k=10)@5" or "ndcg_cut_10"; a measure file goes in the
        place of the parameters, as in "NDCG(measure.json)@10".  A Measure is returned as it is, a
        Utility stands for its DCG.
    of : Utility or path, optional
        Utility, or measure file, that a DCG or NDCG takes its weights from.

    Returns
    -------
    Measure
        The measure.

    Raises
    ------
    MeasureError
        If the text cannot be parsed, the measure or a parameter is unknown, or the measure file
        cannot be read.

    Examples
    --------
    >>> import firstpage as fp
    >>> str(fp.measure("ndcg_cut_10"))
    'NDCG@10'
    >>> fp.measure("AP(rel=2)").rel
    2.0
    """
    if isinstance(text, Utility):
        text, of = "DCG", text if of is None else of
    if isinstance(text, Measure) and of is None:
        return text
    if not isinstance(text, str):
        raise MeasureError(f"a measure must be a string such as NDCG@10; got {text!r}.")
    learned = _learned(text, of)
    if learned is not None:
        return learned
    return _parsed.__wrapped__(text) if FILE_PARAMETER in text else _parsed(text)


def _learned(text: str, of: Utility | str | os.PathLike[str] | None) -> Measure | None:
    """Return a DCG or NDCG of a measure file, or None if the text names no file.

    The file is read at every call, since it may have changed.
    """
    match = FORM.fullmatch(text)
    cls = BY_NAME.get(_plain(match[1])) if match else None
    inside = (match[2] if match else None) or ""
    if of is None and (cls is None or cls.__name__ not in LEARNED or not refers_to_file(inside)):
        return None
    if match is None or cls is None or cls.__name__ not in LEARNED:
        raise MeasureError(f"only DCG and NDCG can be made of a utility or its file; not {text!r}.")
    cutoff = None if match[3] is None else _parse_cutoff(match[3], text)
    try:
        source = MeasureSource.parse(inside)
        if of is not None and source.file:
            raise DataError(f"{text!r} names a file itself; omit the file, or `of`.")
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
            f"cannot parse the measure {text!r}; it must look like NDCG@10 or NDCG(gain=linear)@10."
        )
    name, inside, cutoff = match.groups()
    cls = BY_NAME.get(_plain(name))
    if cls is None:
        raise _unknown(name)
    parameters = _parameters(cls, inside or "", text)
    if cutoff is not None:
        if not any(f.name == "cutoff" for f in fields(cls)):
            raise MeasureError(f"{text!r}: {cls.__name__} takes no cut-off.")
        parameters["cutoff"] = _parse_cutoff(cutoff, text)
    return cls(**parameters)


def measures(texts: MeasureLike | Iterable[MeasureLike]) -> list[Measure]:
    """Return the measures of one or several texts."""
    return [measure(text) for text in as_list(texts)]


def as_list(texts: MeasureLike | Iterable[MeasureLike]) -> list[MeasureLike]:
    """Return one or several measures as a list."""
    return [texts] if isinstance(texts, (str, Measure, Utility)) else list(texts)


def measures_by_text(texts: MeasureLike | Iterable[MeasureLike]) -> dict[str, Measure]:
    """Return measures by their texts as typed, or by their canonical texts; repeats count once."""
    parsed = [(text, measure(text)) for text in as_list(texts)]
    return {text if isinstance(text, str) else str(value): value for text, value in parsed}


def _unknown(name: str) -> MeasureError:
    known = {_plain(cls.__name__): cls.__name__ for cls in MEASURES}
    near = get_close_matches(_plain(name), BY_NAME, 3, 0.5)
    names = list(dict.fromkeys(known.get(n) or BY_NAME[n].__name__ for n in near))
    if names:
        return MeasureError(f"there is no measure {name!r}. Nearest: {', '.join(names)}.")
    return MeasureError(f"there is no measure {name!r}. There are: {', '.join(known.values())}.")


def _parse_cutoff(digits: str, text: str) -> int:
    """Return the cut-off as an integer; `text` is the full text of the measure, for errors."""
    try:
        return int(digits)
    except ValueError:
        raise MeasureError(f"{text!r}: the cut-off must be an integer; got {digits!r}.") from None


def _parameters(cls: type[Measure], inside: str, text: str) -> dict[str, Any]:
    """Return `gain=linear, rel=2` as arguments of the measure, converted to its field types."""
    known = {f.name: f for f in fields(cls) if f.name != "cutoff"}
    hints = get_type_hints(cls)
    parameters: dict[str, Any] = {}
    for item in filter(str.strip, split_arguments(inside)):
        name, equals, value = (side.strip() for side in item.partition("="))
        if not equals or name not in known:
            options = ", ".join(known) or "none"
            learned = not equals and cls.__name__ in LEARNED
            hint = f", and a measure file is named by file={name}" if learned else ""
            raise MeasureError(
                f"{text!r}: {cls.__name__} has no parameter {name!r} (it has: {options}); "
                f"parameters are written name=value{hint}."
            )
        if name in parameters:
            raise MeasureError(f"{text!r}: {name} is given twice.")
        parameters[name] = _convert(value, hints[name], known[name], text)
    return parameters


def _convert(value: str, hint: Any, field: Field[Any], text: str) -> Any:
    """Return a value as the type of its field; `text` is the full text of the measure."""
    options = get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if value.startswith("[") and any(get_origin(o) is tuple for o in options):
        try:
            return tuple(float(v) for v in value.strip("[]").split(","))
        except ValueError:
            raise MeasureError(f"{text!r}: {value} is not a list of numbers.") from None
    if bool in options:
        if value.lower() in ("true", "false"):
            return value.lower() == "true"
        raise MeasureError(f"{text!r}: {field.name} must be true or false; got {value!r}.")
    for kind in (int, float):
        if kind in options:
            try:
                return kind(value)
            except ValueError:
                continue
    if str in options:
        return value
    raise MeasureError(f"{text!r}: {field.name} must be a number; got {value!r}.")


def measure_signatures() -> list[tuple[str, str]]:
    """Return (`NDCG(gain, discount)@n`, description) of every measure."""
    signatures = []
    for cls in MEASURES:
        names = [f.name for f in fields(cls)]
        inside = ", ".join(name for name in names if name != "cutoff")
        text = f"{cls.__name__}({inside})" if inside else cls.__name__
        text += "@n" if "cutoff" in names else ""
        signatures.append((text, cls.about + (" (lower is better)" if cls.lower_is_better else "")))
    signatures += [(f"{name}(file, form, segment)@n", cls.about) for name, cls in LEARNED.items()]
    return signatures


def conventions() -> dict[str, dict[str, Any]]:
    """Return the settings of every convention, by name."""
    return {
        name: {f.name: getattr(c, f.name) for f in fields(c) if f.name != "name"}
        for name, c in CONVENTIONS.items()
    }
