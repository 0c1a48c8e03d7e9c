"""`firstpage serve`: serve a model over HTTP."""

from __future__ import annotations

import signal
from functools import partial
from pathlib import Path

import click

from firstpage import serving  # the face: what is behind it needs the extra `serve`
from firstpage.cli import options, shared
from firstpage.cli.help import documented_command
from firstpage.core import require_extras


@documented_command(
    "serve",
    "firstpage serve model.json",
    "firstpage serve model.json --host 0.0.0.0 --port 8080 --wait",
    "firstpage serve model.json --index shop.index --open",
)
@click.argument("model", type=options.FILE)
@click.option(
    "--index",
    type=options.FOLDER,
    help="Index of texts, which can then be searched: a page at /, and the route /search.",
)
@click.option("--open", "open_page", is_flag=True, help="With --index: open the page in a browser.")
@options.integer(
    "--candidates",
    default=100,
    help="With --index: documents of the first stage that the model ranks.",
)
@click.option(
    "--against",
    type=click.Choice(["bm25", "dense", "hybrid"]),
    show_default="the first stage of the model's candidates",
    help="With --index: first stage whose results the page shows beside those of the model.",
)
@click.option(
    "--encoder",
    metavar="NAME",
    help="With --index: encoder of its vectors, where it is a function of your own "
    "(MODULE:FUNCTION), an address, or a folder that has moved.",
)
@click.option(
    "--feature",
    "own_features",
    multiple=True,
    metavar="MODULE:FUNCTION",
    help="With --index: feature of your own that the model may use; may be repeated.",
)
@click.option(
    "--rerank",
    metavar="NAME",
    help="With --index: assessor that orders the first 20 documents of each search in one call: a "
    "chat endpoint (http://host/v1#model), a function or a cross-encoder, as in `rerank`.",
)
@click.option(
    "--rerank-seconds",
    type=click.FloatRange(0, min_open=True),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="With --rerank: time after which the order of the model is shown.",
)
@click.option(
    "--feedback",
    type=options.FOLDER,
    help="With --index: ask which page is better, and store answers and queries to judge in this "
    "folder.",
)
@click.option(
    "--events",
    type=options.FOLDER,
    help="Store queries, and what people do with the results (POST /events), in this folder.",
)
@click.option(
    "--experiment",
    type=options.FILE,
    help="With --events: settings of an experiment on users (JSON).",
)
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="With --index: host name by which people reach the server; may be repeated.",
)
@options.address(8220)
@options.integer(
    "--workers",
    default=1,
    help="Processes that share the address, on one machine; limits are those of each.",
)
@click.option(
    "--access-log",
    type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
    metavar="FILE",
    help="Append a line per request to this file; - is standard output.",
)
@options.integer("--max-candidates", default=1000, help="Limit on candidates per query.")
@options.integer("--max-queries", default=1000, help="Limit on queries per batch.")
@options.integer("--max-events", default=60_000, help="Limit on events per network and minute.")
@options.integer("--max-bytes", default=8 << 20, help="Limit on bytes per request.")
@options.integer(
    "--max-at-once",
    default=64,
    help="Limit on concurrent requests; others are answered with 503 (try again).",
)
@options.integer(
    "--max-connections",
    default=1000,
    help="Limit on open connections; a new one beyond it closes the longest idle one.",
)
@click.option(
    "--poll",
    type=click.FloatRange(0.05),
    default=1.0,
    metavar="SECONDS",
    help="Interval between checks for a new model file.",
)
@click.option(
    "--no-reload", is_flag=True, help="Do not check for a new model file; SIGHUP still reloads."
)
@click.option(
    "--allow-new-features",
    is_flag=True,
    help="Accept a new model whose features differ from those of the model in service.",
)
@click.option("--wait", is_flag=True, help="Start without a model, and wait for its file.")
@click.option(
    "--token",
    envvar="FIRSTPAGE_SERVE_TOKEN",
    show_envvar=True,
    metavar="TEXT",
    help="Token that a client needs for POST /reload.",
)
def command(
    model: Path,
    index: Path | None,
    open_page: bool,
    candidates: int,
    against: str | None,
    encoder: str | None,
    own_features: tuple[str, ...],
    rerank: str | None,
    rerank_seconds: float,
    feedback: Path | None,
    events: Path | None,
    experiment: Path | None,
    hosts: tuple[str, ...],
    host: str,
    port: int,
    workers: int,
    access_log: Path | None,
    max_candidates: int,
    max_queries: int,
    max_events: int,
    max_bytes: int,
    max_at_once: int,
    max_connections: int,
    poll: float,
    no_reload: bool,
    allow_new_features: bool,
    wait: bool,
    token: str | None,
) -> None:
    """Serve a model over HTTP.

    Routes: POST /rank and /batch; GET /health, /model and /metrics.  GET / shows an example
    request, and GET /openapi.json the API.

    With --index, GET / is a page to search the index and to compare the model with the first
    stage, and /search answers the same as JSON.

    When the file MODEL is replaced, the new model takes over without dropping a request.  A
    damaged file is refused, and so is a model with other features.
    """
    require_extras("firstpage serve", "serve")
    if token is not None and not token.strip():
        raise click.UsageError("--token is empty.")
    options.only_with(
        "--index",
        index is not None,
        "open_page",
        "candidates",
        "against",
        "encoder",
        "own_features",
        "rerank",
        "feedback",
        "hosts",
    )
    options.only_with("--rerank", rerank is not None, "rerank_seconds")
    options.only_with("--events", events is not None, "experiment")
    if feedback is not None and events is not None:
        raise click.UsageError(
            "--feedback compares two lists, and --events logs clicks on one: leave out one of them."
        )
    if index is not None and candidates > max_candidates:
        raise click.UsageError("--candidates is greater than --max-candidates.")

    if workers > 1 and not hasattr(signal, "SIGHUP"):
        raise click.UsageError("this system cannot share an address; leave out --workers.")
    if own_features or encoder is not None:
        options.search_current_folder()
    limits = serving.Limits(
        candidates=max_candidates,
        queries=max_queries,
        events=max_events,
        bytes=max_bytes,
        concurrent_requests=max_at_once,
        connections=max_connections,
    )
    settings = serving.ServerSettings(
        model,
        limits,
        poll=None if no_reload else poll,
        token=token,
        wait=wait,
        allow_new_features=allow_new_features,
        hosts=hosts,
        feedback=feedback,
        events=events,
        experiment=experiment,
        access_log=access_log,
        source=None
        if index is None
        else serving.IndexSource(
            index, candidates, own_features, against, encoder, _last_stage(rerank, rerank_seconds)
        ),
    )
    serving.serve(settings, host, port, workers, open_page)


def _last_stage(name: str | None, seconds: float) -> serving.LastStage | None:
    """Return the last stage of searches; an endpoint is asked once, and not again if it fails."""
    if name is None:
        return None
    assessor = shared.list_assessor(name, "--rerank", timeout=seconds, max_attempts=1)
    return serving.LastStage(assessor, seconds, partial(_last_stage, name, seconds))
