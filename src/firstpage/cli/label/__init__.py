"""`firstpage label`: collect judgments, from planning to the ground truth."""

from __future__ import annotations

import click

from firstpage.cli.help import SectionedGroup
from firstpage.cli.label import (
    backup,
    calibrate,
    export,
    judge,
    people,
    serve,
    settings,
    setup,
    simulate,
    stats,
)

SECTIONS = {
    "Plan": [simulate.command, setup.command, settings.command, people.add_command],
    "Judge": [serve.command, judge.command],
    "Use the results": [stats.command, calibrate.command, export.command],
    "Administer": [people.link_command, backup.command, backup.restore_command],
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
