"""Options that several commands share, as decorators."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from firstpage.cli.outputs import PER_QUERY, REPORTS, OutputFile

if TYPE_CHECKING:
    from firstpage.evaluation.measures import Convention


class InputFile(click.Path):
    """The type of an option or argument that names a file or a folder to read."""

    name = "file"

    def __init__(self, name: str = "file") -> None:
        super().__init__(path_type=Path)
        self.name = name


CommandFunction = TypeVar("CommandFunction", bound=Callable[..., Any])
OptionDecorator = Callable[[Any], Any]
FILE = InputFile()
FOLDER = InputFile("folder")
SHARD_FOLDER = "a folder of shards (`firstpage shard`)"
MAX_TAG = 100  # characters of the tag of a run
REPORT_FORMATS = "text, json, csv, markdown, latex or html."


def refuse_repeated_options(
    command: click.Command, args: Sequence[str], parent: click.Context | None = None
) -> None:
    """Refuse an option that takes one value and is given twice, in any subcommand."""
    name = "firstpage" if parent is None else command.name
    context = click.Context(command, parent, name, **command.context_settings)
    _, rest, order = command.make_parser(context).parse_args(list(args))
    for option in order:
        if isinstance(option, click.Option) and _is_single(option) and order.count(option) > 1:
            text = max(option.opts, key=len)
            raise click.UsageError(f"{text} is given twice; it takes one value.", context)
    if isinstance(command, click.Group) and rest:
        _, subcommand, rest = command.resolve_command(context, list(rest))
        if subcommand is not None:
            refuse_repeated_options(subcommand, rest, context)


def refuse_overwriting(context: click.Context) -> None:
    """Refuse a command that would write to a file that it reads, or twice to one file."""
    written: dict[Path, str] = {}
    parameters = context.command.params
    read = {
        path: parameter
        for parameter in parameters
        if isinstance(parameter.type, InputFile)
        for path in _regular_paths(context.params.get(str(parameter.name)))
    }
    for parameter in parameters:
        if not isinstance(parameter.type, OutputFile):
            continue
        name = _shown_name(parameter)
        for path in _regular_paths(context.params.get(str(parameter.name))):
            if path in read and read[path].name != parameter.type.may_replace:
                source = _shown_name(read[path])
                raise click.UsageError(
                    f"{name} {path.name} is also read ({source}); write to another file.", context
                )
            if path in written:
                raise click.UsageError(
                    f"{written[path]} and {name} name the same file ({path.name}); give two.",
                    context,
                )
            written[path] = name


def _regular_paths(value: object) -> list[Path]:
    """Return the absolute paths of a parameter, without standard output and devices."""
    paths = value if isinstance(value, tuple) else (value,)
    resolved = [path.resolve() for path in paths if isinstance(path, Path) and str(path) != "-"]
    return [path for path in resolved if path.is_file() or path.is_dir() or not path.exists()]


def _shown_name(parameter: click.Parameter) -> str:
    """Return the name of a parameter as the command line shows it."""
    if isinstance(parameter, click.Option):
        return parameter.opts[0]
    return parameter.human_readable_name.upper()


def _is_single(option: click.Option) -> bool:
    """Return whether an option may be given once only; repeating a flag changes nothing."""
    return not (option.multiple or option.is_flag or option.count)


def combine(*options: OptionDecorator) -> Callable[[CommandFunction], CommandFunction]:
    """Return one decorator for several options, in the order in which help shows them."""

    def decorate(command: CommandFunction) -> CommandFunction:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def on_command_line(name: str) -> bool:
    """Return whether a parameter of the running command is set on its command line."""
    source = click.get_current_context().get_parameter_source(name)
    return source is click.core.ParameterSource.COMMANDLINE


def has_option(name: str) -> bool:
    """Return whether the running command has this option."""
    parameters = click.get_current_context().command.params
    return any(name in (*each.opts, *each.secondary_opts) for each in parameters)


def only_with(condition: str, met: bool, *names: str) -> None:
    """Refuse options on the command line that would have no effect, as a condition is not met."""
    for option in click.get_current_context().command.params:
        if not met and option.name in names and on_command_line(option.name):
            text = max(option.opts, key=len)
            if option.secondary_opts and click.get_current_context().params[option.name] is False:
                text = option.secondary_opts[0]
            raise click.UsageError(f"{text} requires {condition}.")


def read_convention(settings: dict[str, Any]) -> Convention:
    """Take --convention, and the options that replace its settings, out of the settings."""
    from firstpage.evaluation.measures import Convention

    names = ("ties", "rel", "queries", "without_relevant", "depth", "condensed", "seed")
    replaced = {name: settings.pop(name) for name in names if name in settings}
    return Convention(settings.pop("convention"), **replaced)


def search_modules(_: click.Context, option: click.Parameter, value: Any) -> Any:
    """Import modules from the current folder first, if an option names `module:Name`."""
    if any(":" in text for text in ([value] if isinstance(value, str) else value or ())):
        search_current_folder()
    return value


def search_current_folder() -> None:
    """Import modules from the current folder first, where functions of one's own usually are."""
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())


def integer(
    *names: str, default: int | None = None, minimum: int = 1, **attributes: Any
) -> OptionDecorator:
    """Return an option for an integer that is at least `minimum`."""
    attributes = {"metavar": "N", "show_default": default is not None, **attributes}
    return click.option(*names, type=click.IntRange(minimum), default=default, **attributes)


def _checked_tag(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Return a tag that every reader of TREC files takes as one field; refuse others."""
    if value is None or (value.isprintable() and " " not in value and 0 < len(value) <= MAX_TAG):
        return value
    raise click.BadParameter(
        f"{value[:MAX_TAG]!r} is not a tag: a tag has 1 to {MAX_TAG} characters and no blanks."
    )


def tag(default: str) -> OptionDecorator:
    """Return the option for the tag of the run that a command writes."""
    return click.option(
        "--tag", callback=_checked_tag, metavar="NAME", show_default=default, help="Tag of the run."
    )


def output(*formats: str, **attributes: Any) -> OptionDecorator:
    """Return -o: the file to write in one of these formats; without formats, the folder."""
    return click.option("-o", "--output", type=OutputFile(*formats), **attributes)


def port(default: int, text: str = "Port to listen on; 0 takes any free port.") -> OptionDecorator:
    """Return the option for the port of a server."""
    return click.option(
        "--port",
        type=click.IntRange(0, 65535),
        default=default,
        show_default=True,
        metavar="N",
        help=text,
    )


def address(default_port: int) -> OptionDecorator:
    """Return the options for the address of a server."""
    return combine(
        click.option(
            "--host",
            default="127.0.0.1",
            show_default=True,
            metavar="ADDRESS",
            help="Address to listen on.",
        ),
        port(default_port),
    )


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
seed = click.option(
    "--seed",
    default=0,
    show_default=True,
    type=click.IntRange(0),
    metavar="N",
    help="Random seed.",
)
engine = click.option(
    "--engine",
    metavar="ENGINE",
    show_default="threads",
    help="Engine that processes a folder of shards or files: threads, or dask://host:port.",
)
pad = click.option(
    "--pad",
    is_flag=True,
    help="For LETOR text without zeros: set missing last features to 0.",
)
convention = click.option(
    "--convention",
    default="default",
    show_default=True,
    metavar="NAME",
    help="Convention of the measures: default, trec, letor, lightgbm or xgboost.",
)
ties = click.option(
    "--ties",
    metavar="RULE",
    show_default="set by the convention",
    help="Order of equal scores: average, file, docid, shuffle or worst.",
)
queries = click.option(
    "--queries",
    metavar="WHICH",
    show_default="set by the convention",
    help="Queries to evaluate: judged (all judged queries) or run (those in the run).",
)
report_format = click.option(
    "-f",
    "--format",
    "format_",
    metavar="NAME",
    show_default="by the suffix of -o, else text",
    help=f"Format: {REPORT_FORMATS}",
)

truth_options = combine(
    click.argument("data", required=False, type=FILE),
    click.option(
        "--qrels",
        type=FILE,
        help="Judgments (TREC qrels or truth.jsonl), instead of DATA or of its labels.",
    ),
)
unjudged = click.option(
    "--unjudged",
    type=click.Choice(["zero", "drop"]),
    default="zero",
    show_default=True,
    help="With --qrels: documents without a judgment get label 0, as in trec_eval, or are dropped.",
)
judgment_options = combine(
    click.option(
        "--qrels",
        type=FILE,
        help="Judgments (TREC qrels or truth.jsonl) that replace the labels, by document ids.",
    ),
    unjudged,
)
pairs = click.option(
    "--pairs",
    type=FILE,
    help="Votes on pairs of documents (CSV, JSON lines, Parquet) to train on instead of labels.",
)
confidences = click.option(
    "--confidences/--no-confidences",
    default=True,
    show_default=True,
    help="With --qrels truth.jsonl: weight the queries by the confidence of their judgments.",
)

measure_options = combine(
    click.option(
        "-m",
        "--measure",
        "measures",
        multiple=True,
        metavar="MEASURE",
        callback=search_modules,
        help="Measure such as NDCG@10 or kERR; may be repeated. `firstpage measures` lists all.",
    ),
    convention,
    click.option(
        "--k",
        type=click.IntRange(1),
        metavar="N",
        help="Convert the grades to a top-k ground truth of this depth first.",
    ),
    ties,
    click.option(
        "--rel",
        type=float,
        metavar="GRADE",
        show_default="set by the measure",
        help="Lowest label that counts as relevant.",
    ),
    queries,
    click.option(
        "--without-relevant",
        metavar="RULE",
        show_default="set by the convention",
        help="Queries without relevant documents: zero (count 0), one (count 1) or skip.",
    ),
    click.option(
        "--depth", type=click.IntRange(1), metavar="N", help="Cut rankings after N documents."
    ),
    seed,
)

ranker_options = combine(
    click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="NAME=VALUE",
        help="Parameter of the ranker, such as k=10 or scorer=trees; may be repeated.",
    ),
    click.option(
        "-m",
        "--measure",
        show_default="NDCG@10",
        metavar="MEASURE",
        help="Measure to maximize on validation data; PLRank, LambdaRank and CoordinateAscent "
        "train on it (NDCG@k).",
    ),
    click.option(
        "--normalize",
        type=click.Choice(["minmax", "standard", "global-minmax", "global-standard", "none"]),
        default="none",
        show_default=True,
        help="Scale the features per query, or over all training data (global); the model "
        "stores the scaling.",
    ),
    seed,
)

report_options = combine(
    as_json,
    report_format,
    output(*REPORTS, help="Write the report to this file."),
    click.option(
        "--per-query",
        type=OutputFile(*PER_QUERY),
        help="Write the values of each query to this file (.csv, .tsv or .json).",
    ),
)


categorical = click.option(
    "--categorical",
    multiple=True,
    metavar="NAME",
    help="A feature that holds categories, by name or number; may be repeated.",
)
