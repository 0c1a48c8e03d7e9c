"""The studies, the data sets that they need, and which of these are available."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from firstpage.core import lookup
from firstpage.papers.study.study import PaperEntry, PaperStudy
from firstpage.papers.tables import tables_beside


@dataclass(frozen=True)
class DatasetSource:
    """A data set, where its files are expected and who publishes it.

    Attributes
    ----------
    name : str
        Name in the papers.
    folders : tuple of str
        Possible folders in the folder with the data sets.
    layout : str
        Files of the folder.
    origin : str
        Publisher and license.
    substitutes : tuple of str
        Folders of other data that are used where this data set is missing; entries say so.
    required_files : tuple of str
        One of these must exist, or the folder is not that of the data set.
    """

    name: str
    folders: tuple[str, ...]
    layout: str
    origin: str
    substitutes: tuple[str, ...] = ()
    required_files: tuple[str, ...] = ("Fold1",)

    def find(self, base: Path | None) -> Path | None:
        """Return the folder of the data set, or that of a substitute."""
        return self.find_original(base) or self._first_existing(base, self.substitutes)

    def find_original(self, base: Path | None) -> Path | None:
        """Return the folder of the data set itself."""
        return self._first_existing(base, self.folders)

    def _first_existing(self, base: Path | None, names: tuple[str, ...]) -> Path | None:
        if base is None:
            return None
        for name in names:
            if any((base / name / file).exists() for file in self.required_files):
                return base / name
        return None


def _source(row: dict[str, Any]) -> DatasetSource:
    lists = {name: tuple(value) for name, value in row.items() if isinstance(value, list)}
    return DatasetSource(**{**row, **lists})


DATASETS = {name: _source(row) for name, row in tables_beside(__file__).items()}


def data_folder(path: str | Path | None) -> Path | None:
    """Return the folder with the data sets: `path`, or else $FIRSTPAGE_DATA, or else None."""
    if path is not None:
        return Path(path)
    from_environment = os.environ.get("FIRSTPAGE_DATA")
    return Path(from_environment).expanduser() if from_environment else None


def missing_data(datasets: Sequence[str], base: Path | None) -> str:
    """Return which data sets are missing and where to put them; empty if none is."""
    missing = [DATASETS[name] for name in datasets if DATASETS[name].find(base) is None]
    if not missing:
        return ""
    names = ", ".join(
        f"{s.folders[0]} (or {s.substitutes[0]})" if s.substitutes else s.folders[0]
        for s in missing
    )
    folder = "a folder given by --data or FIRSTPAGE_DATA" if base is None else str(base)
    return f"needs {names} in {folder}"


def dataset_records(base: Path | None) -> list[dict[str, str]]:
    """Return name, status, folder, layout and source of every data set, for JSON."""
    records = []
    for source in DATASETS.values():
        original, folder = source.find_original(base), source.find(base)
        status = (
            "available" if original else f"substituted by {folder.name}" if folder else "missing"
        )
        records.append(
            {
                "name": source.name,
                "status": status,
                "folder": f"DIR/{source.folders[0]}",
                "layout": source.layout,
                "source": source.origin,
            }
        )
    return records


def folder_digest(folder: Path) -> str:
    """Return a digest of the names and contents of all files of a folder."""
    sha256 = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        sha256.update(str(path.relative_to(folder)).encode() + b"\0")
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                sha256.update(block)
    return sha256.hexdigest()[:16]


STUDIES = {
    "xia2009": ("firstpage.papers.xia2009.study", "XIA2009"),
    "niu2012": ("firstpage.papers.niu2012.study", "NIU2012"),
    "lan2013": ("firstpage.papers.lan2013.study", "LAN2013"),
    "zhou2013": ("firstpage.papers.zhou2013.study", "ZHOU2013"),
    "cheng2014": ("firstpage.papers.cheng2014.study", "CHENG2014"),
}


def load_study(name: str) -> PaperStudy:
    """Return the study of a paper; its modules are imported on the first call."""
    module, constant = lookup(name, STUDIES, "study")
    study: PaperStudy = getattr(import_module(module), constant)
    return study


def select_entries(targets: Sequence[str]) -> list[tuple[PaperStudy, list[PaperEntry]]]:
    """Return studies with the selected entries.

    Targets are names such as "zhou2013" (all its entries), "zhou2013/figure2" or "all".
    """
    if "all" in targets:
        targets = list(STUDIES)
    selected: dict[str, list[str]] = {}
    for target in targets:
        paper, _, entry = target.partition("/")
        selected.setdefault(load_study(paper).name, []).append(entry)
    return [
        (load_study(paper), _entries(load_study(paper), entries))
        for paper, entries in selected.items()
    ]


def _entries(study: PaperStudy, names: Sequence[str]) -> list[PaperEntry]:
    """Return the entries of these names, without repetition; an empty name stands for all."""
    if "" in names:
        return list(study.entries.values())
    entries = [lookup(_full_name(name), study.entries, f"entry of {study.name}") for name in names]
    return list({entry.name: entry for entry in entries}.values())


def _full_name(name: str) -> str:
    """Return "figure7" for "fig. 7", and "table1" for "Tab 1"."""
    compact = name.casefold().replace(".", "").replace(" ", "")
    for abbreviation, word in (("fig", "figure"), ("tab", "table")):
        if compact.startswith(abbreviation) and compact[3:].isdigit():
            return word + compact[3:]
    return name


def list_entries(base: Path | None) -> list[tuple[str, str, str]]:
    """Return name, title and missing data of every entry."""
    return [
        (f"{name}/{entry.name}", entry.title, missing_data(entry.datasets, base))
        for name in STUDIES
        for entry in load_study(name).entries.values()
    ]
