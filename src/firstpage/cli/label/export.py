"""`firstpage label export`: take truth, the log or the study out of a project."""

from __future__ import annotations

from pathlib import Path

import click

from firstpage.cli import options, outputs
from firstpage.cli.shared import note, open_store, with_web

WHAT = {
    "truth": ("qrels", "letor", "jsonl"),
    "log": ("jsonl", "csv"),
    "report": ("html",),
    "assignment": ("json",),
    "measure": ("json",),
    "preferences": ("jsonl",),
}


@click.command("export")
@click.argument("project")
@click.option("--what", type=click.Choice(list(WHAT)), default="truth", show_default=True)
@click.option(
    "--format", "format_", type=click.Choice(sorted({f for fs in WHAT.values() for f in fs})),
    help="By default as the output's name ends; without an ending, the first that fits.",
)  # fmt: skip
@click.option("--name", metavar="SLUG", help="Which project, where the store holds several.")
@options.output(
    *sorted({f for fs in WHAT.values() for f in fs}), required=True, help="File to write; - prints."
)
@with_web
def command(project: str, what: str, format_: str | None, name: str | None, output: Path) -> None:
    """Write what PROJECT (a folder or a database URL) holds."""
    chosen = _format(what, format_, output)
    from firstpage.data.io.files import write_bytes
    from firstpage.web.exports.make import export
    from firstpage.web.exports.notes import notes

    with open_store(project) as store, store.read() as tx:
        from firstpage.web.store.projects import find_project

        written, found = 0, find_project(tx, name)
        with write_bytes(output) as out:
            for part in export(tx, found, f"{what}.{chosen}"):
                written += out.write(part.encode())
        remarks = list(notes(tx, found, f"{what}.{chosen}"))
    if not written:
        note(f"{output} is empty{'.' if remarks else ': nothing is judged yet.'}")
    for remark in remarks:
        note(remark)


def _format(what: str, given: str | None, output: Path) -> str:
    """The format that is named, or that the output's name says; an ending of none is refused."""
    from firstpage.data.io.files import suffix_of

    named = given or suffix_of(output)[0].lstrip(".") or WHAT[what][0]
    if named in WHAT[what]:
        outputs.check_suffix(output, (named,), "-o")
        return named
    if given is not None:
        raise click.UsageError(f"--what {what} is written as {', '.join(WHAT[what])}.")
    endings = " or ".join(f".{name}" for name in WHAT[what])
    raise click.UsageError(
        f"{output}: the name does not say how {what} is written; end it in {endings}, or name "
        "the format (--format)."
    )
