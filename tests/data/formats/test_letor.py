"""LETOR files: formatting variants, errors, the cache."""

from __future__ import annotations

import gzip
import lzma
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import firstpage as fp
from firstpage.core.folders import cache_folder
from firstpage.data.formats import letor, letor_reader, letor_writer
from tests.narrow import dense, instance, present
from tests.patience import PATIENCE

PLAIN = """\
2 qid:10 1:0.03 2:0.2 3:-1e3 # docid = GX001-1
0 qid:10 1:0.5 3:2e8 #docid = GX001-2 inc = 1
1 qid:11 1:1 2:2 3:3
"""


def write(folder: Path, text: str | bytes, name: str = "data.txt") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_plain_file_is_read(tmp_path: Path) -> None:
    data = fp.read_letor(write(tmp_path, PLAIN))
    assert data.X.dtype == np.float32
    assert dense(data.X).tolist() == [
        [np.float32(0.03), np.float32(0.2), -1000],
        [0.5, 0, 2e8],
        [1, 2, 3],
    ]
    assert data.y.tolist() == [2, 0, 1]
    assert data.offsets.tolist() == [0, 2, 3]
    assert list(data.queries) == ["10", "11"]
    assert data.qid.tolist() == [10, 10, 11]
    assert list(present(data.docids)) == ["GX001-1", "GX001-2", ""]
    assert not dense(data.X).flags.writeable
    assert not data.y.flags.writeable


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.replace("\n", "\r\n"),
        lambda t: t.replace("\n", "  \t \n"),
        lambda t: t.replace(" ", "\t  "),
        lambda t: t[:-1],  # no final newline
        lambda t: "# a comment\n\n" + t + "\n\n# the end",
        lambda t: t.replace("0.5", "5e-1").replace("2e8", "+200000000.000"),
        lambda t: t.replace("1:0.5 3:2e8", "3:2e8 1:0.5"),  # features in any order
    ],
)
def test_formatting_variants_are_read_alike(tmp_path: Path, change) -> None:
    expected = fp.read_letor(write(tmp_path, PLAIN))
    data = fp.read_letor(write(tmp_path, change(PLAIN), "other.txt"))
    assert np.array_equal(dense(data.X), dense(expected.X))
    assert np.array_equal(data.y, expected.y)
    assert data.queries == expected.queries
    assert data.docids == expected.docids


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_compressed_files(tmp_path: Path, suffix: str) -> None:
    import zstandard

    packers: dict[str, Callable[[bytes], bytes]] = {
        ".gz": gzip.compress,
        ".xz": lzma.compress,
        ".zst": zstandard.compress,
    }
    pack = packers[suffix]
    path = write(tmp_path, pack(PLAIN.encode()), f"data.txt{suffix}")
    assert fp.read_letor(path).y.tolist() == [2, 0, 1]
    path.write_bytes(pack(PLAIN.encode() * 50)[:-9])
    with pytest.raises(fp.DataError, match=f"data.txt{suffix}.*(damaged|cut short)"):
        fp.read_letor(path)


@pytest.mark.parametrize(
    ("text", "location", "message"),
    [
        ("x qid:1 1:1\n", "1:1", "begin with a number, the label; got 'x'"),
        ("1 qid:1 1:1\n\n2 1:1\n", "3:3", "'qid:' must follow the label; got '1:1'"),
        ("1\n", "1:2", "'qid:' must follow the label; got the end of the line"),
        ("1 qid: 1:1\n", "1:7", "'qid:' must be followed by a query id"),
        ("1 qid:1 a:1\n", "1:9", "must have the form 'number:value'; got 'a:1'"),
        ("1 qid:1 1\n", "1:9", "must have the form 'number:value'; got '1'"),
        ("1 qid:1 1:x\n", "1:11", "must be a number; got 'x'"),
        ("1 qid:1 1:\n", "1:11", "must be a number"),
        ("1 qid:1 1:1.2.3\n", "1:11", "must be a number; got '1.2.3'"),
        ("1 qid:1 1:1 2:1 1:2\n", "1:17", "feature 1 occurs twice"),
        ("1 qid:1 99999999999:1\n", "1:9", "larger than 2147483647"),
        ("1 qid:1 -1:1\n", "1:9", "must have the form 'number:value'"),
        ("1 qid:1 1:1\nnan qid:1 1:1\n", "2:1", "label must be finite; got nan"),
        ("1 qid:1 1:1\n1e999 qid:1 1:1\n", "2:1", "label must be finite; got inf"),
        ("1 qid:1 1:1\n1 qid:1 2:1e300\n", "2:9", "does not fit into float32.*float64"),
        ("1 qid:1 1:1_0\n", "1:11", "must be a number; got '1_0'"),
        ("1 qid:1 1:1\x002:2\n", "1:11", "must be a number"),
    ],
)
def test_errors_name_file_line_and_column(tmp_path: Path, text, location, message) -> None:
    path = write(tmp_path, text)
    with pytest.raises(fp.DataError, match=message) as caught:
        fp.read_letor(path)
    assert str(caught.value).startswith(f"{path}:{location}: ")
    assert "\n" not in str(caught.value)


def test_empty_missing_and_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(fp.DataError, match="contains no documents"):
        fp.read_letor(write(tmp_path, "# nothing\n\n"))
    with pytest.raises(fp.DataError, match=r"no such file\. Did you mean .*data\.txt"):
        fp.read_letor(tmp_path / "dta.txt")
    with pytest.raises(fp.DataError, match="is a folder"):
        fp.read_letor(tmp_path)


def test_missing_values_are_nan(tmp_path: Path) -> None:
    data = fp.read_letor(write(tmp_path, "1 qid:1 1:NULL 2:nan 3:-inf\n"))
    assert np.isnan(dense(data.X[0, :2])).all()
    assert data.X[0, 2] == -np.inf


def test_interleaved_queries_are_regrouped_stably_with_a_warning(tmp_path: Path) -> None:
    text = "".join(f"{i} qid:{q} 1:{i} # d{i}\n" for i, q in enumerate("abacbcab"))
    with pytest.warns(fp.FirstpageWarning, match="regrouped"):
        data = fp.read_letor(write(tmp_path, text))
    assert list(data.queries) == ["a", "b", "c"]
    assert data.y.tolist() == [0, 2, 6, 1, 4, 7, 3, 5]
    assert dense(data.X[:, 0]).tolist() == data.y.tolist()
    assert list(present(data.docids)) == [f"d{int(y)}" for y in data.y]
    assert data.qid.tolist() == list("aaabbbcc")


def test_features_may_count_from_zero(tmp_path: Path) -> None:
    zero = fp.read_letor(write(tmp_path, "1 qid:1 0:5 2:7\n"))
    assert dense(zero.X).tolist() == [[5, 0, 7]]
    late = fp.read_letor(write(tmp_path, "1 qid:1 1:6\n" * 3 + "1 qid:1 0:5\n", "late.txt"))
    assert dense(late.X).tolist() == [[0, 6]] * 3 + [[5, 0]]
    forced = fp.read_letor(write(tmp_path, "1 qid:1 1:6\n"), zero_based=True)
    assert dense(forced.X).tolist() == [[0, 6]]
    with pytest.raises(fp.DataError, match=r":2:9: a feature 0 occurs"):
        fp.read_letor(write(tmp_path, "1 qid:1 1:6\n1 qid:1 0:5\n"), zero_based=False)


def test_number_of_features_can_be_set(tmp_path: Path) -> None:
    path = write(tmp_path, PLAIN)
    assert fp.read_letor(path, n_features=5).X.shape == (3, 5)
    with pytest.raises(fp.DataError, match=r":1:23: the feature number 3 exceeds n_features=2"):
        fp.read_letor(path, n_features=2)


def test_sparse_files_are_read_as_csr(tmp_path: Path) -> None:
    path = write(tmp_path, PLAIN)
    data = fp.read_letor(path, sparse=True)
    assert data.is_sparse
    assert np.array_equal(instance(csr_array, data.X).toarray(), dense(fp.read_letor(path).X))
    wide = write(
        tmp_path, "".join(f"1 qid:{i // 9} {1 + i * 997}:1\n" for i in range(900)), "wide.txt"
    )
    data = fp.read_letor(wide)
    assert data.is_sparse  # 900 x 900,000 dense would be 3 GB
    assert instance(csr_array, data.X).nnz == 900
    with pytest.raises(fp.DataError, match="too many for a dense array"):
        fp.read_letor(wide, sparse=False)


def test_lines_longer_than_a_chunk_and_rows_that_grow_wider(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(letor_reader, "CHUNK_BYTES", 64)
    rng = np.random.default_rng(0)
    rows = [np.round(rng.normal(size=1 + (i * 7) % 60), 4) for i in range(80)]
    lines = [
        f"{i % 3} qid:{i // 9} "
        + " ".join(f"{j + 1}:{v}" for j, v in enumerate(row))
        + f" # x{i}\n"
        for i, row in enumerate(rows)
    ]
    data = fp.read_letor(write(tmp_path, "".join(lines)), dtype="float64")
    assert list(present(data.docids)) == [f"x{i}" for i in range(80)]
    for row, got in zip(rows, data.X, strict=True):
        assert np.array_equal(got[: len(row)], row)
        assert not got[len(row) :].any()
    with pytest.raises(fp.DataError, match=r"data.txt:41:\d+: "):
        bad = [*lines[:40], lines[40].replace("1:", "1:?", 1), *lines[41:]]
        fp.read_letor(write(tmp_path, "".join(bad)))


numbers = st.floats(allow_nan=False, allow_infinity=False, width=32)


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 3), st.lists(numbers, min_size=3, max_size=3)),
        min_size=1,
        max_size=12,
    ),
    sparse=st.booleans(),
)
def test_written_data_round_trip_exactly(tmp_path: Path, rows, sparse) -> None:
    rows.sort(key=lambda r: r[1])
    labels, qid, X = zip(*rows, strict=True)
    ids = [f"d{i}" for i in range(len(rows))]
    original = fp.Dataset.from_arrays(np.array(X, np.float32), labels, qid, ids)
    if sparse:
        from scipy.sparse import csr_array

        original = original.with_features(csr_array(original.X))
    path = tmp_path / "round.txt"
    fp.write_letor(original, path)
    data = fp.read_letor(path, n_features=3, zero_based=False)
    assert np.array_equal(dense(data.X), dense(original.dense().X))
    assert np.array_equal(data.y, original.y)
    assert np.array_equal(data.offsets, original.offsets)
    assert data.docids == original.docids


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("block_bytes", [1, 100, 1 << 20])
def test_written_text(tmp_path: Path, monkeypatch, dtype: str, block_bytes: int) -> None:
    monkeypatch.setattr(letor_writer, "BLOCK_BYTES", block_bytes)
    X = np.array([[0.5, -0.0, 3], [1e-5, 1e16, 0.1], [np.nan, np.inf, 5e-324]], dtype)
    X[2, 2] = np.finfo(X.dtype).smallest_subnormal
    data = fp.Dataset.from_arrays(X, [2, 0.25, -1e20], ["é", "é", "q"], ["D1", "", "D#3"])
    fp.write_letor(data, tmp_path / "x.txt")
    assert (tmp_path / "x.txt").read_text("utf-8") == (
        "2 qid:é 1:0.5 2:-0 3:3 #docid = D1\n"
        "0.25 qid:é 1:1e-05 2:1e+16 3:0.1\n"
        f"-100000000000000000000 qid:q 1:nan 2:inf 3:{X[2, 2]!s} #docid = D#3\n"
    )


def test_written_sparse_text_names_the_last_feature_once_per_query(tmp_path: Path) -> None:
    from scipy.sparse import csr_array

    X = csr_array(np.array([[0, 0, 0, 0], [0, 2, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]], float))
    data = fp.Dataset.from_arrays(X, [1, 0, 1, 0], [1, 1, 2, 2])
    fp.write_letor(data, tmp_path / "x.txt")
    assert (tmp_path / "x.txt").read_text() == "1 qid:1 4:0\n0 qid:1 2:2\n1 qid:2 4:1\n0 qid:2\n"


def test_scikit_learn_reads_equal_data(tmp_path: Path) -> None:
    from sklearn.datasets import load_svmlight_file

    original = fp.Synthetic(queries=20, docs="uniform(1, 30)", features=7).dataset()
    path = tmp_path / "data.txt"
    fp.write_letor(original, path)
    X, y, qid = load_svmlight_file(str(path), query_id=True)
    for dtype in ("float32", "float64"):
        data = fp.read_letor(path, dtype=dtype)
        assert np.array_equal(dense(data.X), X.toarray().astype(dtype))
        assert np.array_equal(data.y, y)
        assert np.array_equal(data.qid, qid)


# --- the cache


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(letor, "MIN_CACHED_BYTES", 0)
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "kernels").symlink_to(cache_folder() / "kernels")  # compiled already
    monkeypatch.setenv("FIRSTPAGE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "data"


def no_parsing(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("the cache should have answered")

    monkeypatch.setattr(letor_reader.LetorReader, "read", never)


@pytest.mark.parametrize("sparse", [False, True])
def test_second_read_is_memory_mapped(tmp_path, cached, monkeypatch, sparse) -> None:
    path = write(tmp_path, PLAIN)
    first = fp.read_letor(path, sparse=sparse)
    no_parsing(monkeypatch)
    reread = fp.read_letor(path, sparse=sparse)
    assert np.array_equal(dense(first.dense().X), dense(reread.dense().X))
    assert reread.docids == first.docids
    assert reread.queries == first.queries
    if not sparse:
        assert isinstance(dense(reread.X).base, np.memmap)
        assert not dense(reread.X).flags.writeable
    with pytest.raises(AssertionError, match="cache should have"):
        fp.read_letor(path, sparse=sparse, dtype="float64")  # other options


def test_changed_file_replaces_its_cache_entry(tmp_path, cached) -> None:
    path = write(tmp_path, PLAIN)
    fp.read_letor(path)
    (old,) = cached.iterdir()
    write(tmp_path, PLAIN.replace("2 qid", "3 qid"))
    os.utime(path, ns=(1, 1))
    assert fp.read_letor(path).y[0] == 3
    (new,) = cached.iterdir()
    assert new != old


def test_damaged_cache_entry_is_rewritten(tmp_path, cached) -> None:
    path = write(tmp_path, PLAIN)
    fp.read_letor(path)
    (entry,) = cached.iterdir()
    for name in ("X.npy", "entry.json"):
        (entry / name).write_bytes((entry / name).read_bytes()[:-3])
        assert fp.read_letor(path).y.tolist() == [2, 0, 1]
        (entry,) = cached.iterdir()


def test_cache_locations(tmp_path, cached) -> None:
    path = write(tmp_path, PLAIN)
    fp.read_letor(path, cache="beside")
    assert (tmp_path / ".firstpage").is_dir()
    fp.read_letor(path, cache=tmp_path / "mine")
    assert (tmp_path / "mine").is_dir()
    fp.read_letor(path, cache=False)
    assert not cached.exists()


def test_unwritable_cache_is_skipped(tmp_path, cached, monkeypatch) -> None:
    blocked = write(tmp_path, "", "not a folder")
    monkeypatch.setenv("FIRSTPAGE_CACHE", str(blocked))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fp.read_letor(write(tmp_path, PLAIN)).y.tolist() == [2, 0, 1]


def test_processes_can_write_one_entry_concurrently(tmp_path, cached) -> None:
    """Two processes, twice: one complete entry remains."""
    original = fp.Synthetic(queries=50).dataset()
    path = tmp_path / "data.txt"
    fp.write_letor(original, path)
    script = (
        "import sys, firstpage as fp\n"
        "from firstpage.data.formats import letor\n"
        "letor.MIN_CACHED_BYTES = 0\n"
        "print(sum(float(fp.read_letor(sys.argv[1]).X.sum()) for _ in range(3)))\n"
    )
    for _ in range(2):
        os.utime(path)  # a new entry each time
        command = [sys.executable, "-c", script, str(path)]
        started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        printed = {p.communicate(timeout=PATIENCE)[0] for p in started}
        assert len(printed) == 1
        assert float(printed.pop()) == pytest.approx(3 * float(original.X.sum()), rel=1e-4)
        assert len([p for p in cached.iterdir() if not p.name.startswith(".")]) == 1
        assert not list(cached.glob(".draft-*"))


def test_progress_reaches_the_end(tmp_path: Path) -> None:
    original = fp.Synthetic(queries=200, features=40).dataset()
    path = tmp_path / "data.txt"
    fp.write_letor(original, path)
    seen: list[tuple[int, int]] = []
    fp.read_letor(path, progress=lambda done, total: seen.append((done, total)), cache=False)
    size = path.stat().st_size
    assert len(seen) > 2
    assert seen == sorted(seen)
    assert seen[-1] == (size, size)


@pytest.mark.parametrize("query", ["a b", "a#b", ""])
def test_query_ids_with_separators_are_refused(tmp_path: Path, query: str) -> None:
    data = fp.Dataset.from_arrays([[1.0], [2.0]], [1, 0], ["fine", query])
    with pytest.raises(fp.DataError, match=rf"query id '{query}' cannot be written to a LETOR"):
        fp.write_letor(data, tmp_path / "x.txt")
    assert not list(tmp_path.iterdir())


def test_missing_label_is_refused(tmp_path: Path) -> None:
    data = fp.Dataset.from_arrays([[1.0], [2.0]], [1, np.nan], ["a", "b"])
    with pytest.raises(fp.DataError, match="a label of query 'b' is missing or infinite"):
        fp.write_letor(data, tmp_path / "x.txt")


@pytest.mark.parametrize("name", ["a b", "x\n9 qid:7 1:5", "a\tb", ""])
def test_ids_with_separators_are_refused(tmp_path: Path, name: str) -> None:
    data = fp.Dataset.from_arrays([[1.0]], [1], ["q"], [name or "x"])
    if name:
        with pytest.raises(fp.DataError, match=r"document id .* LETOR file .* write \.parquet"):
            fp.write_letor(data, tmp_path / "x.txt")
    if name != "a b":
        with pytest.raises(fp.DataError, match="cannot be written to a TREC file"):
            fp.write_run(fp.Run.from_dict({"q": {name: 1}}), tmp_path / "x.run")
    with pytest.raises(fp.DataError, match="cannot be written to a TREC file"):
        fp.write_run(fp.Run.from_dict({"q": {"d": 1}}, name="two words"), tmp_path / "x.run")


def test_descending_feature_order_is_not_slower(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("1 qid:1 " + " ".join(f"{i}:1" for i in range(60_000, 0, -1)) + "\n")
    assert fp.read_letor(path).X.sum() == 60_000
    path.write_text("1 qid:1 3:1 2:1 1:1\n1 qid:1 2:1\t1:1\t02:5\n")
    with pytest.raises(fp.DataError, match=r":2:17: the feature 2 occurs twice"):
        fp.read_letor(path)


def test_first_overflowing_value_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("1 qid:1\t1:1\t2:1e99\t3:1e99\n")
    with pytest.raises(fp.DataError, match=r":1:13: 1e\+99 does not fit"):
        fp.read_letor(path)


def test_extreme_exponents_are_parsed_by_python(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text(f"1 qid:1 1:0.{'0' * 200_000}1e200001\n")
    assert dense(fp.read_letor(path).X).tolist() == [[1]]
