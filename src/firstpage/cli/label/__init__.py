"""`firstpage label`: judgments, from planning to truth."""

from __future__ import annotations

import click

from firstpage.cli.label import backup, export, judge, people, serve, setup, simulate, stats


@click.group("label")
def command() -> None:
    """Few judgments, trustworthy truth: serve, simulate, stats, export."""


for _file in (setup, serve, judge, stats, export, backup, simulate):
    command.add_command(_file.command)
for _command in (people.add_people_command, people.link_command, backup.restore_command):
    command.add_command(_command)
