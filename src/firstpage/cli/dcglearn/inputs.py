"""Input files that several commands of `dcglearn` share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from firstpage.cli import options, shared
from firstpage.core import DataError
from firstpage.data.formats import read_run
from firstpage.data.io import suffix_of
from firstpage.data.preferences import Preferences, read_preferences

ranking_options = options.combine(
    click.option(
        "--qrels",
        type=options.FILE,
        help="Judgments (TREC qrels or truth.jsonl), if `left` and `right` name documents or runs.",
    ),
    click.option(
        "--run",
        "runs",
        multiple=True,
        type=options.FILE,
        help="Run, which preferences name by its file name without suffix; may be repeated.",
    ),
    click.option(
        "--grades",
        metavar="G,G",
        show_default="those that occur",
        help="All grades, the worst first, as in 0,1,2,3.",
    ),
)


def read(
    path: Path,
    qrels: Path | None,
    runs: tuple[Path, ...],
    grades: Sequence[int] | None,
    pool: bool = False,
) -> Preferences:
    """Read preferences or a pool; documents are looked up in the judgments, if there are any."""
    runs_by_name = {_run_name(run): read_run(run) for run in runs}
    if len(runs_by_name) < len(runs):
        raise DataError("two runs have the same name; rename one file.")
    return read_preferences(
        path, qrels=shared.read_qrels_option(qrels), runs=runs_by_name, grades=grades, pool=pool
    )


def _run_name(path: Path) -> str:
    """Return the file name of a run without the suffixes of format and compression."""
    return (Path(path.stem) if suffix_of(path)[1] else path).stem


def parse_grades(text: str | None) -> list[int] | None:
    """Return the grades of --grades; None where it is not given."""
    if text is None:
        return None
    try:
        return [int(grade) for grade in text.replace(" ", "").split(",")]
    except ValueError:
        raise DataError(f"--grades must be integers such as 0,1,2,3; got {text!r}.") from None
