"""A whole experiment: people search in a browser and over HTTP, and their clicks train a model."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import firstpage as fp
from firstpage.serving.app import Serving
from firstpage.serving.event_log import EventLog
from firstpage.serving.experiments import LiveExperiment
from firstpage.serving.served_index import IndexSource
from firstpage.serving.watched_model import WatchedModel
from tests.cli.conftest import run as run  # a fixture
from tests.labeling.app.browser.axe import expect_accessible
from tests.serving.browser.conftest import LivePage
from tests.serving.test_event_log import stored_rows
from tests.serving.test_experiments import TWO, settings_file
from tests.serving.texts import QUERIES, grades

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "live.py"
pytest.importorskip("polars")


@pytest.fixture
def walk() -> ModuleType:
    """Return the script of the docs, benchmarks/live.py."""
    spec = importlib.util.spec_from_file_location("live", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["live"] = module
    spec.loader.exec_module(module)
    return module


def test_clicks_decide_and_train_the_next_model(
    own_shop: tuple[Path, Path], tmp_path: Path, browser: Any, walk: ModuleType, run: Any
) -> None:
    index, model = own_shop
    events, queries = tmp_path / "events", tmp_path / "queries.jsonl"
    queries.write_text("".join(json.dumps({"id": q, "text": t}) + "\n" for q, t in QUERIES))
    source = IndexSource(index, candidates=30)
    watched = WatchedModel(model, source=source)
    watched.reload()
    experiment = LiveExperiment(settings_file(tmp_path, arms=TWO), source)
    log = EventLog(events, experiment.fields)
    live = LivePage(Serving(watched, poll=None, events=log, experiment=experiment), browser)
    page = live.open("/?q=red+shoes&depth=4")
    expect_accessible(page)
    with page.expect_response("**/events"):
        page.locator("#r0-3 summary").last.click()
    page.get_by_role("link", name="Next page").click()
    with page.expect_response("**/events"):
        page.locator("#r0-6 summary").last.click()

    run("candidates", index, queries, "--depth", 30, "-o", tmp_path / "candidates.run")
    candidates = fp.read_run(tmp_path / "candidates.run")
    people = walk.fitted_users(dict(QUERIES), candidates, fp.Qrels.from_dict(grades()))
    visitors = walk.Visitors(int(live.url.rsplit(":", 1)[1]))
    pages = visitors.search([text for _, text in QUERIES], 60, 1)
    clicks = visitors.click(pages, people, 1)
    assert len(pages) == 60 * walk.QUERIES_PER_USER
    assert clicks > 60
    watched_before = watched.model
    visitors.connection.close()
    live.stop()
    assert not live.problems

    rows = stored_rows(events)
    own = [row for row in rows if row["client_id"] == rows[0]["client_id"]]
    assert [len(row.get("query_response_hit_ids", ())) for row in own] == [4, 0, 8, 0]
    assert len({row["query_id"] for row in own}) == 1
    ordinals = [
        row["event_attributes"]["position"]["ordinal"] for row in own if "action_name" in row
    ]
    assert ordinals == [3, 6]
    told = json.loads(run("experiment", "analyze", events / "events.jsonl", "--json").stdout)
    assert told["counts"]["clicks"] == clicks + 2
    assert told["counts"]["visitors"] == 61
    row = told["comparisons"][0]
    assert row["wins"] > row["losses"]  # the learned ranking, which knows the grades

    data, trained = tmp_path / "all.npz", tmp_path / "next.json"
    words = ("features", index, queries, tmp_path / "candidates.run", "--set", "short,values")
    assert run(*words, "-o", data).returncode == 0
    logged = tmp_path / "clicks.parquet"
    assert run("clicks", "describe", events / "events.jsonl", "--save", logged).returncode == 0
    done = run("train", "ListNet", data, "--clicks", logged, "--queries", queries,
               "--normalize", "minmax", "-o", trained)  # fmt: skip
    assert done.returncode == 0, done.stderr
    trained.replace(model)
    assert watched.reload().accepted
    assert watched.model is not None
    assert watched_before is not None
    assert watched.model.digest != watched_before.digest
    following = LiveExperiment(settings_file(tmp_path, name="second", arms=TWO), source)
    app = Serving(watched, poll=None, events=EventLog(events), experiment=following)
    live = LivePage(app, browser)
    visitors = walk.Visitors(int(live.url.rsplit(":", 1)[1]))
    assert len(visitors.search(["red shoes"], 2, 1)) == 2 * walk.QUERIES_PER_USER
    visitors.connection.close()
    live.stop()
    about = [row["query_attributes"] for row in stored_rows(events) if "query_attributes" in row]
    assert {each["experiment"] for each in about} == {"first", "second"}
    assert len({each["digest"] for each in about}) == 2
