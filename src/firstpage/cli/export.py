"""`firstpage export`: write a model in the format of a search engine or another program."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from firstpage.cli import options, outputs
from firstpage.cli.help import documented_command
from firstpage.core import Table
from firstpage.interop.export import TARGETS, export


@documented_command(
    "export",
    "firstpage export --list",
    "firstpage export model.json --to solr -o solr",
    "firstpage export model.json --to onnx -o model.onnx",
)
@click.argument("model", required=False, type=options.FILE)
@click.option("--to", metavar="TARGET", help="Target such as solr or onnx; --list shows all.")
@options.output(
    "json",
    "text",
    "python",
    "onnx",
    "vespa",
    show_default="the folder NAME-TARGET",
    help="Folder to write, or with a suffix the file for the model.",
)
@click.option(
    "--name",
    metavar="NAME",
    show_default="the ranker's name",
    help="Name of the model in the search engine.",
)
@click.option(
    "--features",
    type=options.FILE,
    help="Names of the features, one per line, or a .json list of features.",
)
@click.option(
    "--stage", metavar="NAME", help='Stage of a cascade such as TopRank: first, or "voter 1".'
)
@click.option(
    "--dtype",
    type=click.Choice(["float32", "float64"]),
    default="float32",
    help="Type of the model's input (onnx, vespa-onnx).",
)
@click.option("--list", "list_", is_flag=True, help="List the targets and the models they take.")
@options.as_json
def command(
    model: Path | None,
    to: str | None,
    output: Path | None,
    name: str | None,
    features: Path | None,
    stage: str | None,
    dtype: str,
    list_: bool,
    as_json: bool,
) -> None:
    """Export a model to a search engine, ONNX or NumPy.

    The exported MODEL computes the same scores.
    """
    options.only_with("MODEL, not --list", not list_, "to", "name", "features", "stage", "dtype")
    if list_:
        if model is not None:
            raise click.UsageError(f"--list shows all targets, and takes no MODEL; got {model}.")
        kind = outputs.report_format(None, as_json, output, ("text", "json"))
        outputs.write_text(_targets(kind == "json"), output)
        return
    if model is None or to is None:
        raise click.UsageError("give a model file and --to TARGET; --list shows the targets.")

    exported = export(model, to, name=name, features=features, stage=stage, dtype=dtype)
    if output is not None and str(output) == "-":
        sys.stdout.buffer.write(exported.files[exported.model])
        return
    paths = exported.save(output or f"{exported.name}-{exported.target}/")
    if as_json:
        record = {
            "target": exported.target,
            "name": exported.name,
            "files": [str(p) for p in paths],
        }
        print(json.dumps(record, indent=1))
        return
    for path in paths:
        print(f"wrote {path}", file=sys.stderr)


def _targets(as_json: bool) -> str:
    """Return the list of targets."""
    if as_json:
        listing = [
            {"target": name, "output": target.output, "models": target.models}
            for name, target in TARGETS.items()
        ]
        return json.dumps(listing, indent=1)
    rows = [[name, target.output, target.models] for name, target in TARGETS.items()]
    return Table(["target", "output", "models"], rows, left_aligned=3).text()
