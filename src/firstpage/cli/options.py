"""Options that several commands share, as decorators."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from firstpage.cli.command_line import InputFile
from firstpage.cli.outputs import PER_QUERY, REPORTS, TABLES, OutputFile

CommandFunction = TypeVar("CommandFunction", bound=Callable[..., Any])
OptionDecorator = Callable[[Any], Any]
FILE = InputFile()
FOLDER = InputFile("folder")
SHARD_FOLDER = "a folder of shards (`firstpage shard`)"
MAX_TAG = 100  # characters of the tag of a run
REPORT_FORMATS = "text, json, csv, markdown, latex or html."


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
    attributes = {"metavar": "N", **attributes}
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
        "--port", type=click.IntRange(0, 65535), default=default, metavar="N", help=text
    )


def address(default_port: int) -> OptionDecorator:
    """Return the options for the address of a server."""
    return combine(
        click.option(
            "--host", default="127.0.0.1", metavar="ADDRESS", help="Address to listen on."
        ),
        port(default_port),
    )


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
seed = click.option("--seed", default=0, type=click.IntRange(0), metavar="N", help="Random seed.")
engine = click.option(
    "--engine",
    metavar="ENGINE",
    show_default="threads",
    help="Engine that processes a folder of shards or files: threads, or dask://host:port.",
)
pad = click.option(
    "--pad", is_flag=True, help="For LETOR text without zeros: set missing last features to 0."
)
convention = click.option(
    "--convention",
    default="default",
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

endpoint = combine(
    click.option(
        "--prices",
        type=(float, float),
        default=(0.0, 0.0),
        metavar="IN OUT",
        help="Prices per million input and output tokens.",
    ),
    click.option(
        "--requests-per-minute",
        type=click.FloatRange(0, min_open=True),
        metavar="NUMBER",
        help="With an endpoint: largest rate of requests.",
    ),
    click.option(
        "--tokens-per-minute",
        type=click.FloatRange(0, min_open=True),
        metavar="NUMBER",
        help="With an endpoint: largest rate of tokens.",
    ),
    click.option(
        "--timeout",
        type=click.FloatRange(0, min_open=True),
        default=60.0,
        metavar="SECONDS",
        help="With an endpoint: time for a request with its whole reply.",
    ),
    integer(
        "--attempts",
        default=6,
        help="With an endpoint: attempts per request; the wait between them doubles, or is what "
        "the endpoint asks for.",
    ),
)


def endpoint_key() -> str:
    """Return the API key of the endpoint, or an empty text."""
    return os.environ.get("FIRSTPAGE_ENDPOINT_KEY", "")


unjudged = click.option(
    "--unjudged",
    type=click.Choice(["zero", "drop"]),
    default="zero",
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
    help="With --qrels truth.jsonl: weight the queries by the confidence of their judgments.",
)


def measures(text: str) -> OptionDecorator:
    """Return -m, which names a measure and may be repeated."""
    return measure(text, "measures", multiple=True)


def measure(text: str, *names: str, **attributes: Any) -> OptionDecorator:
    """Return -m, which names a measure."""
    attributes = {"metavar": "MEASURE", "callback": search_modules, "help": text, **attributes}
    return click.option("-m", "--measure", *names, **attributes)


def html(text: str) -> OptionDecorator:
    """Return --html, which names a page to write."""
    return click.option("--html", type=OutputFile("html"), help=text)


measure_options = combine(
    measures("Measure such as NDCG@10 or kERR; may be repeated. `firstpage measures` lists all."),
    convention,
    integer("--k", help="Convert the grades to a top-k ground truth of this depth first."),
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
    integer("--depth", help="Cut rankings after N documents."),
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
    measure(
        "Measure to maximize on validation data; PLRank, LambdaRank and CoordinateAscent train on "
        "it (NDCG@k).",
        show_default="NDCG@10",
        callback=None,
    ),
    click.option(
        "--normalize",
        type=click.Choice(["minmax", "standard", "global-minmax", "global-standard", "none"]),
        default="none",
        help="Scale the features per query, or over all training data (global); the model "
        "stores the scaling.",
    ),
    seed,
)


def table_options(text: str) -> Callable[[CommandFunction], CommandFunction]:
    """Return the options of a report that is a table: --json, -f and -o."""
    return combine(as_json, report_format, output(*TABLES, help=text))


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
