"""Tables: CSV, Parquet, Arrow, npz."""

from __future__ import annotations

import csv
import gzip
import os
import threading
from datetime import date
from pathlib import Path

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.errors import DataError
from firstpage.data.ids import is_identifier
from tests.narrow import dense, instance, present

MADE = fp.Synthetic(queries=6, docs="uniform(1, 9)", features=4, grades=3).dataset()


@pytest.mark.parametrize("name", ["x.txt", "x.txt.gz", "x.parquet", "x.csv", "x.arrow", "x.npz"])
def test_every_format_round_trips(tmp_path: Path, name: str) -> None:
    fp.write(MADE, tmp_path / name)
    back = fp.read(tmp_path / name)
    assert isinstance(back, fp.Dataset)
    assert np.array_equal(dense(back.X), dense(MADE.X))
    assert np.array_equal(back.y, MADE.y)
    assert np.array_equal(back.offsets, MADE.offsets)
    assert back.queries == MADE.queries
    assert back.docids == MADE.docids


def test_sparse_npz_round_trips(tmp_path: Path) -> None:
    from scipy.sparse import csr_array

    fp.write(MADE.with_features(csr_array(MADE.X)), tmp_path / "x.npz")
    back = instance(fp.Dataset, fp.read(tmp_path / "x.npz"))
    assert back.is_sparse
    assert np.array_equal(dense(back.dense().X), dense(MADE.X))


def test_column_names_can_be_set(tmp_path: Path) -> None:
    import polars as pl

    frame = pl.DataFrame(
        {"bm25": [1.5, None], "Relevance": [1, 0], "query": ["b", "b"], "pr": [3, 4]}
    )
    frame.write_parquet(tmp_path / "t.parquet")
    data = instance(fp.Dataset, fp.read(tmp_path / "t.parquet"))
    assert data.feature_names == ("bm25", "pr")
    assert np.isnan(data.X[1, 0])
    assert data.y.tolist() == [1, 0]
    from firstpage.data.formats.tables import from_frame

    assert from_frame(frame.to_pandas(), qid="query").y.tolist() == [1, 0]
    assert from_frame(frame.to_arrow()).y.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [1.0]}, r"no column looks like the label .*there are a"),
        ({"label": [1], "a": [2]}, "no column looks like the query id"),
        ({"label": [1], "qid": [None]}, "row 1 has no query id"),
        ({"label": [None], "qid": [1]}, "row 1 has no label"),
        ({"label": [1, 0], "qid": [1, 1], "a": ["x", "2"]}, "column 'a' must be numeric"),
        ({"label": [1, 0], "qid": [1, 1], "a": ["1", "2"]}, "'a' has numbers stored as text"),
        ({"label": [1, 0], "qid": [1, 1], "a": [date(2020, 1, 1), None]}, "holds dates or times"),
        ({"label": [1, 0], "qid": [1, 1], "a": [1e300, 2.0]}, "1e\\+300 in row 1 does not fit"),
    ],
)
def test_invalid_tables_are_refused(tmp_path: Path, columns, message: str) -> None:
    import polars as pl

    pl.DataFrame(columns).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(fp.DataError, match=message):
        fp.read(tmp_path / "t.parquet")


def test_broken_files_are_one_line_errors(tmp_path: Path) -> None:
    for name in ("x.parquet", "x.arrow", "x.npz"):
        (tmp_path / name).write_bytes(b"not this format")
        with pytest.raises(fp.DataError, match=f"{name}: cannot be read as"):
            fp.read(tmp_path / name)
    np.savez(tmp_path / "y.npz", X=np.zeros((1, 1)))
    with pytest.raises(fp.DataError, match="lacks y, qid; it has X"):
        fp.read(tmp_path / "y.npz")


def test_tables_are_read_from_pipes_and_compressed_files(tmp_path: Path) -> None:
    text = b"label;qid;a\n1;1;0.5\n0;1;0.25\n"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(text), daemon=True)
    writer.start()
    assert dense(instance(fp.Dataset, fp.read(pipe, "csv")).X).tolist() == [[0.5], [0.25]]
    writer.join(10)
    packed = tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress(text))
    assert dense(instance(fp.Dataset, fp.read(packed)).X).tolist() == [[0.5], [0.25]]


def test_empty_last_columns_of_sparse_data_round_trip(tmp_path: Path) -> None:
    from scipy.sparse import csr_array

    X = csr_array(np.array([[1.0, 0, 0], [0, 2, 0]], np.float32))
    fp.write_letor(fp.Dataset.from_arrays(X, [1, 0], [1, 2]), tmp_path / "x.txt")
    assert dense(fp.read_letor(tmp_path / "x.txt").X).tolist() == [[1, 0, 0], [0, 2, 0]]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_csv_matches_a_plain_loop(tmp_path: Path, separator: str) -> None:
    path = tmp_path / "t.csv"
    fp.write(MADE, path)
    path.write_text(path.read_text().replace(",", separator))
    with path.open(newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter=separator))
    data = fp.read(path)
    assert isinstance(data, fp.Dataset)
    features = [name for name in rows[0] if name not in ("label", "qid", "docid")]
    assert list(data.feature_names or ()) == features
    assert dense(data.X).tolist() == [
        [float(np.float32(row[name])) for name in features] for row in rows
    ]
    assert data.y.tolist() == [float(row["label"]) for row in rows]
    assert data.qid.tolist() == [int(row["qid"]) for row in rows]
    assert list(data.docids or ()) == [row["docid"] for row in rows]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("label,qid,a,a\n1,1,2,3\n", "two columns are named 'a'"),
        ("label;qid;a\n1;1;x\n0;1;2\n", "column 'a' must be numeric"),
        ("label,qid,a\n1,1,2,3\n", "cannot be read as a table"),
        ("", "cannot be read as a table"),
        ("label,qid,a\n", "contains no documents"),
    ],
)
def test_invalid_csv_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        fp.read(tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.zeros((2, 1)), "y": [1, 0, 1], "qid": [1, 1]}, "2 rows|labels"),
        ({"X": np.zeros(2), "y": [1, 0], "qid": [1, 1]}, "two-dimensional|2-D|two dimensions"),
        ({"X": np.array([["a"], ["b"]]), "y": [1, 0], "qid": [1, 1]}, "number"),
        ({"data": [1.0], "indices": [0], "y": [1], "qid": [1]}, "lacks X"),
        ({"X": np.zeros((0, 1)), "y": [], "qid": []}, "contains no documents"),
    ],
)
def test_invalid_npz_is_refused(tmp_path: Path, arrays: dict[str, object], message: str) -> None:
    np.savez(tmp_path / "x.npz", **arrays)  # type: ignore[arg-type]
    with pytest.raises(DataError, match=message):
        fp.read(tmp_path / "x.npz")


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.csv.xz", "x.parquet", "x.arrow"])
def test_ids_are_the_same_text_in_every_file(tmp_path: Path, name: str) -> None:
    data = fp.Dataset.from_arrays(
        np.arange(5.0).reshape(5, 1),
        [0, 1, 2, 1, 0],
        ["1", "01", "001", "1.50", "true"],
        ["007", "true", "1e5", "", "x"],
    )
    file = tmp_path / name.removesuffix(".gz").removesuffix(".xz")
    fp.write(data, file)
    if name.endswith((".gz", ".xz")):
        import lzma

        compress = gzip.compress if name.endswith(".gz") else lzma.compress
        (tmp_path / name).write_bytes(compress(file.read_bytes()))
    back = fp.read(tmp_path / name)
    assert (list(back.queries), list(present(back.docids))) == (
        list(data.queries),
        list(present(data.docids)),
    )


def test_types_of_csv_columns_follow_from_all_rows(tmp_path: Path) -> None:
    rows = [f"{i % 2},1,d{i},0" for i in range(11_000)]
    (tmp_path / "t.csv").write_text("\n".join(["label,qid,docid,f", *rows, "1,1,x,0.5", ""]))
    assert instance(fp.Dataset, fp.read(tmp_path / "t.csv")).X[-1, 0] == 0.5


def test_a_feature_is_not_taken_for_a_label_or_a_document(tmp_path: Path) -> None:
    data = fp.Dataset.from_arrays(
        [[1.0, 7.0], [3.0, 9.0]], [0, 1], ["a", "a"], None, ["Label", "x"]
    )
    fp.write(data, tmp_path / "t.parquet")
    with pytest.warns(fp.FirstpageWarning, match="'Label' is read as a feature"):
        back = instance(fp.Dataset, fp.read(tmp_path / "t.parquet"))
    assert (back.y.tolist(), dense(back.X[:, 0]).tolist()) == ([0, 1], [1, 3])
    unlabeled = fp.Dataset.from_arrays([[1.0], [3.0]], [0, 1], ["a", "a"], None, ["document"])
    with pytest.raises(DataError, match="'document' would be read as the document id; rename it"):
        fp.write(unlabeled, tmp_path / "t.csv")


IDENTIFIERS = ["id", "ID", "product_id", "brand-ID", "shop id", "userId", "docID", "item.uuid",
               "shop-id", "user_ID", "productID", "ProductId", "uuid", "q1Id"]  # fmt: skip
QUANTITIES = ["price", "grid", "paid", "BID", "idf", "id_count", "valid", "identity", "maxBid",
              "CovID", "HybrID", "squID", "LiquId", "isValId", "xId"]  # fmt: skip


@pytest.mark.parametrize("name", IDENTIFIERS + QUANTITIES)
def test_names_of_identifiers(name: str) -> None:
    assert is_identifier(name) == (name in IDENTIFIERS)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow"])
def test_identifiers_are_no_features(tmp_path: Path, suffix: str) -> None:
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(
        {
            "qid": ["a", "a", "b"],
            "label": [1, 0, 2],
            "product_id": [1001, 1002, 1003],
            "brand_id": [3, 4, 3],
            "price": [9.5, 7.5, 1.0],
            "shopId": ["x", "y", "x"],
        }
    )
    path = tmp_path / f"t.{suffix}"
    {"csv": frame.write_csv, "parquet": frame.write_parquet, "arrow": frame.write_ipc}[suffix](path)
    message = (
        "left out 'product_id', 'brand_id', 'shopId', which .* the features are price. Rename a"
    )
    with pytest.warns(fp.FirstpageWarning, match=message):
        assert instance(fp.Dataset, fp.read(path)).feature_names == ("price",)
    with pytest.warns(fp.FirstpageWarning, match="left out 'product_id', 'shopId', which"):
        chosen = instance(fp.Dataset, fp.read(path, categorical=["brand_id"]))
    assert chosen.feature_names == ("brand_id", "price")
    assert dict(chosen.categories) == {0: ("3", "4")}
    fp.write(chosen, tmp_path / "back.parquet")
    assert instance(fp.Dataset, fp.read(tmp_path / "back.parquet")).feature_names == (
        "brand_id",
        "price",
    )


def test_a_feature_with_the_name_of_an_identifier(tmp_path: Path) -> None:
    named = fp.Dataset.from_arrays([[1.0], [3.0]], [0, 1], ["a", "a"], None, ["user_id"])
    with pytest.raises(DataError, match="'user_id' would be read as an identifier and left out"):
        fp.write(named, tmp_path / "t.csv")
    fp.write(named, tmp_path / "t.npz")
    with pytest.warns(fp.FirstpageWarning, match="'user_id' is learned from as a quantity, though"):
        fp.ListNet().fit(fp.read(tmp_path / "t.npz"))


def test_a_model_with_a_feature_named_like_an_identifier(tmp_path: Path) -> None:
    X = [[1.0, 3.0], [2.0, 1.0]]
    data = fp.Dataset.from_arrays(X, [0, 1], ["a", "a"], None, ["bm25", "shop_id"])
    with pytest.warns(fp.FirstpageWarning, match="'shop_id' is learned from as a quantity"):
        model = fp.ListNet().fit(data)
    (tmp_path / "a.csv").write_text("qid,label,bm25,shop_id\na,0,1,3\na,1,2,1\n")
    with pytest.warns(fp.FirstpageWarning, match="left out 'shop_id'"):
        table = fp.read(tmp_path / "a.csv")
    message = (
        "Tables are read without columns .* such as 'shop_id'; give the data as .npz, or rename"
    )
    with pytest.raises(DataError, match=message):
        model.predict(table)
    fp.write(data, tmp_path / "a.npz")
    np.testing.assert_array_equal(model.predict(fp.read(tmp_path / "a.npz")), model.predict(data))


def test_an_integer_per_row_is_reported(tmp_path: Path) -> None:
    rows = [f"{i // 10},{i % 2},{7 * i},{i % 7}" for i in range(100)]
    path = tmp_path / "t.csv"
    path.write_text("qid,label,sku,age\n" + "\n".join(rows))
    with pytest.warns(fp.FirstpageWarning, match="'sku' has another integer in each of 100 rows"):
        assert instance(fp.Dataset, fp.read(path)).feature_names == ("sku", "age")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_missing_ids_of_frames(library: str) -> None:
    from firstpage.data.formats.tables import from_frame

    frames = pytest.importorskip(library)
    columns = {"label": [0, 1], "qid": ["q", "q"], "docid": [None, "b"], "f": [1.0, 2.0]}
    assert list(present(from_frame(frames.DataFrame(columns)).docids)) == ["", "b"]
    if library == "pandas":
        columns["qid"] = frames.array(["q", None], "string")
        with pytest.raises(DataError, match="row 2 has no query id"):
            from_frame(frames.DataFrame(columns))
        text = frames.DataFrame({"f": [1.0, 2.0], "c": frames.array(["x", None], "string")})
        with pytest.warns(fp.FirstpageWarning, match="'c' is text"):
            fp.LambdaMART(scorer="trees(count=1, min_docs=1)").fit(text, [0, 1], qid=[1, 1])
        judged = {"qid": ["q", "q"], "docno": frames.array(["a", None], "string"), "label": [0, 1]}
        with pytest.raises(DataError, match="docno of row 1 of the qrels is missing"):
            fp.Qrels.from_frame(frames.DataFrame(judged))


def test_numbers_and_texts_of_one_id_are_one_query() -> None:
    run = fp.Run.from_arrays(np.array([1, "1"], object), ["a", "b"], [1, 2])
    assert run.to_dict() == {"1": {"a": 1.0, "b": 2.0}}
    run = fp.Run.from_arrays(np.array([b"q", "q"], object), ["a", "b"], [1, 2])
    assert run.to_dict() == {"q": {"a": 1.0, "b": 2.0}}
    assert len(fp.Dataset.from_arrays([[1.0]] * 3, [0, 1, 2], np.array([1, "1", 2], object))) == 2


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("x.npz", {"dtype": "float64"}, "the format npz have no option 'dtype'"),
        ("x.qrels", {"nonsense": 1}, "the format qrels have no option 'nonsense'"),
        ("x.parquet", {"dtype": "int32"}, "dtype must be float32 or float64; got int32"),
        ("x.csv", {"dtype": "x"}, "dtype must be float32 or float64; got 'x'"),
    ],
)
def test_options_that_a_format_lacks_are_refused(tmp_path, name, options, message) -> None:
    fp.write(MADE if name != "x.qrels" else fp.Qrels.from_dict({"q": {"d": 1}}), tmp_path / name)
    with pytest.raises(DataError, match=message):
        fp.read(tmp_path / name, **options)


def test_ids_that_are_not_unicode_cannot_be_in_tables(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_bytes(b"0 qid:caf\xe9 1:1\n1 qid:caf\xe9 1:2\n")
    with pytest.raises(DataError, match="is not valid Unicode, which tables need"):
        fp.write(fp.read(tmp_path / "t.txt"), tmp_path / "t.parquet")
