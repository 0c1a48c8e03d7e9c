"""`firstpage serve`: serve a model over HTTP."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import click

from firstpage.cli import options
from firstpage.cli.help import documented_command


@documented_command(
    "serve",
    "firstpage serve model.json",
    "firstpage serve model.json --host 0.0.0.0 --port 8080 --wait",
)
@click.argument("model", type=options.FILE)
@options.address(8220)
@options.integer("--max-candidates", default=1000, help="Limit on candidates per query.")
@options.integer("--max-queries", default=1000, help="Limit on queries per batch.")
@options.integer("--max-bytes", default=8 << 20, help="Limit on bytes per request.")
@options.integer(
    "--max-at-once", default=64,
    help="Limit on concurrent requests; others are answered with 503 (try again).",
)  # fmt: skip
@options.integer(
    "--max-connections", default=1000,
    help="Limit on open connections; a new one beyond it closes the longest idle one.",
)  # fmt: skip
@click.option(
    "--poll", type=click.FloatRange(0.05), default=1.0, show_default=True, metavar="SECONDS",
    help="Interval between checks for a new model file.",
)  # fmt: skip
@click.option(
    "--no-reload", is_flag=True, help="Do not check for a new model file; SIGHUP still reloads."
)
@click.option(
    "--allow-new-features", is_flag=True,
    help="Accept a new model whose features differ from those of the model in service.",
)  # fmt: skip
@click.option("--wait", is_flag=True, help="Start without a model, and wait for its file.")
@click.option(
    "--token", envvar="FIRSTPAGE_SERVE_TOKEN", show_envvar=True, metavar="TEXT",
    help="Token that a client needs for POST /reload.",
)  # fmt: skip
def command(
    model: Path, host: str, port: int, max_candidates: int, max_queries: int, max_bytes: int,
    max_at_once: int, max_connections: int, poll: float, no_reload: bool,
    allow_new_features: bool, wait: bool, token: str | None,
) -> None:  # fmt: skip
    """Serve a model over HTTP.

    Routes: POST /rank and /batch; GET /health, /model and /metrics.  GET / shows an example
    request, and GET /openapi.json the API.

    When the file MODEL is replaced, the new model takes over without dropping a request.  A
    damaged file is refused, and so is a model with other features.
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
        candidates=max_candidates, queries=max_queries, bytes=max_bytes,
        concurrent_requests=max_at_once, connections=max_connections,
    )  # fmt: skip
    serve(
        model, host, port, limits, poll=None if no_reload else poll, token=token, wait=wait,
        allow_new_features=allow_new_features,
    )  # fmt: skip
