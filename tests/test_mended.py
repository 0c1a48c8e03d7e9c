"""Mistakes that an attack on the first version found; each stays mended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import firstpage as fp
from tests.patience import PATIENCE


def firstpage(*args: object, **options) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "firstpage", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, **options)


INTERLEAVED = "2 qid:1 1:1\n0 qid:2 1:0\n1 qid:1 1:0\n3 qid:2 1:1\n0 qid:1 1:3\n"


@pytest.mark.slow
def test_scores_follow_interleaved_data(tmp_path: Path, monkeypatch) -> None:
    from firstpage.data.formats import letor

    (tmp_path / "i.txt").write_text(INTERLEAVED)
    (tmp_path / "i.scores").write_text("2\n0\n1\n3\n0\n")  # the labels, in the file's order
    done = firstpage("evaluate", "i.txt", "--scores", "i.scores", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["measures"]["NDCG@10"] == pytest.approx(1.0)
    assert "regrouped" in done.stderr
    firstpage("convert", "i.txt", "i.run", "--scores", "i.scores", cwd=tmp_path)
    assert fp.read_run(tmp_path / "i.run").to_dict()["2"] == {"2-1": 0, "2-2": 3}
    monkeypatch.setattr(letor, "CACHED_FROM", 0)
    for _ in range(2):  # parsed, then from the cache
        with pytest.warns(fp.FirstpageWarning, match="regrouped"):
            data = fp.read_letor(tmp_path / "i.txt", cache=tmp_path / "cache")
        assert data.arranged([2, 0, 1, 3, 0]).tolist() == data.y.tolist()


@pytest.mark.slow
def test_resampling_is_compiled_even_for_small_data(tmp_path: Path) -> None:
    env = {**os.environ, "FIRSTPAGE_CACHE": str(tmp_path)}
    script = (
        "import firstpage as fp\n"
        "fp.compare({'a': [1, 2] * 30, 'b': [2, 1] * 30}, [0, 1] * 30, qid=sorted([*range(30)] * 2))"
        ".differences\n"
    )
    subprocess.run([sys.executable, "-c", script], env=env, check=True, timeout=PATIENCE)
    made = {file.name.split("-")[0] for file in (tmp_path / "kernels").iterdir()}
    assert {"flip_signs", "tukey_ranges", "bootstrap_means"} <= made


def test_lengths_are_checked_before_kernels_trust_them() -> None:
    with pytest.raises(fp.DataError, match="1 document ids for 3 documents"):
        fp.evaluate([1, 1, 1], [1, 0, 1], qid=[1, 1, 1], docid=["a"], ties="docid")
    with pytest.raises(fp.DataError, match="1 document ids for 2"):
        fp.Run.from_arrays(["q", "r"], ["a"], [1, 2])
    with pytest.raises(fp.DataError, match="1 document ids for 3"):
        fp.Dataset.from_arrays(np.zeros((3, 1)), [0, 0, 0], [1, 2, 1], ["a"])
    good = fp.Dataset.from_arrays(np.zeros((3, 1)), [0, 0, 0], [1, 1, 2])
    for offsets in ([0, 10**9, 3], [1, 2, 3], [0, 3], [0, 2, 1, 3]):
        with pytest.raises(fp.DataError, match="offsets of 2 queries must be 3 numbers"):
            fp.Dataset(good.X, good.y, np.array(offsets), good.queries)
        with pytest.raises(fp.DataError, match="offsets"):
            fp.Truth(good.y, np.array(offsets), good.queries)


def test_a_run_is_not_taken_for_judgments(tmp_path: Path) -> None:
    (tmp_path / "x.run").write_text("1 Q0 a 1 0.5 me\n")
    with pytest.raises(fp.DataError, match=r":1:10: the line has more than the 4 fields.*--run"):
        fp.read_qrels(tmp_path / "x.run")


@pytest.mark.parametrize("name", ["a b", "x\n9 qid:7 1:5", ""])
def test_names_that_would_break_a_file_are_refused(tmp_path: Path, name: str) -> None:
    data = fp.Dataset.from_arrays([[1.0]], [1], ["q"], [name or "x"])
    if name:
        with pytest.raises(fp.DataError, match=r"document id .* cannot stand in a LETOR file"):
            fp.write_letor(data, tmp_path / "x.txt")
    with pytest.raises(fp.DataError, match="cannot stand in a TREC file"):
        fp.write_run(fp.Run.from_dict({"q": {name: 1}}), tmp_path / "x.run")
    with pytest.raises(fp.DataError, match="cannot stand in a TREC file"):
        fp.write_run(fp.Run.from_dict({"q": {"d": 1}}, name="two words"), tmp_path / "x.run")


def test_feature_names_are_checked(tmp_path: Path) -> None:
    with pytest.raises(fp.DataError, match="2 features need as many different names"):
        fp.Dataset.from_arrays([[1.0, 2.0]], [1], [1], feature_names=["a"])
    data = fp.Dataset.from_arrays([[1.0, 2.0]], [1], [1], feature_names=["label", "b"])
    with pytest.raises(fp.DataError, match="cannot be called label"):
        fp.write(data, tmp_path / "x.csv")


def test_empty_last_columns_of_sparse_data_come_back(tmp_path: Path) -> None:
    from scipy.sparse import csr_array

    X = csr_array(np.array([[1.0, 0, 0], [0, 2, 0]], np.float32))
    fp.write_letor(fp.Dataset.from_arrays(X, [1, 0], [1, 2]), tmp_path / "x.txt")
    assert fp.read_letor(tmp_path / "x.txt").X.tolist() == [[1, 0, 0], [0, 2, 0]]


def test_datasets_neither_freeze_nor_follow_the_callers_labels() -> None:
    X, y = np.zeros((2, 1)), np.array([1.0, 0.0])
    data = fp.Dataset.from_arrays(X, y, [1, 1])
    truth = fp.Truth.of(y)
    run = fp.Run.from_arrays([1, 1], ["a", "b"], y)
    X[0, 0] = 5  # still ours to write
    y[0] = 9
    assert data.y[0] == truth.labels[0] == run.values[0] == 1
    from scipy.sparse import csr_array

    sparse = fp.Dataset.from_arrays(csr_array(np.eye(2)), [1, 0], [1, 1])
    with pytest.raises(ValueError, match="read-only"):
        sparse.X.indices[0] = 1


def test_ids_that_are_no_utf_8_stay_apart(tmp_path: Path) -> None:
    (tmp_path / "x.qrels").write_bytes(b"q\xe9 0 d 1\nq\xe8 0 d 0\n")
    (tmp_path / "x.run").write_bytes(b"q\xe9 Q0 d 1 1 t\nq\xe8 Q0 d 1 1 t\n")
    qrels = fp.read_qrels(tmp_path / "x.qrels")
    found = fp.evaluate(fp.read_run(tmp_path / "x.run"), qrels, measures="AP")
    assert found.values.tolist() == [[1, 0]]
    fp.write_qrels(qrels, tmp_path / "y.qrels")
    assert (tmp_path / "y.qrels").read_bytes() == (tmp_path / "x.qrels").read_bytes()
    with pytest.raises(fp.DataError, match="same query id"):
        fp.Run.from_dict({1: {"a": 1}, "1": {"a": 2}})  # type: ignore[dict-item]


def test_json_has_no_infinities() -> None:
    from firstpage.report.results import render

    found = fp.compare(
        {"a": [2, 1] * 3, "b": [1, 2] * 3}, [1, 0] * 3, qid=[1, 1, 2, 2, 3, 3], measures="RR"
    )
    assert found.differences[0].effect == -np.inf
    assert json.loads(render(found, "json"))["differences"][0]["effect"] is None
    with pytest.raises(fp.MeasureError, match="DCG is too large"):
        fp.evaluate([1], [2000], qid=[1], measures="DCG")


@pytest.mark.slow
def test_terminals_without_unicode_and_without_output() -> None:
    done = firstpage("measures", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    command = f'"{sys.executable}" -m firstpage measures >&-'
    closed = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=PATIENCE)
    assert "Traceback" not in closed.stderr


def test_any_seed_will_do() -> None:
    for seed in (-1, np.int64(3), 10**30):
        assert sorted(fp.Truth.of([0, 0]).full_order(seed).labels) == [0, 1]  # type: ignore[arg-type]
        found = fp.evaluate([1, 1], [0, 1], qid=[1, 1], seed=seed, ties="shuffle", ci=True)  # type: ignore[arg-type]
        assert found["NDCG@10"] in (1.0, pytest.approx(1 / np.log2(3)))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: fp.evaluate([1], [1], qid=[1], measures=[5]), "a measure is a text"),
        (lambda: fp.evaluate([1], [1], qid=[1], measures=None), "at least one measure"),  # type: ignore[arg-type]
        (lambda: fp.evaluate([1], [1], qid=[1], rel=np.nan), "rel must be a finite"),
        (lambda: fp.evaluate([1], [1], qid=[1], depth=1.5), "depth must be at least 1 and whole"),  # type: ignore[arg-type]
        (lambda: fp.evaluate([1, 2], [1, 0], qid=["a", None]), "qid of row 1 is missing"),
        (lambda: fp.measure("AP(rel=nan)"), "rel of AP must be finite"),
        (lambda: fp.measure("NDCG(gain=[0, inf])"), "gain of NDCG must be finite"),
        (lambda: fp.Truth.of([1, 0]).top_k(2.5), "k must be a whole number"),  # type: ignore[arg-type]
        (lambda: fp.Truth.of([1, 0]).top_k(10**20), "k must be a whole number"),
        (lambda: fp.Truth.of([1, 0]).pairs("foo"), "which must be"),  # type: ignore[arg-type]
        (lambda: fp.Dataset.from_arrays([[1.0]], ["x"], [1]), "labels must be numbers"),
        (lambda: fp.Dataset.from_arrays([[1j]], [1], [1]), "real numbers"),
        (lambda: fp.Dataset.from_arrays([[1.0]], [1], [1])[[0.5]], "whole numbers or a mask"),
        (lambda: fp.Run.from_dict({"a": ["x"]}), "must map documents to numbers"),  # type: ignore[dict-item]
        (lambda: fp.read_letor("x", dtype="foo"), "dtype must be float32 or float64"),  # type: ignore[arg-type]
        (lambda: fp.Synthetic(seed=-1), "seed must not be negative"),
        (lambda: fp.Synthetic(docs="poisson(-1)"), "positive numbers"),
        (lambda: fp.Synthetic(docs="uniform(5, 2)"), "positive numbers"),
    ],
)
def test_nonsense_is_refused(call, says: str) -> None:
    with pytest.raises(fp.FirstpageError, match=says):
        call()


def test_a_huge_cut_off_cuts_nothing() -> None:
    assert fp.evaluate([1], [1], qid=[1], measures="NDCG@99999999999999999999").values[0, 0] == 1


def test_byte_order_marks_and_other_encodings(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(b"\xef\xbb\xbf1 qid:1 1:5\n")
    assert fp.read_letor(path).X.tolist() == [[5]]
    path.write_bytes(b"\xef\xbb\xbfq 0 d 1\n")
    assert list(fp.read_qrels(path).queries) == ["q"]
    path.write_bytes("1 qid:1 1:5\n".encode("utf-16"))
    with pytest.raises(fp.DataError, match="UTF-16"):
        fp.read_letor(path)
    import gzip

    path.write_bytes(gzip.compress(b"1 qid:1 1:5\n"))
    assert fp.read_letor(path).X.tolist() == [[5]]  # whatever it is called


def test_features_in_descending_order_take_no_longer(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("1 qid:1 " + " ".join(f"{i}:1" for i in range(60_000, 0, -1)) + "\n")
    assert fp.read_letor(path).X.sum() == 60_000
    path.write_text("1 qid:1 3:1 2:1 1:1\n1 qid:1 2:1\t1:1\t02:5\n")
    with pytest.raises(fp.DataError, match=r":2:17: the feature 2 stands twice"):
        fp.read_letor(path)


def test_the_first_value_that_does_not_fit_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("1 qid:1\t1:1\t2:1e99\t3:1e99\n")
    with pytest.raises(fp.DataError, match=r":1:13: 1e\+99 does not fit"):
        fp.read_letor(path)


def test_extreme_exponents_are_left_to_python(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text(f"1 qid:1 1:0.{'0' * 200_000}1e200001\n")
    assert fp.read_letor(path).X.tolist() == [[1]]


@pytest.mark.slow
def test_pipes_can_be_read(tmp_path: Path) -> None:
    fp.write_letor(fp.Synthetic(queries=5).dataset(), tmp_path / "x.txt")
    command = f'cat x.txt | "{sys.executable}" -m firstpage describe /dev/stdin'
    for more, code in ((" --from letor", 0), ("", 1)):
        done = subprocess.run(
            command + more,
            shell=True,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=PATIENCE,
        )
        assert done.returncode == code, done.stderr
    assert "name its format (--from)" in done.stderr


def test_three_grades_can_be_turned_into_any_top_k() -> None:
    assert sorted(fp.Truth.of([2, 1, 0, 0]).top_k(3).labels) == [0, 1, 2, 3]
