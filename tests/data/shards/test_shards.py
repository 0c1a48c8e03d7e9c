"""Shards: round trips, reading in blocks, and damaged folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_array

import firstpage as fp
from firstpage.core.errors import DataError, FirstpageWarning
from firstpage.data.concat import concat_datasets
from firstpage.data.shards.shards import is_shard_folder
from firstpage.data.shards.writer import letor_blocks
from tests.narrow import dense

DATA = fp.Synthetic(queries=30, docs="uniform(3, 25)", features=6).dataset()


def assert_same(first: fp.Dataset, second: fp.Dataset) -> None:
    actual, expected = (np.asarray(d.dense().X) for d in (first, second))
    assert np.array_equal(actual, expected)
    assert np.array_equal(first.y, second.y)
    assert np.array_equal(first.offsets, second.offsets)
    assert first.queries == second.queries
    assert first.feature_names == second.feature_names
    assert (first.docids is None) == (second.docids is None)
    assert first.docids is None or first.docids == second.docids


@pytest.mark.parametrize("rows", [1, 40, 100, 10**6])
def test_shards_round_trip(tmp_path: Path, rows: int) -> None:
    shards = fp.write_shards(DATA, tmp_path / "s", rows=rows)
    assert (shards.n_docs, shards.n_queries, shards.n_features) == (DATA.n_docs, 30, 6)
    assert shards.labels == (DATA.y.min(), DATA.y.max())
    assert_same(concat_datasets(list(shards)), DATA)
    assert len(shards) == len(fp.read_shards(tmp_path / "s"))
    for shard in shards:
        assert shard.n_docs <= rows or len(shard) == 1  # queries are never divided
        assert not dense(shard.X).flags.writeable
    assert is_shard_folder(tmp_path / "s")


def test_names_sparse_features_and_float64_round_trip(tmp_path: Path) -> None:
    X = csr_array(np.where(dense(DATA.X > 0.5), dense(DATA.X), 0).astype(np.float64))
    names = [f"f{i}" for i in range(6)]
    data = DATA.with_features(X, names)
    shards = fp.write_shards([data[:10], data[10:11], data[11:]], tmp_path / "s", rows=60)
    assert (shards.is_sparse, shards.dtype, shards.feature_names) == (True, "float64", tuple(names))
    assert_same(concat_datasets(list(shards)), data)


@pytest.mark.parametrize("rows", [1, 50, 200, 10**6])
def test_letor_text_is_read_in_blocks(tmp_path: Path, rows: int, monkeypatch) -> None:
    monkeypatch.setattr("firstpage.data.formats.letor_reader.CHUNK_BYTES", 2048)  # many chunks
    fp.write_letor(DATA, tmp_path / "a.txt.gz")
    data = fp.read_letor(tmp_path / "a.txt.gz")
    blocks = list(letor_blocks(tmp_path / "a.txt.gz", rows))
    assert_same(concat_datasets(blocks), data)
    assert len(blocks) > 3 or rows > 100
    shards = fp.write_shards(tmp_path / "a.txt.gz", tmp_path / "s", rows=rows)
    assert_same(concat_datasets(list(shards)), data)
    assert shards[0].source.endswith("00000")


def test_late_features_widen_earlier_shards(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("firstpage.data.formats.letor_reader.CHUNK_BYTES", 64)
    lines = [f"{i % 3} qid:{i // 4} 1:0.{i + 1}" for i in range(40)] + ["1 qid:99 5:2"]
    (tmp_path / "a.txt").write_text("\n".join(lines))
    shards = fp.write_shards(tmp_path / "a.txt", tmp_path / "s", rows=8)
    assert {shard.n_features for shard in shards} == {shards.n_features} == {5}
    assert_same(concat_datasets(list(shards)), fp.read_letor(tmp_path / "a.txt"))
    (tmp_path / "b.txt").write_text("\n".join([*lines, "1 qid:100 0:1"]))
    with pytest.raises(DataError, match="a feature 0 occurs after"):
        fp.write_shards(tmp_path / "b.txt", tmp_path / "t", rows=8)
    assert not (tmp_path / "t").exists()


@pytest.mark.filterwarnings("ignore:.*are not contiguous")
def test_query_in_two_shards_is_refused(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("firstpage.data.formats.letor_reader.CHUNK_BYTES", 64)
    lines = [f"{i % 3} qid:{i // 4} 1:0.{i + 1}" for i in range(40)] + ["1 qid:0 1:2"]
    (tmp_path / "a.txt").write_text("\n".join(lines))
    with pytest.raises(DataError, match="the query '0' is in shard 00000 and in shard 000"):
        fp.write_shards(tmp_path / "a.txt", tmp_path / "s", rows=8)
    with pytest.warns(FirstpageWarning, match="are not contiguous"):
        regrouped = fp.read_letor(tmp_path / "a.txt")
    sources: tuple[Any, ...] = (regrouped, tmp_path / "a.txt")
    for number, source in enumerate(sources):
        with pytest.warns(FirstpageWarning, match="scores of its shards are in the order of the"):
            shards = fp.write_shards(source, tmp_path / f"s{number}", rows=(8, 1000)[number])
        assert shards.n_queries == 10
    lines = [f"1 qid:{q} 1:{i}" for i, q in enumerate([0, 0, 0, 1, 1, 1, 2, 0, 3])]
    (tmp_path / "b.txt").write_text("\n".join(lines))
    with pytest.warns(
        FirstpageWarning, match="b.txt: scores of its shards are in the order of the"
    ):
        shards = fp.write_shards(tmp_path / "b.txt", tmp_path / "b", rows=1000)
    assert dense(shards[0].X).ravel().tolist() == [0, 1, 2, 7, 3, 4, 5, 6, 8]


def test_files_of_a_folder_are_used_as_shards(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    for i in range(3):
        fp.write(DATA[10 * i : 10 * i + 10], tmp_path / "d" / f"{i}.parquet")
    shards = fp.read_shards(tmp_path / "d")
    assert (len(shards), shards.n_docs, shards.n_queries) == (3, DATA.n_docs, 30)
    assert np.array_equal(shards[1].y, DATA[10:20].y)
    fp.write(DATA[5:12], tmp_path / "d" / "3.parquet")
    with pytest.raises(DataError, match=r"is in 0\.parquet and in 3\.parquet"):
        fp.read_shards(tmp_path / "d")
    (tmp_path / "e").mkdir()
    (tmp_path / "e" / "a.txt").write_text("1 qid:1 1:1\n0 qid:1 2:1\n")
    (tmp_path / "e" / "b.txt").write_text("1 qid:2 1:1\n0 qid:2 7:1\n")
    with pytest.warns(fp.FirstpageWarning, match=r"has 7 features.* read as 0: a\.txt \(2\)"):
        assert {shard.n_features for shard in fp.read_shards(tmp_path / "e")} == {7}
    for rows in (2, 1000):  # also if both files are in one shard
        with pytest.warns(fp.FirstpageWarning, match=r"read as 0: .*a\.txt \(2\)"):
            fp.write_shards(tmp_path / "e", tmp_path / f"f{rows}", rows=rows)
        assert fp.read_shards(tmp_path / f"f{rows}").n_features == 7


def test_fold_is_not_a_folder_of_shards(tmp_path: Path) -> None:
    for name in ("train", "vali", "test"):
        fp.write_letor(DATA[:3], tmp_path / f"{name}.txt")
    with pytest.raises(DataError, match=r"different splits.*: test.txt, train.txt, vali.txt"):
        fp.read_shards(tmp_path)
    with pytest.raises(DataError, match="different splits"):
        fp.write_shards(tmp_path, tmp_path / "s")


@pytest.mark.parametrize("names", [
    ["set1.train", "set1.valid"], ["a", "b", "a-test"], ["trainingset", "testset"],
    ["mq-train-1", "mq-dev-1"],
])  # fmt: skip
def test_files_of_different_splits_are_not_mixed(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        fp.write_letor(DATA[:3], tmp_path / f"{name}.txt")
    with pytest.raises(DataError, match="different splits"):
        fp.read_shards(tmp_path)


def test_files_of_one_split_are_one_data_set(tmp_path: Path) -> None:
    for number, name in enumerate(("set1.train", "set2.train", "train-3")):
        fp.write_letor(DATA[3 * number : 3 * number + 3], tmp_path / f"{name}.txt")
    assert fp.read_shards(tmp_path).n_queries == 9


def test_incomplete_and_damaged_folders_are_refused(tmp_path: Path) -> None:
    fp.write_shards(DATA, tmp_path / "s", rows=100)
    with pytest.raises(DataError, match="exists already"):
        fp.write_shards(DATA, tmp_path / "s")
    table = tmp_path / "s" / "shards.json"
    text = table.read_text()
    table_content = json.loads(text)
    table.write_text(json.dumps({**table_content, "features": 7}))
    with pytest.raises(DataError, match="do not match its checksum"):
        fp.read_shards(tmp_path / "s")
    table.write_text(text)
    array = tmp_path / "s" / "00001" / "X.npy"
    array.write_bytes(array.read_bytes()[:-10])
    with pytest.raises(DataError, match=r"X\.npy: has \d+ bytes instead of \d+: incomplete"):
        fp.read_shards(tmp_path / "s")[1]
    table.unlink()
    with pytest.raises(DataError, match="incomplete or damaged"):
        fp.read_shards(tmp_path / "s")
    with pytest.raises(DataError, match="no such folder"):
        fp.read_shards(tmp_path / "nowhere")

    def broken():
        yield DATA[:5]
        raise RuntimeError("the source fails")

    with pytest.raises(RuntimeError):
        fp.write_shards(broken(), tmp_path / "t", rows=10)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["s"]
    with pytest.raises(DataError, match="no document"):
        fp.write_shards([], tmp_path / "t")


def test_pages_can_be_released(tmp_path: Path) -> None:
    opened = fp.write_shards(DATA, tmp_path / "s", rows=100).open(0)
    before = opened.data.X.sum()
    opened.release()
    assert opened.data.X.sum() == before
    assert opened.maps


@pytest.mark.filterwarnings("ignore:.*read as 0")
def test_files_of_a_folder_share_the_first_feature_number(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    lines = ["1 qid:1 0:1 1:2", "0 qid:1 1:3", "1 qid:2 1:4", "0 qid:2 2:5"]
    (tmp_path / "a.txt").write_text("\n".join(lines))
    (tmp_path / "d" / "0.txt").write_text("\n".join(lines[:2]))
    (tmp_path / "d" / "1.txt").write_text("\n".join(lines[2:]))  # no feature 0 here
    data = fp.read_letor(tmp_path / "a.txt")
    assert_same(concat_datasets(list(fp.read_shards(tmp_path / "d"))), data)
    assert_same(
        concat_datasets(list(fp.write_shards(tmp_path / "d", tmp_path / "s", rows=2))), data
    )
    (tmp_path / "e").mkdir()
    (tmp_path / "e" / "0.txt").write_text("\n".join(lines[2:]))
    (tmp_path / "e" / "1.txt").write_text("\n".join(lines[:2]))
    assert fp.read_shards(tmp_path / "e").n_features == 3
    with pytest.raises(DataError, match="a feature 0 occurs after"):
        fp.write_shards(tmp_path / "e", tmp_path / "t", rows=2)


def test_shards_know_that_features_count_from_0(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "0.txt").write_text("1 qid:1 0:1 1:2\n0 qid:1 1:3\n")
    (tmp_path / "d" / "1.txt").write_text("1 qid:2 0:1 1:4\n0 qid:2 1:5\n")
    files = fp.read_shards(tmp_path / "d")
    inputs: tuple[Any, ...] = (tmp_path / "d", files, tmp_path / "s0")
    for number, source in enumerate(inputs):
        shards = fp.write_shards(source, tmp_path / f"s{number}", rows=(2, 4, 4)[number])
        assert shards.zero_based
        assert [shard.zero_based for shard in shards] == [True] * len(shards)
        assert_same(shards.dataset(), files.dataset())
        assert shards.fingerprint()["zero_based"]
    (tmp_path / "e").mkdir()
    (tmp_path / "e" / "0.txt").write_text("1 qid:1 1:1 2:2\n")
    (tmp_path / "e" / "1.txt").write_text("1 qid:2 1:3 2:4\n")
    shards = fp.read_shards(tmp_path / "e", zero_based=True)
    assert dense(shards.dataset().X).tolist() == [[0, 1, 2], [0, 3, 4]]


@pytest.mark.parametrize("rows", [5, 1000])
def test_data_of_different_types_are_refused_for_any_shard_size(tmp_path: Path, rows: int) -> None:
    data = fp.Synthetic(queries=6, docs=4, features=3).dataset()
    double = data[3:].with_features(data[3:].X.astype(np.float64))
    sparse = data[3:].with_features(csr_array(data[3:].X))
    for other, message in (
        (double, "block 1: its features are float64, and those of earlier data float32"),
        (sparse, "block 1: sparse features after dense ones"),
    ):
        with pytest.raises(DataError, match=message):
            fp.write_shards([data[:3], other], tmp_path / "shards", rows=rows)
    narrow = data[:3].with_features(data[:3].X[:, :2])
    with pytest.warns(FirstpageWarning, match=r"has 3 features.* read as 0: block 0 \(2\)"):
        fp.write_shards([narrow, data[3:]], tmp_path / "shards", rows=rows)


@pytest.mark.filterwarnings("ignore:.*are matched to the features of")
@pytest.mark.parametrize("kind", ["txt", "parquet"])
def test_changed_files_are_refused(tmp_path: Path, kind: str) -> None:
    data = fp.Synthetic(queries=9, docs=4, features=4).dataset()
    model = fp.ListNet().fit(data)
    fp.write(data[:4], tmp_path / f"a.{kind}")
    fp.write(data[4:], tmp_path / f"b.{kind}")
    shards = fp.read_shards(tmp_path)
    assert_same(shards.dataset(), fp.write_shards(shards, tmp_path / "s").dataset())
    wide = data[4:].with_features(np.column_stack([dense(data[4:].X)] * 2))
    for changed in (data[4:7], data[4:].with_labels(1 - data[4:].y), wide):
        fp.write(changed, tmp_path / f"b.{kind}")
        for use in (fp.ListNet().fit, model.predict, model.score):
            with pytest.raises(DataError, match=rf"b\.{kind}: changed since its folder was read"):
                use(shards)


def test_files_without_labels_can_be_ranked(tmp_path: Path) -> None:
    data = fp.Synthetic(queries=6, docs=4, features=3).dataset()
    names = ["f1", "f2", "f3"]
    data = data.with_features(data.X, names)
    model = fp.ListNet().fit(data)
    for number, part in enumerate((data[:3], data[3:])):
        table = pa.table({"qid": part.qid, **dict(zip(names, part.X.T, strict=True))})
        pq.write_table(table, tmp_path / f"{number}.parquet")
    with pytest.raises(DataError, match="no column looks like the label"):
        fp.read_shards(tmp_path)
    shards = fp.read_shards(tmp_path, labeled=False)
    assert np.array_equal(model.predict(shards), model.predict(data))
    for use in (fp.ListNet().fit, model.score):
        with pytest.raises(DataError, match=r"labels?"):
            use(shards)


def test_splits_in_several_files_are_not_joined(tmp_path: Path) -> None:
    for name in ("train-0", "train-1", "test_0"):
        fp.write_letor(DATA[:3], tmp_path / f"{name}.txt")
    with pytest.raises(DataError, match=r"different splits.*: test_0.txt, train-0.txt"):
        fp.read_shards(tmp_path)


def test_files_with_and_without_zeros_are_read_alike(tmp_path: Path) -> None:
    fp.write_letor(DATA[:3], tmp_path / "0.txt")
    thin = [f"{i % 2} qid:x{i // 300} {i % 3 + 1}:1 30000:{i}" for i in range(900)]
    (tmp_path / "1.txt").write_text("\n".join(thin))
    with pytest.raises(DataError, match="too many for a dense array"):
        fp.write_shards(tmp_path, tmp_path / "s")
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_changed_arrays_of_the_right_size_are_refused(tmp_path: Path, kind: str) -> None:
    dense = fp.Synthetic(queries=9, docs=10, features=4).dataset()
    data = dense if kind == "dense" else dense.with_features(csr_array(dense.X))
    model = fp.ListNet().fit(data)
    for name in ("y", "X" if kind == "dense" else "data"):
        shards = fp.write_shards(data, tmp_path / name, rows=10)
        first, second = (tmp_path / name / s / f"{name}.npy" for s in ("00000", "00001"))
        assert first.stat().st_size == second.stat().st_size
        first.write_bytes(second.read_bytes())
        for use in (fp.ListNet().fit, model.predict, model.score):
            with pytest.raises(DataError, match="00000: changed since it was written"):
                use(shards)
    shards = fp.write_shards(data, tmp_path / "s")
    file = tmp_path / "s" / "00000" / ("X.npy" if kind == "dense" else "indices.npy")
    raw = bytearray(file.read_bytes())
    file.write_bytes(raw[:-2] + b"\xff\x7f")  # a column that does not exist; NaN
    with pytest.raises(DataError, match=r"changed since|contains NaN or inf"):
        fp.ListNet().fit(shards)
    file.write_bytes(b"x" * len(raw))
    with pytest.raises(DataError, match=r"npy: is not an array: incomplete"):
        shards[0]
    file.write_bytes(raw)
    (tmp_path / "s").rename(tmp_path / "moved")
    with pytest.raises(DataError, match=r"s: no such folder of shards on this machine"):
        shards[0]
    fp.ListNet().fit(fp.read_shards(tmp_path / "moved"))
    (tmp_path / "moved" / "shards.json").unlink()
    assert is_shard_folder(
        tmp_path / "moved"
    )  # recognized as shards, so that `read_shards` reports what is wrong


def test_labels_must_be_finite(tmp_path: Path) -> None:
    y = DATA.y.copy()
    y[3] = np.nan
    with pytest.raises(DataError, match="a label is not a finite number"):
        fp.write_shards(DATA.with_labels(y), tmp_path / "s")


@pytest.mark.parametrize("rows", [5, 1000])
@pytest.mark.parametrize("kind", ["txt", "parquet"])
def test_query_in_two_files_is_refused_for_any_shard_size(
    tmp_path: Path, kind: str, rows: int
) -> None:
    """Also if both would be in one shard: the rows of a query are never joined across inputs."""
    data = fp.Synthetic(queries=6, docs=4, features=3).dataset()
    folder = tmp_path / "files"
    folder.mkdir()
    fp.write(data[:4], folder / f"a.{kind}")
    fp.write(data[3:], folder / f"b.{kind}")  # the last of a is the first of b
    message = rf"the query '4' is in a\.{kind} and in b\.{kind}; .* must all be in one file"
    with pytest.raises(DataError, match=message):
        fp.write_shards(folder, tmp_path / "shards", rows=rows)
    with pytest.raises(DataError, match=message):
        fp.read_shards(folder)
    assert not (tmp_path / "shards").exists()


@pytest.mark.parametrize("rows", [4, 1000])
def test_query_in_two_blocks_is_refused_for_any_shard_size(tmp_path: Path, rows: int) -> None:
    data = fp.Synthetic(queries=6, docs=4, features=3).dataset()
    for blocks in ([data[:4], data[3:]], [data[0], data[0]], [data, data]):
        with pytest.raises(DataError, match=r"is in block 0 and in block 1; .* in one block"):
            fp.write_shards(blocks, tmp_path / "shards", rows=rows)
    assert fp.write_shards([data[:4], data[4:]], tmp_path / "shards", rows=rows).n_docs == 24
