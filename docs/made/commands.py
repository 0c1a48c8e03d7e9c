"""docs/commands.md: every verb of the command line, as `--help` has it."""

from __future__ import annotations

from collections.abc import Iterator

import click

from firstpage.cli import app

WIDTH = 100


def commands_page() -> str:
    lines = ["# Command line", "", "Made by `make docs` from `firstpage VERB --help`.", ""]
    for path, command in _verbs(app, ("firstpage",)):
        context = click.Context(command, info_name=" ".join(path), terminal_width=WIDTH)
        lines += [f"{'#' * min(len(path), 3)}# `{' '.join(path)}`", "", "```text"]
        lines += [command.get_help(context), "```", ""]
    return "\n".join(lines)


def _verbs(
    command: click.Command, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None and not found.hidden:
                yield from _verbs(found, (*path, name))
