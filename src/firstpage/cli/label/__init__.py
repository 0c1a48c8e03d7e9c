"""`firstpage label`: judgments, from planning to truth; one file a verb."""

from __future__ import annotations

import click

from firstpage.cli.label import simulate


@click.group("label")
def command() -> None:
    """Few judgments, trustworthy truth: serve, simulate, stats, export."""


command.add_command(simulate.command)
