"""docs/python.md: the public names, from their docstrings."""

from __future__ import annotations

import dataclasses
import inspect
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import firstpage
from firstpage.core import stub_imports
from firstpage.learning.rankers import Ranker
from made.markdown import Docstring, Entry, item, listed, paragraph


class Group(NamedTuple):
    """A section of the page: the names of a namespace, or of a package below `firstpage`."""

    title: str
    about: str
    namespace: str = "firstpage"
    package: str = ""


# In the order of the loop.
GROUPS = (
    Group("Data and truth", "Files, datasets and ground truth ([guide](data.md)).", package="data"),
    Group(
        "Search",
        "Documents, indexes, features and searches ([guide](search.md)).",
        package="search",
    ),
    Group(
        "Demo",
        "A collection of real texts and questions that needs no download ([guide](loop.md)).",
        "firstpage.demo",
    ),
    Group(
        "Label",
        "Few questions per query, and its ordered top k as a result ([guide](label-strategies.md)).",
        "firstpage.labeling",
    ),
    Group(
        "Train",
        "Rankers, their selection and their explanation ([guide](train.md)).",
        package="learning",
    ),
    Group(
        "Exchange",
        "Models, judgments, feature logs and clicks of other programs ([guide](export.md)).",
        "firstpage.interop",
    ),
    Group(
        "Export",
        "Models for search engines and other programs ([guide](export.md)).",
        package="interop",
    ),
    Group(
        "Logs of clicks", "Sessions of people who searched ([guide](clicks.md)).", package="clicks"
    ),
    Group(
        "Clicks",
        "What logs of clicks contain ([guide](clicks.md)).",
        "firstpage.clicks",
    ),
    Group(
        "Evaluate and compare",
        "Measures, conventions and significance tests ([guide](evaluate.md), [all measures](measures.md), [conventions](conventions.md)).",
        package="evaluation",
    ),
    Group(
        "Plan and gate",
        "How many queries, which ones, complete pools, release gates ([guide](evaluate.md)).",
        "firstpage.evaluation.planning",
    ),
    Group(
        "Learn the measure",
        "Gains and discounts from preferences over rankings ([guide](dcglearn.md)).",
        "firstpage.evaluation.dcglearn",
    ),
    Group(
        "Aggregate",
        "Several rankings into one ([guide](aggregate.md)), and first stages ([guide](hybrid.md)).",
        "firstpage.evaluation.aggregation",
    ),
    Group(
        "Theory",
        "Order sensitivity and consistency of losses ([guide](theory.md)).",
        "firstpage.papers",
    ),
    Group(
        "Extend",
        "Losses, measures and rankers of your own ([guide](custom.md)).",
        "firstpage.extend",
    ),
    Group("Results", "What functions return, for annotations of types.", "firstpage.results"),
    Group(
        "Errors",
        "All errors that a user's input causes are a `FirstpageError` with a message of one line.",
        package="core",
    ),
)
MAX_SIGNATURE = 88  # characters; a longer signature has one line per parameter


def python_page() -> str:
    lines = [
        "# Python",
        "",
        "Every public name, with its parameters and an example. In Python, `help(fp.ListMLE)` shows the",
        "same text. `import firstpage as fp` loads nothing; a name is imported when it is first used.",
        "",
        *(line for group in GROUPS for line in item(f"[{group.title}]({_anchor(group.title)})")),
        "",
        "`make docs` generates this page from the docstrings.",
        "",
        "<!-- fmt: off -->",  # the formatter leaves the examples as they are in the docstrings
        "",
    ]
    used = Counter[str]()
    for group in GROUPS:
        namespace, names = import_module(group.namespace), _names(group)
        prefix = _prefix(group)
        index = [f"[`{name}`]({_anchor(f'{prefix}.{name}', used)})" for name in names]
        lines += [
            f"## {group.title}",
            "",
            paragraph(group.about),
            "",
            paragraph(", ".join(index)),
            "",
        ]
        for name in names:
            lines += _described(f"{prefix}.{name}", getattr(namespace, name))
    return "\n".join(lines).rstrip() + "\n"


def _prefix(group: Group) -> str:
    """Return the path by which users reach a namespace: `fp.planning`."""
    name = group.namespace.rpartition(".")[2]
    return "fp" if name == "firstpage" else f"fp.{name}"


def _anchor(heading: str, used: Counter[str] | None = None) -> str:
    """Return the link to a heading as GitHub forms it: headings of equal text are numbered."""
    anchor = "#" + heading.lower().replace(" ", "-").replace(".", "")
    earlier = 0 if used is None else used[anchor]
    if used is not None:
        used[anchor] += 1
    return f"{anchor}-{earlier}" if earlier else anchor


def _names(group: Group) -> list[str]:
    """Return the names of a group: classes first, then functions, each by name."""
    namespace = import_module(group.namespace)
    module_of = stub_imports(Path(str(namespace.__file__)).with_suffix(".pyi"))
    names = [
        name
        for name in namespace.__all__
        if not group.package or _is_in(module_of.get(name, ""), name, group.package)
    ]
    first = Ranker.__name__  # the base class documents what all rankers share
    return sorted(
        names,
        key=lambda n: (n != first, not inspect.isclass(getattr(namespace, n)), n.casefold()),
    )


def _is_in(module: str, name: str, package: str) -> bool:
    """Return whether a name other than a namespace comes from a package."""
    folder = Path(str(firstpage.__file__)).parents[1].joinpath(*module.split("."), name)
    return f"{module}.".startswith(f"firstpage.{package}.") and not folder.is_dir()


def _described(path: str, value: Any) -> list[str]:
    docstring = Docstring.of(value)
    lines = [f"### `{path}`", ""]
    if not inspect.isclass(value) or "Parameters" in docstring.sections:  # others are results
        lines += ["```text", _signature(path, value), "```", ""]
    lines += docstring.paragraphs()
    shared = Docstring.of(Ranker) if _is_ranker(value) else Docstring()
    for title in ("Parameters", "Attributes"):
        inherited = shared.entries(title)
        own = [entry for entry in docstring.entries(title) if entry not in inherited]
        lines += listed(title, own)
    if shared.sections:
        lines += [
            "All rankers share the parameters, attributes and methods of [`fp.Ranker`](#fpranker).",
            "",
        ]
    for title in ("Returns", "Yields", "Raises"):
        lines += listed(title, docstring.entries(title))
    if inspect.isclass(value):
        entries = docstring.entries("Attributes")
        documented = {name for entry in entries for name in entry.name.split(", ")}
        lines += listed("Properties", _properties(value, documented))
        methods = list(_methods(value))
        lines += ["**Methods**", "", *methods, ""] if methods else []
    references = [line for each in docstring.references() for line in item(each)]
    lines += ["**References**", "", *references, ""] if references else []
    example = docstring.example()
    return lines + (["**Example**", "", *example] if example else [])


def _is_ranker(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, Ranker) and value is not Ranker


def _members(cls: type) -> Iterator[tuple[str, Any]]:
    """Yield what a class itself defines for its users."""
    for name, member in vars(cls).items():
        added_by_sklearn = name.startswith("set_") and name.endswith("_request")
        if not name.startswith("_") and not added_by_sklearn:
            yield name, member


def _properties(cls: type, documented: set[str]) -> Iterator[Entry]:
    """Yield the properties that the docstring of a class does not list."""
    fields = {f.name for f in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else set()
    for name, member in _members(cls):
        is_property = isinstance(member, property | cached_property)
        if is_property and name not in documented | fields:
            function = member.func if isinstance(member, cached_property) else member
            yield Entry(name, "", Docstring.of(function).summary)


def _methods(cls: type) -> Iterator[str]:
    """Yield items of a list: methods, each above its parameters."""
    for name, member in _members(cls):
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if _is_ranker(cls) and not member.__doc__:
            continue  # described once, in the base class
        if inspect.isfunction(function):
            docstring = Docstring.of(function)
            signature = _signature(name, function, is_bound=not isinstance(member, staticmethod))
            yield from Entry(signature, "", docstring.summary).markdown()
            for entry in docstring.entries("Parameters"):
                yield from entry.markdown("  ")


def _signature(name: str, function: Any, is_bound: bool = False) -> str:
    """Return a signature without annotations, which the list of parameters describes."""
    shown = list[str]()
    for p in list(inspect.signature(function).parameters.values())[1 if is_bound else 0 :]:
        starred = any(text.startswith("*") for text in shown)
        if p.kind is p.KEYWORD_ONLY and not starred:
            shown.append("*")
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        default = "" if p.default is p.empty else f"={_default(p.default)}"
        shown.append(f"{star}{p.name}{default}")
    line = f"{name}({', '.join(shown)})"
    if is_bound or len(line) <= MAX_SIGNATURE:
        return line
    return f"{name}(\n" + "".join(f"    {text},\n" for text in shown) + ")"


def _default(value: Any) -> str:
    """Return a default value, or dots where it has no short text of its own."""
    text = repr(value)
    return "..." if " at 0x" in text or "<factory>" in text else text
