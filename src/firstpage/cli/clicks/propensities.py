"""`firstpage clicks propensities`: what clicks can tell about examination, and estimates of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import numpy as np

from firstpage.cli import options, outputs, shared
from firstpage.cli.clicks.log_options import log_options, read_features, read_log
from firstpage.cli.help import documented_command
from firstpage.clicks import (
    BY_FEATURES,
    METHODS,
    Propensities,
    TrustBias,
    estimate_propensities,
    trust_bias,
)
from firstpage.core import DataError
from firstpage.data.io import write_bytes
from firstpage.interop.report import figure, page, paragraph


@documented_command(
    "propensities",
    "firstpage clicks propensities clicks.log",
    "firstpage clicks propensities clicks.log --method adjacent -o p.json",
)
@log_options
@click.option(
    "--method",
    type=click.Choice(METHODS),
    default="all-pairs",
    show_default=True,
    help="How ranks are compared; random needs logged propensities; regression-em and dual "
    "learn a ranking by --features too.",
)
@click.option(
    "--model", metavar="MODEL", help="With --method model: the click model, such as PBM or UBM."
)
@click.option(
    "--features", type=options.FILE, metavar="DATA", help="Features of documents of queries."
)
@options.integer(
    "--reference", help="Rank whose propensity is 1; by default the first that is connected."
)
@options.integer("--max-rank", default=10, minimum=2, help="Leave out impressions at lower ranks.")
@click.option(
    "--trust", is_flag=True, help="Also estimate trust bias: clicks as alpha * relevance + beta."
)
@click.option(
    "--qrels", type=options.FILE, metavar="QRELS", help="With --trust: grades of documents."
)
@click.option(
    "--trust-to", type=outputs.OutputFile("json"), help="With --trust: write the trust bias here."
)
@click.option("--html", type=outputs.OutputFile("html"), help="Write a page with a picture here.")
@options.output("json", help="Write the propensities to this file.")
@options.as_json
def command(
    method: Any,
    model: str | None,
    features: Path | None,
    trust: bool,
    qrels: Path | None,
    trust_to: Path | None,
    html: Path | None,
    output: Path | None,
    as_json: bool,
    **values: Any,
) -> None:
    """Estimate how probable it is that each rank is examined.

    First says what can be trusted: which ranks are connected by documents that were seen at several
    of them, and which propensities are identified or too thin.  Then lists propensities relative to
    the reference, with intervals over queries.
    """
    options.only_with("--trust", trust, "qrels", "trust_to")
    options.only_with("--method model", method == "model", "model")
    options.only_with("--method regression-em or dual", method in BY_FEATURES, "features")
    judgments = shared.read_qrels_option(qrels) if qrels is not None else None
    data = None if features is None else read_features(features)
    sessions = read_log(values)
    with shared.progress_bar(f"fitting {model}" if model else "comparing ranks") as progress:
        result = estimate_propensities(
            sessions, method, model=model, features=data, progress=progress, **values
        )
    bias = None
    if trust:
        bias = trust_bias(sessions, judgments, **{**values, "reference": result.reference})
    refused = ""
    # Files are written first: whoever reads the table may close the pipe.
    if output is not None:
        if result.status.count("not identified") == len(result.rank) - 1:
            refused = f"no rank but {result.reference} is identified: {output} is not written."
        else:
            result.save(output)
            shared.note(
                f"wrote {output}; `firstpage clicks judge --propensities` and "
                "`firstpage train --clicks LOG --propensities` read it."
            )
    if trust_to is not None and bias is not None and not refused:
        if np.isfinite(bias.alpha).sum() == 1 < len(bias.rank):
            refused = (
                f"trust bias is identified at no rank but the reference: {trust_to} is not written."
            )
        else:
            bias.save(trust_to)
            shared.note(
                f"wrote {trust_to}; `firstpage train --clicks LOG --propensities` reads it."
            )
    if html is not None and not refused:
        with write_bytes(html) as out:
            out.write(_page(result, bias).encode())
        shared.note(f"wrote {html}.")
    if as_json:
        content = result.to_dict() | ({} if bias is None else {"trust": bias.to_dict()})
        print(json.dumps(content, indent=1, allow_nan=False))
    else:
        print(result if bias is None else f"{result}\n\n{bias}")
    if refused:
        raise DataError(refused)


def _page(result: Propensities, bias: TrustBias | None) -> str:
    """Return a page that begins with what can be trusted."""
    parts = [*map(paragraph, result.verdict), result.summary_table().html()]
    caption = "Probability of examination by rank, with intervals"
    sections = [
        ("May I trust it?", parts[:-1]),
        ("Propensities", [figure(result.plot().svg, caption), parts[-1]]),
    ]
    if bias is not None:
        sections.append(
            ("Trust bias", [*map(paragraph, bias.verdict), bias.summary_table().html()])
        )
    return page("Propensities", f"Clicks of {result.source}.", sections)
