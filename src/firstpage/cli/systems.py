"""The rankings that commands measure: runs, scores and models, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import click

from firstpage.cli import options, shared
from firstpage.data.formats import QueryTable, format_of, read_qrels, read_run
from firstpage.evaluation.measures import Convention, Measure, expand_patterns, unique_names

STANDARD_INPUT = Path("-")
TRUTH_ONCE = "with --run, give the ground truth once: a data file, or --qrels."


@dataclass(frozen=True)
class RankingFiles:
    """The files of a command line: the ground truth, and the rankings to measure.

    Attributes
    ----------
    data, qrels : Path or None
        Labeled data, and judgments.
    runs, scores, models : list of Path
        The rankings of each kind.
    """

    data: Path | None
    qrels: Path | None
    runs: list[Path]
    scores: list[Path]
    models: list[Path]

    @classmethod
    def from_command_line(
        cls,
        files: Sequence[Path],
        qrels: Path | None,
        runs: Sequence[Path],
        scores: Sequence[Path] = (),
        models: Sequence[Path] = (),
    ) -> RankingFiles:
        """Return what the arguments mean: with --qrels all are runs, else the first is the truth.

        With --scores or --model, the only argument is the data file.
        """
        data, positional = None, list(files)
        if scores or models:
            data = positional[0] if positional else None
            if len(positional) > 1 or runs:
                raise click.UsageError(
                    "give at least one ranking: --scores and --model, or --run without the other "
                    "two; with --scores and --model, the only argument is the data file."
                )
            positional = []
        elif qrels is not None:
            if runs and positional:
                raise click.UsageError(TRUTH_ONCE)
        elif positional:
            data, *positional = positional
            if data is not None and (data == STANDARD_INPUT or _has_judgments(data)):
                data, qrels = None, data
        all_runs = expand_patterns([*positional, *runs])
        if [qrels, *all_runs].count(STANDARD_INPUT) > 1:
            raise click.UsageError("standard input (-) can be read once only.")
        return cls(data, qrels, all_runs, list(scores), list(models))

    @property
    def count(self) -> int:
        """The number of rankings."""
        return len(self.runs) + len(self.scores) + len(self.models)

    @property
    def source(self) -> str:
        """The name of the ground truth, for titles."""
        return (self.data or self.qrels or Path()).name

    def read_truth(self, measures: Sequence[Measure] = ()) -> Any:
        """Read the ground truth that the measures need; for runs, as judgments."""
        if self.qrels == STANDARD_INPUT:
            return read_qrels(STANDARD_INPUT)
        truth: Any = shared.read_truth(
            self.data, self.qrels, bool(self.runs), bool(self.scores), measures, self.models
        )
        return shared.as_qrels(truth) if self.runs else truth

    def read_systems(
        self, truth: Any, duplicates: str, read_model: Callable[[Path], Any] | None = None
    ) -> dict[str, Any]:
        """Read the rankings by name: a run by its tag, where it has its own, else by its file."""
        files = [*self.scores, *self.runs, *self.models]
        readers: list[Any] = [partial(shared.read_scores_of, truth)] * len(self.scores)
        readers += [partial(read_run, duplicates=cast("Any", duplicates))] * len(self.runs)
        readers += [read_model] * len(self.models)
        return self.named([read(file) for read, file in zip(readers, files, strict=True)])

    def named(self, systems: Sequence[Any]) -> dict[str, Any]:
        """Return the rankings by name, given in the order scores, runs, models."""
        files = [*self.scores, *self.runs, *self.models]
        runs = range(len(self.scores), len(self.scores) + len(self.runs))
        tags = [system.name if n in runs else "" for n, system in enumerate(systems)]
        return dict(zip(unique_names(tags, files), systems, strict=True))

    def read(self, path: Path, truth: Any, duplicates: str) -> Any:
        """Read another ranking of the same kind: a run, or scores."""
        if not self.runs:
            return shared.read_scores_of(truth, path)
        return read_run(path, duplicates=cast("Any", duplicates))

    def baseline_name(self, text: str | None, systems: dict[str, Any]) -> str | None:
        """Return the name of the system that --baseline means: its name, tag, file or stem."""
        if text is None or text in systems:
            return text
        files = [*self.scores, *self.runs, *self.models]
        matches = [
            name
            for name, file in zip(systems, files, strict=True)
            if text in (str(file), file.name, file.stem, getattr(systems[name], "name", None))
        ]
        if len(matches) > 1:
            raise click.UsageError(
                f"--baseline {text} may be {' or '.join(matches)}; give the full name."
            )
        return matches[0] if matches else text


def _has_judgments(path: Path) -> bool:
    """Return whether the first argument is a file of judgments, not of labeled data."""
    return path.is_file() and format_of(path) in ("qrels", "truth")


ranking_options = options.combine(
    click.option(
        "--qrels",
        type=options.FILE,
        help="Judgments (TREC qrels or truth.jsonl), instead of DATA or of its labels.",
    ),
    click.option(
        "--scores",
        type=options.FILE,
        multiple=True,
        help="Scores of DATA, one per line in the order of DATA; may be repeated.",
    ),
    click.option(
        "--run",
        "runs",
        type=options.FILE,
        multiple=True,
        help="Run in TREC format, or a pattern such as 'runs/*.run'; may be repeated.",
    ),
)
ranking_arguments = options.combine(
    click.argument("files", nargs=-1, type=options.FILE, metavar="[DATA] [RUNS]"), ranking_options
)
duplicates_option = click.option(
    "--duplicates",
    type=click.Choice(["refuse", "first", "best"]),
    default="refuse",
    help="A document that a run lists twice for a query: an error, or the first line or the best "
    "score counts.",
)
query_options = options.combine(
    click.option(
        "--query-table",
        type=options.FILE,
        help="Table with a row per query (CSV, JSON lines, Parquet), for --by and --weight.",
    ),
    click.option(
        "--by",
        metavar="COLUMN",
        help="Add segments of the queries: a column of --query-table, cut points as in "
        "'traffic(10, 100)', or 'traffic(head)' for head, torso and tail.",
    ),
    click.option(
        "--weight",
        metavar="COLUMN",
        help="Weight the queries by a column of --query-table, such as their traffic.",
    ),
    click.option(
        "--condensed",
        is_flag=True,
        default=None,
        help="Remove unjudged documents from runs first, as trec_eval -J.",
    ),
    click.option(
        "--bounds",
        is_flag=True,
        help="Add the means without unjudged documents, and with these as relevant ones.",
    ),
)


def read_query_table(settings: dict[str, Any]) -> dict[str, Any]:
    """Take the options about queries out of the settings; return the arguments of `evaluate`."""
    path, by, weight = (settings.pop(name) for name in ("query_table", "by", "weight"))
    if path is None and (by or weight):
        option, column = ("--by", by) if by else ("--weight", weight)
        raise click.UsageError(
            f"{option} {column} names a column: give its table with --query-table FILE."
        )
    if path is not None and not (by or weight):
        raise click.UsageError("--query-table needs --by COLUMN or --weight COLUMN.")
    table = None if path is None else QueryTable.read(path)
    return {"query_table": table, "by": by, "weights": weight}


def read_convention(settings: dict[str, Any]) -> Convention:
    """Take --convention, and the options that replace its settings, out of the settings."""
    names = ("ties", "rel", "queries", "without_relevant", "depth", "condensed", "seed")
    replaced = {name: settings.pop(name) for name in names if name in settings}
    return Convention(settings.pop("convention"), **replaced)
