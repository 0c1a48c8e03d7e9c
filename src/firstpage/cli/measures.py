"""`firstpage measures`: what can be measured, and what the conventions mean."""

from __future__ import annotations

import json

import click

from firstpage.cli import options


@click.command("measures")
@options.as_json
def command(as_json: bool) -> None:
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
    print(Table(["measure", "what it is"], [list(f) for f in forms()], left=2).text())
    print()
    print(Table(["setting", *found], rows, left=4).text())
