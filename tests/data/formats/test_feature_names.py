"""Feature names survive every format, every conversion and every export."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from tests.cli.conftest import run  # noqa: F401
from tests.narrow import dense, instance

NAMES = ("bm25 title", "age: days", "größe", "#clicks")
DATA = fp.Synthetic(queries=9, docs=6, features=4, grades=3, seed=3).dataset()
DATA = DATA.with_features(DATA.X, NAMES)
FORMATS: dict[str, Callable[[Path], Any]] = {
    "txt": fp.read_letor, "txt.gz": fp.read_letor, "parquet": fp.read, "csv": fp.read,
    "arrow": fp.read, "npz": fp.read,
}  # fmt: skip


@pytest.mark.parametrize("suffix", FORMATS)
def test_files_store_names(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"data.{suffix}"
    fp.write(DATA, path)
    back = FORMATS[suffix](path)
    assert back.feature_names == NAMES
    assert np.array_equal(back.X, dense(DATA.X))


@pytest.mark.parametrize(("first", "second"), list(product(FORMATS, FORMATS)))
def test_conversions_keep_names(tmp_path: Path, run, first: str, second: str) -> None:  # noqa: F811
    source, target = tmp_path / f"a.{first}", tmp_path / f"b.{second}"
    fp.write(DATA, source)
    done = run("convert", source, target)
    assert (done.returncode, done.stderr.count("\n")) == (0, 1), done.stderr
    assert FORMATS[second](target).feature_names == NAMES


def from_shards(folder: Path) -> fp.Shards:
    return fp.write_shards(DATA, folder / "shards", rows=20)


def from_letor_shards(folder: Path) -> fp.Shards:
    fp.write_letor(DATA, folder / "a.txt")
    return fp.write_shards(folder / "a.txt", folder / "shards", rows=20)


def from_folder(folder: Path) -> fp.Shards:
    (folder / "parts").mkdir()
    fp.write_letor(DATA[:5], folder / "parts" / "a.txt")
    fp.write_letor(DATA[5:], folder / "parts" / "b.txt")
    return fp.read_shards(folder / "parts")


def from_folds(folder: Path) -> fp.Dataset:
    fp.write_folds(DATA, folder / "letor", 3)
    return fp.read_folds(folder / "letor")[1].valid


def from_cache(folder: Path) -> fp.Dataset:
    big = fp.Synthetic(queries=500, docs=60, features=4).dataset()
    fp.write_letor(big.with_features(big.X, NAMES), folder / "big.txt")
    fp.read_letor(folder / "big.txt", cache=folder / "cache")
    assert list((folder / "cache").iterdir())
    return fp.read_letor(folder / "big.txt", cache=folder / "cache")


def from_blocks(folder: Path) -> fp.Dataset:
    fp.write_letor((DATA[i : i + 3] for i in (0, 3, 6)), folder / "blocks.txt")
    return fp.read_letor(folder / "blocks.txt")


def from_judgments(folder: Path) -> fp.Dataset:
    fp.write(DATA, folder / "data.txt")
    fp.write_qrels(DATA, folder / "data.qrels")
    return fp.read_letor(folder / "data.txt").with_qrels(fp.read_qrels(folder / "data.qrels"))


def from_model(folder: Path) -> fp.Dataset:
    fp.ListNet().fit(from_blocks(folder)).save(folder / "model.json")
    names = tuple(fp.load(folder / "model.json").feature_names_in_)
    return DATA.with_features(DATA.X, names)


@pytest.mark.parametrize(
    "make",
    [from_shards, from_letor_shards, from_folder, from_folds, from_cache, from_blocks,
     from_judgments, from_model],
)  # fmt: skip
def test_collections_and_models_keep_names(
    tmp_path: Path, make: Callable[[Path], fp.Dataset | fp.Shards]
) -> None:
    data = make(tmp_path)
    assert data.feature_names == NAMES
    if isinstance(data, fp.Shards):
        assert data[0].feature_names == NAMES


PLAIN = ("bm25", "age", "clicks", "size")


@pytest.mark.parametrize(
    "target", ["solr", "elasticsearch", "opensearch", "vespa", "vespa-onnx", "onnx", "numpy"]
)
def test_exports_are_named(tmp_path: Path, target: str) -> None:
    if "onnx" in target:
        pytest.importorskip("onnx")
    fp.write_letor(DATA.with_features(DATA.X, PLAIN), tmp_path / "data.txt")
    fitted = fp.ListNet().fit(fp.read_letor(tmp_path / "data.txt"))
    fitted.save(tmp_path / "model.json")
    files = fp.export(tmp_path / "model.json", to=target).files
    for name, contents in files.items():
        if name != "README.md" or target == "onnx":
            text = contents.decode("latin-1")
            assert all(feature in text for feature in PLAIN), (name, text)
            assert "feature_1" not in text or "vespa" in target  # it numbers its functions


def test_unnamed_data_have_no_header(tmp_path: Path) -> None:
    fp.write_letor(fp.Synthetic(queries=2, docs=2, features=2).dataset(), tmp_path / "x.txt")
    assert "#1" not in (tmp_path / "x.txt").read_text()
    assert fp.read_letor(tmp_path / "x.txt").feature_names is None


def test_other_readers_skip_the_header(tmp_path: Path) -> None:
    from sklearn.datasets import load_svmlight_file

    path = tmp_path / "x.txt"
    fp.write_letor(DATA, path)
    assert path.read_text().startswith("#1: bm25 title\n#2: age: days\n#3: größe\n#4: #clicks\n")
    X, y, qid = load_svmlight_file(str(path), query_id=True)
    assert X.toarray() == pytest.approx(DATA.X)
    assert y.tolist() == DATA.y.tolist()
    assert qid.tolist() == DATA.qid.tolist()


DOCUMENTS = "1 qid:1 1:0.5 # docid = a\n0 qid:1 2:1 # docid = b\n"


@pytest.mark.parametrize(
    "header",
    ["#1: bm25\n#2: age\n", "# 1: bm25\n#  2:age \n", "#1:bm25\r\n\n# made by x\n#2: age\n"],
)
def test_styles_of_headers(tmp_path: Path, header: str) -> None:
    (tmp_path / "x.txt").write_bytes(("\ufeff" + header + DOCUMENTS).encode())
    data = fp.read_letor(tmp_path / "x.txt")
    assert data.feature_names == ("bm25", "age")
    assert dense(data.X).tolist() == [[0.5, 0], [0, 1]]
    assert instance(fp.Dataset, fp.read(tmp_path / "x.txt")).n_features == 2  # recognized as LETOR


def test_names_set_the_number_of_features(tmp_path: Path) -> None:
    """Text that omits zeros may lack the last features."""
    (tmp_path / "x.txt").write_text("#1: a\n#2: b\n#3: c\n" + DOCUMENTS)
    assert dense(fp.read_letor(tmp_path / "x.txt").X).tolist() == [[0.5, 0, 0], [0, 1, 0]]
    assert fp.read_letor(tmp_path / "x.txt", sparse=True).X.shape == (2, 3)


def test_names_that_count_from_0(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("#0: a\n#1: b\n#2: c\n" + DOCUMENTS)
    data = fp.read_letor(tmp_path / "x.txt")
    assert data.feature_names == ("a", "b", "c")
    assert dense(data.X).tolist() == [[0, 0.5, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    ("header", "options", "message"),
    [
        ("#1: a\n", {}, "name 1 features, and feature 2 has no name; they are ignored"),
        ("#1: a\n#3: c\n", {}, "are not numbered 1, 2, .."),
        ("#2012: made in\n", {}, "are not numbered 1, 2, .."),
        ("#1: a\n#2: a\n", {}, "are empty or not distinct"),
        ("#1: a\n#2:\n", {}, "are empty or not distinct"),
        ("#1: a\n#2: b\n", {"n_features": 3}, "are 2 for n_features=3"),
        ("#0: a\n#1: b\n", {"zero_based": False}, "are not numbered 1, 2, .."),
    ],
)
def test_incomplete_names_are_ignored_with_a_warning(
    tmp_path: Path, header: str, options: dict, message: str
) -> None:
    path = tmp_path / "x.txt"
    path.write_text(header + DOCUMENTS)
    with pytest.warns(fp.FirstpageWarning, match="x.txt: ") as caught:
        data = fp.read_letor(path, **options)
    assert [message in str(each.message) for each in caught] == [True]
    assert data.feature_names is None


def test_a_late_feature_without_a_name_is_an_error_in_blocks(tmp_path: Path) -> None:
    rows = "".join(f"1 qid:{q} 1:1 2:0.{'1' * 50}\n" for q in range(40_000))
    (tmp_path / "x.txt").write_text("#1: a\n#2: b\n" + rows + "1 qid:z 3:1\n")
    with pytest.raises(fp.DataError, match=r"x\.txt:40003:9: feature 3 has no name, unlike the 2"):
        fp.write_shards(tmp_path / "x.txt", tmp_path / "shards", rows=1000)


@pytest.mark.parametrize("name", ["a\nb", " a", "a\r"])
def test_names_that_text_cannot_store_are_refused(tmp_path: Path, name: str) -> None:
    data = fp.Dataset.from_arrays([[1.0]], [1], ["q"], ["d"], [name])
    with pytest.raises(fp.DataError, match=r"feature name .* LETOR file .* write \.parquet"):
        fp.write_letor(data, tmp_path / "x.txt")
    other = [data.with_features(data.X, ["a"]), data.with_features(data.X, ["b"])]
    with pytest.raises(fp.DataError, match="its feature names differ from those before"):
        fp.write_letor(other, tmp_path / "x.txt")
    assert not list(tmp_path.iterdir())


def test_feature_logs_keep_names_in_text(tmp_path: Path, run) -> None:  # noqa: F811
    docs = [{"id": "a", "score": 1, "[features]": "bm25=1,age=2"}]
    line = {"query": "q", "response": {"response": {"docs": docs}}}
    (tmp_path / "log.jsonl").write_text(json.dumps(line))
    done = run("import", "feature-log", tmp_path / "log.jsonl", "-o", tmp_path / "data.txt")
    assert done.returncode == 0, done.stderr
    assert fp.read_letor(tmp_path / "data.txt").feature_names == ("bm25", "age")
