"""`firstpage serve --index`: options that go together, and refusals in one line at start."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import firstpage as fp
from firstpage.cli.serve import command
from firstpage.core.errors import DataError

DOCUMENTS = [
    {"id": "d1", "title": "Red shoes", "text": "Shoes for runners."},
    {"id": "d2", "title": "Red coat", "text": "A warm coat."},
    {"id": "d3", "title": "Blue shoes", "text": "Shoes for walkers."},
]


@pytest.fixture
def index(tmp_path: Path) -> Path:
    fp.Index.from_documents(DOCUMENTS, tmp_path / "shop.index", latent=0)
    return tmp_path / "shop.index"


@pytest.mark.parametrize(
    "option",
    [
        ["--open"], ["--candidates", "50"], ["--feature", "a:b"], ["--feedback", "f"],
        ["--allow-host", "a"],
    ],
    ids=lambda option: option[0],
)  # fmt: skip
def test_options_of_an_index_need_one(option: list[str]) -> None:
    done = CliRunner().invoke(command, ["model.json", *option])
    assert done.exit_code == 2
    assert f"{option[0]} requires --index" in done.output


def test_more_candidates_than_the_limit(index: Path) -> None:
    options = ["model.json", "--index", str(index), "--candidates", "2000"]
    done = CliRunner().invoke(command, options)
    assert done.exit_code == 2
    assert "--candidates is greater than --max-candidates" in done.output


def test_a_model_that_does_not_fit_is_refused(index: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.json"
    fp.ListMLE().fit(fp.Synthetic(queries=5, docs=6, features=3).dataset()).save(model)
    done = CliRunner().invoke(command, [str(model), "--index", str(index), "--port", "0"])
    assert isinstance(done.exception, DataError)
    assert "was not trained on features of texts" in str(done.exception)
    done = CliRunner().invoke(command, [str(model), "--index", str(tmp_path / "no"), "--port", "0"])
    assert isinstance(done.exception, DataError)
    assert "no such index" in str(done.exception)
