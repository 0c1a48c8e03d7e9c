"""`firstpage label export`: write the ground truth, the log or the study of a project."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from firstpage.cli import options, outputs, shared
from firstpage.cli.help import documented_command
from firstpage.cli.label.access import open_store, with_web
from firstpage.cli.shared import note
from firstpage.data import encode_text
from firstpage.data.formats import write, write_qrels
from firstpage.data.io import suffix_of, write_bytes
from firstpage.labeling.app import analysis, exports
from firstpage.labeling.app import store as stores

FORMATS = {
    "truth": ("qrels", "letor", "jsonl"),
    "data": ("parquet", "npz", "csv", "arrow", "letor"),
    "log": ("jsonl", "csv"),
    "report": ("html",),
    "assignment": ("json",),
    "pairs": ("csv",),
    "quepid": ("csv",),
    "pool": ("jsonl",),
    "measure": ("json",),
    "preferences": ("jsonl",),
}
ALL_FORMATS = sorted({name for formats in FORMATS.values() for name in formats})


@documented_command(
    "export",
    "firstpage label export shop -o truth.qrels",
    "firstpage label export shop --content log -o log.csv",
    "firstpage label export shop --content pairs -o votes.csv",
    "firstpage label export shop --partial -o so-far.jsonl",
)
@click.argument("project")
@click.option(
    "--content",
    "content",
    type=click.Choice(list(FORMATS)),
    default="truth",
    metavar="NAME",
    help=f"Content of the file: {', '.join(FORMATS)}.",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(ALL_FORMATS),
    show_default="by the suffix of -o",
    help="Format of the file.",
)
@click.option("--name", metavar="SLUG", help="Project to export, if the store has several.")
@click.option(
    "--tool",
    type=click.Choice(["pairs", "grades", "lists"]),
    show_default="the first",
    help="With --content truth, data or quepid: tool that is exported, if there are two.",
)
@click.option(
    "--features",
    metavar="NAMES",
    show_default="all, or short,values if these rank the labels as well",
    help="With --content data: features as in `firstpage features --set`.",
)
@click.option(
    "--index",
    type=options.FOLDER,
    show_default="that of the set-up",
    help="With --content data: index from which features are computed.",
)
@click.option(
    "--letor",
    type=options.FILE,
    show_default="that of the set-up",
    help="With --content data: LETOR file with the features.",
)
@click.option(
    "--partial",
    is_flag=True,
    help="With --content truth or data: include unfinished queries, with the truth of the answers "
    "so far.",
)
@options.output(*ALL_FORMATS, required=True, help="File to write; - is standard output.")
@with_web
def command(
    project: str,
    content: str,
    format_: str | None,
    name: str | None,
    tool: str | None,
    features: str | None,
    index: Path | None,
    letor: Path | None,
    partial: bool,
    output: Path,
) -> None:
    """Export the truth, data to train on, votes on pairs, the log or the report.

    PROJECT is a folder or a database URL.
    """
    is_data = content == "data"
    of_tool = ("truth", "data", "quepid")
    options.only_with("--content truth, data or quepid", content in of_tool, "tool", "partial")
    options.only_with("--content data", is_data, "features", "index", "letor")
    if index is not None and letor is not None:
        raise click.UsageError("features come from --index or from --letor; give one.")
    chosen = _format(content, format_, output)

    with open_store(project) as store, store.read() as tx:
        exported = stores.find_project(tx, name)
        if is_data:
            _write_data(tx, exported, tool, features, index, letor, output, chosen, partial)
            is_empty = False
        else:
            is_empty = not _write(tx, exported, f"{content}.{chosen}", tool, output, partial)
        remarks = list(exports.notes(tx, exported, f"{content}.{chosen}", tool, partial))
    if is_empty:
        note(f"{output} is empty{'.' if remarks else ': nothing has been judged yet.'}")
    for remark in remarks:
        note(remark)


def _write(
    tx: stores.Tx, project: stores.Project, name: str, tool: str | None, output: Path, partial: bool
) -> bool:
    """Write a text; return whether it is not empty."""
    chunks = exports.export(tx, project, name, tool, partial)
    if name == "truth.qrels" and (judged := analysis.truths(tx, project, tool, partial)):
        write_qrels(exports.qrels_of(judged), output)  # its notes name the file
        return True
    with write_bytes(output) as out:
        return sum(out.write(encode_text(chunk)) for chunk in chunks) > 0


def _write_data(
    tx: stores.Tx,
    project: stores.Project,
    tool: str | None,
    features: str | None,
    index: Path | None,
    letor: Path | None,
    output: Path,
    format_: str,
    partial: bool,
) -> None:
    """Write features and labels together."""
    source = exports.feature_source(project, index, letor)
    options.only_with("features of an index", source.index is not None, "features")
    with shared.progress_bar("features") as progress:
        data, remarks = exports.dataset(tx, project, source, features, tool, progress, partial)
    write(data, output, format_)
    print(f"wrote {data} to {output}", file=sys.stderr)
    for remark in remarks:
        note(remark)


def _format(content: str, name: str | None, output: Path) -> str:
    """Return the format by its name, else by the suffix of the file; refuse an unknown suffix."""
    suffix = suffix_of(output)[0]
    fitting = [kind for kind in FORMATS[content] if suffix in ("", *outputs.suffixes(kind))]
    if name in FORMATS[content]:
        outputs.check_suffix(output, (name,), "-o")
        return name
    if name is None and (len(fitting) == 1 or not suffix):
        return fitting[0]
    if name is not None:
        raise click.UsageError(f"--content {content} is written as {', '.join(FORMATS[content])}.")
    suffixes = " or ".join(f".{name}" for name in FORMATS[content])
    raise click.UsageError(
        f"{output}: no format of {content} has this suffix; let the name end in {suffixes}, or "
        "give --format."
    )
