"""`firstpage measures` and `rankers`: what can be measured, and what can be trained."""

from __future__ import annotations

import json

import click

from firstpage.cli import options


@click.command("measures")
@options.as_json
def measures_command(as_json: bool) -> None:
    """List all measures with their parameters, and the conventions."""
    from firstpage.measures.registry import conventions, forms
    from firstpage.table import Table

    if as_json:
        held = {
            "measures": [{"form": form, "about": about} for form, about in forms()],
            "conventions": conventions(),
        }
        print(json.dumps(held, indent=2))
        return
    found = conventions()
    settings = list(next(iter(found.values())))
    rows = [[s, *(str(found[name][s]) for name in found)] for s in settings]
    print(Table(["measure", "what it is"], [list(f) for f in forms()], left_aligned=2).text())
    print()
    print(Table(["setting", *found], rows, left_aligned=4).text())


@click.command("rankers")
@options.as_json
def rankers_command(as_json: bool) -> None:
    """List all rankers with their parameters and papers."""
    from firstpage.rankers.registry import RANKERS, describe_rankers
    from firstpage.registry import parameter_names
    from firstpage.table import Table

    if as_json:
        held = [
            {"name": n, "about": a, "paper": p, "parameters": parameter_names(RANKERS[n])}
            for n, a, p in describe_rankers()
        ]
        print(json.dumps(held, indent=2))
        return
    print(
        Table(
            ["ranker", "what it does", "paper"],
            [list(r) for r in describe_rankers()],
            left_aligned=3,
        ).text()
    )
    print("\nscorer=linear, mlp or trees (LambdaMART: trees); boosting: weak=stumps or features.")
    print("k=None: whole order, or its top k.")
    print("Parameters: firstpage rankers --json; for one fit: --set NAME=VALUE, or ListMLE(k=10).")
