"""Options that several verbs share, as decorators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from firstpage.cli.outputs import PER_QUERY, REPORTS, OutputFile


def refuse_repeats(
    command: click.Command, args: Sequence[str], parent: click.Context | None = None
) -> None:
    """Refuse an option that stands twice and takes one value, of a command or of its verbs."""
    name = "firstpage" if parent is None else command.name
    context = click.Context(command, parent, name, **command.context_settings)
    _, rest, order = command.make_parser(context).parse_args(list(args))
    for option in order:
        if isinstance(option, click.Option) and _takes_one(option) and order.count(option) > 1:
            text = max(option.opts, key=len)
            raise click.UsageError(f"{text} is given twice, and takes one value.", context)
    if isinstance(command, click.Group) and rest:
        _, verb, rest = command.resolve_command(context, list(rest))
        if verb is not None:
            refuse_repeats(verb, rest, context)


def _takes_one(option: click.Option) -> bool:
    """Flags may stand twice: that changes nothing."""
    return not (option.multiple or option.is_flag or option.count)


Command = TypeVar("Command", bound=Callable[..., Any])
Option = Callable[[Any], Any]  # a decorator
FILE = click.Path(path_type=Path)


def together(*options: Option) -> Callable[[Command], Command]:
    """Several options as one decorator, in the order in which help shows them."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def is_given(name: str) -> bool:
    """Whether a parameter of the command that runs stands on its command line."""
    source = click.get_current_context().get_parameter_source(name)
    return source is click.core.ParameterSource.COMMANDLINE


def only_with(needs: str, met: bool, *names: str) -> None:
    """Refuse options that are given and would do nothing, as what they go with is not there."""
    for option in click.get_current_context().command.params:
        if not met and option.name in names and is_given(option.name):
            raise click.UsageError(f"{max(option.opts, key=len)} goes with {needs}.")


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
seed = click.option(
    "--seed", default=0, show_default=True, type=click.IntRange(0), help="For everything random."
)

SHARDS = "a folder of shards (`firstpage shard`)"
engine = click.option(
    "--engine", metavar="WHERE",
    help="For a folder of shards or files: threads, or dask://host:port.  [default: threads]",
)  # fmt: skip


def whole(*names: str, default: int | None = None, least: int = 1, **more: Any) -> Option:
    """An option for a whole number from `least` on."""
    shown = default is not None
    return click.option(
        *names, type=click.IntRange(least), default=default, show_default=shown, **more
    )


def output(*formats: str, **more: Any) -> Option:
    """-o: the file to write, in one of these formats; without formats, the folder."""
    return click.option("-o", "--output", type=OutputFile(*formats), **more)


def address(port: int) -> Option:
    """Where a server listens."""
    return together(
        click.option(
            "--host", default="127.0.0.1", show_default=True, help="Address to listen on."
        ),
        click.option(
            "--port", type=click.IntRange(0, 65535), default=port, show_default=True,
            help="0 takes any free port.",
        ),
    )  # fmt: skip


pad = click.option(
    "--pad", is_flag=True,
    help="LETOR text that leaves out zeros: take the last features for 0 where a file lacks them.",
)  # fmt: skip


truth = together(
    click.argument("data", required=False, type=FILE),
    click.option("--qrels", type=FILE, help="Judgments in TREC form, instead of DATA."),
)

meaning = together(
    click.option(
        "-m", "--measure", "measures", multiple=True, metavar="MEASURE",
        help="Such as NDCG@10 or kERR; may be repeated. `firstpage measures` lists all.",
    ),
    click.option(
        "--convention", default="default", show_default=True, metavar="NAME",
        help="default, trec or letor: what the measures mean.",
    ),
    click.option(
        "--k", type=click.IntRange(1), help="First turn grades into a top-k truth of this depth."
    ),
    click.option("--ties", metavar="RULE", help="average, file, docid, shuffle or worst."),
    click.option("--rel", type=float, help="Labels from this one on are relevant."),
    click.option(
        "--queries", metavar="WHICH", help="judged: all judged queries count; run: those it has."
    ),
    click.option("--depth", type=click.IntRange(1), help="Cut runs after this many documents."),
    seed,
)  # fmt: skip

settings = together(
    click.option(
        "--set", "settings", multiple=True, metavar="NAME=VALUE",
        help="A parameter of the ranker, such as k=10 or scorer=trees; may be repeated.",
    ),
    click.option(
        "-m", "--measure", default="NDCG@10", show_default=True, help="For validation data."
    ),
    click.option(
        "--normalize",
        type=click.Choice(["minmax", "standard", "global-minmax", "global-standard", "none"]),
        default="none", show_default=True,
        help="Scale features query by query, or by all of training; kept in the model.",
    ),
    seed,
)  # fmt: skip

results = together(
    as_json,
    click.option(
        "-f", "--format", "format_", metavar="NAME",
        help="text, json, csv, markdown, latex or html.",
    ),
    click.option(
        "-o", "--output", type=OutputFile(*REPORTS),
        help="Write here; the suffix may say the format.",
    ),
    click.option(
        "--per-query", type=OutputFile(*PER_QUERY),
        help="Write each query's values here (.csv, .tsv or .json).",
    ),
)  # fmt: skip
