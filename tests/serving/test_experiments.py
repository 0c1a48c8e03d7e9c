"""Experiments: who sees which ranking, what is logged, and pages of one merged list."""

from __future__ import annotations

import html
import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.errors import DataError, FirstpageWarning
from firstpage.data.io.json_files import write_json
from firstpage.learning.models.model_files import FILE
from firstpage.serving import event_rows
from firstpage.serving.app import Serving
from firstpage.serving.event_log import EventLog, prune
from firstpage.serving.event_rows import now
from firstpage.serving.experiments import LiveExperiment
from firstpage.serving.searching import Ranking, rank_text
from firstpage.serving.served_index import IndexSource
from firstpage.serving.served_model import load
from firstpage.serving.watched_model import WatchedModel
from tests.cli.conftest import run as run  # a fixture
from tests.core.http.test_slow_clients import wait_for
from tests.logs import captured_log
from tests.serving.conftest import TestClient, body, linear_model, write_model
from tests.serving.conftest import dataset as features
from tests.serving.test_event_log import stored_rows
from tests.serving.texts import HOST, QUERIES, dataset, grades

Shop = tuple[Path, Path]
TWO = [{"name": "words", "ranking": "first stage"}, {"name": "learned"}]


def settings_file(folder: Path, **changed: Any) -> Path:
    path = folder / "experiment.json"
    path.write_text(json.dumps({"name": "first", "arms": TWO, **changed}))
    return path


@contextmanager
def clients(shop: Shop, folder: Path, **changed: Any) -> Iterator[TestClient]:
    """Yield a client of a server with an experiment, which logs to `events`."""
    source = IndexSource(shop[0])
    watched = WatchedModel(shop[1], source=source)
    watched.reload()
    experiment = LiveExperiment(settings_file(folder, **changed), source)
    log = EventLog(folder / "events", experiment.fields)
    app = Serving(watched, poll=None, events=log, experiment=experiment)
    with TestClient(app, base_url=HOST, follow_redirects=False) as client:
        yield client


def ids(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [each["id"] for each in answer.json()["results"]]


def find(client: TestClient, text: str = "red shoes", /, **params: Any) -> Any:
    return client.get("/search", params={"q": text, **params})


def test_a_user_keeps_an_arm_and_the_log_names_it(shop: Shop, tmp_path: Path) -> None:
    with clients(shop, tmp_path, method="ab", shares=[0.25, 0.75]) as client:
        lists = [ids(find(client, model=False)), ids(find(client))]
        assert lists[0] != lists[1]
        shown = [ids(find(client, client=f"u{n}")) for n in range(200)]
        assert shown[:50] == [ids(find(client, client=f"u{n}")) for n in range(50)]
    rows = stored_rows(tmp_path / "events")
    assert len(rows) == 250
    for row, seen in zip(rows, shown, strict=False):
        about = row["query_attributes"]
        assert (about["method"], about["arms"]) == ("ab", ["words", "learned"])
        assert row["query_response_hit_ids"] == seen == lists[about["arm"]]
    arms = Counter(row["query_attributes"]["arm"] for row in rows[:200])
    assert 30 < arms[0] < 70
    assert len({row["query_id"] for row in rows}) == 250


def test_pages_of_an_interleaved_list_neither_repeat_nor_skip(shop: Shop, tmp_path: Path) -> None:
    shown: dict[str, list[str]] = {}
    with clients(shop, tmp_path) as client:
        orders = [ids(find(client, depth=77, model=word)) for word in (False, True)]
        for user in ("ann", "bob", "eve"):
            first = find(client, client=user, depth=5)
            name = first.json()["query_id"]
            pages = [ids(first)]
            for page in (2, 3):
                later = find(client, client=user, depth=5, page=page, query_id=name)
                assert later.json()["query_id"] == name
                pages.append(ids(later))
            whole = [each for page in pages for each in page]
            assert len(set(whole)) == len(whole) == 15
            for order in orders:
                assert set(whole) >= set(order[:7])
            shown[name] = whole
        beyond = find(client, client="ann", depth=50, page=9)
        assert ids(beyond) == []
    stored = stored_rows(tmp_path / "events")  # complete, since the server has stopped
    for name, whole in shown.items():
        rows = [row for row in stored if row["query_id"] == name]
        assert [len(row["query_response_hit_ids"]) for row in rows] == [5, 10, 15]
        assert [len(row["query_attributes"]["teams"]) for row in rows] == [5, 10, 15]
        assert rows[-1]["query_response_hit_ids"] == whole
    assert len({tuple(row["query_response_hit_ids"][:5]) for row in stored}) > 1


@pytest.mark.parametrize("method", ["balanced", "probabilistic", "optimized", "pairwise"])
def test_logs_of_all_methods_are_read(shop: Shop, tmp_path: Path, method: str) -> None:
    with clients(shop, tmp_path, method=method) as client:
        for user in ("ann", "bob"):
            name = find(client, client=user).json()["query_id"]
            click = {
                "action_name": "click", "query_id": name, "timestamp": "2026-01-01T00:00:00Z",
                "event_attributes": {"object": {"object_id": "x"}, "position": {"ordinal": 1}},
            }  # fmt: skip
            click["event_attributes"]["object"]["object_id"] = ids(find(client, client=user))[0]
            assert client.post("/events", json=click).status_code == 200
    sessions = fp.read_sessions(tmp_path / "events" / "events.jsonl")
    assert sessions.experiment is not None
    assert (sessions.experiment >= 0).all()
    assert sessions.clicks.sum() == 2


def test_who_is_outside_sees_the_model_in_service(shop: Shop, tmp_path: Path) -> None:
    for changed in (
        {"end": "2020-01-01T00:00:00Z"},
        {"start": "2990-01-01T00:00:00Z"},
        {"shares": [1e-9, 1e-9], "method": "ab"},
    ):
        shutil.rmtree(tmp_path / "events", ignore_errors=True)
        with clients(shop, tmp_path, **changed) as client:
            assert ids(find(client, client="ann")) == ids(find(client))
        (row,) = stored_rows(tmp_path / "events")
        assert "query_attributes" not in row
    with clients(shop, tmp_path, fields=["application"]) as client:
        assert ids(find(client, client="ann", explain=2)) == ids(find(client))  # chosen by the user
        find(client, client="ann")
    (row,) = stored_rows(tmp_path / "events")[1:]
    assert "client_id" not in row


def test_the_clock_of_the_machine_is_moved_during_an_experiment(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is in the experiment follows the clock; lists, ids and the order of rows do not."""
    window = {"start": "2026-11-10T00:00:00Z", "end": "2026-11-20T00:00:00Z"}
    days, seen = (9, 12, 19, 11, 21, 8, 14), list[tuple[bool, list[str]]]()
    with clients(shop, tmp_path, **window) as client:
        for day in days:
            moment = datetime(2026, 11, day, tzinfo=UTC)
            monkeypatch.setattr(event_rows, "clock", lambda moment=moment: moment)
            answer = find(client, client="ann")
            click = {
                "action_name": "click", "query_id": answer.json()["query_id"],
                "timestamp": moment.isoformat(),
                "event_attributes": {"object": {"object_id": "x"}, "position": {"ordinal": 1}},
            }  # fmt: skip
            click["event_attributes"]["object"]["object_id"] = ids(answer)[0]
            assert client.post("/events", json=click).json() == {"stored": 1, "known": 0}
            ahead = click | {"timestamp": "2026-11-29T00:00:00Z"}
            assert client.post("/events", json=ahead).status_code == 422
            seen.append((10 <= day < 20, ids(answer)))
    rows = stored_rows(tmp_path / "events")
    queries = rows[::2]
    assert [int(row["timestamp"][8:10]) for row in queries] == list(days)  # in order of arrival
    assert ["query_attributes" in row for row in queries] == [within for within, _ in seen]
    assert len({tuple(shown) for within, shown in seen if within}) == 1
    assert len({row["query_id"] for row in queries}) == len(days)
    result = fp.clicks.analyze(fp.read_sessions(tmp_path / "events" / "events.jsonl"))
    assert result.counts["pages"] == 4
    assert "set back" in str(result)
    with pytest.warns(FirstpageWarning, match="4 rows have times more than a day ahead"):
        assert prune(tmp_path / "events", 4) == 4  # since the clock stands at the 14th
    left = [int(row["timestamp"][8:10]) for row in stored_rows(tmp_path / "events")]
    assert left == [day for day in days for _ in range(2) if day > 10]


def test_a_changed_arm_is_another_experiment(own_shop: Shop, tmp_path: Path) -> None:
    index = fp.Index(own_shop[0])
    fp.ListMLE(normalize="minmax").fit(dataset(index)).save(tmp_path / "other.json")
    arms = [{"name": "learned"}, {"name": "other", "model": "other.json"}]
    for _ in range(2):
        with clients(own_shop, tmp_path, arms=arms) as client:
            find(client, client="ann")
    fp.ListMLE(normalize="minmax", l2=10.0).fit(dataset(index)).save(tmp_path / "other.json")
    with clients(own_shop, tmp_path, arms=arms) as client:
        find(client, client="ann")
    rows = stored_rows(tmp_path / "events")
    digests = [row["query_attributes"]["digest"] for row in rows]
    assert digests[0] == digests[1] != digests[2]


def test_models_with_the_same_features_compute_them_once(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, source, counts = fp.Index(shop[0]), IndexSource(shop[0]), Counter[int]()
    for name, chosen in (("same", "short,values"), ("other", "letor")):
        data = dataset(index, chosen)
        fp.ListMLE(normalize="minmax").fit(data).save(tmp_path / f"{name}.json")
    arms = [{"name": "learned"}, *({"name": n, "model": f"{n}.json"} for n in ("same", "other"))]
    watched = WatchedModel(shop[1], source=source)
    watched.reload()
    assert watched.model is not None
    models = LiveExperiment(settings_file(tmp_path, arms=arms), source).models(watched.model)
    compute = fp.TextFeatures.compute

    def counted(texts: fp.TextFeatures, *args: Any) -> Any:
        counts[len(texts.names)] += 1
        return compute(texts, *args)

    monkeypatch.setattr(fp.TextFeatures, "compute", counted)
    alone = [rank_text(model, "red shoes") for model in models]
    together: list[Ranking] = []
    for model in models:
        together.append(rank_text(model, "red shoes", True, together))
    assert sorted(counts.values()) == [2, 3]  # alone two and one, together one and one
    for one, other in zip(alone, together, strict=True):
        assert one.order.tolist() == other.order.tolist()
        assert one.scores.tolist() == other.scores.tolist()
    assert len({tuple(each.order.tolist()) for each in alone}) == 3


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"arms": TWO[:1]}, "of length >= 2"),
        ({"arms": [TWO[0], TWO[0]]}, "two arms have the same name"),
        ({"shares": [0.5]}, "'shares' needs one number per arm"),
        ({"shares": [0.9, 0.9]}, "add up to more than 1"),
        (
            {"start": "2026-11-20T00:00:00Z", "end": "2026-11-20T00:00:00+01:00"},
            "json: it ends before it starts.",
        ),
        ({"method": "best"}, "Invalid enum value"),
        ({"colour": 1}, "unknown field `colour`"),
        ({"arms": [*TWO, {"name": "c"}], "method": "balanced"}, "'balanced' is for two arms"),
        ({"fields": ["usr"]}, "'usr' is not a field of the event log"),
        ({"arms": [TWO[1], {"name": "b", "model": "none.json"}]}, "none.json: cannot be read"),
    ],
)
def test_settings_that_are_wrong_are_refused(
    shop: Shop, tmp_path: Path, changed: dict[str, Any], problem: str
) -> None:
    with pytest.raises(DataError) as refused:
        LiveExperiment(settings_file(tmp_path, **changed), IndexSource(shop[0]))
    assert problem in str(refused.value)
    assert "\n" not in str(refused.value)


def test_settings_that_say_two_things_or_are_over(shop: Shop, tmp_path: Path) -> None:
    path = settings_file(tmp_path, end="2026-01-01T00:00:00Z")
    with captured_log("firstpage.serving") as text:
        LiveExperiment(path, IndexSource(shop[0]))
    assert "experiment.json: has ended; all users see the model in service." in text.getvalue()
    path.write_text(path.read_text().replace("{", '{"method": "ab", "method": "balanced", ', 1))
    with pytest.raises(DataError, match=r"\(the key 'method' occurs twice in one JSON object\)"):
        LiveExperiment(path, IndexSource(shop[0]))


def test_the_page_shows_one_list_and_logs_it(shop: Shop, tmp_path: Path) -> None:
    with clients(shop, tmp_path) as client:
        answer = client.get("/?q=red+shoes")
        page = answer.text
        assert "set-cookie" in answer.headers
        assert page.count('<section id="side') == 1
        assert "Model:" not in page.partition("<main")[2]
        assert "Which page is better" not in page
        wait_for(lambda: bool(stored_rows(tmp_path / "events")))  # no answer waits for the disk
        (row,) = stored_rows(tmp_path / "events")
        assert f'data-query="{row["query_id"]}"' in page
        assert [page.index(f'data-document="{name}"') for name in row["query_response_hit_ids"]]
        assert row["query_attributes"]["experiment"] == "first"
        cookie = client.cookies["firstpage_search"]
        assert cookie not in json.dumps(row)
        event = {
            "action_name": "click", "timestamp": row["timestamp"], "client_id": "somebody else",
            "query_id": row["query_id"], "event_attributes": {"position": {"ordinal": 1}},
        }  # fmt: skip
        assert client.post("/events", json=event, headers={"origin": HOST}).status_code == 200
        evil = {"origin": "https://evil.example"}
        assert client.post("/events", json=event, headers=evil).status_code == 403
    rows = stored_rows(tmp_path / "events")
    assert len({each["client_id"] for each in rows}) == 1
    assert len(rows) == 2


def test_further_pages_continue_the_list_of_the_page(shop: Shop, tmp_path: Path) -> None:
    with clients(shop, tmp_path) as client:
        page, shown, seen = client.get("/?q=red+shoes&depth=7").text, [], 0
        while page:
            seen += 1
            shown += re.findall(r'value="(\d+)" tabindex="-1" data-document="([^"]+)"', page)
            following = re.search(r'rel="next" href="([^"]+)"', page)
            assert ('rel="prev"' in page) == (seen > 1)
            page = client.get(html.unescape(following[1])).text if following else ""
        assert [int(rank) for rank, _ in shown] == list(range(1, len(shown) + 1))
        assert len({name for _, name in shown}) == len(shown)
        assert len(shown) == find(client).json()["candidates"] > 7 * (seen - 1) > 7
        for wrong in ("page=0", "page=x", "page=1&query_id=" + "q" * 101, "query_id=%07"):
            assert client.get(f"/?q=red+shoes&{wrong}").status_code == 422
    rows = stored_rows(tmp_path / "events")
    assert len({row["query_id"] for row in rows}) == 1
    assert rows[-1]["query_response_hit_ids"] == [html.unescape(name) for _, name in shown]


def test_a_page_of_a_list_that_changed_is_not_logged(own_shop: Shop, tmp_path: Path) -> None:
    """Its documents would be taken for those of the first page, and credited to other rankings."""
    with clients(own_shop, tmp_path) as client:
        first = find(client, client="ann", depth=5).json()
        shutil.copy(own_shop[1], tmp_path / "old.json")
        changed = json.loads(own_shop[1].read_text())
        changed["scorer"]["weights"] = [-w for w in changed["scorer"]["weights"]]
        del changed["sha256"], changed["format"], changed["version"]
        write_json(FILE.with_header(changed), own_shop[1])
        assert client.app.watched.reload().accepted  # type: ignore[attr-defined]
        params = {"client": "ann", "depth": 5, "page": 2, "query_id": first["query_id"]}
        later = find(client, **params).json()
        assert later["query_id"] == first["query_id"]
        assert later["model"] != first["model"]
        again = find(client, client="ann", depth=5).json()
        shutil.copy(tmp_path / "old.json", own_shop[1])
        assert client.app.watched.reload().accepted  # type: ignore[attr-defined]
        continued = find(client, **params).json()
        other = {**params, "client": "bob"}
        find(client, **other)
    rows = stored_rows(tmp_path / "events")
    names = [row["query_id"] for row in rows]
    assert names == [first["query_id"], again["query_id"], first["query_id"]]
    shown = [[each["id"] for each in page["results"]] for page in (first, continued)]
    assert rows[2]["query_response_hit_ids"] == shown[0] + shown[1]


def test_interleaved_pages_teach_a_measure_and_plan_the_next_experiment(
    shop: Shop, tmp_path: Path, run: Any
) -> None:
    """The log has texts as they were typed; `--queries` joins them with the ids of other files."""
    rng, known = np.random.default_rng(1), grades()
    with clients(shop, tmp_path) as client:
        for name, ranking in (("words", False), ("learned", True)):
            lines = [
                f"{query} Q0 {document} {rank} {30 - rank} {name}\n"
                for query, text in QUERIES[:6]
                for rank, document in enumerate(ids(find(client, text, model=ranking)), 1)
            ]
            (tmp_path / f"{name}.run").write_text("".join(lines))
        for user in range(25):
            for query, text in QUERIES[:6]:
                answer = find(client, text, client=f"u{user}", depth=6).json()
                for rank, result in enumerate(answer["results"], 1):
                    if rng.random() < 0.9 * (known[query].get(result["id"], 0) > 0) / rank:
                        place = {"object_id": result["id"]}
                        event = {
                            "action_name": "click",
                            "query_id": answer["query_id"],
                            "timestamp": now(),
                            "event_attributes": {"object": place, "position": {"ordinal": rank}},
                        }
                        assert client.post("/events", json=event).json()["stored"] == 1
    log, queries = tmp_path / "events" / "events.jsonl", tmp_path / "queries.jsonl"
    queries.write_text("".join(json.dumps({"id": q, "text": t}) + "\n" for q, t in QUERIES))
    qrels, lists = tmp_path / "people.qrels", tmp_path / "lists.jsonl"
    rows = [f"{q} 0 {d} {grade}\n" for q, row in known.items() for d, grade in row.items()]
    qrels.write_text("".join(rows))
    words = ("clicks", "preferences", log, "--qrels", qrels, "-o", lists)
    assert run(*words).returncode == 1
    done = run(*words, "--queries", queries)
    assert done.returncode == 0, done.stderr
    assert "pairs of lists" in done.stderr
    done = run("dcglearn", "learn", lists, "--rounds", 0, "-o", tmp_path / "measure.json")
    assert done.returncode == 0, done.stderr
    runs = (tmp_path / "words.run", tmp_path / "learned.run")
    plan = ("experiment", "plan", log, "--sessions", 500, "--runs", *runs)
    assert "no query of the log is in both rankings" in run(*plan).stderr
    done = run(*plan, "--queries", queries)
    assert "interleaving" in done.stdout, done.stderr
    others = tmp_path / "others.jsonl"
    others.write_text('{"id": "q9", "text": "none of these"}\n')
    assert "has no query of the log, as it was typed" in run(*plan, "--queries", others).stderr


@contextmanager
def rank_clients(folder: Path, **changed: Any) -> Iterator[TestClient]:
    """Yield a client of a server without an index, with an experiment behind /rank."""
    write_model(folder / "model.json")
    write_model(folder / "trees.json", "stumps" if changed.pop("trees", 0) else "scaled")
    watched = WatchedModel(folder / "model.json")
    watched.reload()
    experiment = LiveExperiment(settings_file(folder, **changed))
    assert watched.model is not None
    experiment.models(watched.model)
    app = Serving(watched, poll=None, events=EventLog(folder / "events"), experiment=experiment)
    with TestClient(app) as client:
        yield client


X = np.asarray(features().X, np.float64)[:12]


def ranked(client: TestClient, user: str | None, /, **options: Any) -> dict[str, Any]:
    told = body(X, **options) | ({} if user is None else {"client": user})
    answer = client.post("/rank", json=told)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


SENT = [{"name": "engine", "ranking": "first stage"}, {"name": "run", "ranking": "request"}]
LEARNED = [{"name": "learned"}, {"name": "other", "model": "trees.json"}]


def test_users_of_rank_are_split(tmp_path: Path) -> None:
    orders = {"run": ["d5", "d3", "d11"]}
    with rank_clients(tmp_path, method="ab", arms=[*SENT, *LEARNED], trees=1) as client:
        plain = ranked(client, None)
        assert "query_id" not in plain
        other = load(tmp_path / "trees.json").scores(X, np.array([0, 12]))
        lists = [[f"d{n}" for n in range(12)], orders["run"], plain["order"]]
        lists.append([f"d{n}" for n in np.argsort(-other, kind="stable")])
        answers = [ranked(client, f"u{n}", orders=orders, top=4) for n in range(80)]
        assert "query_id" not in ranked(client, "u1", orders=orders, explain=2)
    scores = dict(zip(plain["order"], plain["scores"], strict=True))
    rows = stored_rows(tmp_path / "events")
    assert Counter(row["query_attributes"]["arm"] for row in rows).keys() == {0, 1, 2, 3}
    for row, answer in zip(rows, answers, strict=True):
        arm = row["query_attributes"]["arm"]
        assert answer["order"] == row["query_response_hit_ids"]
        assert answer["order"] == lists[arm][:4]
        assert answer["scores"] == [scores[name] for name in answer["order"]]
        assert (row["query_id"], row["user_query"]) == (answer["query_id"], "q")
    assert len({tuple(answer["order"]) for answer in answers}) == 4


@pytest.mark.parametrize(
    "method", ["team-draft", "balanced", "probabilistic", "optimized", "pairwise"]
)
def test_rank_shows_one_list_which_a_longer_one_continues(tmp_path: Path, method: str) -> None:
    arms = [LEARNED[0], SENT[1]]
    orders = {"run": [f"d{n}" for n in range(11, 2, -1)]}
    with rank_clients(tmp_path, method=method, arms=arms) as client:
        seen = set()
        for user in "abcdefgh":
            name = f"q-{user}"
            answers = [
                ranked(client, user, orders=orders, top=top, query_id=name) for top in (4, 8, 12)
            ]
            assert {answer["query_id"] for answer in answers} == {name}
            lists = [answer["order"] for answer in answers]
            assert lists[2][:4] == lists[0]
            assert lists[2][:8] == lists[1]
            assert sorted(lists[2]) == sorted(f"d{n}" for n in range(12))
            seen.add(tuple(lists[0]))
            click = {
                "action_name": "click", "query_id": name, "timestamp": "2026-01-01T00:00:00Z",
                "event_attributes": {
                    "object": {"object_id": "d11"},
                    "position": {"ordinal": lists[2].index("d11") + 1},
                },
            }  # fmt: skip
            assert client.post("/events", json=click).status_code == 200
        assert len(seen) > 1
    sessions = fp.read_sessions(tmp_path / "events" / "events.jsonl")
    assert sessions.clicks.sum() == 8
    result = fp.clicks.analyze(sessions).comparisons[0]
    assert result["wins"] > result["losses"]  # d11 is the first document of the run


def test_rank_logs_queries_without_an_experiment(model: Path, tmp_path: Path) -> None:
    watched = WatchedModel(model)
    watched.reload()
    app = Serving(watched, poll=None, events=EventLog(tmp_path / "events"))
    with TestClient(app) as client:
        answer = ranked(client, "ann", top=3)
        ranked(client, None, top=3)
        assert client.post("/batch", json=[{"candidates": [], "client": "a"}]).status_code == 422
    (row,) = stored_rows(tmp_path / "events")
    assert row["query_response_hit_ids"] == answer["order"]
    assert row["client_id"] == "ann"
    assert "query_attributes" not in row


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({}, "'orders': the order of the arm 'run' is missing"),
        ({"orders": {"run": []}}, "'orders': the order of the arm 'run' is missing"),
        ({"orders": {"run": ["d1", "d1"]}}, "the order of the arm 'run' has a document twice"),
        ({"orders": {"run": ["d99"]}}, "'orders' has 'd99', which is not a ranked document"),
        ({"orders": {"rum": ["d1"]}}, "'orders' has 'rum', which is not an arm of the request"),
        ({"orders": {"run": "d1"}}, "'orders' must be an object of lists of ids"),
        ({"query": None}, "'client' needs 'query'"),
        ({"candidates": [{"features": [1, 2, 3, 4]}]}, "'client' needs an 'id' for each candidate"),
        ({"client": "a\n"}, "'client' contains characters that cannot be printed"),
        ({"client": "a" * 101}, "'client' must be a text of at most 100 characters"),
        ({"client": None, "query_id": "q"}, "'query_id' needs 'client'"),
        ({"query": "q" * 1001, "orders": {"run": ["d1"]}}, "the query has 1,001 characters"),
        ({"orders": {"run": ["d1"], "x": []}}, "'x', which is not an arm"),
    ],
)
def test_wrong_requests_of_users_are_refused(
    tmp_path: Path, changed: dict[str, Any], problem: str
) -> None:
    with rank_clients(tmp_path, arms=SENT) as client:
        answer = client.post("/rank", json=body(X, client="ann") | changed)
    assert answer.status_code in (413, 422)
    assert problem in answer.json()["detail"]
    assert not stored_rows(tmp_path / "events")


def test_an_order_that_is_repeated_in_the_body_is_refused(tmp_path: Path) -> None:
    content = json.dumps(body(X, client="ann", orders={"run": ["d1"]}))
    twice = content.replace('"run":', '"run": ["d2"], "run":')
    with rank_clients(tmp_path, arms=SENT) as client:
        headers = {"content-type": "application/json"}
        assert client.post("/rank", content=content, headers=headers).status_code == 200
        answer = client.post("/rank", content=twice, headers=headers)
    assert "the body is ambiguous" in answer.json()["detail"]


def test_an_arm_with_other_features_is_refused(tmp_path: Path) -> None:
    linear_model(tmp_path / "wide.json", ["a", "b"])
    with (
        pytest.raises(DataError, match=r"wide\.json: has other features than the model in serv"),
        rank_clients(tmp_path, arms=[TWO[1], {"name": "wide", "model": "wide.json"}]),
    ):
        pass


def test_a_query_that_is_too_long_for_the_log_names_the_remedy(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(400, 4))
    with rank_clients(tmp_path, arms=LEARNED, method="pairwise") as client:
        answer = client.post("/rank", json=body(rows, client="ann"))
        assert answer.status_code == 413
        assert "('depth' or 'top')" in answer.json()["detail"]
        assert client.post("/rank", json=body(rows, client="ann", top=30)).status_code == 200


def test_a_search_shows_an_order_of_the_request(shop: Shop, tmp_path: Path) -> None:
    arms = [TWO[1], {"name": "engine", "ranking": "request"}]
    with clients(shop, tmp_path, arms=arms) as client:
        listed = ids(find(client, depth=30))
        other = next(d for d in ids(find(client, "blue hat", depth=30)) if d not in listed)
        order = {"engine": [other, *listed[:3]]}
        told = {"q": "red shoes", "client": "ann", "orders": order}
        answer = client.post("/search", json=told)
        shown = {each["id"]: each for each in answer.json()["results"]}
        assert shown[other]["score"] is shown[other]["first_stage_rank"] is None
        assert shown[listed[0]]["first_stage_rank"] is not None
        assert answer.json()["candidates"] == find(client).json()["candidates"]
        refused = find(client, client="ann")
        assert "the order of the arm 'engine' is missing" in refused.json()["detail"]
        told["orders"] = {"engine": ["nowhere"]}
        refused = client.post("/search", json=told)
        assert "'nowhere', which is not a ranked document" in refused.json()["detail"]
        assert "data-query" in client.get("/?q=red+shoes").text  # outside of the experiment
    assert Counter("query_attributes" in row for row in stored_rows(tmp_path / "events")) == {
        True: 1, False: 1,
    }  # fmt: skip
