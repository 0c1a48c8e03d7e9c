"""`firstpage clicks judge`: graded judgments from a log of clicks."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, outputs, shared
from firstpage.cli.clicks.log_options import log_options, read_log
from firstpage.cli.clicks.to_labeling import send_to_project
from firstpage.cli.help import documented_command
from firstpage.clicks import (
    COUNTED,
    ClickAgreement,
    ClickJudgments,
    Propensities,
    click_model,
    judge,
    load_model,
)
from firstpage.core import DataError, charts
from firstpage.data.formats import write_qrels, write_run
from firstpage.interop.report import figure, page
from firstpage.search import Analyzer

FORMATS = ("qrels", "jsonl", "csv")
MAX_DRAWN = 30  # documents in the picture


def _probability(name: str, default: float, text: str) -> options.OptionDecorator:
    """Return an option that is a probability."""
    return click.option(
        name, type=float, default=default, show_default=True, metavar="P", help=text
    )


@documented_command(
    "judge",
    "firstpage clicks judge clicks.log -o clicks.qrels",
    "firstpage clicks judge clicks.log --method sdbn --group-queries case \\\n"
    "  -o clicks.jsonl --to-label undecided.run",
    "firstpage clicks judge clicks.log --against people.qrels",
)
@log_options
@click.option(
    "--method",
    type=click.Choice([*COUNTED, "ubm", "pbm", "dbn"]),
    default="coec",
    show_default=True,
    help="Rate of a document. coec: clicks over expected clicks at its ranks; ctr: clicks over "
    "impressions; sdbn: clicks over impressions down to the last click (sdbn-satisfaction: last "
    "clicks over clicks; sdbn-relevance: the product); ubm, pbm, dbn: attractiveness in this click "
    "model.",
)
@click.option("--model", type=options.FILE, help="Attractiveness in this model (`clicks fit -o`).")
@click.option(
    "--propensities",
    type=options.FILE,
    help="Clicks over the sum of these propensities (`clicks propensities -o`).",
)
@options.integer("--grades", default=4, minimum=2, help="Number of grades, from 0.")
@click.option(
    "--levels",
    metavar="NUMBER,..",
    show_default="factors of 2 around the mean",
    help="Levels of the rate between the grades.",
)
@_probability("--quantile", 0.5, "Quantile of a rate that must exceed a level; .05 is cautious.")
@options.integer("--depth", default=10, help="Size of a first page.")
@_probability("--confidence", 0.8, "Probability of right grades at which a page is decided.")
@click.option(
    "--group-queries",
    type=click.Choice(["case", "stems", "results"]),
    help="Judge spellings of a query together: equal but for case and blanks; with equal stems; "
    "or with half of their results shared.",
)
@_probability("--min-confidence", 0.0, "Leave out grades that are right with less probability.")
@click.option("--against", type=options.FILE, help="Report the agreement with these of people.")
@click.option(
    "--to-label",
    type=outputs.OutputFile("run"),
    help="Write the undecided documents of first pages as a run, for "
    "`firstpage label setup --run`.",
)
@click.option(
    "--send-to",
    metavar="PROJECT",
    help="Add the undecided first pages to this labeling project, with texts of --collection.",
)
@click.option("--collection", type=options.FILE, help="With --send-to: the texts of documents.")
@click.option("--html", type=outputs.OutputFile("html"), help="Write the report as a page here.")
@options.output(*FORMATS, help="Write grades (.qrels), grades with confidences (.jsonl), or all.")
@options.as_json
def command(
    method: str,
    model: Path | None,
    propensities: Path | None,
    group_queries: str | None,
    levels: str | None,
    min_confidence: float,
    against: Path | None,
    to_label: Path | None,
    send_to: str | None,
    collection: Path | None,
    html: Path | None,
    output: Path | None,
    as_json: bool,
    **values: Any,
) -> None:
    """Judge documents by their clicks.

    Rates are shrunk towards the means of their query and of the log, so that a document that was
    displayed rarely is judged cautiously.  Every grade has the probability that it is right.
    """
    kind = outputs.format_by_suffix(output, FORMATS, "-o", "qrels")
    has_grades = output is not None and kind != "csv"  # which has all rows, and their confidences
    options.only_with("-o of .qrels or .jsonl", has_grades, "min_confidence")
    options.only_with("--send-to", send_to is not None, "collection")
    if send_to is not None and collection is None:
        raise click.UsageError("--send-to needs --collection, the texts that people read.")
    if model is not None and propensities is not None:
        raise click.UsageError("give --model or --propensities, not both.")
    options.only_with("neither --model nor --propensities", not (model or propensities), "method")
    rate: Any = method
    if model is not None:
        rate = load_model(model)
    elif propensities is not None:
        rate = Propensities.load(propensities)
    grouping: dict[str, Any] = {"group": _group(group_queries), "levels": _levels(levels)}
    sessions = read_log(values)
    if rate not in COUNTED and isinstance(rate, str):
        with shared.progress_bar(f"fitting {rate}") as progress:
            rate = click_model(rate).fit(sessions, progress)
    with shared.status_line("judging"):
        judged = judge(sessions, rate, **grouping, **values)
    agreement = None if against is None else judged.agreement(against)
    if output is not None:
        _write(judged, kind, output, min_confidence)
    if html is not None:
        outputs.write_text(_page(judged, agreement), html)
    undecided = judged.undecided()
    if not len(undecided.values) and (to_label or send_to):
        shared.note("all first pages are decided; there is nothing to label.")
    elif to_label is not None:
        write_run(undecided, to_label)
        shared.note(
            f"wrote {to_label}; judge it by: firstpage label setup PROJECT --run {to_label}"
        )
    if send_to is not None and collection is not None and len(undecided.values):
        send_to_project(send_to, undecided, collection)
    if as_json:
        agreed = {} if agreement is None else {"agreement": vars(agreement)}
        print(json.dumps({**judged.to_dict(), **agreed}, indent=2))
        return
    tables = [judged.summary_table()]
    tables += [judged.undecided_table()] if (judged.more_pages > 0).any() else []
    tables += [] if agreement is None else [agreement.summary_table()]
    print("\n\n".join(table.text() for table in tables))


def _group(name: str | None) -> str | Callable[[str], str] | None:
    """Return how queries are grouped; stems are those of English."""
    if name != "stems":
        return name
    analyzer = Analyzer()
    return lambda text: " ".join(analyzer.terms(text)) or text


def _levels(text: str | None) -> list[float] | None:
    """Return the numbers of --levels."""
    try:
        return None if text is None else [float(number) for number in text.split(",")]
    except ValueError:
        raise DataError(f"--levels takes numbers, such as 0.5,1,2; got {text!r}.") from None


def _write(judged: ClickJudgments, kind: str, path: Path, min_confidence: float) -> None:
    """Write the judgments, and print which command reads them."""
    if kind == "csv":
        outputs.write_text(judged.to_csv(), path)
        return
    qrels = judged.qrels(min_confidence)
    if kind == "jsonl":
        outputs.write_text(judged.truth_lines(min_confidence), path)
    else:
        write_qrels(qrels, path)
        print(f"wrote {path}", file=sys.stderr)
    omitted = len(judged) - len(qrels.values)
    if omitted:
        shared.note(f"{path}: {omitted:,} documents with a smaller confidence are left out.")
    shared.note(f"{path} is read by: firstpage evaluate RUN --qrels {path}")


def _page(judged: ClickJudgments, agreement: ClickAgreement | None) -> str:
    """Return the report as a page."""
    rows = (-judged.impressions).argsort(kind="stable")[:MAX_DRAWN].tolist()
    names = (
        f"{judged.queries[judged.query[row]]}: {judged.documents[judged.document[row]]}"
        for row in rows
    )
    values = (array[rows].tolist() for array in (judged.estimate, judged.low, judged.high))
    drawing = charts.intervals(list(zip(names, *values, strict=True)), "rates")
    caption = f"Rates of the {len(rows)} documents with most impressions, with 95 % intervals."
    sections = [
        ("Grades", [judged.summary_table().html()]),
        ("Rates", [figure(drawing, caption)]),
    ]
    if (judged.more_pages > 0).any():
        sections.append(("Undecided first pages", [judged.undecided_table().html()]))
    if agreement is not None:
        sections.append(("Agreement with people", [agreement.summary_table().html()]))
    return page("Judgments from clicks", f"{judged.title}.", sections)
