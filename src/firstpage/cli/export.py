"""`firstpage export`: a model as the files of a search engine or another program."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from firstpage.cli import options


@click.command("export")
@click.argument("model", required=False, type=options.FILE)
@click.option("--to", metavar="TARGET", help="Such as solr or onnx; --list shows all.")
@options.output(
    "json",
    "text",
    "python",
    "onnx",
    "vespa",
    help="A folder, or a file for the model (with a suffix); NAME-TARGET, if not given.",
)
@click.option("--name", help="Of the model in the engine; the ranker's, if not given.")
@click.option(
    "--features", type=options.FILE, help="Names, one a line, or a .json list of features."
)
@click.option("--part", help="Of a cascade such as TopRank: first, 'voter 1' ..")
@click.option(
    "--dtype", type=click.Choice(["float32", "float64"]), default="float32", show_default=True,
    help="onnx, vespa-onnx: what the input of the model holds.",
)  # fmt: skip
@click.option("--list", "list_", is_flag=True, help="Show the targets and what each takes.")
@options.as_json
def command(
    model: Path | None, to: str | None, output: Path | None, name: str | None,
    features: Path | None, part: str | None, dtype: str, list_: bool, as_json: bool,
) -> None:  # fmt: skip
    """Write MODEL for a search engine, an ONNX runtime or NumPy alone, with the same scores."""
    if list_:
        _show(as_json)
        return
    if model is None or to is None:
        raise click.UsageError("give a model file and --to TARGET; --list shows the targets.")
    from firstpage.interop.export.export import export

    made = export(model, to, name=name, features=features, part=part, dtype=dtype)
    if output is not None and str(output) == "-":
        sys.stdout.buffer.write(made.files[made.model])
        return
    places = made.save(output or Path(f"{made.name}-{made.target}"))
    if as_json:
        held = {"target": made.target, "name": made.name, "files": [str(p) for p in places]}
        print(json.dumps(held, indent=1))
        return
    for place in places:
        print(f"wrote {place}", file=sys.stderr)


def _show(as_json: bool) -> None:
    from firstpage.interop.export.export import TARGETS
    from firstpage.table import Table

    if as_json:
        held = [{"target": n, "writes": t.about, "takes": t.takes} for n, t in TARGETS.items()]
        print(json.dumps(held, indent=1))
        return
    rows = [[name, target.about, target.takes] for name, target in TARGETS.items()]
    print(Table(["target", "writes", "takes"], rows, left_aligned=3).text())
