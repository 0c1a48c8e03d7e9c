"""The route /search: the same results as `Searcher`, limits, reload, and the OpenAPI document."""

from __future__ import annotations

import json
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from schemathesis.core.result import Ok

import firstpage as fp
from firstpage.data.runs import Qrels
from firstpage.serving.app import Serving
from firstpage.serving.json_messages import SearchMessage
from firstpage.serving.limits import Limits
from firstpage.serving.searching import search
from firstpage.serving.served_index import IndexSource
from firstpage.serving.watched_model import WatchedModel
from tests.logs import captured_log
from tests.narrow import instance
from tests.serving.conftest import TestClient, overflowing, write_model
from tests.serving.test_openapi_and_page import CHECKS, schemathesis
from tests.serving.texts import QUERIES, SCRIPT, application, dataset, documents, text_clients

Shop = tuple[Path, Path]


@pytest.fixture
def client(shop: Shop) -> Any:
    yield from text_clients(*shop)


def test_results_are_those_of_the_searcher(client: TestClient, shop: Shop) -> None:
    searcher = fp.Searcher(*shop)
    for _, text in QUERIES:
        answer = client.get("/search", params={"q": text, "explain": 3}).json()
        results = searcher.search(text, explain=3)
        assert [r["id"] for r in answer["results"]] == list(results.ids)
        assert np.allclose([r["score"] for r in answer["results"]], results.scores, atol=1e-12)
        assert [r["first_stage_rank"] for r in answer["results"]] == list(results.first_stage_ranks)
        assert answer["candidates"] == results.n_candidates
        first = [(p["feature"], p["part"]) for p in answer["results"][0]["explanation"]["parts"]]
        assert [name for name, _ in first] == [name for name, _ in results.reasons[0]]


def test_first_stage_without_the_model(client: TestClient, shop: Shop) -> None:
    answer = client.post("/search", json={"q": "red shoes", "model": False, "depth": 5}).json()
    hits = fp.Index(shop[0]).search("red shoes", 5)
    assert answer["model"] is None
    assert [r["id"] for r in answer["results"]] == [hit.id for hit in hits]
    assert [r["score"] for r in answer["results"]] == pytest.approx([hit.score for hit in hits])
    assert [r["first_stage_rank"] for r in answer["results"]] == [1, 2, 3, 4, 5]


def test_get_and_post_are_the_same(client: TestClient) -> None:
    got = client.get("/search?q=blue+coats&depth=3&explain=true&model=true&snippets=false")
    body = {"q": "blue coats", "depth": 3, "explain": True, "model": True, "snippets": False}
    sent = client.post("/search", json=body)
    assert got.content == sent.content
    assert "snippet" not in got.json()["results"][0]
    assert got.headers["x-model"] == got.json()["model"]


def test_highlights_are_the_words_of_the_query(client: TestClient) -> None:
    result = client.get("/search?q=RUNNER+shoe&depth=1").json()["results"][0]
    for passage in (result["title"], result["snippet"]):
        words = {passage["text"][start:end].lower() for start, end in passage["highlights"]}
        assert words <= {"shoes", "runners"}
    assert words == {"shoes", "runners"}


@pytest.mark.parametrize("text", ['c++: "x', "title:red AND (", "red OR", "*", "\\", "a' OR 1=1"])
def test_no_character_has_a_meaning(client: TestClient, text: str) -> None:
    assert client.get("/search", params={"q": text}).status_code == 200


@pytest.mark.parametrize(
    ("request_of", "status", "words"),
    [
        ({"url": "/search"}, 422, "the query is missing"),
        ({"url": "/search?q="}, 422, "the query is empty"),
        ({"url": "/search?q=+%20"}, 422, "the query is empty"),
        ({"url": "/search?q=a&q=b"}, 422, "'q' twice"),
        ({"url": "/search?q=a&dept=3"}, 422, "unknown field 'dept'"),
        ({"url": "/search?q=a&depth=0"}, 422, "'depth' must be a number of documents"),
        ({"url": "/search?q=a&depth=1e3"}, 422, "'depth' must be"),
        ({"url": "/search?q=a&depth=101"}, 413, "100 candidates"),
        ({"url": "/search?q=a&depth=99999999999999999999"}, 422, "'depth' must be"),
        ({"url": "/search?q=a&explain=-1"}, 422, "'explain' must be"),
        ({"url": "/search?q=a&model=no"}, 422, "'model' must be true or false"),
        ({"url": "/search?q=a&model=false&explain=2"}, 422, "needs the model"),
        ({"url": "/search?q=" + "a" * 1001}, 413, "1,001 characters"),
        ({"json": {"q": 5}}, 422, "'q' must be the text of a query; got 5"),
        ({"json": {"q": "a", "depth": "3"}}, 422, "'depth' must be"),
        ({"json": {"q": "a", "top": 3}}, 422, "unknown field 'top'"),
        ({"json": ["a"]}, 422, "must be an object"),
        ({"content": b'{"q": "\\ud800"}'}, 422, ""),
        ({"content": b"{"}, 422, "not valid JSON"),
        ({"content": b"[" * 100_000}, 422, ""),
        ({"json": {"q": "a"}, "url": "/search?q=a"}, 422, "unknown field 'q'"),
        ({"content": b"q=a", "type": "application/x-www-form-urlencoded"}, 415, "not supported"),
        ({"url": "/search?q=a", "headers": {"host": "evil.example"}}, 421, "--allow-host"),
        ({"json": {"q": "a"}, "headers": {"origin": "http://evil.example"}}, 403, "this site"),
    ],
)  # fmt: skip
def test_refusals(client: TestClient, request_of: dict[str, Any], status: int, words: str) -> None:
    url = request_of.pop("url", "/search")
    headers = {"content-type": request_of.pop("type", "application/json")}
    headers |= request_of.pop("headers", {})
    method = "POST" if request_of else "GET"
    response = client.request(method, url, headers=headers, **request_of)
    assert response.status_code == status, response.text
    assert words in response.json()["detail"]
    assert "\n" not in response.json()["detail"]


def test_repeated_keys_are_refused(client: TestClient) -> None:
    """The last one would count without a word."""
    for body in ('{"q": "red", "q": "blue"}', '{"q": "red", "depth": 3, "depth": 4}'):
        response = client.post(
            "/search", content=body, headers={"content-type": "application/json"}
        )
        assert (response.status_code, "occurs twice" in response.json()["detail"]) == (422, True)


def test_pages_with_words_of_documents_check_the_host(client: TestClient) -> None:
    for path in ("/", "/about", "/search?q=red"):
        response = client.get(path, headers={"host": "evil.example", "accept": "text/html"})
        assert response.status_code == 421
        assert "Shoes" not in response.text


def test_the_limit_of_concurrent_requests(shop: Shop) -> None:
    for client in text_clients(*shop, limits=Limits(concurrent_requests=1)):
        with instance(Serving, client.app).admission.slot():
            for path in ("/search?q=a", "/?q=a"):
                assert client.get(path).status_code == 503
        assert client.get("/search?q=a").status_code == 200


def test_the_default_depth_is_at_most_the_candidates(shop: Shop) -> None:
    for client in text_clients(*shop, candidates=3):
        for path in ("/", "/?q=red+shoes", "/?q=red+shoes&depth=3"):
            assert client.get(path).status_code == 200
        answer = client.get("/search?q=red+shoes").json()
        assert len(answer["results"]) == answer["candidates"] == 3
        assert client.post("/search", json={"q": "red shoes"}).json() == answer
        assert "from 1 to 3" in client.get("/?q=red+shoes&depth=10").text
        refused = client.get("/search?q=red+shoes&depth=10")
        assert refused.status_code == 413
        assert "'depth' is 10, and the first stage returns 3" in refused.json()["detail"]
        document = client.get("/openapi.json").json()
        assert document["components"]["schemas"]["SearchMessage"]["properties"]["depth"] == {
            "type": "integer",
            "minimum": 1,
            "maximum": 3,
            "default": 3,
            "description": "Number of documents in the answer.",
        }


def test_searches_are_counted(client: TestClient) -> None:
    candidates = client.get("/search?q=red").json()["candidates"]
    client.get("/?q=red")
    text = client.get("/metrics").text
    assert 'firstpage_requests_total{route="/search",status="200"} 1.0' in text
    assert "firstpage_queries_total 2.0" in text
    assert f"firstpage_candidates_total {2.0 * candidates}" in text


def test_nothing_matches(client: TestClient) -> None:
    answer = client.get("/search?q=zzzz&explain=2").json()
    assert (answer["candidates"], answer["results"]) == (0, [])


def test_a_model_that_does_not_fit_is_refused_and_the_old_one_stays(own_shop: Shop) -> None:
    index, model = own_shop
    for client in text_clients(index, model):
        before = client.get("/search?q=red").json()
        write_model(model)
        report = client.post("/reload", headers={"authorization": "Bearer right"})
        assert report.status_code == 422
        assert "other features" in report.json()["detail"]
        health = client.get("/health").json()
        assert health["status"] == "degraded"
        assert health["index"]["documents"] == len(documents())
        assert client.get("/search?q=red").json() == before


def test_a_model_of_rows_is_refused_at_start(shop: Shop, tmp_path: Path) -> None:
    watched = WatchedModel(write_model(tmp_path / "model.json"), source=IndexSource(shop[0]))
    assert not watched.reload().accepted
    assert "was not trained on features of texts" in str(watched.refused)


def test_a_model_that_overflows_on_documents_of_the_index_is_refused(tmp_path: Path) -> None:
    """Its scores are finite for ordinary features, and the prices of this index are not."""
    shop = [{**each, "price": each["price"] * 1e36} for each in documents()]
    index = fp.Index.from_documents(shop, tmp_path / "shop.index", latent=8)
    path = tmp_path / "model.json"
    fp.ListNet(normalize="minmax").fit(dataset(index)).save(path)
    for client in text_clients(tmp_path / "shop.index", path):
        overflowing(path, 1e280, scaled=False)
        report = client.post("/reload", headers={"authorization": "Bearer right"})
        assert (report.status_code, client.get("/health").json()["status"]) == (422, "degraded")
        assert "not finite for documents of the index: its largest weight is 1e+280" in report.text
        assert client.get("/search?q=red+shoes").status_code == 200


def test_another_index_is_refused(own_shop: Shop, tmp_path: Path) -> None:
    other = tmp_path / "other.index"
    fp.Index.from_documents(documents(), other, language="german", latent=8)
    watched = WatchedModel(own_shop[1], source=IndexSource(other))
    assert not watched.reload().accepted
    assert "analyzers other than those of" in str(watched.refused)
    fp.Index.from_documents(documents(), other, latent=4, overwrite=True)
    assert watched.changed()
    assert not watched.reload().accepted
    assert "another latent space" in str(watched.refused)


def test_a_changed_index_is_opened_again_and_drift_is_reported(own_shop: Shop) -> None:
    index, model = own_shop
    for client in text_clients(index, model):
        watched = instance(Serving, client.app).watched
        assert not watched.changed()
        more = [{"id": f"n{i}", "title": "purple umbrella", "text": "new"} for i in range(400)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fp.Index(index).add(more)
        assert client.get("/search?q=umbrella").json()["candidates"] == 0
        assert watched.changed()
        with captured_log("firstpage.serving") as log:
            assert watched.reload().accepted
        assert client.get("/search?q=umbrella&depth=1").json()["results"][0]["id"].startswith("n")
        notes = client.get("/health").json()["index"]["notes"]
        assert len(notes) == 2
        assert "document frequencies" in notes[0]
        assert "400 documents came and 0 went after the latent space was fitted" in notes[1]
        for note in notes:
            assert note in log.getvalue()
            assert note.split(":")[1] in client.get("/").text


def test_an_index_with_deleted_and_replaced_documents_is_served(own_shop: Shop) -> None:
    index, model = own_shop
    first, *_, last = (row["id"] for row in documents())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fp.Index(index).delete([first])
        fp.Index(index).add([{"id": last, "title": "purple umbrella", "text": "new"}])
    watched = WatchedModel(model, source=IndexSource(index))
    assert watched.reload().accepted, watched.refused


def test_a_damaged_index_is_refused_and_the_old_one_stays(own_shop: Shop) -> None:
    index, model = own_shop
    for client in text_clients(index, model):
        (index / "index.json").write_text("{}")
        assert instance(Serving, client.app).watched.changed()
        assert not instance(Serving, client.app).watched.reload().accepted
        assert client.get("/search?q=red").status_code == 200


def test_an_index_is_replaced_while_it_is_served(own_shop: Shop) -> None:
    """Another index is refused and the old one answers, documents included, though it is gone."""
    index, model = own_shop
    for client in text_clients(index, model):
        before = client.get("/search?q=red+shoes&depth=20").json()
        fp.Index.from_documents(documents(), index, language="german", overwrite=True)
        assert client.get("/search?q=red+shoes&depth=20").json() == before
        assert not instance(Serving, client.app).watched.reload().accepted
        assert client.get("/search?q=red+shoes&depth=20").json() == before
        assert "analyzers other than" in client.get("/health").json()["refused"]
        fp.Index.from_documents(documents(), index, latent=8, overwrite=True)
        assert instance(Serving, client.app).watched.reload().accepted, instance(
            Serving, client.app
        ).watched.refused
        assert client.get("/search?q=red+shoes&depth=20").json() == before


def test_features_of_ones_own_must_be_named(own_shop: Shop) -> None:
    index, model = own_shop
    own = "words=tests.serving.test_search:n_words"
    fp.ListNet().fit(dataset(fp.Index(index), "short", own=[own])).save(model)
    watched = WatchedModel(model, source=IndexSource(index))
    assert not watched.reload().accepted
    assert f"--feature {own}" in str(watched.refused)
    watched = WatchedModel(model, source=IndexSource(index, own_features=(own,)))
    assert watched.reload().accepted, watched.refused


def n_words(text: str, sources: list[dict[str, Any]]) -> list[float]:
    return [float(len(str(source.get("text", "")).split())) for source in sources]


def test_openapi_describes_search_only_with_an_index(client: TestClient) -> None:
    document = client.get("/openapi.json").json()
    assert {"/search", "/", "/about"} <= set(document["paths"])
    names = {each["name"] for each in document["paths"]["/search"]["get"]["parameters"]}
    fields = set(document["components"]["schemas"]["SearchMessage"]["properties"])
    assert names == fields - {"orders"}  # an object, which only a body can have
    assert (
        document["components"]["schemas"]["SearchMessage"]["properties"]["depth"]["maximum"] == 100
    )
    json.dumps(document)


def test_hostile_texts_in_answers_are_data(client: TestClient) -> None:
    answer = client.get("/search?q=hostile&depth=5").json()
    assert SCRIPT in {result["id"] for result in answer["results"]}
    for result in answer["results"]:
        assert len(result["snippet"]["text"]) < 1000
        assert "\u202e" not in result["title"]["text"] + result["snippet"]["text"]


def test_threads_do_not_disturb_each_other(shop: Shop) -> None:
    app = application(*shop)
    model = app.model()

    def answer(text: str) -> bytes:
        return search(model, SearchMessage(text, explain=3), app.limits).body

    texts = [text for _, text in QUERIES] * 20
    with ThreadPoolExecutor(4) as pool:
        concurrent = list(pool.map(answer, texts))
    alone = {text: answer(text) for text in set(texts)}
    assert concurrent == [alone[text] for text in texts]


def test_an_index_without_titles(tmp_path: Path) -> None:
    rows = [{"id": f"d{i}", "body": f"{text} {i}"} for i, (_, text) in enumerate(QUERIES * 2)]
    index = fp.Index.from_documents(rows, tmp_path / "plain.index", latent=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = index.candidates(QUERIES)
        qrels = Qrels.from_dict({name: {f"d{i}": 1.0} for i, (name, _) in enumerate(QUERIES)})
        data = fp.TextFeatures(index, "document.bm25,document.length").dataset(QUERIES, run, qrels)
    fp.ListNet().fit(data).save(tmp_path / "model.json")
    for client in text_clients(tmp_path / "plain.index", tmp_path / "model.json"):
        result = client.get("/search?q=red+shoes").json()["results"][0]
        assert "title" not in result
        assert result["snippet"]["highlights"]
        page = client.get("/?q=red+shoes").text
        assert "<h3><bdi>d0</bdi></h3>" in page
        assert page.count("<bdi>d0</bdi>") == 2  # once per side: the title is not repeated


def test_without_a_model_there_is_no_search(shop: Shop, tmp_path: Path) -> None:
    for client in text_clients(shop[0], tmp_path / "none.json"):
        for path in ("/?q=a", "/search?q=a", "/about"):
            assert client.get(path).status_code == 503
        assert client.get("/openapi.json").status_code == 200


@pytest.mark.parametrize("text", ["red " * 249, "".join(map(chr, range(0x4E00, 0x4E00 + 1000)))])
def test_long_queries_are_answered(client: TestClient, text: str) -> None:
    assert client.get("/search", params={"q": text, "explain": 5}).status_code == 200
    assert client.get("/", params={"q": text}).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/", "GET, HEAD"),
        ("POST", "/about", "GET, HEAD"),
        ("PUT", "/search", "GET, HEAD, POST"),
    ],
)
def test_other_methods_are_refused(
    client: TestClient, method: str, path: str, allowed: str
) -> None:
    response = client.request(method, path)
    assert (response.status_code, response.headers["allow"]) == (405, allowed)


def test_a_wrong_address_is_reported_in_a_sentence(client: TestClient) -> None:
    response = client.get("/?q=red&depth=0")
    assert response.status_code == 422
    assert "<p>The depth must be a number from 1 to 50.</p>" in response.text


def test_head_requests(client: TestClient) -> None:
    for path in ("/", "/?q=red", "/search?q=red"):
        response = client.head(path)
        assert (response.status_code, response.content) == (200, b"")


def test_a_new_model_takes_over(own_shop: Shop) -> None:
    index, model = own_shop
    for client in text_clients(index, model):
        first = client.get("/search?q=red").json()["model"]
        fp.RankSVM(normalize="minmax").fit(dataset(fp.Index(index))).save(model)
        report = client.post("/reload", headers={"authorization": "Bearer right"})
        assert report.status_code == 200, report.text
        second = client.get("/search?q=red").json()["model"]
        assert first != second


@pytest.mark.filterwarnings("ignore")
def test_every_answer_conforms_to_the_document(shop: Shop) -> None:
    app = application(*shop)
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    schema.validate()
    statuses: set[tuple[str, int]] = set()
    for result in schema.get_all_operations():
        operation: Any = instance(Ok, result).ok()
        if operation.path not in ("/search", "/", "/about", "/health"):
            continue

        @given(case=operation.as_strategy())
        @settings(
            max_examples=40,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        def run(case: Any) -> None:
            case.headers = {**(case.headers or {}), "host": "localhost"}
            response = case.call_and_validate(checks=CHECKS)
            statuses.add((case.path, response.status_code))

        run()
    assert {("/search", 200), ("/search", 422), ("/", 200), ("/about", 200)} <= statuses
