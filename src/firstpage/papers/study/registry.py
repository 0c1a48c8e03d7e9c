"""The studies there are, the data that they need, and what can be done with the data at hand."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from firstpage.papers.study.study import Entry, Study
from firstpage.registry import lookup

FOLDS = "Fold1 to Fold5, each with train.txt, vali.txt, test.txt"
OLD_FOLDS = "Fold1 to Fold5, each with trainingset.txt, validationset.txt, testset.txt"
LETOR_3 = "LETOR 3.0 (or 2.0) of Microsoft Research, for research only"
LETOR_4 = "LETOR 4.0 of Microsoft Research, for research only"
MSLR = "MSLR of Microsoft Research, for research only"


@dataclass(frozen=True)
class Source:
    """A data set.

    name     as papers call it
    folders  where it may lie in the folder of data
    layout   what is in its folder
    origin   who gives it
    stands   folders of other data that are used in its stead; entries say so
    holds    one of these must be there, or the folder is of something else
    """

    name: str
    folders: tuple[str, ...]
    layout: str
    origin: str
    stands: tuple[str, ...] = ()
    holds: tuple[str, ...] = ("Fold1",)

    def find(self, base: Path | None) -> Path | None:
        """Its folder, or that of what stands for it."""
        return self.own(base) or self._first(base, self.stands)

    def own(self, base: Path | None) -> Path | None:
        return self._first(base, self.folders)

    def _first(self, base: Path | None, names: tuple[str, ...]) -> Path | None:
        if base is None:
            return None
        return next(
            (base / n for n in names if any((base / n / part).exists() for part in self.holds)),
            None,
        )


SOURCES: Mapping[str, Source] = {
    "ohsumed": Source(
        "OHSUMED",
        ("ohsumed", "OHSUMED", "OHSUMED/Data", "OHSUMED/QueryLevelNorm"),
        FOLDS,
        LETOR_3,
    ),
    "td2003": Source(
        "TD2003", ("td2003", "TD2003", "TD2003/Data", "Gov/QueryLevelNorm/2003_td_dataset"),
        OLD_FOLDS, LETOR_3,
    ),
    "td2004": Source(
        "TD2004", ("td2004", "TD2004", "TD2004/Data", "Gov/QueryLevelNorm/2004_td_dataset"),
        OLD_FOLDS, LETOR_3,
    ),
    "mq2007": Source("MQ2007", ("mq2007", "MQ2007"), FOLDS, LETOR_4, ("mq2008", "MQ2008")),
    "mq2008": Source("MQ2008", ("mq2008", "MQ2008"), FOLDS, LETOR_4),
    "mq2007-list": Source("MQ2007-list", ("mq2007-list", "MQ2007-list"), FOLDS, LETOR_4),
    "mq2008-list": Source("MQ2008-list", ("mq2008-list", "MQ2008-list"), FOLDS, LETOR_4),
    # A sample of MSLR (train.txt and test.txt) stands for both, a half each.
    "web10k": Source(
        "MSLR-WEB10K", ("MSLR-WEB10K", "mslr-web10k"), FOLDS, MSLR, ("mslr-web10k-5k",),
        ("Fold1", "train.txt"),
    ),
    "web30k": Source(
        "MSLR-WEB30K", ("MSLR-WEB30K", "mslr-web30k"), FOLDS, MSLR, ("mslr-web10k-5k",),
        ("Fold1", "train.txt"),
    ),
    "votes": Source(
        "UKPConvArg1", ("ukpconvarg1", "UKPConvArg1"),
        "votes.csv (topic, arg1, arg2, vote, worker, accept_time, submit_time, ..), texts.csv",
        "UKP Lab, Technische Universität Darmstadt, CC BY 4.0", holds=("votes.csv",),
    ),
}  # fmt: skip


def data_folder(given: Path | None) -> Path | None:
    """--data, else $FIRSTPAGE_DATA, else none."""
    if given is not None:
        return given
    named = os.environ.get("FIRSTPAGE_DATA")
    return Path(named).expanduser() if named else None


def missing(needs: list[str], base: Path | None) -> str:
    """What is not there and how to give it; empty if nothing is missing."""
    lost = [SOURCES[name] for name in needs if SOURCES[name].find(base) is None]
    if not lost:
        return ""
    names = ", ".join(
        f"{s.folders[0]} (or {s.stands[0]})" if s.stands else s.folders[0] for s in lost
    )
    where = "a folder given by --data or FIRSTPAGE_DATA" if base is None else str(base)
    return f"needs {names} in {where}"


def inventory(base: Path | None) -> list[dict[str, str]]:
    """Every data set: whether it is there, what stands for it, and how to lay it out."""
    found = []
    for source in SOURCES.values():
        own, other = source.own(base), source.find(base)
        state = "there" if own else f"{other.name} stands for it" if other else "missing"
        found.append(
            {"data": source.name, "state": state, "folder": f"DIR/{source.folders[0]}",
             "layout": source.layout, "origin": source.origin}
        )  # fmt: skip
    return found


def fingerprint(folder: Path) -> str:
    """Of the names and contents of a folder's files."""
    told = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        told.update(str(path.relative_to(folder)).encode() + b"\0")
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                told.update(block)
    return told.hexdigest()[:16]


STUDIES = {
    "xia2009": ("firstpage.papers.xia2009.study", "XIA2009"),
    "niu2012": ("firstpage.papers.niu2012.study", "NIU2012"),
    "lan2013": ("firstpage.papers.lan2013.study", "LAN2013"),
    "zhou2013": ("firstpage.papers.zhou2013.study", "ZHOU2013"),
    "cheng2014": ("firstpage.papers.cheng2014.study", "CHENG2014"),
}


def study(name: str) -> Study:
    """The study of a paper; its modules are loaded only now."""
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
