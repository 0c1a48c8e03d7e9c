"""Help of every command: grouped, complete at 80 columns, with examples that run."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from firstpage.cli import app
from firstpage.cli.help import ExampleCommand, SectionedGroup
from tests.docs.examples import page_folder, write_examples
from tests.docs.pages import parse, unknown_options
from tests.docs.pages import run as run_command

WIDTH = 80
NOT_RUN = (  # servers, network access, and minutes of work
    "firstpage demo",
    "firstpage serve",
    "firstpage candidates --engine",
    "firstpage label serve",
    "firstpage experiment prune",  # tests/serving/test_event_log.py
    "firstpage experiment erase",
    "firstpage reproduce zhou2013",
    "firstpage rerank candidates.run shop.index queries.jsonl --calls",
    "firstpage rerank candidates.run shop.index queries.jsonl --ask",
    "firstpage label judge shop --assessor robot --model",
    "firstpage label import",
    "firstpage label tokens shop --revoke",
)
PREPARATION = (
    "train ListMLE train.txt -o model.json",
    "label setup prepared --queries queries.jsonl --documents documents.jsonl --k 3 "
    "--assessor robot --lead lena",
    "label backup prepared -o shop.backup",
    "index products.jsonl -o first.index",
    "candidates first.index queries.jsonl -o first.run",
    "features first.index queries.jsonl first.run --qrels shop.qrels -o first.parquet",
    "train ListNet first.parquet -o shop.json",
)


def contexts(
    command: click.Command = app, name: str = "firstpage", parent: click.Context | None = None
) -> Iterator[click.Context]:
    """Yield the context of a command and of all its subcommands."""
    context = click.Context(command, parent, name, **command.context_settings)
    yield context
    if isinstance(command, click.Group):
        for subcommand in command.list_commands(context):
            yield from contexts(command.commands[subcommand], subcommand, context)


@pytest.fixture(params=list(contexts()), ids=lambda context: context.command_path)
def context(request, monkeypatch) -> click.Context:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    return request.param


def examples(context: click.Context) -> list[str]:
    command = context.command
    assert isinstance(command, ExampleCommand | SectionedGroup)
    return [example.replace("\\\n", " ") for example in command.examples]


def test_help_fits_into_80_columns_and_is_not_truncated(context: click.Context) -> None:
    text = context.get_help()
    assert [line for line in text.splitlines() if len(line) > WIDTH] == []
    assert "..." not in text
    assert "\xa0" not in text


def summary(command: click.Command) -> str:
    """Return the first paragraph of a command's help, in one line."""
    return " ".join((command.help or "").strip().partition("\n\n")[0].split())


def test_help_begins_with_a_summary_and_ends_with_examples(context: click.Context) -> None:
    text = context.get_help()
    line = summary(context.command)
    assert line.endswith(".")
    assert f"\n\n  {line}\n" in text, "the summary has one line"
    _, _, last = text.partition("\nExamples:\n")
    assert last.startswith("  firstpage ")
    command = context.command
    assert isinstance(command, ExampleCommand | SectionedGroup)
    assert last.endswith(command.examples[-1].replace("\n", "\n  "))


def test_a_command_called_by_itself_has_the_same_help_options(context: click.Context) -> None:
    """Without the settings of its parents; Click keeps the option of the first call."""
    option = context.command.get_help_option(click.Context(context.command))
    assert option is not None
    assert option.opts == ["-h", "--help"]


def test_every_option_has_a_help_text_and_a_metavar(context: click.Context) -> None:
    for option in context.command.get_params(context):
        if isinstance(option, click.Option):
            assert (option.help or "").endswith("."), option.opts
            metavar = option.make_metavar(context)
            assert metavar not in ("TEXT", "INTEGER", "FLOAT", "PATH", "INTEGER RANGE") or (
                option.metavar == metavar
            ), option.opts


def test_every_default_value_is_shown(context: click.Context) -> None:
    for option in context.command.get_params(context):
        if isinstance(option, click.Option) and not option.is_flag and not option.multiple:
            default = option.get_default(context)
            if isinstance(default, (int, float, str, tuple)):
                record = option.get_help_record(context)
                assert record is not None
                assert "[default: " in record[1] or "; default: " in record[1], option.opts


def test_examples_parse(context: click.Context) -> None:
    lines = examples(context)
    assert lines
    for line in lines:
        program, *args = shlex.split(line)
        assert program == "firstpage"
        assert unknown_options(args) == [], line
        parse(args)
    if isinstance(context.command, ExampleCommand):
        assert all(line.startswith(context.command_path) for line in lines)


def test_examples_run(
    once: Callable[[str, Callable[[Path], object]], Path], tmp_path: Path
) -> None:
    shutil.copytree(once("examples", write_examples), tmp_path, dirs_exist_ok=True)
    lines = dict.fromkeys(line for context in contexts() for line in examples(context))
    with page_folder(tmp_path):
        for line in PREPARATION:
            assert run_command(shlex.split(line))[0] == 0, line
        for line in lines:
            if line.startswith(NOT_RUN):
                continue
            shutil.rmtree("shop", ignore_errors=True)
            if not line.startswith("firstpage label setup"):
                shutil.copytree("prepared", "shop")
            code, printed = run_command(shlex.split(line)[1:])
            assert code == 0, f"{line}\n{printed}"


def test_commands_are_grouped_and_each_is_listed_once() -> None:
    text = app.get_help(click.Context(app, info_name="firstpage"))
    titles = re.findall(r"^(\S.*):$", text, re.M)
    assert titles == ["Options", *app.sections, "Examples"]
    names = [name for names in app.sections.values() for name in names]
    assert names == list(app.commands)
    assert len(set(names)) == len(names)
    for name in names:
        assert re.search(rf"^  {name} +\S.*\.$", text, re.M), name


def test_summaries_of_groups_are_those_of_the_docstrings(context: click.Context) -> None:
    """The table of a group has them as data, so that its help imports no command."""
    if isinstance(context.command, SectionedGroup):
        listed = {
            name: text
            for rows in context.command.sections.values()
            for name, (_, text) in rows.items()
        }
        commands = context.command.commands
        assert listed == {name: summary(commands[name]) for name in commands}
