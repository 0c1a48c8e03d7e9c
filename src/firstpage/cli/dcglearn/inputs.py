"""What several verbs of `dcglearn` read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from firstpage.cli import options
from firstpage.errors import DataError

if TYPE_CHECKING:
    from firstpage.data.preferences.files import PreferenceFiles
    from firstpage.data.preferences.preferences import Preferences
    from firstpage.dcglearn.learn import DCGLearn

rankings = options.together(
    click.option(
        "--qrels", type=options.FILE, help="Judgments: `left` and `right` are documents, or runs."
    ),
    click.option(
        "--run", "runs", multiple=True, type=options.FILE,
        help="Rankings by name (of the file, without suffix); may be repeated.",
    ),
    click.option("--grades", metavar="G,G,..", help="All grades, the worst first: 0,1,2,3."),
)  # fmt: skip


def read(
    path: Path, qrels: Path | None, runs: tuple[Path, ...], grades: str | None, pool: bool = False
) -> Preferences:
    """Preferences or a pool, with documents looked up where judgments are given."""
    from firstpage.data.formats.trec import read_qrels, read_run
    from firstpage.data.preferences.files import read_preferences

    named = {run.stem: read_run(run) for run in runs}
    if len(named) < len(runs):
        raise DataError("two runs have the same name; rename one file.")
    return read_preferences(
        path, qrels=None if qrels is None else read_qrels(qrels), runs=named, pool=pool,
        grades=None if grades is None else _numbers(grades),
    )  # fmt: skip


def folder(
    path: Path, qrels: Path | None, runs: tuple[Path, ...], grades: str | None, learner: DCGLearn
) -> tuple[PreferenceFiles, DCGLearn]:
    """Files that stay where they are, and the learner with the grades that are named."""
    from firstpage.data.preferences.files import PreferenceFiles

    if qrels is not None or runs:
        raise click.UsageError("files of a folder have grades in their rows; leave --qrels out.")
    named = None if grades is None else _numbers(grades)
    return PreferenceFiles.from_paths(path), learner.with_params(grades=named)


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.replace(" ", "").split(",")]
    except ValueError:
        raise DataError(f"--grades are whole numbers such as 0,1,2,3; got {text!r}.") from None
