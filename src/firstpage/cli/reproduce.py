"""`firstpage reproduce`: recompute tables and figures of papers, and check each claim."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import click

from firstpage.cli import options, outputs, shared
from firstpage.cli.help import documented_command
from firstpage.core import DataError, Table
from firstpage.papers import (
    Protocol,
    Reproduction,
    cell_table,
    data_folder,
    dataset_records,
    list_entries,
    merge_reproductions,
    page,
    reproduce,
)

OF_RUNS = ("jobs", "seeds", "protocol", "fast", "recompute", "seed", "html")


@documented_command(
    "reproduce",
    "firstpage reproduce --list",
    "firstpage reproduce zhou2013/figure7 --fast -o figure7.html",
)
@click.argument("targets", nargs=-1, metavar="[PAPERS]")
@click.option(
    "--list", "listing", is_flag=True, help="List all entries, and the data that they need."
)
@click.option(
    "--data", type=options.FOLDER, show_default="$FIRSTPAGE_DATA", help="Folder with the data sets."
)
@options.integer("--jobs", show_default="all cores", help="Processes to run at the same time.")
@options.integer(
    "--seeds", show_default="set by the entry, mostly 20", help="Number of repetitions."
)
@click.option(
    "--protocol",
    type=click.Choice(["quick", "paper"]),
    default="quick",
    help="Thin some grids, as each entry says, or use the printed grids, rates and iterations in "
    "full.",
)
@click.option("--fast", is_flag=True, help="Run fewer repetitions, for a first look.")
@click.option("--recompute", is_flag=True, help="Also repeat runs that are cached.")
@options.seed
@options.as_json
@options.report_format
@options.output(*outputs.REPORTS, help="Write the report to this file.")
@options.html("Also write a page with every figure here.")
def command(
    targets: tuple[str, ...],
    listing: bool,
    data: Path | None,
    jobs: int | None,
    seeds: int | None,
    protocol: Protocol,
    fast: bool,
    recompute: bool,
    seed: int,
    as_json: bool,
    format_: str | None,
    output: Path | None,
    html: Path | None,
) -> None:
    """Reproduce tables and figures of papers.

    PAPERS are one or more of `xia2009` (a paper), `zhou2013/figure7` (one entry of it) or `all`.
    The report has our numbers with their standard errors, the paper's numbers next to them, and
    whether each claim of the paper holds.  Finished runs are cached: an interrupted command
    resumes when it is called again.  `--protocol paper` computes one run first, and says how long
    the others will take.
    """
    options.only_with("PAPERS, not --list", not listing, *OF_RUNS)
    if listing:
        if targets:
            raise click.UsageError(
                f"--list shows all entries, and takes no PAPERS; got {' '.join(targets)}."
            )
        base = _checked_folder(data_folder(data))
        kind = outputs.report_format(format_, as_json, output, ("text", "json"))
        outputs.write_text(_list(base, kind == "json"), output)
        return
    if not targets:
        raise click.UsageError("name a paper, such as xia2009, or all; --list shows all entries.")
    kind = outputs.report_format(format_, as_json, output)
    with shared.progress_bar("reproduce") as progress:
        reproductions = reproduce(
            *targets,
            data=data,
            seeds=seeds,
            fast=fast,
            seed=seed,
            jobs=jobs or _available_cores(),
            recompute=recompute,
            progress=progress,
            protocol=protocol,
            announce=shared.note,
        )
    outputs.write_text(_render(reproductions, kind), output)
    if html is not None:
        outputs.write_text(_render(reproductions, "html"), html)


def _checked_folder(base: Path | None) -> Path | None:
    if base is not None and not base.is_dir():
        raise DataError(f"{base}: no such folder; --data must name a folder with data sets.")
    return base


def _render(reproductions: list[Reproduction], kind: str) -> str:
    if kind == "json":
        return json.dumps(merge_reproductions(reproductions), indent=1)
    if kind == "csv":
        return cell_table(reproductions).csv()
    render: Callable[[list[Reproduction], str], str] = getattr(page, kind)
    return render(reproductions, shlex.join(["firstpage", *sys.argv[1:]]))


def _list(base: Path | None, as_json: bool) -> str:
    rows, datasets = list_entries(base), dataset_records(base)
    if as_json:
        keys = ("entry", "title", "missing")
        entry_records = [dict(zip(keys, row, strict=True)) for row in rows]
        return json.dumps({"entries": entry_records, "datasets": datasets}, indent=1)
    cells = [[name, title, missing or "ready"] for name, title, missing in rows]
    entry_table = Table(["entry", "title", "status"], cells, left_aligned=3)
    folder = "DIR" if base is None else str(base)
    dataset_table = Table(
        ["data set", "status", "folder", "layout", "source"],
        [[str(value) for value in record.values()] for record in datasets],
        left_aligned=5,
        title=f"Data sets, in folders of --data DIR or $FIRSTPAGE_DATA (now {folder}):",
    )
    return f"{entry_table.text()}\n\n{dataset_table.text()}"


def _available_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
