"""`firstpage hybrid`: fuse the runs of first stages as a search engine does."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from firstpage.cli import options, outputs, shared
from firstpage.cli.help import documented_command
from firstpage.core import DataError
from firstpage.data import Run
from firstpage.data.formats import read_run, write_run
from firstpage.data.io import read_all
from firstpage.evaluation.aggregation import StageFusion, TunedFusion, tune_fusion
from firstpage.evaluation.measures import measure, unique_names
from firstpage.evaluation.planning import UnjudgedEffect, check_pool, unjudged_effect
from firstpage.interop.export import FUSION_ENGINES, export_fusion, exportable_fusions
from firstpage.interop.report import hybrid_json, hybrid_page, hybrid_text

MAX_DEPTH = 1_000  # documents of a stage that an exported request asks for


@documented_command(
    "hybrid",
    "firstpage hybrid bm25.run ours.run --qrels test.qrels -o hybrid.run",
    "firstpage hybrid bm25.run ours.run --qrels test.qrels --html hybrid.html \\\n"
    "  --to-label undecided.run",
    "firstpage hybrid bm25.run ours.run --qrels test.qrels \\\n  --export opensearch pipeline.json",
    "firstpage hybrid bm25.run ours.run --qrels test.qrels --save fusion.json",
    "firstpage hybrid bm25.run ours.run --fusion fusion.json -o hybrid.run",
)
@click.argument("runs", nargs=-1, required=True, metavar="RUNS", type=options.FILE)
@click.option("--qrels", type=options.FILE, help="Judgments by which the fusion is chosen.")
@click.option("--fusion", type=options.FILE, help="Fuse by this file of --save, without judgments.")
@options.measure("Measure by which the fusion is chosen.", "measure_", default="NDCG@10")
@options.integer("--folds", default=5, minimum=2, help="Folds of the cross-validation.")
@options.seed
@click.option(
    "--export",
    "exports",
    multiple=True,
    nargs=2,
    type=(click.Choice(list(FUSION_ENGINES)), outputs.OutputFile("json", "vespa")),
    metavar="ENGINE FILE",
    help=f"Write the fusion for an engine: {', '.join(FUSION_ENGINES)}. Then only those fusions "
    "are tried that it can express. May be repeated.",
)
@click.option(
    "--to-label",
    type=outputs.OutputFile("run"),
    help="Write the few unjudged documents that could change the verdict as a run, for "
    "`firstpage label setup --run`.",
)
@options.integer(
    "--limit",
    default=50,
    help="With --to-label: at most so many documents, those with the largest effects.",
)
@click.option("--save", type=outputs.OutputFile("json"), help="Write the fusion to this file.")
@options.html("Write the report as a page to this file.")
@options.output("run", help="Write the fused run of all queries to this file.")
@options.tag("the method or the normalization")
@options.as_json
def command(
    runs: tuple[Path, ...],
    qrels: Path | None,
    fusion: Path | None,
    measure_: str,
    folds: int,
    seed: int,
    exports: tuple[tuple[str, Path], ...],
    to_label: Path | None,
    limit: int,
    save: Path | None,
    html: Path | None,
    output: Path | None,
    tag: str | None,
    as_json: bool,
) -> None:
    """Fuse the runs of first stages as a search engine does.

    The RUNS are the results of BM25, of a vector search and so on, that of words first.  Method and
    weights are chosen on --qrels by nested cross-validation, and compared with equal weights and
    with each stage alone.
    """
    if len(runs) < 2:
        raise click.UsageError("give at least two runs, one per stage.")
    if (qrels is None) == (fusion is None):
        raise click.UsageError("give --qrels, to choose a fusion, or the --fusion to use.")
    tuning = ("measure_", "folds", "seed", "to_label", "save", "html", "as_json")
    options.only_with("--qrels", qrels is not None, *tuning)
    options.only_with("--to-label", to_label is not None, "limit")
    measure(measure_)
    _check_exports(exports)
    stages = [read_run(file) for file in runs]
    names = unique_names([run.name for run in stages], runs)
    report = None
    if qrels is not None:
        judgments, fusions = shared.read_qrels_option(qrels), _fusions(names, exports)
        tuned = tune_fusion(stages, judgments, measure_, folds, seed, stages=names, fusions=fusions)
        chosen = tuned.fusion
        report = _report(tuned, stages, judgments, qrels.name, html, as_json)
    else:
        assert fusion is not None
        chosen = replace(_read_fusion(fusion, len(stages)), stages=tuple(names))
        if output is None and not exports:
            raise click.UsageError("--fusion requires -o or --export.")
    _write(chosen, stages, output, tag, exports, save)
    if report is not None:
        text, effect = report
        if to_label is not None:
            _write_undecided(effect, to_label, limit)
        print(text)


def _check_exports(exports: Sequence[tuple[str, Path]]) -> None:
    """Refuse two exports to one file, or a file of another format, before any work is done."""
    for engine, path in exports:
        kind = "vespa" if engine == "vespa" else "json"
        outputs.check_suffix(path, (kind,), f"--export {engine}")
    files = [path for _, path in exports]
    repeated = [path for path in files if files.count(path) > 1]
    if repeated:
        raise click.UsageError(f"--export writes {repeated[0]} twice; name two files.")


def _fusions(names: Sequence[str], exports: Sequence[tuple[str, Path]]) -> list[StageFusion]:
    """Return the fusions to try: those that the engines of --export can express."""
    engines = list(dict.fromkeys(engine for engine, _ in exports))
    fusions = exportable_fusions(names, engines)
    if engines:
        programs = " and ".join(FUSION_ENGINES[engine].program for engine in engines)
        shared.note(f"trying the {len(fusions)} fusions that {programs} can express.")
    return fusions


def _report(
    tuned: TunedFusion,
    stages: Sequence[Run],
    judgments: Any,
    source: str,
    html: Path | None,
    as_json: bool,
) -> tuple[str, UnjudgedEffect]:
    """Return the report, and what unjudged documents could change; write the page."""
    best = int(tuned.stage_values.mean(axis=1).argmax())
    name = tuned.fusion.stages[best]
    fused = tuned.held_out_run(stages)
    effect = unjudged_effect(fused, stages[best], judgments, tuned.measure, tuned.seed)
    if not as_json and html is None:
        return hybrid_text(tuned, name, effect), effect
    systems = {"fusion": fused, **dict(zip(tuned.fusion.stages, stages, strict=True))}
    pool = check_pool(systems, judgments, measures=tuned.measure, depth=effect.depth)
    if html is not None:
        outputs.write_text(hybrid_page(tuned, name, effect, pool, source), html)
    if as_json:
        return hybrid_json(tuned, name, effect, pool), effect
    return hybrid_text(tuned, name, effect), effect


def _write_undecided(effect: UnjudgedEffect, path: Path, limit: int) -> None:
    """Write the documents to judge with the largest effects as a run, if there are any."""
    run = effect.to_judge
    if not len(run.docids):
        shared.note(f"{path} is not written: no judgment changes the verdict.")
        return
    if len(run.docids) > limit:
        shared.note(f"{path}: the {limit} documents of {len(run.docids)} with the largest effects.")
        first = np.zeros(len(run.values), bool)
        first[np.argsort(-run.values, kind="stable")[:limit]] = True
        run = run.select_rows(first)
        run = run.select_queries(np.flatnonzero(np.diff(run.offsets)))
    write_run(run, path)
    print(f"wrote {path}", file=sys.stderr)


def _write(
    fusion: StageFusion,
    stages: Sequence[Run],
    output: Path | None,
    tag: str | None,
    exports: Sequence[tuple[str, Path]],
    save: Path | None,
) -> None:
    """Write the fused run, the fusion for engines, and the fusion itself."""
    longest = max(int((run.offsets[1:] - run.offsets[:-1]).max(initial=1)) for run in stages)
    texts = [
        (path, export_fusion(fusion, engine, min(longest, MAX_DEPTH))) for engine, path in exports
    ]
    if output is not None:
        write_run(fusion.fuse_runs(stages, tag or ""), output)
        print(f"wrote {output}", file=sys.stderr)
    if save is not None:
        texts.append((save, json.dumps(fusion.to_dict(), indent=2)))
    for path, text in texts:
        outputs.write_text(text, path)


def _read_fusion(path: Path, stages: int) -> StageFusion:
    """Return the fusion of a file of --save or of a report of --json."""
    content = read_all(path)
    try:
        record: Any = json.loads(content)
    except ValueError as error:
        raise DataError(f"{path}: is not JSON ({error}).") from None
    record = record.get("fusion", record) if isinstance(record, dict) else None
    if not isinstance(record, dict):
        raise DataError(f"{path}: is not a fusion; write one with `firstpage hybrid --save`.")
    try:
        fusion = StageFusion.from_dict(record)
    except TypeError as error:
        raise DataError(f"{path}: is not a fusion ({error}).") from None
    if len(fusion.stages) != stages:
        raise DataError(
            f"{path}: is a fusion of {len(fusion.stages)} stages, {', '.join(fusion.stages)}; "
            f"there are {stages} runs."
        )
    return fusion
