"""The embedded collection: documents of this Python, questions with answers that exist."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import firstpage as fp
from firstpage.demo import collection as module
from firstpage.demo.collection import ANSWER, name_words
from firstpage.demo.questions import QUESTIONS
from tests.patience import PATIENCE

NEWER = {"itertools.batched": (3, 12)}  # answers that old versions of Python lack


@pytest.fixture(scope="module")
def collection() -> fp.demo.Collection:
    return fp.demo.stdlib_collection()


def test_every_answer_exists(collection) -> None:
    absent = {name for name, since in NEWER.items() if sys.version_info < since}
    assert set(collection.missing) == absent
    assert collection.unanswered == ()
    assert len(collection.queries) == len(QUESTIONS) >= 160


def test_questions_are_distinct_and_have_an_answer() -> None:
    texts = Counter(" ".join(text.lower().split()) for text, _ in QUESTIONS)
    assert [text for text, count in texts.items() if count > 1] == []
    for text, answers in QUESTIONS:
        names = [name for grade in answers.values() for name in grade]
        assert len(set(names)) == len(names), text
        assert answers[3], text


def test_every_question_has_an_answer_in_the_qrels(collection) -> None:
    grades = collection.qrels.to_dict()
    assert list(grades) == list(collection.queries.ids)
    assert all(max(of_query.values()) >= ANSWER for of_query in grades.values())


def test_documents_have_distinct_ids_and_texts(collection) -> None:
    ids = [document["id"] for document in collection.documents]
    assert len(set(ids)) == len(ids) > 3000
    assert all(len(str(document["text"]).split()) >= 2 for document in collection.documents)
    assert {"sorted", "csv", "csv.reader", "dict.items", "help/with", "open", "OSError"} <= set(ids)
    assert not {"exit", "license", "EnvironmentError", "random.Random.shuffle"} & set(ids)
    assert max(len(str(document["text"]).split()) for document in collection.documents) <= 401


def test_words_of_a_name() -> None:
    assert name_words("tempfile.NamedTemporaryFile") == "tempfile Named Temporary File"
    assert name_words("json.JSONDecoder.raw_decode") == "json JSON Decoder raw decode"


def test_an_answer_that_is_missing_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    questions = (
        ("sort", {3: ("sorted", "newsort"), 2: (), 1: ()}),
        ("fly", {3: ("antigravity.fly",), 2: (), 1: ("sorted",)}),
    )
    monkeypatch.setattr(module, "QUESTIONS", questions)
    collection = fp.demo.stdlib_collection()
    assert collection.missing == ("antigravity.fly", "newsort")
    assert collection.unanswered == ("fly",)
    assert collection.qrels.to_dict() == {"1": {"sorted": 3.0}}


def test_a_python_without_docstrings_is_refused() -> None:
    code = "import firstpage as fp; fp.demo.stdlib_collection()"
    command = [sys.executable, "-OO", "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert result.stderr.count("firstpage.core.errors.DataError: this Python has only ") == 1


def test_too_few_docstrings_are_reported_in_one_line(tmp_path, monkeypatch, run) -> None:
    monkeypatch.setattr(module, "MIN_DOCUMENTS", 100_000)
    result = run("demo", "-o", tmp_path / "x")
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1
    assert "run it without -OO" in result.stderr
    assert not (tmp_path / "x").exists()


def test_a_python_without_topics_has_other_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydoc_data.topics", None)
    collection = fp.demo.stdlib_collection()
    assert not any(str(d["id"]).startswith("help/") for d in collection.documents)
    assert "help/with" in collection.missing
    assert "with statement" not in collection.queries.texts or len(collection.unanswered) > 0


def test_a_file_with_the_name_of_a_standard_module_is_not_imported(tmp_path: Path) -> None:
    (tmp_path / "trace.py").write_text("raise SystemExit('imported')")
    code = (
        "import firstpage as fp; c = fp.demo.stdlib_collection(); "
        "print('trace' in {d['id'] for d in c.documents})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout == "True\n", done.stderr
