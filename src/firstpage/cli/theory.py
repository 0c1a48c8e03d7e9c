"""`firstpage theory`: theorems of the papers as checks, and what they say of a loss."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, outputs, shared


@click.command("theory")
@click.argument("names", nargs=-1, metavar="[CHECK]...")
@click.option("--list", "listing", is_flag=True, help="All checks and what is recorded of them.")
@click.option(
    "--loss", metavar="LOSS", help="Is this one top-k consistent?  ListMLE, or module:phi."
)
@options.whole("--k", help="With --loss: how deep the top is.  [1]")
@click.option(
    "--n",
    type=click.IntRange(2, 6),
    help="With --loss: of how many objects all orders are tried.  [4]",
)
@options.whole(
    "--samples", metavar="N", help="More find more: scores of a bound [2000], of a loss [40]."
)
@options.seed
@options.as_json
@options.output(*outputs.PAGES, help="Write here: .txt, .json or .html.")
def command(
    names: tuple[str, ...], listing: bool, loss: str | None, k: int | None, n: int | None,
    samples: int | None, seed: int, as_json: bool, output: Path | None,
) -> int:  # fmt: skip
    """Run the papers' theorems as checks: all, or those whose names begin with CHECK.

    Exits with 0 when every check comes out as recorded; a printed theorem that is recorded as
    false, and is refuted again, does.

    With --loss: whether a loss is top-k order sensitive, clause by clause, and whether its risk
    is least where the likeliest top k is on top.  A loss of your own is phi(scores, order), with
    the number of the best object first in `order`.
    """  # fmt: skip
    shown = outputs.chosen_format(
        None, as_json, output, outputs.PAGES[:2] if listing else outputs.PAGES
    )
    if loss is not None:
        if names or listing:
            raise click.UsageError("--loss is a question of its own; leave out checks and --list.")
        found = _consistency(loss, k or 1, n or 4, samples or 40, seed)
        outputs.deliver(_said_of_loss(found, shown), output)
        return 0
    options.only_with("--loss", False, "k", "n")
    return _checks(names, listing, samples, seed, shown, output)


def _checks(
    names: tuple[str, ...], listing: bool, samples: int | None, seed: int, shown: str,
    output: Path | None,
) -> int:  # fmt: skip
    from firstpage.papers.theory.registry import DEFAULT_SAMPLES, check_theorems, select_checks

    if listing:
        outputs.deliver(_listed(select_checks(names), shown), output)
        return 0
    with shared.counting("theory") as progress:
        found = check_theorems(
            *names, samples=samples or DEFAULT_SAMPLES, seed=seed, progress=progress
        )
    outputs.deliver(_said(found, shown), output)
    return 0 if all(each.as_recorded for each in found) else 1


def _listed(checks: Any, shown: str) -> str:
    from firstpage.papers.theory.registry import checks_table

    if shown == "json":
        keys = ("name", "kind", "holds", "claim")
        return json.dumps([{key: getattr(c, key) for key in keys} for c in checks], indent=1)
    return checks_table(checks).text()


def _said(found: Any, shown: str) -> str:
    from firstpage.papers.theory.registry import theory_page, theory_text

    if shown == "json":
        return json.dumps([each.to_dict() for each in found], indent=1, allow_nan=False)
    return (theory_page if shown == "html" else theory_text)(found)


def _consistency(text: str, k: int, n: int, samples: int, seed: int) -> dict[str, Any]:
    """What is found of a loss; of one of ours that may be cut after k places, of both forms."""
    from firstpage.papers.theory.consistency import consistency
    from firstpage.papers.theory.spaces import loss_forms, parse_loss

    losses: dict[str, Any]
    if ":" in text:
        losses = {text: shared.function(text, "--loss")}
    else:
        losses = dict(loss_forms(parse_loss(text), text, k))
    return {name: consistency(loss, n, k, samples, 20, seed) for name, loss in losses.items()}


def _said_of_loss(found: dict[str, Any], shown: str) -> str:
    from firstpage.papers.theory.registry import loss_page, loss_text

    if shown == "json":
        held = {name: each.to_dict() for name, each in found.items()}
        return json.dumps(held, indent=1, allow_nan=False)
    return (loss_page if shown == "html" else loss_text)(found)
