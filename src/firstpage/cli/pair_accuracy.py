"""`firstpage evaluate --pairs`: how often rankings agree with votes on pairs of documents."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from firstpage.cli import options, outputs, shared
from firstpage.cli.systems import RankingFiles
from firstpage.core import NOTATIONS, Table
from firstpage.data.formats import read_run
from firstpage.data.preferences import read_pairs
from firstpage.evaluation import (
    measures,  # the face: only votes load what is behind it
)
from firstpage.interop.report import page
from firstpage.learning import (
    models as model_files,
)  # the face: only a model loads what is behind it

if TYPE_CHECKING:
    from firstpage.evaluation.measures import PairAccuracyResult

OF_LABELS = (
    "qrels", "measures", "convention", "k", "ties", "rel", "queries", "depth", "engine",
    "duplicates", "fail_under", "baseline", "fail_if_worse", "fail_if_unsure", "save_baseline",
    "summary", "junit", "query_table", "by", "weight", "condensed", "bounds",
)  # fmt: skip
pairs_option = click.option(
    "--pairs",
    type=options.FILE,
    help="Votes on pairs of documents (CSV, JSON lines, Parquet) to measure instead of labels.",
)


def report_pairs(
    pairs: Path,
    rankings: RankingFiles,
    pad: bool,
    ci: bool,
    seed: int,
    kind: str,
    per_query: Path | None,
    output: Path | None,
) -> None:
    """Measure rankings on votes, and write the report of `firstpage evaluate`."""
    options.only_with("labels, not --pairs", False, *OF_LABELS)
    data, scores, runs = rankings.data, rankings.scores, rankings.runs
    if (data is None) != bool(runs):
        raise click.UsageError(
            "with --pairs, give DATA with --scores or --model, or --run without DATA."
        )
    if options.on_command_line("seed") and not (ci or kind == "html"):
        shared.note("--seed has no effect: nothing is random without --ci.")
    votes = read_pairs(pairs)
    models = [model_files.read_model(path) for path in rankings.models]
    systems: list[Any] = [read_run(path) for path in runs]
    documents = None
    if data is not None:
        known = shared.options_of_models(data, *models)
        documents = shared.read_data(data, labeled=False, **known)
        systems = [shared.read_scores_of(documents, path) for path in scores]
        systems += [each.predict(documents, pad=pad) for each in models]
    results = [
        measures.pair_accuracy(
            system, votes, documents, ci=ci or kind == "html", seed=seed, name=name
        )
        for name, system in rankings.named(systems).items()
    ]
    _write_per_query(results, per_query)
    outputs.write_text(_render(results, kind, pairs.name), output)


def _render(results: Sequence[PairAccuracyResult], kind: str, source: str) -> str:
    """Return the report in one of the formats of `firstpage evaluate`."""
    if kind == "json":
        rows = [{"system": result.name, **result.to_dict()} for result in results]
        return json.dumps(rows if len(rows) > 1 else results[0].to_dict(), indent=2)
    exact = kind == "csv"  # one number per cell, with all digits
    head = ["system", measures.NAME, "votes", "queries"]
    cells = [
        [
            r.name,
            repr(r.value) if exact else f"{r.value:.4f}",
            f"{r.weights.sum():.15g}",
            str(len(r.queries)),
        ]
        for r in results
    ]
    intervals = [result.interval for result in results]
    if all(intervals):
        head[2:2] = ["low", "high"] if exact else ["95 % interval"]
        for row, (low, high) in zip(cells, intervals, strict=True):  # type: ignore[misc]
            row[2:2] = [repr(low), repr(high)] if exact else [f"[{low:.4f}, {high:.4f}]"]
    table = Table(head, cells)
    if kind == "html":
        title = f"Evaluation of {source}"
        return page(
            title, "How often rankings agree with votes.", [(measures.NAME, [table.html()])]
        )
    return NOTATIONS[kind](table)


def _write_per_query(results: Sequence[PairAccuracyResult], path: Path | None) -> None:
    """Write the accuracy and the votes of each query, if a file is named for them."""
    if path is None:
        return

    rows = [
        {"system": result.name, "query": str(query), measures.NAME: value, "votes": weight}
        for result in results
        for query, value, weight in zip(
            result.queries, result.values.tolist(), result.weights.tolist(), strict=True
        )
    ]
    kind = outputs.format_by_suffix(path, outputs.PER_QUERY, "--per-query")
    if kind == "json":
        outputs.write_text(json.dumps(rows, indent=1), path)
        return
    table = Table(list(rows[0]), [[str(cell) for cell in row.values()] for row in rows])
    outputs.write_text(table.csv("\t" if kind == "tsv" else ","), path)
