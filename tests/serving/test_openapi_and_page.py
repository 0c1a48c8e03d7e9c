"""The OpenAPI document is valid and accurate; the home page is safe and its example works."""

from __future__ import annotations

import re
import shlex
import warnings
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.core.result import Ok

from firstpage.serving.app import Serving
from firstpage.serving.limits import Limits
from firstpage.serving.watched_model import WatchedModel
from tests.logs import captured_log
from tests.narrow import instance
from tests.serving.conftest import NAMES, arrow, clients, linear_model, npy, write_model

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import schemathesis as schemathesis
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks

HOSTILE = (
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "it's; rm -rf $HOME `id`",
)
EXAMPLES = 40
PATHS = {
    "/rank",
    "/batch",
    "/reload",
    "/",
    "/health",
    "/model",
    "/drift",
    "/metrics",
    "/openapi.json",
}
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]


def test_document_has_the_features_and_limits(model: Path) -> None:
    for client in clients(model, Limits(candidates=7, queries=5)):
        document = client.get("/openapi.json").json()
        assert set(document["paths"]) == PATHS
        schemas = document["components"]["schemas"]
        by_name, in_order = schemas["Features"]["anyOf"]
        assert by_name["required"] == NAMES
        assert (in_order["minItems"], in_order["maxItems"]) == (4, 4)
        assert schemas["QueryMessage"]["properties"]["candidates"]["maxItems"] == 7
        batch = document["paths"]["/batch"]["post"]["requestBody"]["content"]["application/json"]
        (queries,) = [each for each in batch["schema"]["anyOf"] if "$ref" not in each]
        assert schemas["BatchMessage"]["properties"]["queries"]["maxItems"] == 5
        assert (queries["minItems"], queries["maxItems"]) == (1, 5)


@pytest.mark.parametrize("there", [True, False])
def test_document_is_valid_openapi(tmp_path: Path, there: bool) -> None:
    path = tmp_path / "model.json"
    if there:
        linear_model(path, HOSTILE)
    for client in clients(path):
        response = client.get("/openapi.json")
        assert response.status_code == 200
        schemathesis.openapi.from_dict(response.json()).validate()
        broken = response.json()
        del broken["info"]["title"]
        with pytest.raises(Exception, match="title"):
            schemathesis.openapi.from_dict(broken).validate()


@pytest.fixture(scope="module")
def media() -> None:
    """Return the strategies for binary bodies."""
    matrices = st.integers(1, 5).map(lambda n: npy(np.ones((n, 4))))
    schemathesis.openapi.media_type("application/x-npy", st.one_of(matrices, st.binary()))
    table = arrow(query=["a", "a", "b"], **{name: np.arange(3.0) for name in NAMES})
    cut = st.integers(0, len(table)).map(lambda n: table[:n])
    streams = st.one_of(st.just(table), cut, st.binary())
    schemathesis.openapi.media_type("application/vnd.apache.arrow.stream", streams)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["linear", "none"])
@pytest.mark.usefixtures("media")
def test_every_answer_conforms_to_the_document(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    if kind != "none":
        write_model(path, kind)
    watched = WatchedModel(path)
    watched.reload()
    app = Serving(watched, poll=None, token="right")
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    statuses: set[tuple[str, int]] = set()
    for result in schema.get_all_operations():
        operation: Any = instance(Ok, result).ok()
        posts = operation.method.upper() == "POST"

        @given(case=operation.as_strategy())
        @settings(
            max_examples=EXAMPLES if posts else 5,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        def run(case: Any) -> None:
            if case.path == "/reload" and len(statuses) % 2:
                case.headers = {**(case.headers or {}), "Authorization": "Bearer right"}
            allowed = CHECKS if kind != "none" else CHECKS[1:]  # 503 is the true answer there
            response = case.call_and_validate(checks=allowed)
            statuses.add((case.path, response.status_code))

        run()
    assert {at for at, _ in statuses} | {"/openapi.json"} == PATHS
    if kind == "none":
        assert {("/rank", 503), ("/health", 503), ("/metrics", 200)} <= statuses
    else:
        assert {("/rank", 200), ("/rank", 422), ("/batch", 200), ("/batch", 422)} <= statuses


def page_of(client: Any, **headers: str) -> str:
    response = client.get("/", headers=headers)
    assert response.headers["content-type"].startswith("text/html")
    policy = response.headers["content-security-policy"]
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    return str(response.text)


def run_example(client: Any, page: str) -> dict[str, Any]:
    """Send the request of the page's example command."""
    line = re.search("<pre[^>]*>(.*?)</pre>", page, re.DOTALL)
    assert line is not None
    words = shlex.split(unescape(line[1]))
    assert (words[0], words[3], words[5]) == ("curl", "-H", "-d")
    name, value = words[4].split(": ")
    response = client.post(words[2], content=words[6], headers={name: value})
    assert response.status_code == 200, response.text
    return dict(response.json())


def test_page_escapes_hostile_names_and_its_example_works(tmp_path: Path) -> None:
    path = linear_model(tmp_path / "<b onclick='x'>&amp;.json", HOSTILE)
    for client in clients(path):
        page = page_of(client)
        for bad in ("<script>", "<img", "<b ", "onerror=alert(1)>"):
            assert bad not in page
        assert "&lt;b onclick=&#39;x&#39;&gt;&amp;amp;.json" in page
        answer = run_example(client, page)
        assert answer["order"] == ["d2", "d1"]
        assert {p["feature"] for p in answer["explanations"][0]["parts"]} == set(HOSTILE)
        for link in re.findall('href="([^"]+)"', page):
            assert client.get(link).status_code == 200


@pytest.mark.parametrize("width", [1, 12, 13, 700])
def test_example_works_without_feature_names(tmp_path: Path, width: int) -> None:
    for client in clients(linear_model(tmp_path / "model.json", None, width)):
        assert run_example(client, page_of(client))["scores"][1] == 0


def test_page_folds_away_long_examples_and_counts_requests(tmp_path: Path) -> None:
    """A visitor sees no hundreds of zeros and ones, and no counters of 0."""
    for client in clients(linear_model(tmp_path / "model.json", None, 111)):
        page = page_of(client)
        assert "None since the start." in page
        assert page.index("<details>") < page.index("Rank two candidates by their 111 features")
        client.post("/rank", json={"candidates": [{"features": [0] * 111}]})
        client.post("/rank", json={"candidates": []})
        client.get("/nowhere")
        cells = re.findall(
            r"<code>(/[a-z]*)</code></th><td[^>]*>([^<]*)</td><td[^>]*>([^<]*)</td>",
            page_of(client),
        )
        assert cells == [("/rank", "2", "1"), ("/", "1", "–")]
        assert "other" not in page_of(client)


def test_example_has_a_valid_address(client: Any) -> None:
    assert "curl -s http://ranks.example:81/rank" in page_of(client, host="ranks.example:81")
    assert "curl -s http://[::1]:8220/rank" in unescape(page_of(client, host="[::1]:8220")).replace(
        "'", ""
    )
    for bad in ("x' ; id ; '", "<script>", "a b", "$(id)"):
        assert bad not in unescape(page_of(client, host=bad))


def test_page_without_a_model_is_503(tmp_path: Path) -> None:
    path = tmp_path / "<i>none</i>"
    for client in clients(path):
        response = client.get("/")
        assert (response.status_code, response.headers["retry-after"]) == (503, "1")
        assert "No model yet" in response.text
        assert "<i>" not in response.text


def test_file_name_that_is_not_utf8_is_escaped(tmp_path: Path) -> None:
    """Also in the log: standard output and reports of tests could not encode it."""
    path = tmp_path / "m\udcff.json"
    with captured_log("firstpage.serving") as log:
        for client in clients(path):
            assert "m\\udcff.json" in client.get("/health").json()["refused"]
            linear_model(path, None)
            instance(Serving, client.app).watched.reload()
            assert client.get("/health").json()["file"] == "m\\udcff.json"
            assert "m\\udcff.json" in page_of(client)
    assert "serving" in log.getvalue()
    assert log.getvalue().encode()


def test_model_that_cannot_be_encoded_as_json_is_refused(model: Path) -> None:
    for client in clients(model):
        linear_model(model, ("a", "\ud800", "c"))
        assert not instance(Serving, client.app).watched.reload().accepted
        assert "cannot be encoded as JSON" in client.get("/health").json()["refused"]
        assert client.get("/model").json()["features"]["names"] == NAMES
