"""`firstpage label`: judgments, from planning to truth; one file a verb."""

from __future__ import annotations

import click

from firstpage.cli.label import add, backup, export, judge, link, serve, setup, simulate, stats


@click.group("label")
def command() -> None:
    """Few judgments, trustworthy truth: serve, simulate, stats, export."""


for _verb in (setup, add, link, serve, judge, stats, export, backup, simulate):
    command.add_command(_verb.command)
command.add_command(backup.restore_command)
