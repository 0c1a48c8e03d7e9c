"""`firstpage label export`: write the ground truth, the log or the study of a project."""

from __future__ import annotations

from pathlib import Path

import click

from firstpage.cli import options, outputs
from firstpage.cli.help import documented_command
from firstpage.cli.shared import note, open_store, with_web

FORMATS = {
    "truth": ("qrels", "letor", "jsonl"),
    "log": ("jsonl", "csv"),
    "report": ("html",),
    "assignment": ("json",),
    "measure": ("json",),
    "preferences": ("jsonl",),
}
ALL_FORMATS = sorted({name for formats in FORMATS.values() for name in formats})


@documented_command(
    "export",
    "firstpage label export shop -o truth.qrels",
    "firstpage label export shop --content log -o log.csv",
)
@click.argument("project")
@click.option(
    "--content", "content", type=click.Choice(list(FORMATS)), default="truth", show_default=True,
    help="Content of the file.",
)  # fmt: skip
@click.option(
    "--format", "format_", type=click.Choice(ALL_FORMATS),
    show_default="by the suffix of -o", help="Format of the file.",
)  # fmt: skip
@click.option("--name", metavar="SLUG", help="Project to export, if the store has several.")
@options.output(*ALL_FORMATS, required=True, help="File to write; - is standard output.")
@with_web
def command(
    project: str, content: str, format_: str | None, name: str | None, output: Path
) -> None:
    """Export the ground truth, the log or the report.

    PROJECT is a folder or a database URL.
    """
    chosen = _format(content, format_, output)
    from firstpage.data.io.files import write_bytes
    from firstpage.web.exports.make import export
    from firstpage.web.exports.notes import notes

    with open_store(project) as store, store.read() as tx:
        from firstpage.web.store.projects import find_project

        n_bytes, exported = 0, find_project(tx, name)
        with write_bytes(output) as out:
            for chunk in export(tx, exported, f"{content}.{chosen}"):
                n_bytes += out.write(chunk.encode())
        remarks = list(notes(tx, exported, f"{content}.{chosen}"))
    if not n_bytes:
        note(f"{output} is empty{'.' if remarks else ': nothing has been judged yet.'}")
    for remark in remarks:
        note(remark)


def _format(content: str, name: str | None, output: Path) -> str:
    """Return the format by its name, else by the suffix of the file; refuse an unknown suffix."""
    from firstpage.data.io.files import suffix_of

    chosen = name or suffix_of(output)[0].lstrip(".") or FORMATS[content][0]
    if chosen in FORMATS[content]:
        outputs.check_suffix(output, (chosen,), "-o")
        return chosen
    if name is not None:
        raise click.UsageError(f"--content {content} is written as {', '.join(FORMATS[content])}.")
    suffixes = " or ".join(f".{name}" for name in FORMATS[content])
    raise click.UsageError(
        f"{output}: no format of {content} has this suffix; let the name end in {suffixes}, or "
        "give --format."
    )
