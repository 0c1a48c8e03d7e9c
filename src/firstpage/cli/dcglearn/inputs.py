"""Input files that several commands of `dcglearn` share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from firstpage.cli import options, shared
from firstpage.errors import DataError

if TYPE_CHECKING:
    from firstpage.data.preferences.files import PreferenceFiles
    from firstpage.data.preferences.preferences import Preferences
    from firstpage.dcglearn.learn import DCGLearn

ranking_options = options.combine(
    click.option(
        "--qrels", type=options.FILE,
        help="Judgments (TREC qrels or truth.jsonl), if `left` and `right` name documents or runs.",
    ),
    click.option(
        "--run", "runs", multiple=True, type=options.FILE,
        help="Run, which preferences name by its file name without suffix; may be repeated.",
    ),
    click.option(
        "--grades", metavar="G,G", show_default="those that occur",
        help="All grades, the worst first, as in 0,1,2,3.",
    ),
)  # fmt: skip


def read(
    path: Path, qrels: Path | None, runs: tuple[Path, ...], grades: str | None, pool: bool = False
) -> Preferences:
    """Read preferences or a pool; documents are looked up in the judgments, if there are any."""
    from firstpage.data.formats.trec import read_run
    from firstpage.data.preferences.files import read_preferences

    runs_by_name = {_run_name(run): read_run(run) for run in runs}
    if len(runs_by_name) < len(runs):
        raise DataError("two runs have the same name; rename one file.")
    return read_preferences(
        path, qrels=shared.read_qrels_option(qrels), runs=runs_by_name, pool=pool,
        grades=None if grades is None else _parse_grades(grades),
    )  # fmt: skip


def read_folder(
    path: Path, qrels: Path | None, runs: tuple[Path, ...], grades: str | None, learner: DCGLearn
) -> tuple[PreferenceFiles, DCGLearn]:
    """Return the files of a folder, read one by one later, and the learner with --grades set."""
    from firstpage.data.preferences.files import PreferenceFiles

    if qrels is not None or runs:
        raise click.UsageError(
            "the files of a folder must have grades in their rows; leave out --qrels and --run."
        )
    parsed = None if grades is None else _parse_grades(grades)
    return PreferenceFiles.from_paths(path), learner.with_params(grades=parsed)


def _run_name(path: Path) -> str:
    """Return the file name of a run without the suffixes of format and compression."""
    from firstpage.data.io.files import suffix_of

    return (Path(path.stem) if suffix_of(path)[1] else path).stem


def _parse_grades(text: str) -> list[int]:
    try:
        return [int(grade) for grade in text.replace(" ", "").split(",")]
    except ValueError:
        raise DataError(f"--grades must be integers such as 0,1,2,3; got {text!r}.") from None
