"""Candidates from an engine: a local server answers as the engines' manuals show."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import firstpage as fp
from firstpage.core.errors import DataError
from firstpage.interop.read import engine as engine_module
from tests.cli.conftest import run  # noqa: F401
from tests.narrow import dense, instance

QUERIES = [("q1", "rambo"), ("q2", 'the "first" blood\\{{id}}'), ("q3", "nothing"), ("q4", " ")]


def elastic_response(*hits: tuple[str, float, float]) -> dict[str, Any]:
    """A response of `_search` with a log, as the manual of the LTR plugin shows it."""
    return {
        "took": 4,
        "timed_out": False,
        "_shards": {"total": 1, "successful": 1, "skipped": 0, "failed": 0},
        "hits": {
            "total": {"value": len(hits), "relation": "eq"},
            "max_score": hits[0][1] if hits else None,
            "hits": [
                {
                    "_index": "tmdb",
                    "_id": document,
                    "_score": score,
                    "fields": {
                        "_ltrlog": [
                            {"log_entry1": [{"name": "title_query", "value": value}, {"name": "body_query"}]}
                        ]
                    },
                    "matched_queries": ["logged_featureset"],
                }
                for document, score, value in hits
            ],
        },
    }  # fmt: skip


def solr_response(*docs: tuple[str, float, str]) -> dict[str, Any]:
    """A response of `/select` with `[features]`, as the guide of Solr shows it."""
    return {
        "responseHeader": {"status": 0, "QTime": 0, "params": {"q": "test"}},
        "response": {
            "numFound": len(docs),
            "start": 0,
            "maxScore": docs[0][1] if docs else 0.0,
            "docs": [
                {"id": document, "score": score, "[features]": features}
                for document, score, features in docs
            ],
        },
    }


@dataclass
class Engine:
    """A server, the replies that it sends in turn, and the requests that it got."""

    url: str = ""
    replies: list[tuple[int, Any]] = field(default_factory=list)
    requests: list[tuple[str, dict[str, Any], str | None]] = field(default_factory=list)


@pytest.fixture
def engine(monkeypatch) -> Iterator[Engine]:
    state = Engine()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.requests.append((self.path, body, self.headers.get("Authorization")))
            status, reply = state.replies.pop(0)
            content = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    fast = replace(engine_module.RETRIES, backoff=0.001, timeout=10.0)
    monkeypatch.setattr(engine_module, "RETRIES", fast)
    monkeypatch.delenv(engine_module.AUTHORIZATION, raising=False)
    yield state
    server.shutdown()
    server.server_close()


ONE = elastic_response(("7555", 11.5, 1.25), ("1370", 9.5, 0.0))
TWO = elastic_response(("1368", 8.0, 2.0))
NONE = elastic_response()


def test_elasticsearch_is_asked_by_search_and_logs_features(engine, tmp_path) -> None:
    engine.replies = [(200, ONE), (200, TWO), (200, NONE)]
    log = tmp_path / "log.jsonl"
    request = {"query": {"match": {"title": "{{query}}"}}, "ext": {"keys": ["{{id}}: {{quoted}}"]}}
    done: list[tuple[int, int]] = []
    with pytest.warns(fp.FirstpageWarning, match="1 of 3 queries have no documents"):
        result = fp.interop.query_engine(
            f"{engine.url}/tmdb",
            QUERIES,
            log,
            request=request,
            depth=20,
            progress=lambda *each: done.append(each),
        )
    assert result.to_dict() == {"q1": {"7555": 11.5, "1370": 9.5}, "q2": {"1368": 8.0}}
    assert done == [(1, 3), (2, 3), (3, 3)]
    paths, bodies, headers = zip(*engine.requests, strict=True)
    assert set(paths) == {"/tmdb/_search"}
    assert set(headers) == {None}
    text = QUERIES[1][1]
    assert bodies[1] == {
        "size": 20,
        "query": {"match": {"title": text}},
        "ext": {"keys": ['q2: the \\"first\\" blood\\\\{{id}}']},
    }
    judged = {"q1": {"7555": 2, "1370": 0}, "q2": {"1368": 1}}
    data = fp.interop.read_feature_log(log, fp.Qrels.from_dict(judged))
    assert data.feature_names == ("title_query", "body_query")
    assert dense(data.X).tolist() == [[1.25, 0], [0, 0], [2, 0]]


def test_solr_is_asked_by_json_and_extracts_features(engine, tmp_path) -> None:
    response = solr_response(
        ("GB18030TEST", 1.5, "matchTitle=0.0,originalScore=0.9"),
        ("UTF8TEST", 0.5, "matchTitle=2.0"),
    )
    engine.replies = [(200, response)]
    log = tmp_path / "log.jsonl"
    features = '[features store=shop efi.text="{{quoted}}"]'
    request = {"query": "{{query}}", "fields": ["id", "score", features], "limit": 7}
    url = f"{engine.url}/solr/techproducts"
    result = fp.interop.query_engine(url, [("1", 'a "b"')], log, request=request)
    assert result.to_dict() == {"1": {"GB18030TEST": 1.5, "UTF8TEST": 0.5}}
    path, body, _ = engine.requests[0]
    assert path == "/solr/techproducts/select"
    assert body["limit"] == 7
    assert body["fields"][2] == '[features store=shop efi.text="a \\"b\\""]'
    with pytest.warns(fp.FirstpageWarning, match="all labels are 0"):
        data = fp.interop.read_feature_log(log)
    assert dense(data.X).tolist() == [[0.0, pytest.approx(0.9)], [2.0, 0.0]]
    engine.replies = [(200, response)]
    fp.interop.query_engine(f"{engine.url}/solr/shop/query?df=title", [("1", "a")], log)
    assert engine.requests[-1][:2] == (
        "/solr/shop/query?df=title",
        {"limit": 100, "query": "a", "fields": ["id", "score"], "params": {"wt": "json"}},
    )


def test_an_interrupted_run_goes_on_and_busy_engines_are_asked_again(engine, tmp_path) -> None:
    log = tmp_path / "log.jsonl"
    url = f"{engine.url}/tmdb/_search?search_pipeline=hybrid"
    gone = {
        "error": {"type": "index_not_found_exception", "reason": "no such index"},
        "status": 404,
    }
    engine.replies = [(503, b"busy"), (200, ONE), (404, gone)]
    with pytest.raises(
        DataError, match=r"answers 404: .*no such index.* 1 of 2 responses"
    ) as error:
        fp.interop.query_engine(url, QUERIES[:2], log)
    assert "\n" not in str(error.value)
    with log.open("ab") as file:
        file.write(b'{"query": "q2", "resp')  # the machine stopped while it wrote
    engine.requests.clear()
    engine.replies = [(200, TWO)]
    result = fp.interop.query_engine(url, QUERIES[:2], log)
    assert result.to_dict() == {"q1": {"7555": 11.5, "1370": 9.5}, "q2": {"1368": 8.0}}
    assert [path for path, _, _ in engine.requests] == ["/tmdb/_search?search_pipeline=hybrid"]
    engine.replies = [(200, TWO)]
    changed = fp.interop.query_engine(url, QUERIES[:1], log, depth=5)  # another request
    assert changed.to_dict() == {"q1": {"1368": 8.0}}


def test_authorization_is_sent_and_never_shown(engine, tmp_path, monkeypatch) -> None:
    log = tmp_path / "log.jsonl"
    monkeypatch.setenv(engine_module.AUTHORIZATION, "ApiKey c2VjcmV0LWtleQ==")
    engine.replies = [(200, ONE), (401, b"unknown key c2VjcmV0LWtleQ==")]
    fp.interop.query_engine(f"{engine.url}/a", QUERIES[:1], log)
    assert engine.requests[0][2] == "ApiKey c2VjcmV0LWtleQ=="
    with pytest.raises(DataError, match=r"answers 401: unknown key \[key\]"):
        fp.interop.query_engine(f"{engine.url}/b", QUERIES[:1], log)


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ((200, b"<html>"), "a reply that is not JSON"),
        ((200, {"acknowledged": True}), "something else than documents"),
        ((302, b""), "redirects are not followed"),
    ],
)
def test_replies_without_documents_are_one_line(engine, tmp_path, reply, message) -> None:
    engine.replies = [reply] * 4
    with pytest.raises(DataError, match=message) as error:
        fp.interop.query_engine(engine.url, QUERIES[:1], tmp_path / "log.jsonl")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"url": "localhost:9200/shop"}, "is not the address of an engine"),
        (
            {"url": "http://user:secret@localhost/shop"},
            "localhost: the address contains a password",
        ),
        ({"request": {"query": "shoes"}}, "the request has no {{query}}"),
        ({"authorization": "secret"}, "must be a scheme and a key"),
        ({"log": "log.jsonl.gz"}, "cannot be compressed"),
        ({"log": "other.jsonl"}, "other.jsonl:1: is not a line of such a log"),
    ],
)
def test_wrong_requests_are_refused_before_anything_is_sent(tmp_path, options, message) -> None:
    (tmp_path / "other.jsonl").write_text('{"id": 1}\n')
    options = {"url": "http://127.0.0.1:9/shop", "log": "log.jsonl", **options}
    url, log = options.pop("url"), tmp_path / options.pop("log")
    with pytest.raises(DataError) as error:
        fp.interop.query_engine(url, QUERIES, log, **options)
    assert message in str(error.value)
    assert "secret" not in str(error.value)
    assert (tmp_path / "other.jsonl").read_text() == '{"id": 1}\n'


def test_candidates_writes_the_run_of_an_engine(engine, tmp_path, monkeypatch, run) -> None:  # noqa: F811
    monkeypatch.chdir(tmp_path)
    Path("queries.tsv").write_text("q1\trambo\nq2\tfirst blood\n")
    Path("request.json").write_text('{"query": {"match": {"title": "{{query}}"}}}')
    arguments = ("candidates", "--engine", f"{engine.url}/tmdb", "queries.tsv", "-o", "engine.run")
    logged = ("--request", "request.json", "--log", "log.jsonl", "--tag", "tmdb", "--depth", 5)
    engine.replies = [(200, ONE), (200, TWO)]
    done = run(*arguments, *logged)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "wrote Run(tmdb: 2 queries, 3 documents) to engine.run\n"
    assert fp.read_run("engine.run").to_dict()["q2"] == {"1368": 8.0}
    assert engine.requests[0][1] == {"size": 5, "query": {"match": {"title": "rambo"}}}
    Path("test.qrels").write_text("q1 0 7555 1\nq2 0 1368 1\n")
    done = run("import", "feature-log", "log.jsonl", "--qrels", "test.qrels", "-o", "data.npz")
    assert done.returncode == 0, done.stderr
    assert instance(fp.Dataset, fp.read("data.npz")).y.tolist() == [1, 0, 1]
    engine.replies = [(200, ONE), (200, TWO)]
    assert run(*arguments).returncode == 0
    assert engine.requests[-1][1]["query"] == {"multi_match": {"query": "first blood"}}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("queries.tsv",), 2, "Missing argument 'QUERIES'"),
        (("index", "queries.tsv", "--request", "r.json"), 2, "--request requires --engine"),
        (("--engine", "http://h/i", "index", "queries.tsv"), 2, "--engine replaces INDEX"),
        (("--engine", "http://h/i", "queries.tsv", "--k1", "1"), 2, "--k1 requires INDEX"),
        (
            ("--engine", "http://h/i", "queries.tsv", "--request", "r.json"),
            1,
            "must be a JSON object",
        ),
        (("--engine", "h/i", "queries.tsv"), 1, "is not the address of an engine"),
    ],
)
def test_wrong_usage_of_the_command(tmp_path, monkeypatch, run, arguments, code, message) -> None:  # noqa: F811
    monkeypatch.chdir(tmp_path)
    Path("queries.tsv").write_text("q1\trambo\n")
    Path("r.json").write_text("[]")
    done = run("candidates", *arguments, "-o", "engine.run")
    assert done.returncode == code
    assert message in done.stderr
    assert not Path("engine.run").exists()
