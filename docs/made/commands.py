"""The pages of the commands: a page per command of `firstpage`, with its subcommands."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

from firstpage.cli import app
from made.markdown import toctree

WIDTH = 100
HEAD = """\
# Command line

A page per command, with its arguments and options. In the shell, `firstpage COMMAND --help` prints
the same text.

| command | purpose |
| --- | --- |
"""


def contexts(
    command: click.Command = app, name: str = "firstpage", parent: click.Context | None = None
) -> Iterator[click.Context]:
    """Yield a context per command, as a call would create it, with the settings of its group."""
    context = click.Context(command, parent, name, terminal_width=WIDTH, **command.context_settings)
    yield context
    if isinstance(command, click.Group):
        for child_name in command.list_commands(context):
            child = command.get_command(context, child_name)
            if child is not None and not child.hidden:
                yield from contexts(child, child_name, context)


def command_pages() -> Iterator[tuple[str, str]]:
    """Yield the pages with their names: the list of commands, and a page per command."""
    pages: dict[str, list[str]] = {}
    rows = []
    for context in list(contexts())[1:]:
        path = context.command_path.split()[1:]
        if len(path) == 1:
            short = context.command.get_short_help_str(WIDTH)
            rows.append(f"| [`firstpage {path[0]}`](commands/{path[0]}.md) | {short} |")
        pages.setdefault(path[0], []).append(_described(context, len(path)))
    names = [f"commands/{name}" for name in pages]
    yield "commands.md", HEAD + "\n".join([*rows, toctree(names)])
    for name, parts in pages.items():
        yield f"commands/{name}.md", "\n".join(parts)


def command_help() -> dict[str, str]:
    """Return what `--help` prints, of each command and its subcommands."""
    texts: dict[str, str] = {}
    for context in list(contexts())[1:]:
        name = context.command_path.split()[1]
        texts[name] = f"{texts.get(name, '')}{context.get_help()}\n\n"
    return texts


def _described(context: click.Context, level: int) -> str:
    """Return a section on one command: its usage, its text, its options and its examples."""
    command, path = context.command, context.command_path
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    lines = [f"{'#' * level} {path}", "", "```text", usage, "```", ""]
    lines += [_prose(command.help or ""), "", f":::{{program}} {path}", ":::", ""]
    for option in command.get_params(context):
        record = option.get_help_record(context) if isinstance(option, click.Option) else None
        if record is not None and option.name != "help":
            names, text = record
            lines += [f":::{{option}} {names}", "", text.replace("\n", " "), ":::", ""]
    if examples := getattr(command, "examples", ()):
        lines += ["```console", *(f"$ {example}" for example in examples), "```", ""]
    return "\n".join(lines)


def _prose(text: str) -> str:
    """Return help as Markdown: paragraphs after a `\\b` are set as they are."""
    paragraphs = inspect.cleandoc(text).split("\f")[0].split("\n\n")
    return "\n\n".join(
        f"```text\n{each[2:]}\n```" if each.startswith("\b\n") else re.sub(r"\s*\n", " ", each)
        for each in paragraphs
    )
