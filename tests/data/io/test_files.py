"""Tables, npz, folds, conversion between all, synthetic data, descriptions, the collection."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import firstpage as fp
from firstpage.demo.collection import CANDIDATES, FEATURES
from firstpage.demo.questions import QUESTIONS
from firstpage.errors import DataError
from tests.patience import PATIENCE

MADE = fp.Synthetic(queries=6, docs="uniform(1, 9)", features=4, grades=3).dataset()


@pytest.mark.parametrize("name", ["x.txt", "x.txt.gz", "x.parquet", "x.csv", "x.arrow", "x.npz"])
def test_every_format_round_trips(tmp_path: Path, name: str) -> None:
    fp.write(MADE, tmp_path / name)
    back = fp.read(tmp_path / name)
    assert isinstance(back, fp.Dataset)
    assert np.array_equal(back.X, MADE.X)
    assert np.array_equal(back.y, MADE.y)
    assert np.array_equal(back.offsets, MADE.offsets)
    assert back.queries == MADE.queries
    assert back.docids == MADE.docids


def test_sparse_npz(tmp_path: Path) -> None:
    from scipy.sparse import csr_array

    fp.write(MADE.with_features(csr_array(MADE.X)), tmp_path / "x.npz")
    back = fp.read(tmp_path / "x.npz")
    assert back.is_sparse
    assert np.array_equal(back.dense().X, MADE.X)


def test_tables_by_other_column_names(tmp_path: Path) -> None:
    import polars as pl

    frame = pl.DataFrame(
        {"bm25": [1.5, None], "Relevance": [1, 0], "query": ["b", "b"], "pr": [3, 4]}
    )
    frame.write_parquet(tmp_path / "t.parquet")
    data = fp.read(tmp_path / "t.parquet")
    assert data.feature_names == ("bm25", "pr")
    assert np.isnan(data.X[1, 0])
    assert data.y.tolist() == [1, 0]
    from firstpage.data.formats.tables import from_frame

    assert from_frame(frame.to_pandas(), qid="query").y.tolist() == [1, 0]
    assert from_frame(frame.to_arrow()).y.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"a": [1.0]}, r"no column looks like the label .*there are a"),
        ({"label": [1], "a": [2]}, "no column looks like the query id"),
        ({"label": [1], "qid": [None]}, "row 1 has no query id"),
        ({"label": [None], "qid": [1]}, "row 1 has no label"),
        ({"label": [1], "qid": [1], "a": ["x"]}, "column 'a' must be numeric"),
    ],
)
def test_tables_that_do_not_fit(tmp_path: Path, columns, says: str) -> None:
    import polars as pl

    pl.DataFrame(columns).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(fp.DataError, match=says):
        fp.read(tmp_path / "t.parquet")


def test_broken_files_are_one_line_errors(tmp_path: Path) -> None:
    for name in ("x.parquet", "x.arrow", "x.npz"):
        (tmp_path / name).write_bytes(b"not this format")
        with pytest.raises(fp.DataError, match=f"{name}: cannot be read as"):
            fp.read(tmp_path / name)
    np.savez(tmp_path / "y.npz", X=np.zeros((1, 1)))
    with pytest.raises(fp.DataError, match="lacks y, qid; it has X"):
        fp.read(tmp_path / "y.npz")


def test_text_files_are_told_apart_by_their_first_line(tmp_path: Path) -> None:
    for text, kind in (
        ("# hello\n1 qid:1 1:1\n", fp.Dataset),
        ("1 0 a 1\n", fp.Qrels),
        ("1 Q0 a 1 0.5 me\n", fp.Run),
    ):
        path = tmp_path / "file.txt"
        path.write_text(text)
        assert isinstance(fp.read(path), kind)
    with pytest.raises(fp.DataError, match="does not say a format"):
        fp.write(MADE, tmp_path / "file.xyz")
    with pytest.raises(fp.DataError, match="no format 'excel'"):
        fp.read(path, "excel")
    with pytest.raises(fp.DataError, match="a run needs scores"):
        fp.write(MADE, tmp_path / "x.run")
    with pytest.raises(fp.DataError, match="Qrels has no features"):
        fp.write(fp.Qrels.from_dict({"1": {"a": 1}}), tmp_path / "x.parquet")


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    bad = fp.Dataset.from_arrays([[1.0]], [1], ["two words"])
    with pytest.raises(fp.DataError, match="'two words' cannot stand in a LETOR file"):
        fp.write_letor(bad, tmp_path / "x.txt")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(fp.DataError, match="cannot write there"):
        fp.write_letor(MADE, tmp_path / "no" / "x.txt")


def test_scores(tmp_path: Path) -> None:
    path = tmp_path / "s"
    fp.write_scores([0.1 + 0.2, -1e-300, 5], path)
    assert fp.read_scores(path, 3).tolist() == [0.1 + 0.2, -1e-300, 5]
    path.write_text("1\n\n 2.5 # note\r\n# all comment\n3")
    assert fp.read_scores(path).tolist() == [1, 2.5, 3]
    with pytest.raises(fp.DataError, match="3 scores for 4 documents"):
        fp.read_scores(path, 4)
    for text, says in (
        ("1\n2 3\n", ":2:1: .*'2 3' is not one"),
        ("1\nx\n", ":2:1: .*'x'"),
        ("1\nnan\n", "score of document 2 is NaN"),
        ("1\n1e\n", ":2:1: "),
    ):
        path.write_text(text)
        with pytest.raises(fp.DataError, match=says):
            fp.read_scores(path)


@pytest.mark.parametrize(
    "names",
    [
        ("train.txt", "vali.txt", "test.txt"),
        ("trainingset.txt", "validationset.txt", "testset.txt.gz"),
    ],
)
def test_folds_in_both_naming_habits(tmp_path: Path, names) -> None:
    for number in (2, 1, 10):
        folder = tmp_path / f"Fold{number}"
        folder.mkdir()
        for name in names:
            fp.write_letor(MADE[number % 3], folder / name)
    folds = fp.read_folds(tmp_path, dtype="float64")
    assert [f.number for f in folds] == [1, 2, 10]
    assert folds[0].train.X.dtype == np.float64
    assert folds[1].vali.queries == MADE[2].queries
    assert folds[2].test.queries == MADE[1].queries


def test_written_folds_rotate_as_letors_do(tmp_path: Path) -> None:
    fp.write_folds(MADE, tmp_path, 3)
    folds = fp.read_folds(tmp_path)
    names = set(MADE.queries)
    tested = []
    for fold in folds:
        parts = [list(d.queries) for d in (fold.train, fold.vali, fold.test)]
        assert sorted(q for part in parts for q in part) == sorted(names)
        tested += parts[2]
        query = fold.test[0]
        assert np.array_equal(query.X, MADE.query(query.queries[0]).X)
    assert sorted(tested) == sorted(names)
    fp.write_folds(MADE, tmp_path / "shuffled", 3, seed=1)
    assert fp.read_folds(tmp_path / "shuffled")[0].test.queries != folds[0].test.queries
    with pytest.raises(fp.DataError, match="7 folds cannot be"):
        fp.write_folds(MADE, tmp_path, 7)


def test_folders_that_are_no_folds(tmp_path: Path) -> None:
    with pytest.raises(fp.DataError, match="holds neither Fold1"):
        fp.read_folds(tmp_path)
    with pytest.raises(fp.DataError, match="no such folder"):
        fp.read_folds(tmp_path / "no")
    fp.write_letor(MADE, tmp_path / "train.txt")
    with pytest.raises(fp.DataError, match=r"lacks test.txt or testset.txt"):
        fp.read_folds(tmp_path)
    fp.write_letor(MADE, tmp_path / "test.txt")
    (only,) = fp.read_folds(tmp_path)
    with pytest.raises(fp.DataError, match="fold 1 has no validation data"):
        only.vali  # noqa: B018


# --- synthetic data


def test_blocks_are_the_same_however_they_are_cut() -> None:
    recipe = fp.Synthetic(queries=23, docs="lognormal(8, .7)", features=3, seed=4)
    whole = recipe.dataset()
    parts = list(recipe.blocks(5))
    assert len(parts) == 5
    assert np.array_equal(np.concatenate([p.X for p in parts]), whole.X)
    assert np.array_equal(np.concatenate([p.y for p in parts]), whole.y)
    assert fp.Synthetic(queries=23, seed=5).dataset().X[0, 0] != whole.X[0, 0]


@pytest.mark.parametrize("utility", ["linear", "nonlinear"])
def test_labels_follow_the_known_utility(utility) -> None:
    recipe = fp.Synthetic(queries=200, docs=40, utility=utility, noise=0.3)
    data = recipe.dataset()
    best = fp.evaluate(recipe.true_utility(data.X), data, measures="NDCG@10")["NDCG@10"]
    linear = fp.evaluate(data.X @ recipe.weights, data, measures="NDCG@10")["NDCG@10"]
    chance = fp.evaluate(np.zeros(data.n_docs), data, measures="NDCG@10")["NDCG@10"]
    assert best > 0.85
    assert chance < 0.4
    if utility == "linear":
        assert linear == pytest.approx(best, abs=1e-6)
    else:
        assert linear < best - 0.1


def test_shares_lengths_orders_and_tails() -> None:
    sparse = fp.Synthetic(queries=400, docs=50, relevant=0.02, grades=2).dataset()
    assert 0.015 < (sparse.y > 0).mean() < 0.025
    assert (np.add.reduceat(sparse.y, sparse.offsets[:-1]) == 0).any()  # some have nothing
    lengths = fp.Synthetic(queries=300, docs="uniform(5, 7)").dataset().lengths
    assert set(lengths.tolist()) == {5, 6, 7}
    order = fp.Synthetic(queries=5, docs=9, labels="order").dataset()
    assert all(sorted(q.y.tolist()) == list(range(9)) for q in order)
    recipe = fp.Synthetic(queries=100, docs=40, labels="order", tail=0.2, noise=0.0)
    data = recipe.dataset()
    u = recipe.true_utility(data.X)
    top = fp.evaluate(u, data, measures=["kNDCG(k=8)@8", "Tau"])
    assert top["kNDCG(k=8)@8"] > 0.999
    assert top["Tau"] < 0.6


@pytest.mark.parametrize(
    ("recipe", "says"),
    [
        ({"queries": 0}, "queries must be at least 1"),
        ({"docs": "normal(3)"}, "docs must be a number or one of uniform"),
        ({"docs": "uniform(a)"}, "needs 2 positive numbers"),
        ({"docs": 0}, "docs must be at least 1"),
        ({"relevant": 0}, r"relevant must lie in \(0, 1\]"),
        ({"utility": "cubic"}, "utility must be linear or nonlinear"),
        ({"noise": -1}, "noise must not be negative"),
        ({"tail": 2}, "tail must lie between"),
    ],
)
def test_recipes_that_cannot_be(recipe, says: str) -> None:
    with pytest.raises(fp.DataError, match=says):
        fp.Synthetic(**recipe)


# --- descriptions


def test_describe_finds_what_is_odd() -> None:
    X = np.array(
        [[1, 2, np.nan, 5, 0], [1, 3, 1, 5, 0], [1, 3, 1, 6, 0], [1, 4, np.inf, 6, 0]], np.float32
    )
    data = fp.Dataset.from_arrays(X, [0, 1, 0, 0], [1, 1, 2, 2], ["a", "a", "b", "c"])
    found = fp.describe(data)
    assert found.labels == {"0": 3, "1": 1}
    assert found.constant_features == (1, 5)
    assert found.constant_in_every_query == (4,)
    assert found.nan_features == (3,)
    assert found.infinite_features == (3,)
    assert found.repeated_ids == 1
    assert found.queries_without_relevant == 1
    text = str(found)
    for part in ("queries", "labels", "constant over all documents: 1, 5", "NaN", "█"):
        assert part in text
    json.dumps(found.to_dict())
    twice = fp.Dataset.from_arrays(np.ones((3, 2)), [0, 0, 0], [1, 1, 2])
    assert fp.describe(twice).repeated_rows == 1


def test_describe_runs_qrels_and_sparse_data() -> None:
    assert fp.describe(fp.Run.from_dict({"1": {"a": 1.0}})).labels == {}
    assert fp.describe(fp.Qrels.from_dict({"1": {"a": 1, "b": 0}})).labels == {"0": 1, "1": 1}
    from scipy.sparse import csr_array

    found = fp.describe(MADE.with_features(csr_array(np.eye(MADE.n_docs))))
    assert found.density == pytest.approx(1 / MADE.n_docs)
    many = fp.Dataset.from_arrays(np.zeros((50, 1)), np.linspace(0, 1, 50), range(50))
    assert len(fp.describe(many).labels) == 8


# --- the embedded collection


@pytest.mark.slow
def test_the_embedded_collection() -> None:
    found = fp.stdlib_collection()
    assert len(found.documents) > 2000
    assert 30 <= len(found.questions) == len(QUESTIONS) == len(found.data)
    assert found.data.feature_names == FEATURES
    assert np.isfinite(found.data.X).all()
    assert (found.data.lengths >= CANDIDATES).all()
    for query in found.data:
        assert query.y.max() == 3, found.questions[query.queries[0]]
    answers = {name for _, grades in QUESTIONS for names in grades.values() for name in names}
    assert len(answers - set(found.documents)) < 0.1 * len(answers)
    assert "argparse.ArgumentParser" in found.documents
    from firstpage.demo.collection import baselines

    systems = baselines(found.data)
    scores = {
        n: fp.evaluate(s, found.data, measures="NDCG@10")["NDCG@10"] for n, s in systems.items()
    }
    assert scores["BM25 of name and text"] > 0.4 > 0.1 > scores["shortest first"]


def test_links_and_pipes_are_written_through_never_replaced(tmp_path: Path) -> None:
    from firstpage.data.io.files import write_bytes

    file, link = tmp_path / "file", tmp_path / "link.gz"
    file.write_text("old")
    link.symlink_to(file)
    with write_bytes(link) as out:
        out.write(b"new")
    assert link.is_symlink()
    assert gzip.decompress(file.read_bytes()) == b"new"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    with write_bytes(pipe) as out:
        out.write(b"through")
    reader.join(10)
    assert got == [b"through"]
    assert pipe.is_fifo()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "link.gz", "pipe"]


def test_a_folder_cannot_be_written(tmp_path: Path) -> None:
    from firstpage.data.io.files import write_bytes

    with pytest.raises(DataError, match="is a folder"), write_bytes(tmp_path):
        pass


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


def test_a_table_comes_through_a_pipe_and_compressed(tmp_path: Path) -> None:
    text = b"label;qid;a\n1;1;0.5\n0;1;0.25\n"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(text), daemon=True)
    writer.start()
    assert fp.read(pipe, "csv").X.tolist() == [[0.5], [0.25]]
    writer.join(10)
    packed = tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress(text))
    assert fp.read(packed).X.tolist() == [[0.5], [0.25]]
