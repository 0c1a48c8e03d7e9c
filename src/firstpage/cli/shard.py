"""`firstpage shard`: cut data into pieces that are worked through one by one."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from firstpage.cli import options, outputs, shared


@click.command("shard")
@click.argument("data", type=options.FILE)
@click.argument("folder", type=outputs.OutputFile())
@options.whole("--rows", default=1_000_000, help="Documents a shard, about: queries stay whole.")
def command(data: Path, folder: Path, rows: int) -> None:
    """Cut DATA, a file or a folder of files, into shards, and write them to FOLDER.

    `train`, `rank` and `evaluate` take FOLDER for data, and need no more memory for more shards.
    """
    from firstpage.data.shards.shards import data_files
    from firstpage.data.shards.writer import write_shards

    if data.is_dir():
        shared.note_files(data, [file.name for file in data_files(data)])
    with shared.reading(data) as progress:
        found = write_shards(data, folder, rows, progress)
    print(f"wrote {found}", file=sys.stderr)
