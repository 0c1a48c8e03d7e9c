"""`firstpage explain`: show which features a model uses, and how much."""

from __future__ import annotations

import json
from pathlib import Path

import click

from firstpage.cli import options, outputs
from firstpage.cli.help import documented_command
from firstpage.interop.report import explanation_page, explanation_text
from firstpage.learning.models import explain


@documented_command(
    "explain", "firstpage explain model.json --top 10", "firstpage explain model.json -o model.html"
)
@click.argument("model", type=options.FILE)
@options.integer("--top", default=20, help="Number of features to show; JSON has all by default.")
@options.output(
    *outputs.PAGES, help="Write to this file: .html (a page with a chart), .json or .txt."
)
@options.as_json
def command(model: Path, top: int, output: Path | None, as_json: bool) -> None:
    """Show the importance of each feature in a model.

    That is its weight in a linear MODEL, the gain of the splits on it in a MODEL of trees (their
    number, if a file of another tool has no gains), or how much the stumps on it can change a
    score.
    """
    kind = outputs.report_format(None, as_json, output, outputs.PAGES)
    explanation = explain(model)
    if kind == "json":
        record = explanation.to_dict()
        if options.on_command_line("top"):
            record["features"] = record["features"][:top]
        outputs.write_text(json.dumps(record, indent=1), output)
    elif kind == "html":
        outputs.write_text(explanation_page(explanation, top), output)
    else:
        outputs.write_text(explanation_text(explanation, top), output)
