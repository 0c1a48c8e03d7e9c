"""`firstpage explain`: what a model looks at, as a picture of bars."""

from __future__ import annotations

import json
from pathlib import Path

import click

from firstpage.cli import options, outputs


@click.command("explain")
@click.argument("model", type=options.FILE)
@options.whole("--top", default=20, help="Features shown.")
@options.output(*outputs.PAGES, help="Write here: .html is a page with the picture; .json, .txt.")
@options.as_json
def command(model: Path, top: int, output: Path | None, as_json: bool) -> None:
    """Show the weights of a linear MODEL, what its trees gained from each feature, or how far its
    stumps can move a score."""
    from firstpage.rankers.explain import explain
    from firstpage.report.rankers import explanation_page, explanation_text

    kind = outputs.chosen_format(None, as_json, output, outputs.PAGES)
    found = explain(model)
    if kind == "json":
        outputs.deliver(json.dumps(found.to_dict(), indent=1), output)
    elif kind == "html":
        outputs.deliver(explanation_page(found, top), output)
    else:
        outputs.deliver(explanation_text(found, top), output)
