"""Vectors of an endpoint: batches, keys, retries, budgets, and replies that are wrong."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from firstpage.core.errors import DataError
from firstpage.search import load_encoder
from firstpage.search.encoders import endpoint
from tests.search.encoders.endpoint import Stub, letters, served
from tests.search.encoders.models import unit

KEY = "sk-0123456789abcdef"


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    for variable in (*endpoint.KEYS, endpoint.BUDGET, "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("FIRSTPAGE_EMBEDDINGS_KEY", KEY)
    for name in ("DOCUMENTS", "QUERIES"):
        monkeypatch.setattr(endpoint, name, replace(getattr(endpoint, name), backoff=0.001))
    with served() as stub:
        yield stub


def test_vectors_in_batches_with_prefixes_and_key(
    stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint, "BATCH_TEXTS", 3)
    encoder = load_encoder(f"{stub.url}#small?query=q: ")
    assert encoder.dimensions == 26
    texts = ["abba", "", "c" * 3, "dad", "e", "fee", "gag", "\ud800h"]
    expected = [unit(letters(text)) if text else np.zeros(26) for text in texts]
    np.testing.assert_allclose(encoder.encode_documents(texts), expected, atol=1e-6)
    np.testing.assert_allclose(encoder.encode_queries(["b"])[0], unit(letters("q: b")), atol=1e-6)
    assert max(len(request["input"]) for request in stub.requests) == 3
    assert {request["model"] for request in stub.requests} == {"small"}
    assert set(stub.keys) == {f"Bearer {KEY}"}
    assert sorted(stub.texts())[-1] == "\N{REPLACEMENT CHARACTER}h"
    monkeypatch.setattr(endpoint, "BATCH_CHARACTERS", 5)
    stub.requests.clear()
    np.testing.assert_allclose(encoder.encode_documents(texts), expected, atol=1e-6)
    assert [len(request["input"]) for request in stub.requests].count(1) >= 2


def test_the_digest_is_that_of_address_model_and_prefixes(stub: Stub) -> None:
    names = [f"{stub.url}{end}" for end in ("#a", "#b", "#a?query=q", "?version=2#a")]
    assert len({load_encoder(name).digest for name in names}) == 4
    assert load_encoder(names[0]).digest == load_encoder(names[0]).digest


def nan(content: Any) -> Any:
    content["data"][0]["embedding"][3] = float("nan")
    return content


def changed(**row: Any) -> Any:
    def change(content: Any) -> Any:
        content["data"][0].update(row)
        return content

    return change


FAILURES = [
    (429, "answers 429: "),
    (503, "answers 503: "),
    ("cut", "answers 200 with a reply that is not JSON"),
    (nan, "answers 200 with a vector that contains NaN or infinity"),
    (changed(embedding=[0.0] * 26), "answers 200 with a vector of zeros"),
    (changed(embedding=[1.0]), "answers 200 with vectors that are not lists of numbers of equal"),
    (changed(embedding="text"), "answers 200 with vectors that are not lists of numbers of equal"),
    (changed(index=7), "answers 200 with vectors with the numbers"),
    (lambda content: {"data": content["data"][1:]}, "answers 200 with 1 vectors for 2 texts"),
    (lambda content: {"vectors": []}, "answers 200 with no vectors"),
    (lambda content: [], "answers 200 with a reply that is not an object"),
]


@pytest.mark.parametrize(("failure", "message"), FAILURES)
def test_failures_are_tried_again_and_then_named(stub: Stub, failure: Any, message: str) -> None:
    encoder = load_encoder(f"{stub.url}#small")
    attempts = endpoint.DOCUMENTS.max_attempts
    stub.failures = [failure] * (attempts - 1)
    np.testing.assert_allclose(
        encoder.encode_documents(["ab", "c"]), [unit(letters("ab")), letters("c")], atol=1e-6
    )
    stub.failures = [failure] * attempts
    with pytest.raises(DataError, match=message) as caught:
        encoder.encode_documents(["ab", "c"])
    assert "\n" not in str(caught.value)
    assert KEY not in str(caught.value)
    assert str(caught.value).startswith(stub.url)
    assert f"(after {attempts} attempts)" in str(caught.value)


def test_the_endpoint_says_how_long_to_wait(stub: Stub) -> None:
    encoder = load_encoder(f"{stub.url}#small")
    stub.failures = [(429, 0.3)]
    began = time.monotonic()
    encoder.encode_documents(["a"])
    assert time.monotonic() - began >= 0.3
    stub.failures = [(429, 3600)]
    with pytest.raises(DataError, match="asks to wait 3600 s; run the command again then"):
        encoder.encode_documents(["a"])


def test_a_failure_in_the_middle_ends_the_run(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "BATCH_TEXTS", 1)
    encoder = load_encoder(f"{stub.url}#small")
    stub.refused = "bad"
    texts = [*(f"a{n}" for n in range(10)), "bad", *(f"b{n}" for n in range(200))]
    with pytest.raises(DataError, match=r"answers 400: .*\[key\]") as caught:
        encoder.encode_documents(texts)
    assert KEY not in str(caught.value)
    assert len(stub.requests) < 100  # what was waiting is not sent
    stub.refused = ""
    assert len(encoder.encode_documents(texts)) == len(texts)


@pytest.mark.parametrize("usage", [True, False])
def test_a_budget_of_tokens_is_not_exceeded(
    stub: Stub, monkeypatch: pytest.MonkeyPatch, usage: bool
) -> None:
    monkeypatch.setenv(endpoint.BUDGET, "45")
    stub.usage = usage  # else 3 characters are one token
    encoder = load_encoder(f"{stub.url}#small")  # 10 tokens, or 4 as estimated
    encoder.encode_documents(["a" * 10, "b" * 10])  # 20 tokens, or 8
    requests = len(stub.requests)
    with pytest.raises(DataError, match=r"the budget of 45 tokens .* Raise it and run the command"):
        encoder.encode_documents(["a" * 130])
    assert len(stub.requests) == requests
    monkeypatch.setenv(endpoint.BUDGET, "many")
    with pytest.raises(DataError, match="must be a number of tokens; got 'many'"):
        load_encoder(f"{stub.url}#small")


def test_another_number_of_dimensions_is_refused(stub: Stub) -> None:
    encoder = load_encoder(f"{stub.url}#small")
    stub.failures = [lambda content: {"data": [{"embedding": [1.0, 2.0]} for _ in content["data"]]}]
    with pytest.raises(DataError, match="its vectors have 2 dimensions now, and had 26 before"):
        encoder.encode_documents(["a"])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("{url}", "write an endpoint with its model, such as http"),
        ("http://#model", "write an endpoint with its model, such as http"),
        ("{url}#small?pooling=cls", "this kind of encoder has no option 'pooling'"),
        ("http://user:word@127.0.0.1/v1#m", "must not contain a password; set FIRSTPAGE_EMB"),
        ("http://127.0.0.1:1/v1/embeddings#m", "127.0.0.1:1/v1/embeddings cannot be reached"),
    ],
)
def test_wrong_addresses_are_refused(stub: Stub, name: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        load_encoder(name.format(url=stub.url))
    assert "user:word" not in str(caught.value)


def test_the_first_key_of_the_environment_counts(
    stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-program")
    load_encoder(f"{stub.url}#small")
    monkeypatch.delenv("FIRSTPAGE_EMBEDDINGS_KEY")
    load_encoder(f"{stub.url}#small")
    assert stub.keys == [f"Bearer {KEY}", "Bearer sk-of-another-program"]
    monkeypatch.setenv("OPENAI_API_KEY", "two words")
    with pytest.raises(DataError, match="the API key must consist of printable ASCII characters"):
        load_encoder(f"{stub.url}#small")
