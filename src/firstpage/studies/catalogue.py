"""The studies there are, and what of them can be done with the data at hand."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from firstpage.errors import DataError
from firstpage.names import lookup
from firstpage.studies.base import Entry, Study
from firstpage.studies.sources import missing

STUDIES = {"zhou2013": ("firstpage.studies.zhou2013.study", "ZHOU2013")}


def study(name: str) -> Study:
    """The study of a paper; its rooms are loaded only now."""
    module, constant = lookup(name, STUDIES, "study")
    found: Study = getattr(import_module(module), constant)
    return found


def chosen(targets: Sequence[str]) -> tuple[Study, list[Entry]]:
    """The study and the entries that texts such as `zhou2013` or `zhou2013/figure2` name."""
    papers = list(dict.fromkeys(target.partition("/")[0] for target in targets))
    if len(papers) != 1:
        raise DataError(f"one paper at a time; got {', '.join(papers) or 'none'}.")
    found = study(papers[0])
    named = [target.partition("/")[2] for target in targets]
    if "" in named:
        return found, list(found.entries.values())
    entries = [lookup(_whole(name), found.entries, f"entry of {found.name}") for name in named]
    return found, list({entry.name: entry for entry in entries}.values())


def _whole(name: str) -> str:
    """`fig. 7` is `figure7`."""
    head = name.casefold().replace(".", "").replace(" ", "")
    return (
        head.replace("fig", "figure", 1) if head.startswith("fig") and head[3:].isdigit() else name
    )


def listing(base: Path | None) -> list[tuple[str, str, str]]:
    """Every entry: its name, its title, and what it lacks."""
    return [
        (f"{name}/{entry.name}", entry.title, missing(entry.needs, base))
        for name in STUDIES
        for entry in study(name).entries.values()
    ]
