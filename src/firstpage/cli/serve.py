"""`firstpage serve`: a model behind an address."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import click

from firstpage.cli import options


@click.command("serve")
@click.argument("model", type=options.FILE)
@options.address(8220)
@options.whole("--max-candidates", default=1000, help="Candidates of one query.")
@options.whole("--max-queries", default=1000, help="Queries of one batch.")
@options.whole("--max-bytes", default=8 << 20, help="Bytes of one request.")
@options.whole(
    "--max-at-once", default=64, help="Requests at the same time; more are told to come again."
)
@options.whole(
    "--max-connections", default=1000, help="Open connections; more take the place of silent ones."
)
@click.option(
    "--poll", type=click.FloatRange(0.05), default=1.0, show_default=True, metavar="SECONDS",
    help="How often to look for a new model file.",
)  # fmt: skip
@click.option("--no-reload", is_flag=True, help="Do not look for one; SIGHUP still does.")
@click.option(
    "--allow-new-features", is_flag=True,
    help="Take up a model with other features than the one in service; else it is refused.",
)  # fmt: skip
@click.option("--wait", is_flag=True, help="Start without a model, and wait for its file.")
@click.option(
    "--token", envvar="FIRSTPAGE_SERVE_TOKEN", metavar="TEXT",
    help="Who sends it may POST /reload; also FIRSTPAGE_SERVE_TOKEN.",
)  # fmt: skip
def command(
    model: Path, host: str, port: int, max_candidates: int, max_queries: int, max_bytes: int,
    max_at_once: int, max_connections: int, poll: float, no_reload: bool,
    allow_new_features: bool, wait: bool, token: str | None,
) -> None:  # fmt: skip
    """Serve MODEL over HTTP: POST /rank and /batch; GET /health, /model, /metrics.

    A new file in MODEL's place is taken up without a dropped request; a damaged one is refused,
    and so is a model with other features.
    GET / shows people how to ask, and /openapi.json machines.
    """
    from firstpage.errors import missing_dependency

    for package in ("uvicorn", "starlette", "msgspec", "prometheus_client"):
        if find_spec(package) is None:
            raise missing_dependency(package, "serve", "firstpage serve")
    if token is not None and not token.strip():
        raise click.UsageError("--token is empty.")
    from firstpage.serving.limits import Limits
    from firstpage.serving.process import serve

    limits = Limits(
        candidates=max_candidates, queries=max_queries, bytes=max_bytes, at_once=max_at_once,
        connections=max_connections,
    )  # fmt: skip
    serve(
        model, host, port, limits, poll=None if no_reload else poll, token=token, wait=wait,
        allow_new_features=allow_new_features,
    )  # fmt: skip
