"""`firstpage theory`: check theorems of the papers, and the consistency of a loss."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, outputs, shared
from firstpage.cli.help import documented_command
from firstpage.papers import (
    DEFAULT_SAMPLES,
    check_theorems,
    checks_table,
    consistency,
    loss_forms,
    loss_page,
    loss_text,
    parse_loss,
    select_checks,
    theory_page,
    theory_text,
)


@documented_command(
    "theory",
    "firstpage theory --list",
    "firstpage theory lan2013/theorem-1 --samples 500",
    "firstpage theory --loss ListMLE --k 2",
)
@click.argument("names", nargs=-1, metavar="[CHECKS]")
@click.option(
    "--list", "listing", is_flag=True, help="List all checks and their recorded outcomes."
)
@click.option(
    "--loss",
    metavar="LOSS",
    help="Check the top-k consistency of this loss instead: ListMLE, or module:phi.",
)
@options.integer("--k", show_default="1", help="With --loss: depth of the top.")
@click.option(
    "--n",
    type=click.IntRange(2, 6),
    metavar="N",
    show_default="4",
    help="With --loss: number of objects, all orders of which are tried.",
)
@options.integer(
    "--samples",
    show_default="2000; 40 with --loss",
    help="Number of random score vectors; more find more violations.",
)
@options.seed
@options.as_json
@options.output(*outputs.PAGES, help="Write to this file: .txt, .json or .html.")
def command(
    names: tuple[str, ...],
    listing: bool,
    loss: str | None,
    k: int | None,
    n: int | None,
    samples: int | None,
    seed: int,
    as_json: bool,
    output: Path | None,
) -> int:
    """Check theorems of the papers numerically.

    Runs all checks, or those whose names begin with one of CHECKS.  Exits with 0 if every outcome
    is as recorded; a printed theorem that is recorded as false must be refuted again.

    With --loss: whether the loss is top-k order sensitive, clause by clause, and whether its risk
    is smallest where the most probable top k is ranked on top.  A loss of your own is a function
    phi(scores, order), where `order` begins with the number of the best object.
    """
    kind = outputs.report_format(
        None, as_json, output, outputs.PAGES[:2] if listing else outputs.PAGES
    )
    if loss is not None:
        if names or listing:
            raise click.UsageError("--loss runs alone; leave out checks and --list.")
        results = _consistency(loss, k or 1, n or 4, samples or 40, seed)
        outputs.write_text(_render_consistency(results, kind), output)
        return 0
    options.only_with("--loss", False, "k", "n")
    options.only_with("a run of the checks, without --list", not listing, "samples", "seed")
    return _run_checks(names, listing, samples, seed, kind, output)


def _run_checks(
    names: tuple[str, ...],
    listing: bool,
    samples: int | None,
    seed: int,
    kind: str,
    output: Path | None,
) -> int:
    """Run or list checks; return the exit code."""
    if listing:
        outputs.write_text(_render_list(select_checks(names), kind), output)
        return 0
    with shared.progress_bar("theory") as progress:
        results = check_theorems(
            *names, samples=samples or DEFAULT_SAMPLES, seed=seed, progress=progress
        )
    outputs.write_text(_render_checks(results, kind), output)
    return 0 if all(result.as_recorded for result in results) else 1


def _render_list(checks: Any, kind: str) -> str:
    if kind == "json":
        keys = ("name", "kind", "holds", "claim")
        return json.dumps([{key: getattr(c, key) for key in keys} for c in checks], indent=1)
    return checks_table(checks).text()


def _render_checks(results: Any, kind: str) -> str:
    if kind == "json":
        return json.dumps([result.to_dict() for result in results], indent=1, allow_nan=False)
    return (theory_page if kind == "html" else theory_text)(results)


def _consistency(text: str, k: int, n: int, samples: int, seed: int) -> dict[str, Any]:
    """Return results by loss; a built-in loss with a top-k form is checked in both forms."""
    losses: dict[str, Any]
    if ":" in text:
        losses = {text: shared.load_function(text, "--loss")}
    else:
        losses = dict(loss_forms(parse_loss(text), text, k))
    return {name: consistency(loss, n, k, samples, 20, seed) for name, loss in losses.items()}


def _render_consistency(results: dict[str, Any], kind: str) -> str:
    if kind == "json":
        records = {name: result.to_dict() for name, result in results.items()}
        return json.dumps(records, indent=1, allow_nan=False)
    return (loss_page if kind == "html" else loss_text)(results)
