"""`firstpage describe`: what is in a data file."""

from __future__ import annotations

import json
from pathlib import Path

import click

from firstpage.cli import options, shared


@click.command("describe")
@click.argument("files", nargs=-1, required=True, type=options.FILE)
@click.option("--from", "format_", metavar="FORMAT", help="Where the name does not say it.")
@options.as_json
def command(files: tuple[Path, ...], format_: str | None, as_json: bool) -> None:
    """Show queries, documents, labels, list lengths, and features worth a second look.

    FILES are data, qrels or runs.
    """
    from firstpage.data.describe import describe
    from firstpage.data.formats.registry import read

    found = []
    for file in files:
        with shared.reading(file) as progress:
            found.append(describe(read(file, format_, progress)))
    if as_json:
        held = [d.to_dict() for d in found]
        print(json.dumps(held if len(held) > 1 else held[0], indent=2, ensure_ascii=False))
    else:
        print("\n\n".join(str(d) for d in found))
