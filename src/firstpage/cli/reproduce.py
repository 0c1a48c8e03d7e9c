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

from firstpage.cli import options, shared
from firstpage.errors import DataError

if TYPE_CHECKING:
    from firstpage.studies.run import Reproduction

FORMATS = ("text", "json", "markdown", "csv", "html")


@click.command("reproduce")
@click.argument("targets", nargs=-1, metavar="PAPER[/ENTRY]...")
@click.option("--list", "listing", is_flag=True, help="What there is, and what it lacks.")
@click.option(
    "--data", type=options.FILE, help="The folder that holds the data sets [$FIRSTPAGE_DATA]."
)
@click.option("--jobs", type=click.IntRange(1), help="Processes at once.  [all cores]")
@click.option(
    "--seeds", type=click.IntRange(1), help="Runs of everything.  [as each entry has it, mostly 20]"
)
@click.option("--fast", is_flag=True, help="Fewer runs: a first look.")
@click.option("--again", is_flag=True, help="Do also what was done and kept before.")
@options.seed
@options.as_json
@click.option(
    "-f", "--format", "format_", metavar="NAME", help="text, json, markdown, csv or html."
)
@click.option(
    "-o", "--output", type=options.FILE, help="Write here; the suffix may say the format."
)
@click.option("--html", type=options.FILE, help="Write a page with every figure here, too.")
def command(
    targets: tuple[str, ...], listing: bool, data: Path | None, jobs: int | None,
    seeds: int | None, fast: bool, again: bool, seed: int, as_json: bool, format_: str | None,
    output: Path | None, html: Path | None,
) -> None:  # fmt: skip
    """Run tables and figures of PAPER again: `zhou2013`, or `zhou2013/figure7`.

    Prints our numbers with their standard errors, the paper's beside them, and whether what the
    paper says holds.  Finished runs are kept: a run that was stopped goes on where it was.
    """
    from firstpage.studies.base import Plan
    from firstpage.studies.catalogue import chosen
    from firstpage.studies.run import reproduce
    from firstpage.studies.sources import data_folder, missing

    base = _folder(data_folder(data))
    if listing:
        shared.deliver(_list(base, as_json), output)
        return
    if not targets:
        raise click.UsageError("name a paper, such as zhou2013; --list shows what there is.")
    kind = _format(shared.chosen_format(format_, as_json, output))
    study, entries = chosen(targets)
    if len(entries) == 1 and (lost := missing(entries[0].needs, base)):
        raise DataError(f"{entries[0].name} {lost}.")
    plan = Plan(seeds, fast, seed, base, jobs or _cores(), again)
    with shared.counting(study.name) as tick:
        found = reproduce(study, entries, plan, tick)
    shared.deliver(_said(found, kind), output)
    if html is not None:
        shared.deliver(_said(found, "html"), html)


def _folder(base: Path | None) -> Path | None:
    if base is not None and not base.is_dir():
        raise DataError(f"{base}: no such folder of data; --data names one that holds data sets.")
    return base


def _format(kind: str) -> str:
    if kind not in FORMATS:
        raise click.UsageError(f"a format is one of {', '.join(FORMATS)}; got {kind!r}.")
    return kind


def _said(found: Reproduction, kind: str) -> str:
    from firstpage.studies import page
    from firstpage.studies.tables import every_cell

    if kind == "json":
        return json.dumps(found.to_dict(), indent=1)
    if kind == "csv":
        return every_cell(found.outcomes).csv()
    write: Callable[[Reproduction, str], str] = getattr(page, kind)
    return write(found, shlex.join(["firstpage", *sys.argv[1:]]))


def _list(base: Path | None, as_json: bool) -> str:
    from firstpage.report.table import Table
    from firstpage.studies.catalogue import listing

    rows = listing(base)
    if as_json:
        keys = ("entry", "title", "missing")
        return json.dumps([dict(zip(keys, row, strict=True)) for row in rows], indent=1)
    shown = [[name, title, lost or "ready"] for name, title, lost in rows]
    return Table(["entry", "what", "with the data at hand"], shown, left=3).text()


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
