"""`firstpage reproduce`: tables and figures of papers, run again, and a verdict on each claim."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from firstpage.cli import options, outputs, shared
from firstpage.errors import DataError

if TYPE_CHECKING:
    from firstpage.papers.study.run import Reproduction


@click.command("reproduce")
@click.argument("targets", nargs=-1, metavar="PAPER[/ENTRY]...")
@click.option("--list", "listing", is_flag=True, help="What there is, and what it lacks.")
@click.option(
    "--data", type=options.FILE, help="The folder that holds the data sets [$FIRSTPAGE_DATA]."
)
@options.whole("--jobs", help="Processes at once.  [all cores]")
@options.whole("--seeds", help="Runs of everything.  [as each entry has it, mostly 20]")
@click.option("--fast", is_flag=True, help="Fewer runs: a first look.")
@click.option("--again", is_flag=True, help="Do also what was done and kept before.")
@options.seed
@options.as_json
@click.option(
    "-f", "--format", "format_", metavar="NAME", help="text, json, markdown, latex, csv or html."
)
@options.output(*outputs.REPORTS, help="Write here; the suffix may say the format.")
@click.option(
    "--html", type=outputs.OutputFile("html"), help="Write a page with every figure here, too."
)
def command(
    targets: tuple[str, ...], listing: bool, data: Path | None, jobs: int | None,
    seeds: int | None, fast: bool, again: bool, seed: int, as_json: bool, format_: str | None,
    output: Path | None, html: Path | None,
) -> None:  # fmt: skip
    """Run tables and figures of PAPER again: `xia2009`, `zhou2013/figure7`, or `all`.

    Prints our numbers with their standard errors, the paper's beside them, and whether what the
    paper says holds.  Finished runs are kept: a run that was stopped goes on where it was.
    """
    from firstpage.papers.study.registry import data_folder
    from firstpage.papers.study.run import reproduce

    if listing:
        base = _folder(data_folder(data))
        kind = outputs.chosen_format(format_, as_json, output, ("text", "json"))
        outputs.deliver(_list(base, kind == "json"), output)
        return
    if not targets:
        raise click.UsageError("name a paper, such as xia2009, or all; --list shows what there is.")
    kind = outputs.chosen_format(format_, as_json, output)
    with shared.counting("reproduce") as progress:
        found = reproduce(
            *targets, data=data, seeds=seeds, fast=fast, seed=seed, jobs=jobs or _cores(),
            again=again, progress=progress,
        )  # fmt: skip
    outputs.deliver(_said(found, kind), output)
    if html is not None:
        outputs.deliver(_said(found, "html"), html)


def _folder(base: Path | None) -> Path | None:
    if base is not None and not base.is_dir():
        raise DataError(f"{base}: no such folder of data; --data names one that holds data sets.")
    return base


def _said(found: list[Reproduction], kind: str) -> str:
    from firstpage.papers.study import page
    from firstpage.papers.study.page import cell_table
    from firstpage.papers.study.run import merge_reproductions

    if kind == "json":
        return json.dumps(merge_reproductions(found), indent=1)
    if kind == "csv":
        return cell_table(found).csv()
    write: Callable[[list[Reproduction], str], str] = getattr(page, kind)
    return write(found, shlex.join(["firstpage", *sys.argv[1:]]))


def _list(base: Path | None, as_json: bool) -> str:
    from firstpage.papers.study.registry import dataset_states, list_entries
    from firstpage.table import Table

    rows, data = list_entries(base), dataset_states(base)
    if as_json:
        keys = ("entry", "title", "missing")
        plain = [dict(zip(keys, row, strict=True)) for row in rows]
        return json.dumps({"entries": plain, "data": data}, indent=1)
    shown = [[name, title, lost or "ready"] for name, title, lost in rows]
    entries = Table(["entry", "what", "with the data at hand"], shown, left=3)
    where = "DIR" if base is None else str(base)
    sets = Table(
        ["data", "with the data at hand", "folder", "layout", "from"],
        [[str(value) for value in each.values()] for each in data], left=5,
        title=f"Data sets, in folders of --data DIR or $FIRSTPAGE_DATA (now {where}):",
    )  # fmt: skip
    return f"{entries.text()}\n\n{sets.text()}"


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
