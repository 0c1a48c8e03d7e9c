"""The Python reference of the site: a page per public name, from its docstring."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import firstpage
from firstpage.core import stub_imports
from firstpage.learning.rankers import Ranker
from made.markdown import Docstring, inline, toctree

HEAD = """\
# Python

A page per public name, with its parameters and an example. In Python, `help(fp.ListMLE)` shows the
same text. `import firstpage as fp` loads nothing; a name is imported when it is first used.
"""


class Group(NamedTuple):
    """A section of the page: the names of a namespace, or of a package below `firstpage`."""

    title: str
    about: str
    namespace: str = "firstpage"
    package: str = ""


# In the order of the loop.
GROUPS = (
    Group(
        "Data and truth", "Files, datasets and ground truth ([guide](../data.md)).", package="data"
    ),
    Group(
        "Search",
        "Documents, indexes, features and searches ([guide](../searching.md)).",
        package="search",
    ),
    Group(
        "Demo",
        "A collection of real texts and questions that needs no download ([guide](../loop.md)).",
        "firstpage.demo",
    ),
    Group(
        "Label",
        "Few questions per query, and its ordered top k as a result ([guide](../label-strategies.md)).",
        "firstpage.labeling",
    ),
    Group(
        "Train",
        "Rankers, their selection and their explanation ([guide](../train.md)).",
        package="learning",
    ),
    Group(
        "Exchange",
        "Models, judgments, feature logs and clicks of other programs ([guide](../export.md)).",
        "firstpage.interop",
    ),
    Group(
        "Export",
        "Models for search engines and other programs ([guide](../export.md)).",
        package="interop",
    ),
    Group(
        "Logs of clicks",
        "Sessions of people who searched ([guide](../clicks.md)).",
        package="clicks",
    ),
    Group(
        "Clicks",
        "What logs of clicks contain ([guide](../clicks.md)).",
        "firstpage.clicks",
    ),
    Group(
        "Evaluate and compare",
        "Measures, conventions and significance tests ([guide](../evaluate.md), [all measures](../measures.md), [conventions](../conventions.md)).",
        package="evaluation",
    ),
    Group(
        "Plan and gate",
        "How many queries, which ones, complete pools, release gates ([guide](../evaluate.md)).",
        "firstpage.evaluation.planning",
    ),
    Group(
        "Learn the measure",
        "Gains and discounts from preferences over rankings ([guide](../dcglearn.md)).",
        "firstpage.evaluation.dcglearn",
    ),
    Group(
        "Aggregate",
        "Several rankings into one ([guide](../aggregate.md)), and first stages ([guide](../hybrid.md)).",
        "firstpage.evaluation.aggregation",
    ),
    Group(
        "Theory",
        "Order sensitivity and consistency of losses ([guide](../theory.md)).",
        "firstpage.papers",
    ),
    Group(
        "Extend",
        "Losses, measures and rankers of your own ([guide](../custom.md)).",
        "firstpage.extend",
    ),
    Group("Results", "What functions return, for annotations of types.", "firstpage.results"),
    Group(
        "Errors",
        "All errors that a user's input causes are a `FirstpageError` with a message of one line.",
        package="core",
    ),
)


class Name(NamedTuple):
    """A public name: how users write it, where it is imported from, and what it is."""

    name: str
    path: str
    target: str
    value: Any


def names_of(group: Group) -> list[Name]:
    """Return the names of a group: classes first, then functions, each by name."""
    namespace = import_module(group.namespace)
    module_of = stub_imports(Path(str(namespace.__file__)).with_suffix(".pyi"))
    names = [
        name
        for name in namespace.__all__
        if not group.package or _is_in(module_of.get(name, ""), name, group.package)
    ]
    names.sort(
        # the base class documents what all rankers share
        key=lambda n: (n != "Ranker", not inspect.isclass(getattr(namespace, n)), n.casefold())
    )
    last = group.namespace.rpartition(".")[2]  # users reach a namespace as `fp.planning`
    prefix = "" if last == "firstpage" else f"{last}."
    return [
        Name(n, f"fp.{prefix}{n}", f"firstpage.{prefix}{n}", getattr(namespace, n)) for n in names
    ]


def public_names() -> list[Name]:
    """Return all public names; of two with the same last part, the one of the later group first."""
    return [each for group in reversed(GROUPS) for each in names_of(group)]


def reference_pages() -> Iterator[tuple[str, str]]:
    """Yield the pages of the Python reference, with their names: groups, then one per name."""
    for group in GROUPS:
        names = names_of(group)
        rows = [f"| [`{n.path}`]({n.path}.rst) | {_cell(n.value)} |" for n in names]
        lines = [f"# {group.title}", "", group.about, "", "| name | what it is |", "| --- | --- |"]
        contents = toctree(each.path for each in names)
        yield f"python/{_slug(group)}.md", "\n".join([*lines, *rows, contents])
        for each in names:
            yield f"python/{each.path}.rst", _page(each)
    slugs = [f"python/{_slug(group)}" for group in GROUPS]
    rows = [
        f"- [{group.title}]({slug}.md): {group.about.replace('](../', '](')}"
        for group, slug in zip(GROUPS, slugs, strict=True)
    ]
    yield "python.md", "\n".join([HEAD, *rows, toctree(slugs)])


def _page(name: Name) -> str:
    """Return a page on which autodoc writes the docstring of a name."""
    kind = "function"
    if inspect.isclass(name.value):
        kind = "exception" if issubclass(name.value, BaseException) else "class"
    elif not callable(name.value):
        kind = "data"
    members = "   :members:\n" if kind == "class" else ""
    return f"{name.path}\n{'=' * len(name.path)}\n\n{_see(name)}.. auto{kind}:: {name.target}\n{members}"


def _see(name: Name) -> str:
    """Return a line that leads from a ranker to its page, and to what all rankers share."""
    if not (inspect.isclass(name.value) and issubclass(name.value, Ranker)) or name.value is Ranker:
        return ""
    page = name.value.__name__.lower()
    known = (Path(__file__).parents[1] / "rankers" / f"{page}.md").exists()
    formula = f" :doc:`Formula, picture and evidence </rankers/{page}>`." if known else ""
    return f"All rankers share the methods of :class:`fp.Ranker <firstpage.Ranker>`.{formula}\n\n"


def _cell(value: Any) -> str:
    return inline(Docstring.of(value).summary).replace("|", "\\|")


def _slug(group: Group) -> str:
    return group.title.lower().replace(" ", "-")


def _is_in(module: str, name: str, package: str) -> bool:
    """Return whether a name other than a namespace comes from a package."""
    folder = Path(str(firstpage.__file__)).parents[1].joinpath(*module.split("."), name)
    return f"{module}.".startswith(f"firstpage.{package}.") and not folder.is_dir()
