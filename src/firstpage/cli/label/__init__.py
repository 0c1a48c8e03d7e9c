"""`firstpage label`: judge documents, and see what the judgments say."""

from __future__ import annotations

import click

from firstpage.cli.label import backup, export, serve, setup


@click.group("label")
def command() -> None:
    """Label queries: serve the application, take results out."""


for _verb in (setup, serve, export, backup):
    command.add_command(_verb.command)
command.add_command(backup.restore_command)
