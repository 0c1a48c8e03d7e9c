"""`firstpage label`: collect judgments, from planning to the ground truth."""

from __future__ import annotations

import click

from firstpage.cli.help import SectionedGroup
from firstpage.cli.label import (
    backup,
    calibrate,
    export,
    import_ratings,
    judge,
    people,
    queries,
    remove,
    serve,
    settings,
    setup,
    simulate,
    stats,
    tokens,
    webhook,
)

SECTIONS = {
    "Plan": [simulate.command, setup.command, settings.command, people.add_command],
    "Judge": [serve.command, judge.command, import_ratings.command],
    "Use the results": [queries.command, stats.command, calibrate.command, export.command],
    "Administer": [
        people.link_command,
        tokens.command,
        webhook.command,
        remove.command,
        backup.command,
        backup.restore_command,
    ],
}


@click.group(
    "label",
    cls=SectionedGroup,
    sections=SECTIONS,
    examples=(
        "firstpage label setup shop --queries queries.jsonl --documents documents.jsonl",
        "firstpage label serve shop --open",
        "firstpage label export shop -o truth.qrels",
    ),
)
def command() -> None:
    """Collect judgments with a labeling application."""
