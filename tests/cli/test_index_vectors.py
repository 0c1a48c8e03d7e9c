"""`firstpage index --vectors`: files of vectors, changes, and bad input in one line each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import firstpage as fp

pytest.importorskip("tantivy")

IDS = ["d0", "d1", "d2"]
TABLE = np.array([[3.0, 4.0], [0.0, 5.0], [-5.0, 0.0]], np.float32)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with documents and their vectors in files of three kinds."""
    rows = [{"id": name, "title": f"red {name}"} for name in IDS]
    (tmp_path / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    np.save(tmp_path / "v.npy", TABLE)
    (tmp_path / "ids.txt").write_text("\n".join(IDS) + "\n")
    np.savez(tmp_path / "v.npz", ids=np.array(IDS), vectors=TABLE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def similarities(path: Path) -> dict[str, float]:
    index = fp.Index(path)
    assert index.vectors is not None
    rows, scores = index.vectors.search(np.array([1.0, 0.0]), 10, index.forward.deleted)
    return {index.forward.ids[r]: round(s, 2) for r, s in zip(rows, scores.tolist(), strict=True)}


EXPECTED = {"d0": 0.6, "d1": 0.0, "d2": -1.0}
SUMMARY = "i: 3 vectors of 2 dimensions for 3 of 3 documents, by file (0.0 MB)"


def parquet(folder: Path) -> None:
    polars = pytest.importorskip("polars")
    polars.DataFrame({"doc_id": IDS, "embedding": TABLE.tolist()}).write_parquet(
        folder / "v.parquet"
    )


@pytest.mark.parametrize(
    "source", [["v.npy", "--vector-ids", "ids.txt"], ["v.npz"], ["v.parquet"]], ids=lambda s: s[0]
)
def test_files_of_vectors(shop: Path, run: Any, source: list[str]) -> None:
    if source == ["v.parquet"]:
        parquet(shop)
    result = run("index", "docs.jsonl", "-o", "i", "--latent", "0", "--vectors", *source)
    assert result.returncode == 0, result.stderr
    assert result.stderr.splitlines() == ["wrote Index(i: 3 documents, fields title)", SUMMARY]
    assert similarities(shop / "i") == EXPECTED


def test_changes(shop: Path, run: Any) -> None:
    assert run("index", "docs.jsonl", "-o", "i", "--latent", "0").returncode == 0
    result = run("index", "-o", "i", "--vectors", "v.npz")
    assert result.stderr.splitlines() == ["i: 3 embedded", SUMMARY]
    assert similarities(shop / "i") == EXPECTED
    np.savez(shop / "other.npz", ids=np.array(IDS), vectors=-TABLE)
    result = run("index", "-o", "i", "--vectors", "other.npz")
    assert result.returncode == 1
    assert "has vectors of the encoder 'file'" in result.stderr
    assert result.stderr.endswith("Replace them with --replace-vectors.\n")
    result = run("index", "-o", "i", "--vectors", "other.npz", "--replace-vectors")
    assert result.returncode == 0, result.stderr
    assert similarities(shop / "i") == {"d2": 1.0, "d1": 0.0, "d0": -0.6}
    (shop / "new.jsonl").write_text('{"id": "d2", "title": "new"}\n')
    result = run("index", "new.jsonl", "-o", "i", "--add", "--vectors", "v.npz")
    assert result.stderr.splitlines() == ["i: 1 replaced, 1 embedded", SUMMARY]
    assert similarities(shop / "i") == {"d1": 0.0, "d0": -0.6, "d2": -1.0}
    result = run("index", "-o", "i", "--vectors", "none")
    assert result.stderr == "i: removed the vectors\n"
    assert fp.Index(shop / "i").vectors is None


BAD = [
    (["nothing.npz"], 1, "nothing.npz: no such file"),
    (["v.npy"], 1, "v.npy: an .npy file needs a file with the id of each vector, one per line"),
    (["v.npz", "--vector-ids", "ids.txt"], 1, "v.npz: has ids of its own; only an .npy file"),
    (["v.npy", "--vector-ids", "short.txt"], 1, "v.npy: there are 3 vectors, but 2 ids"),
    (["v.npy", "--vector-ids", "other.txt"], 1, "v.npy: none of its 3 ids is that of a document"),
    (["bad.npy", "--vector-ids", "ids.txt"], 1, "bad.npy: its vectors cannot be read"),
    (["bad.npz"], 1, "bad.npz: its vectors cannot be read"),
    (["one.npz"], 1, "one.npz: needs one array of ids and one table of vectors; it has vectors(3,"),
    (["nan.npz"], 1, "nan.npz: 1 vectors are not finite, such as that of 'd1'"),
    (["no/such/folder"], 1, "no/such/folder"),
    (["minilm", "--vector-ids", "ids.txt"], 1, "minilm: is not a file of vectors: .npy, .npz or"),
    (["minilm", "--vector-encoder", "x:y"], 1, "minilm: is not a file of vectors: .npy, .npz or"),
]


@pytest.mark.parametrize(("source", "code", "message"), BAD, ids=[each[0][-1] for each in BAD])
def test_bad_input(shop: Path, run: Any, source: list[str], code: int, message: str) -> None:
    (shop / "short.txt").write_text("d0\nd1\n")
    (shop / "other.txt").write_text("a\nb\nc\n")
    for name in ("bad.npy", "bad.npz"):
        (shop / name).write_bytes(b"nonsense")
    np.savez(shop / "one.npz", vectors=TABLE)
    np.savez(shop / "nan.npz", i=np.array(IDS), v=np.where(TABLE == 5, np.nan, TABLE))
    assert run("index", "docs.jsonl", "-o", "i", "--latent", "0").returncode == 0
    result = run("index", "-o", "i", "--vectors", *source)
    assert result.returncode == code
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert fp.Index(shop / "i").vectors is None


def test_bad_parquet_files(shop: Path, run: Any) -> None:
    polars = pytest.importorskip("polars")
    assert run("index", "docs.jsonl", "-o", "i", "--latent", "0").returncode == 0
    frames: dict[str, dict[str, list[Any]]] = {
        "needs a column of ids, such as 'id', and one column of vectors": {"id": IDS},
        "needs a column of ids": {"name": IDS, "v": TABLE.tolist()},
        "vectors have different lengths, such as [1, 2]": {"id": IDS, "v": [[1.0], [1, 2], [3]]},
        "vectors have different lengths, such as [0, 2]": {"id": IDS, "v": [[1, 2], None, [1, 2]]},
        "the vectors are not numbers of one shape": {"id": IDS, "v": [["x"], ["y"], ["z"]]},
    }
    for message, columns in frames.items():
        polars.DataFrame(columns, strict=False).write_parquet(shop / "v.parquet")
        result = run("index", "-o", "i", "--vectors", "v.parquet")
        assert (result.returncode, result.stderr.count("\n")) == (1, 1)
        assert message in result.stderr
    (shop / "v.parquet").write_bytes(b"PAR1 nonsense")
    result = run("index", "-o", "i", "--vectors", "v.parquet")
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert "v.parquet: cannot be read as Parquet" in result.stderr


def test_options_that_need_others(shop: Path, run: Any) -> None:
    for options, message in (
        (["docs.jsonl", "-o", "i", "--vector-ids", "ids.txt"], "--vector-ids requires --vectors"),
        (["docs.jsonl", "-o", "i", "--replace-vectors"], "--replace-vectors requires --vectors"),
        (["-o", "i"], "name DOCUMENTS to index, or --delete, --vectors, --refit"),
    ):
        result = run("index", *options)
        assert result.returncode == 2
        assert message in result.stderr


def test_functions_of_ones_own(shop: Path, run: Any) -> None:
    (shop / "own_letters.py").write_text(
        "def letters(texts): return [[text.count(c) for c in 'de'] for text in texts]"
    )
    name = "own_letters:letters"
    result = run("index", "docs.jsonl", "-o", "i", "--latent", "0", "--vectors", name)
    assert result.returncode == 0, result.stderr
    assert result.stderr.splitlines()[-1] == SUMMARY.replace("file", name)
    (shop / "new.jsonl").write_text('{"id": "d3", "title": "eee"}\n')
    result = run("index", "new.jsonl", "-o", "i", "--add")
    assert result.returncode == 1
    assert result.stderr == (
        f"firstpage: error: i: its encoder is '{name}'. An index may call only functions and "
        f"addresses that its user names. Name it with --vectors {name}.\n"
    )
    assert len(fp.Index("i")) == 3
    result = run("index", "new.jsonl", "-o", "i", "--add", "--vectors", name)
    assert result.stderr.splitlines()[0] == "i: 1 added, 1 embedded"
    assert similarities(Path("i"))["d3"] == 0.0
    assert run("index", "-o", "i", "--delete", "d3").returncode == 0


def test_the_encoder_of_a_file(shop: Path, run: Any) -> None:
    (shop / "own_numbers.py").write_text("def numbers(texts): return [[1, len(t)] for t in texts]")
    name = "own_numbers:numbers"
    result = run("index", "docs.jsonl", "-o", "i", "--vectors", "v.npz", "--vector-encoder", name)
    assert result.stderr.splitlines()[-1] == SUMMARY.replace("file", name)
    (shop / "new.jsonl").write_text('{"id": "d3", "title": ""}\n{"id": "d4", "title": "a"}')
    result = run("index", "new.jsonl", "-o", "i", "--add", "--vectors", name)
    assert "i: 2 added, 1 embedded" in result.stderr.splitlines()
    assert similarities(Path("i")) == {**EXPECTED, "d4": 0.71}
    (shop / "own_wide.py").write_text("def wide(texts): return [[1, 2, 3] for t in texts]")
    result = run("index", "-o", "i", "--vectors", "v.npz", "--vector-encoder", "own_wide:wide")
    assert result.returncode == 1
    assert (
        "v.npz: has vectors of 2 dimensions; those of the encoder 'own_wide:wide' have 3."
    ) in result.stderr


def test_many_vectors_show_their_recall(
    shop: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("firstpage.search.vectors.EXACT_VECTORS", 2)
    result = run("index", "docs.jsonl", "-o", "i", "--latent", "0", "--vectors", "v.npz")
    assert result.stderr.endswith(
        "i: search in two steps returns 100.0% of the 100 best documents "
        "(queries: vectors of the index)\n"
    )
