"""The studies there are, and what of them can be done with the data at hand."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from firstpage.papers.study.sources import missing
from firstpage.papers.study.study import Entry, Study
from firstpage.registry import lookup

STUDIES = {
    "xia2009": ("firstpage.papers.xia2009.study", "XIA2009"),
    "niu2012": ("firstpage.papers.niu2012.study", "NIU2012"),
    "lan2013": ("firstpage.papers.lan2013.study", "LAN2013"),
    "zhou2013": ("firstpage.papers.zhou2013.study", "ZHOU2013"),
    "cheng2014": ("firstpage.papers.cheng2014.study", "CHENG2014"),
}


def study(name: str) -> Study:
    """The study of a paper; its rooms are loaded only now."""
    module, constant = lookup(name, STUDIES, "study")
    found: Study = getattr(import_module(module), constant)
    return found


def chosen(targets: Sequence[str]) -> list[tuple[Study, list[Entry]]]:
    """Studies with the entries that texts such as `zhou2013`, `zhou2013/figure2` or `all` name."""
    if "all" in targets:
        targets = list(STUDIES)
    named: dict[str, list[str]] = {}
    for target in targets:
        paper, _, entry = target.partition("/")
        named.setdefault(study(paper).name, []).append(entry)
    return [(study(paper), _entries(study(paper), entries)) for paper, entries in named.items()]


def _entries(found: Study, names: Sequence[str]) -> list[Entry]:
    """Once each; a paper without an entry is all of it."""
    if "" in names:
        return list(found.entries.values())
    entries = [lookup(_whole(name), found.entries, f"entry of {found.name}") for name in names]
    return list({entry.name: entry for entry in entries}.values())


def _whole(name: str) -> str:
    """`fig. 7` is `figure7`, `Tab 1` is `table1`."""
    head = name.casefold().replace(".", "").replace(" ", "")
    for short, long in (("fig", "figure"), ("tab", "table")):
        if head.startswith(short) and head[3:].isdigit():
            return long + head[3:]
    return name


def listing(base: Path | None) -> list[tuple[str, str, str]]:
    """Every entry: its name, its title, and what it lacks."""
    return [
        (f"{name}/{entry.name}", entry.title, missing(entry.needs, base))
        for name in STUDIES
        for entry in study(name).entries.values()
    ]
