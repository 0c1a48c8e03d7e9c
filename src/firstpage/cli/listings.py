"""`firstpage measures` and `rankers`: lists of what can be measured and trained."""

from __future__ import annotations

import json

from firstpage.cli import options
from firstpage.cli.help import documented_command


@documented_command("measures", "firstpage measures")
@options.as_json
def measures_command(as_json: bool) -> None:
    """List all measures with their parameters, and the conventions."""
    from firstpage.measures.registry import conventions, measure_signatures
    from firstpage.table import Table

    by_name = conventions()
    if as_json:
        listing = {
            "measures": [
                {"measure": signature, "description": description}
                for signature, description in measure_signatures()
            ],
            "conventions": by_name,
        }
        print(json.dumps(listing, indent=2))
        return
    settings = list(next(iter(by_name.values())))
    rows = [[s, *(str(by_name[name][s]) for name in by_name)] for s in settings]
    print(
        Table(
            ["measure", "description"], [list(f) for f in measure_signatures()], left_aligned=2
        ).text()
    )
    print()
    print(Table(["setting", *by_name], rows, left_aligned=4).text())


@documented_command("rankers", "firstpage rankers")
@options.as_json
def rankers_command(as_json: bool) -> None:
    """List all rankers with their parameters and papers."""
    from firstpage.rankers.registry import RANKERS, describe_rankers
    from firstpage.registry import parameter_names
    from firstpage.table import Table

    if as_json:
        listing = [
            {
                "name": name,
                "description": description,
                "paper": paper,
                "parameters": parameter_names(RANKERS[name]),
            }
            for name, description, paper in describe_rankers()
        ]
        print(json.dumps(listing, indent=2))
        return
    print(
        Table(
            ["ranker", "description", "paper"],
            [list(r) for r in describe_rankers()],
            left_aligned=3,
        ).text()
    )
    print("\nscorer=linear, mlp, network or trees (LambdaMART: trees); boosting: weak=stumps or features.")
    print("k=None: learn from the full order; k=10: from its top 10.")
    print(
        "Parameters: firstpage rankers --json; set them by --set NAME=VALUE, or as ListMLE(k=10)."
    )
