"""Tiny data sets in the layouts of LETOR, for tests of studies."""

from __future__ import annotations

from pathlib import Path

from firstpage.data.folds import write_folds
from firstpage.data.synthetic import Synthetic

OLD = {"train": "trainingset", "vali": "validationset", "test": "testset"}


def write_letor_folds(folder: Path, grades: int = 3, old: bool = False, queries: int = 25) -> Path:
    """Write five folds; with `old`, under the file names of LETOR 2 and 3."""
    generator = Synthetic(queries=queries, docs=15, features=6, grades=grades, relevant=0.4, seed=3)
    write_folds(generator.dataset(), folder)
    for path in sorted(folder.glob("Fold*/*.txt")) if old else ():
        path.rename(path.with_name(f"{OLD[path.stem]}.txt"))
    return folder
