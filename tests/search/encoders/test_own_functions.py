"""Encoders of functions: one, or one per side; what changes their digest; failures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from firstpage.core.errors import DataError
from firstpage.search import load_encoder

SOURCE = """
import numpy as np

def letters(texts):
    return np.array([[text.count(letter) for letter in "abc"] for text in texts])

def swapped(texts):
    return letters(texts)[:, ::-1]

def narrow(texts):
    return letters(texts)[:, :2]

def failing(texts):
    raise ValueError("no\\nmore")

def short(texts):
    return letters(texts[:1])

class Model:
    digest = "weights-1"
    def __call__(self, texts):
        return letters(texts)

model = Model()
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"own_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    return name


def test_one_function_and_two(module: str) -> None:
    one, two = load_encoder(f"{module}:letters"), load_encoder(f"{module}:letters,swapped")
    assert one.dimensions == two.dimensions == 3
    for encode in (one.encode_queries, one.encode_documents, two.encode_queries):
        assert encode(["aa", "x"]).tolist() == [[1, 0, 0], [0, 0, 0]]
    assert two.encode_documents(["aa"]).tolist() == [[0, 0, 1]]
    prefixed = load_encoder(f"{module}:letters?document=c")
    assert prefixed.encode_queries(["a"]).tolist() == [[1, 0, 0]]
    np.testing.assert_allclose(prefixed.encode_documents(["a"]), [[0.5**0.5, 0, 0.5**0.5]])
    assert len({one.digest, two.digest, prefixed.digest}) == 3


def test_the_digest_is_that_of_the_file_or_of_the_model(module: str, tmp_path: Path) -> None:
    function, model = load_encoder(f"{module}:letters"), load_encoder(f"{module}:model")
    source = tmp_path / f"{module}.py"
    source.write_text(SOURCE + "\n# changed\n")
    assert load_encoder(f"{module}:letters").digest != function.digest
    assert load_encoder(f"{module}:model").digest == model.digest != function.digest


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        ("failing", r"its function failed \(ValueError: no\)"),
        ("absent", "has no function 'absent'"),
        ("letters,narrow", "its vectors have 3 dimensions for queries and 2 for documents"),
        ("letters,letters,letters", "write module:function or module:queries,documents"),
        ("letters?max_tokens=3", "this kind of encoder has no option 'max_tokens'"),
    ],
)
def test_wrong_functions_are_refused(module: str, functions: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        load_encoder(f"{module}:{functions}")
    assert "\n" not in str(caught.value)


def test_a_function_that_returns_too_few_vectors(module: str) -> None:
    with pytest.raises(DataError, match=r"for 2 texts it returned an array of shape \(1, 3\)"):
        load_encoder(f"{module}:short").encode_documents(["a", "b"])
