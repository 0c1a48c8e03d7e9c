"""The catalog of measures, and the parser of texts such as `NDCG(gain=linear)@10`."""

from __future__ import annotations

import os
import re
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, dataclass, fields, replace
from difflib import get_close_matches
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from firstpage.core import (
    DataError,
    MeasureError,
    ParameterError,
    canonical_name,
    imported,
    qualified_name,
    register,
    split_arguments,
    warn,
)
from firstpage.data.preferences import MeasureSource, Utility, refers_to_file
from firstpage.evaluation.measures.base import Measure, text_parameters
from firstpage.evaluation.measures.convention import CONVENTIONS, named_settings
from firstpage.evaluation.measures.functions import FunctionMeasure
from firstpage.evaluation.measures.graded import ERR, NDCG
from firstpage.evaluation.measures.learned import LEARNED
from firstpage.evaluation.measures.names import ALIASES, TOOLS, expand, translate

MeasureLike = str | Measure | Utility | Callable[..., float]


@dataclass(frozen=True)
class CatalogRow:
    """A line of catalog.tsv, which has all measures of this package in the order of listings."""

    group: str
    measure: str
    description: str
    tool_names: Mapping[str, str]


def _read_catalog() -> dict[str, CatalogRow]:
    """Return the lines of catalog.tsv by the name of the class."""
    lines = (Path(__file__).parent / "catalog.tsv").read_text("utf-8").splitlines()[1:]
    catalog = {}
    for group, measure, *names, description in (line.split("\t") for line in lines):
        tool_names = {tool: name for tool, name in zip(TOOLS, names, strict=True) if name}
        row = CatalogRow(group, measure, description, tool_names)
        catalog[measure.partition(".")[2]] = row
    return catalog


CATALOG = _read_catalog()
REGISTERED: dict[str, type[Measure]] = {}

CONDENSED = re.compile(r"\s*(?:condensed|judged_only)\s*=\s*true\s*", re.IGNORECASE)
FILE_PARAMETER = "weights="  # may name a file, which is read at every call: it may have changed
NAME = r"[^\W\d][\w\-κ]*?"
OWN_NAME = r"[^\W\d][\w.]*:[\w.]+"
FORM = re.compile(rf"\s*({OWN_NAME}|{NAME})\s*(?:\((.*)\))?\s*(?:@\s*([^@()]*))?\s*", re.DOTALL)


def _plain(name: str) -> str:
    """Return a name without case, hyphens and underscores, for comparison."""
    return canonical_name(name.replace("κ", "k").replace("α", "alpha"))


BY_NAME = {_plain(name): name for name in CATALOG}  # class names by plain names
BY_NAME |= {alias: BY_NAME[_plain(name)] for alias, name in ALIASES.items()}


def measure_classes() -> tuple[type[Measure], ...]:
    """Return all measures of this package."""
    return tuple(map(_class, CATALOG))


def _class(name: str) -> type[Measure]:
    """Return the class of a name; the module of a measure is imported when it is first used."""
    if name in REGISTERED:
        return REGISTERED[name]
    module = CATALOG[name].measure.partition(".")[0]
    cls: type[Measure] = getattr(import_module(f"{__package__}.{module}"), name)
    return cls


def _named(name: str) -> type[Measure] | None:
    listed = BY_NAME.get(_plain(name))
    return None if listed is None else _class(listed)


def measure(text: MeasureLike, of: Utility | str | os.PathLike[str] | None = None) -> Measure:
    """Parse the text of a measure.

    Case, hyphens and underscores do not matter, and the names of trec_eval, ir_measures, ranx and
    ndeval work too.  `firstpage measures` lists all measures with their parameters.

    Parameters
    ----------
    text : str, Measure, Utility or callable
        Text such as "NDCG@10", "ERR", "kNDCG(k=10)@5" or "ndcg_cut_10"; a measure file goes in the
        place of the parameters, as in "NDCG(measure.json)@10".  "module:Name" is a measure of your
        own, or a function.  A Measure is returned as it is, one of ir_measures becomes ours, and a
        Utility stands for its DCG.  A function of the labels of one query in ranked order, and of
        those of the ideal order, becomes a measure.
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
    if _is_of_ir_measures(text):
        return _of_ir_measures(str(text))
    if not isinstance(text, str):
        return _single(text, of)
    learned = _learned(text, of) if "(" in text else None  # names of files may have commas
    if learned is not None:
        return learned
    texts = expand(text)
    if len(texts) != 1:
        shown = ", ".join([*texts[:2], *(["..."] if len(texts) > 2 else [])])
        raise MeasureError(f"{text!r} names {len(texts)} measures ({shown}); one is needed here.")
    return _single(texts[0], of)


def _single(text: Any, of: Utility | str | os.PathLike[str] | None = None) -> Measure:
    """Return the measure of one of the values that `as_list` returns."""
    if isinstance(text, Utility):
        text, of = "DCG", text if of is None else of
    if of is None and isinstance(text, Measure):
        return text
    if of is None and callable(text):
        return _of_function(text)
    if not isinstance(text, str):
        raise MeasureError(f"a measure must be a string such as NDCG@10; got {text!r}.")
    learned = _learned(text, of) if of is not None or "(" in text else None
    if learned is not None:
        return learned
    if FILE_PARAMETER in text or ":" in text:  # files and modules may have changed
        return _parsed.__wrapped__(text)
    return _parsed(text)


def _learned(text: str, of: Utility | str | os.PathLike[str] | None) -> Measure | None:
    """Return a DCG or NDCG of a measure file, or None if the text names no file.

    The file is read at every call, since it may have changed.
    """
    match = FORM.fullmatch(text)
    if match is not None and (match[3] or "").startswith(("{", "[")):
        return None  # several cut-offs
    name = BY_NAME.get(_plain(match[1])) if match else None
    inside, condensed = _without_condensed((match[2] if match else None) or "")
    if of is None and (name not in LEARNED or not refers_to_file(inside)):
        return None
    if match is None or name not in LEARNED:
        raise MeasureError(f"only DCG and NDCG can be made of a utility or its file; not {text!r}.")
    cutoff = None if match[3] is None else _parse_cutoff(match[3], text)
    try:
        source = MeasureSource.parse(inside)
        if of is not None and source.file:
            raise DataError(f"{text!r} names a file itself; omit the file, or `of`.")
        if of is not None and not isinstance(of, Utility):
            source, of = replace(source, file=os.fspath(of)), None
        utility = source.read() if of is None else source.select(of)
        return LEARNED[name](utility, source, cutoff, condensed=condensed)
    except DataError as error:
        raise MeasureError(str(error)) from None


def _without_condensed(inside: str) -> tuple[str, bool]:
    """Return the parameters of a measure file without `condensed=true`, and whether it is there."""
    items = split_arguments(inside)
    others = [item for item in items if not CONDENSED.fullmatch(item)]
    return ",".join(others), len(others) < len(items)


@lru_cache(1024)
def _parsed(text: str) -> Measure:
    match = FORM.fullmatch(text if _is_own(text) else translate(text))
    if match is None:
        raise MeasureError(
            f"cannot parse the measure {text!r:.200}; it must look like NDCG@10 or "
            "NDCG(gain=linear)@10."
        )
    name, inside, cutoff = match.groups()
    cls = _own(name) if ":" in name else _named(name)
    if cls is None:
        raise _unknown(name)
    if isinstance(cls, Measure):
        if cutoff is not None or (inside and not CONDENSED.fullmatch(inside)):
            raise MeasureError(f"{text!r}: a function has no parameters and no cut-off.")
        return replace(cls, condensed=True) if inside else cls
    parameters = _parameters(cls, inside or "", text)
    if cutoff is not None:
        if not any(f.name == "cutoff" for f in fields(cls)):
            raise MeasureError(f"{text!r}: {cls.__name__} takes no cut-off.")
        parameters["cutoff"] = _parse_cutoff(cutoff, text)
    return cls(**parameters)


def _is_own(text: str) -> bool:
    """Return whether a text names a measure of the user's own, whose parameters are theirs."""
    match = FORM.fullmatch(text)
    if match is None:
        return False
    return ":" in match[1] or BY_NAME.get(_plain(match[1])) in REGISTERED


def _own(name: str) -> type[Measure] | Measure:
    """Return the class, or the measure of the function, that `module:Name` names."""
    try:
        value = imported(name, "measure")
    except ParameterError as error:
        raise MeasureError(str(error)) from error.__cause__
    if isinstance(value, type):
        if not issubclass(value, Measure):
            raise MeasureError(
                f"{name} is not a measure: it is not a subclass of fp.extend.Measure."
            )
        return value
    return _of_function(value)


def _is_of_ir_measures(value: object) -> bool:
    return type(value).__module__.partition(".")[0] == "ir_measures"


def _of_ir_measures(text: str) -> Measure:
    """Return the measure of an object of ir_measures, with the defaults that it has there."""
    result = measure(text)
    if isinstance(result, NDCG) and result.gain is None:
        return replace(result, gain="linear")
    if isinstance(result, ERR) and result.max is None:
        return replace(result, max=4.0)  # that of gdeval
    return result


def _of_function(function: Callable[..., float]) -> Measure:
    if isinstance(function, type):
        hint = " Create an instance of it." if issubclass(function, Measure) else ""
        raise MeasureError(f"a measure must be a string such as NDCG@10; got {function!r}.{hint}")
    if not hasattr(function, "__qualname__"):  # an instance, or functools.partial
        raise MeasureError(f"a function must be defined with def, by a name; got {function!r}.")
    measure = FunctionMeasure(function)
    if str(measure) not in _noted:
        _noted.add(str(measure))
        warn(
            f"the measure {measure} is a Python function that is called for every query: slow with "
            "many queries. A class derived from fp.extend.Measure takes all of them at once."
        )
    return measure


_noted: set[str] = set()  # functions that a warning called slow


def register_measure(measure_class: type[Measure], name: str | None = None) -> type[Measure]:
    """Give a measure of your own a name, by which all functions and commands find it.

    Parameters
    ----------
    measure_class : type
        A frozen dataclass derived from `fp.extend.Measure`, which implements
        ``values(self, lists, convention)``.
    name : str, optional
        The name; that of the class if None.

    Returns
    -------
    type
        The class, so that this can be used as a decorator.

    Raises
    ------
    ParameterError
        If it is not such a class, or if another measure has the name.

    See Also
    --------
    fp.extend.RankedLists : What `values` receives.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import firstpage as fp
    >>> @fp.extend.register_measure
    ... @dataclass(frozen=True)
    ... class ScaledLabel(fp.extend.Measure):
    ...     scale: float = 1.0
    ...
    ...     def values(self, lists, convention):
    ...         return self.scale * lists.labels[lists.offsets[:-1]]
    >>> fp.evaluate([2, 1], [3, 0], qid=[1, 1], measures="ScaledLabel(scale=2)").values.tolist()
    [[6.0]]
    """
    if not isinstance(measure_class, type) or not issubclass(measure_class, Measure):
        raise ParameterError(
            f"register_measure takes a class derived from fp.extend.Measure; got {measure_class!r}."
        )
    listed = measure_class.__name__ if name is None else name
    known = _named(listed)
    if known is not None and qualified_name(known) != qualified_name(measure_class):
        raise ParameterError(
            f"there is already a measure {listed!r}; register yours by another name=."
        )
    register(measure_class, name, "measure", REGISTERED)
    BY_NAME[_plain(listed)] = listed
    _parsed.cache_clear()
    return measure_class


def measures(texts: MeasureLike | Iterable[MeasureLike]) -> list[Measure]:
    """Return the measures of one or several texts."""
    return [_single(text) for text in as_list(texts)]


def as_list(texts: MeasureLike | Iterable[MeasureLike]) -> list[MeasureLike]:
    """Return one or several measures as a list; a text may name several."""
    single = isinstance(texts, (str, Measure, Utility)) or callable(texts)
    single = single or _is_of_ir_measures(texts)
    if not single and not isinstance(texts, Iterable):
        raise MeasureError(f"measures must be texts such as 'NDCG@10', or measures; got {texts!r}.")
    requested: list[Any] = [texts] if single else list(texts)  # type: ignore[arg-type]
    listed: list[MeasureLike] = []
    for text in requested:
        if isinstance(text, str) and text.strip():
            listed += expand(text)
        elif _is_of_ir_measures(text):  # nDCG @ [5, 10] names two
            listed += map(_of_ir_measures, expand(str(text)))
        else:
            listed.append(text)
    return listed


def measures_by_text(texts: MeasureLike | Iterable[MeasureLike]) -> dict[str, Measure]:
    """Return measures by their texts as typed, or by their canonical texts; repeats count once."""
    by_text: dict[str, Measure] = {}
    for requested in as_list(texts):
        value = _single(requested)
        text = requested if isinstance(requested, str) else str(value)
        if text in by_text and by_text[text] != value:
            raise MeasureError(f"two measures have the text {text!r}; define functions with def.")
        by_text[text] = value
    return by_text


def _unknown(name: str) -> MeasureError:
    known = {_plain(listed): listed for listed in (*CATALOG, *REGISTERED)}
    near = get_close_matches(_plain(name), BY_NAME, 3, 0.5)
    names = list(dict.fromkeys(BY_NAME[n] for n in near))
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
    known = {f.name: f for f in text_parameters(cls)}
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
        if not value.endswith("]"):
            raise MeasureError(f"{text!r}: the list {value} has no ].")
        try:
            return tuple(float(v) for v in value[1:].removesuffix("]").split(","))
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


@dataclass(frozen=True)
class Listing:
    """A measure as it is listed: its signature, a description and its names in other tools."""

    group: str
    signature: str
    about: str
    measure: str
    tool_names: Mapping[str, str]


def list_measures() -> list[Listing]:
    """Return all measures by group, with those of measure files and registered ones last."""
    catalog = CATALOG | {
        name: CatalogRow("your own", name, cls.about, {}) for name, cls in REGISTERED.items()
    }
    rows = []
    for row_name, row in catalog.items():
        cls = _class(row_name)
        inside = ", ".join(f.name for f in text_parameters(cls) if f.name != "condensed")
        signature = cls.text_name or cls.__name__
        signature += f"({inside})" if inside else ""
        signature += "@n" if any(f.name == "cutoff" for f in fields(cls)) else ""
        about = row.description + (" (lower is better)" if cls.lower_is_better else "")
        rows.append(Listing(row.group, signature, about, cls.__name__, row.tool_names))
    for name, learned in LEARNED.items():
        signature = f"{name}(file, form, segment)@n"
        rows.append(Listing("measure files", signature, learned.about, name, {}))
    return rows


def conventions() -> dict[str, dict[str, Any]]:
    """Return the settings of every convention, by name."""
    return {
        name: {key: value for key, value in named_settings(name).items() if key != "name"}
        for name in CONVENTIONS
    }
