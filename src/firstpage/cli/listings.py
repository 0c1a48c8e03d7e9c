"""`firstpage measures` and `rankers`: lists of what can be measured and trained."""

from __future__ import annotations

import json
from itertools import groupby

from firstpage.cli import options
from firstpage.cli.help import documented_command
from firstpage.core import Table, parameter_names
from firstpage.evaluation.measures import TOOLS, conventions, list_measures
from firstpage.learning.rankers import RANKERS, describe_rankers


@documented_command("measures", "firstpage measures")
@options.as_json
def measures_command(as_json: bool) -> None:
    """List all measures, with their names in other tools.

    Every name of trec_eval, ir_measures, ranx and ndeval that is listed can be used, with the
    cut-off that it needs; so can lists such as "NDCG@10,AP" and P_5,10, the groups official,
    all_trec and set of trec_eval, and module:Name for a measure of your own.  Every measure takes
    condensed=true, which removes unjudged documents from the rankings first.
    """
    by_name = conventions()
    measures = list_measures()
    if as_json:
        listing = {
            "measures": [
                {
                    "measure": m.signature,
                    "description": m.about,
                    "group": m.group,
                    "names": dict(m.tool_names),
                }
                for m in measures
            ],
            "conventions": by_name,
        }
        print(json.dumps(listing, indent=2))
        return
    for group, members in groupby(measures, key=lambda m: m.group):
        rows = [[m.signature, m.about] for m in members]
        print(Table([group, "description"], rows, left_aligned=2).text() + "\n")
    named = [[m.measure, *(m.tool_names.get(t, "") for t in TOOLS)] for m in measures]
    named = [row for row in named if any(row[1:])]
    print(Table(["measure", *TOOLS], named, left_aligned=5).text() + "\n")
    settings = list(next(iter(by_name.values())))
    rows = [[s, *(str(by_name[name][s]) for name in by_name)] for s in settings]
    print(Table(["setting", *by_name], rows, left_aligned=1 + len(by_name)).text())


@documented_command("rankers", "firstpage rankers")
@options.as_json
def rankers_command(as_json: bool) -> None:
    """List all rankers with their parameters and papers."""
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
    print(
        "\nscorer=linear, mlp, network or trees (LambdaMART: trees); "
        "boosting: weak=stumps or features."
    )
    print("k=None: learn from the full order; k=10: from its top 10.")
    print(
        "Parameters: firstpage rankers --json; set them by --set NAME=VALUE, or as ListMLE(k=10)."
    )
