"""Help of commands: examples at the end, and subcommands listed by section."""

from __future__ import annotations

import re
from collections import UserDict
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import click

from firstpage.cli.command_line import refuse_overwriting
from firstpage.cli.wording import worded
from firstpage.core import FirstpageError

MAX_UNBROKEN = 42  # characters of a default that is kept on one line
NO_BREAK_SPACE = "\xa0"


class ShortHelpCommand(click.Command):
    """A command with the options -h and --help."""

    def get_help_option_names(self, ctx: click.Context) -> list[str]:
        """Return both names, however the command is called: Click keeps the first answer."""
        ctx.help_option_names = ["-h", "--help"]
        return super().get_help_option_names(ctx)


class ExampleCommand(ShortHelpCommand):
    """A command whose help ends with examples.

    Parameters
    ----------
    examples : sequence of str
        Command lines that can be pasted into a shell; a long one is continued with a backslash.
    """

    def __init__(self, *args: Any, examples: Sequence[str] = (), **options: Any) -> None:
        super().__init__(*args, **options)
        self.examples = tuple(examples)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, unless it would overwrite what it reads; errors name its options."""
        refuse_overwriting(ctx)
        try:
            return super().invoke(ctx)
        except FirstpageError as error:
            # subclasses may take other arguments
            FirstpageError.__init__(error, worded(error, self))
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, without a line break inside a short default."""
        options = [p for p in self.get_params(ctx) if isinstance(p, click.Option)]
        records = filter(None, (option.get_help_record(ctx) for option in options))
        rows = [(names, _unbroken(text)) for names, text in records]
        start = len(formatter.buffer)
        with formatter.section("Options"):
            formatter.write_dl(rows)
        for i in range(start, len(formatter.buffer)):
            formatter.buffer[i] = formatter.buffer[i].replace(NO_BREAK_SPACE, " ")

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples as they are, without wrapping."""
        _write_examples(self.examples, formatter)


class CommandTable(UserDict[str, Any]):
    """Commands by name, each imported from `module:attribute` on access."""

    def __getitem__(self, name: str) -> click.Command:
        command: click.Command | str = self.data[name]
        if isinstance(command, str):
            module, _, attribute = command.partition(":")
            loaded = getattr(import_module(f"firstpage.cli.{module}"), attribute or "command")
            assert isinstance(loaded, click.Command)
            assert loaded.name == name
            command = self.data[name] = loaded
        return command


class SectionedGroup(ShortHelpCommand, click.Group):
    """A group whose help lists its commands by section, with summaries that are never cut.

    Parameters
    ----------
    sections : mapping of str to mapping of str to (str, str)
        The commands of each section, in the order in which help shows them: by name, the module in
        `firstpage.cli`, with its attribute if that is not `command`, and the summary.  These are
        data, so that the list of commands imports no command; a test compares the summaries with
        the docstrings.
    examples : sequence of str
        Command lines that can be pasted into a shell.
    """

    def __init__(
        self,
        *args: Any,
        sections: Mapping[str, Mapping[str, tuple[str, str]]],
        examples: Sequence[str] = (),
        **options: Any,
    ) -> None:
        options.setdefault("subcommand_metavar", "COMMAND [ARGS]")
        options["commands"] = CommandTable(
            {name: row[0] for rows in sections.values() for name, row in rows.items()}
        )
        super().__init__(*args, **options)
        self.examples = tuple(examples)
        self.sections = sections

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands in the order of the sections."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a list of names and summaries per section, all in the same columns."""
        width = max(map(len, self.commands))
        for title, rows in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:<{width}}", row[1]) for name, row in rows.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples as they are, without wrapping."""
        _write_examples(self.examples, formatter)


def documented_command(name: str, *examples: str) -> Callable[[Callable[..., Any]], click.Command]:
    """Return a decorator that turns a function into a command with examples in its help."""
    settings = {"show_default": True}
    return click.command(name, cls=ExampleCommand, examples=examples, context_settings=settings)


def _unbroken(text: str) -> str:
    """Return a help text with no-break spaces in the default at its end, if that is short."""
    match = re.search(r"\[[^\[]*\]$", text)
    if match is None or len(match[0]) > MAX_UNBROKEN:
        return text
    return text[: match.start()] + match[0].replace(" ", NO_BREAK_SPACE)


def _write_examples(examples: Sequence[str], formatter: click.HelpFormatter) -> None:
    if not examples:
        return
    with formatter.section("Examples"):
        for example in examples:
            for line in example.splitlines():
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")
