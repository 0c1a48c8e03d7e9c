"""docs/commands.md: every command, from its `--help`."""

from __future__ import annotations

from collections.abc import Iterator

import click

from firstpage.cli import app

WIDTH = 100


def commands_page() -> str:
    lines = [
        "# Command line",
        "",
        "Every command with its arguments and options. In the shell, `firstpage COMMAND --help` prints",
        "the same text.",
        "",
        "`make docs` generates this page.",
        "",
    ]
    for context in _contexts(app, "firstpage", None):
        path = context.command_path
        level = min(len(path.split()) + 1, 4)
        lines += [f"{'#' * level} `{path}`", "", "```text", context.get_help(), "```", ""]
    return "\n".join(lines)


def _contexts(
    command: click.Command, name: str, parent: click.Context | None
) -> Iterator[click.Context]:
    """Yield a context per command, as a call would create it, with the settings of its group."""
    context = click.Context(command, parent, name, terminal_width=WIDTH, **command.context_settings)
    yield context
    if isinstance(command, click.Group):
        for child_name in command.list_commands(context):
            child = command.get_command(context, child_name)
            if child is not None and not child.hidden:
                yield from _contexts(child, child_name, context)
