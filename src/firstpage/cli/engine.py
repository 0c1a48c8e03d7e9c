"""`firstpage candidates --engine`: candidates from a running search engine instead of an index."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from firstpage.cli import options, outputs, shared
from firstpage.core import DataError
from firstpage.data.formats import write_run
from firstpage.data.io import read_all
from firstpage.interop import read  # the face: only --engine loads what is behind it
from firstpage.search import Queries

ENGINE_OPTIONS = ("query_format", "ordinal", "output", "depth", "tag", "engine", "request", "log")

engine_options = options.combine(
    click.option(
        "--engine",
        metavar="URL",
        help="Ask Elasticsearch or OpenSearch (http://HOST/INDEX) or Solr "
        "(http://HOST/solr/COLLECTION) instead of INDEX. The environment variable "
        "FIRSTPAGE_ENGINE_AUTHORIZATION is sent, if it is set.",
    ),
    click.option(
        "--request",
        type=options.FILE,
        help="With --engine: JSON body of a request, with {{query}} for the text of a query.",
    ),
    click.option(
        "--log",
        type=outputs.OutputFile("jsonl"),
        help="With --engine: write the responses to this file, for `firstpage import feature-log`; "
        "an interrupted command goes on from there.",
    ),
)


def check_sources(index: Path, queries: Path | None, engine: str | None) -> Path:
    """Return the file of queries: the only argument with --engine, else the one after INDEX."""
    options.only_with("--engine", engine is not None, "request", "log")
    if engine is None:
        if queries is None:
            raise click.UsageError("Missing argument 'QUERIES'.")
        return queries
    others = [
        str(option.name)
        for option in click.get_current_context().command.params
        if isinstance(option, click.Option) and option.name not in ENGINE_OPTIONS
    ]
    options.only_with("INDEX, not --engine", False, *others)
    if queries is not None:
        raise click.UsageError(f"--engine replaces INDEX; give QUERIES only, not {index}, too.")
    return index


def engine_candidates(
    url: str,
    queries: Queries,
    output: Path,
    *,
    request: Path | None,
    log: Path | None,
    depth: int,
    tag: str | None,
) -> None:
    """Write the candidates of queries from a running engine."""
    body = None if request is None else _read_request(request)
    with TemporaryDirectory() as folder, shared.progress_bar("candidates") as progress:
        run = read.query_engine(
            url,
            queries,
            log or Path(folder) / "log.jsonl",
            request=body,
            depth=depth,
            progress=progress,
            name=tag or "engine",
        )
    write_run(run, output)
    print(f"wrote {run} to {output}", file=sys.stderr)


def _read_request(path: Path) -> dict[str, Any]:
    """Return the body of a request."""
    content = read_all(path)
    try:
        body: Any = json.loads(content)
    except ValueError as error:
        raise DataError(f"{path}: is not JSON ({error}).") from None
    if not isinstance(body, dict):
        raise DataError(f"{path}: must be a JSON object, the body of a request.")
    return body
