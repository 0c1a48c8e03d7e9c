"""docs/commands.md: every verb of the command line, as `--help` has it."""

from __future__ import annotations

from collections.abc import Iterator

import click

from firstpage.cli import app

WIDTH = 100


def commands_page() -> str:
    lines = ["# Command line", "", "Made by `make docs` from `firstpage VERB --help`.", ""]
    for context in _verbs(app, "firstpage", None):
        path = context.command_path
        level = min(len(path.split()) + 1, 4)
        lines += [f"{'#' * level} `{path}`", "", "```text", context.get_help(), "```", ""]
    return "\n".join(lines)


def _verbs(
    command: click.Command, name: str, parent: click.Context | None
) -> Iterator[click.Context]:
    """Contexts as a call would make them: a verb has the settings of its group."""
    context = click.Context(command, parent, name, terminal_width=WIDTH, **command.context_settings)
    yield context
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            found = command.get_command(context, each)
            if found is not None and not found.hidden:
                yield from _verbs(found, each, context)
