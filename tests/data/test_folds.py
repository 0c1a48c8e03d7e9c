"""Folds: LETOR and MSLR folders, read and written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.errors import DataError
from tests.narrow import dense

DATA = fp.Synthetic(queries=6, docs="uniform(1, 9)", features=4, grades=3).dataset()


@pytest.mark.parametrize(
    "names",
    [
        ("train.txt", "vali.txt", "test.txt"),
        ("trainingset.txt", "validationset.txt", "testset.txt.gz"),
    ],
)
def test_both_naming_schemes_are_read(tmp_path: Path, names) -> None:
    for number in (2, 1, 10):
        folder = tmp_path / f"Fold{number}"
        folder.mkdir()
        for name in names:
            fp.write_letor(DATA[number % 3], folder / name)
    folds = fp.read_folds(tmp_path, dtype="float64")
    assert [f.number for f in folds] == [1, 2, 10]
    assert folds[0].train.X.dtype == np.float64
    assert folds[1].valid.queries == DATA[2].queries
    assert folds[2].test.queries == DATA[1].queries


def test_written_folds_rotate_like_letor(tmp_path: Path) -> None:
    fp.write_folds(DATA, tmp_path, 3)
    folds = fp.read_folds(tmp_path)
    names = set(DATA.queries)
    tested = []
    for fold in folds:
        splits = [list(d.queries) for d in (fold.train, fold.valid, fold.test)]
        assert sorted(q for split in splits for q in split) == sorted(names)
        tested += splits[2]
        query = fold.test[0]
        assert np.array_equal(dense(query.X), dense(DATA.query(query.queries[0]).X))
    assert sorted(tested) == sorted(names)
    fp.write_folds(DATA, tmp_path / "shuffled", 3, seed=1)
    assert fp.read_folds(tmp_path / "shuffled")[0].test.queries != folds[0].test.queries
    with pytest.raises(fp.DataError, match="7 folds are not possible"):
        fp.write_folds(DATA, tmp_path, 7)


def test_folders_without_folds_are_refused(tmp_path: Path) -> None:
    with pytest.raises(fp.DataError, match="contains neither Fold1"):
        fp.read_folds(tmp_path)
    with pytest.raises(fp.DataError, match="no such folder"):
        fp.read_folds(tmp_path / "no")
    fp.write_letor(DATA, tmp_path / "train.txt")
    with pytest.raises(fp.DataError, match=r"lacks test.txt or testset.txt"):
        fp.read_folds(tmp_path)
    fp.write_letor(DATA, tmp_path / "test.txt")
    (fold,) = fp.read_folds(tmp_path)
    with pytest.raises(fp.DataError, match="fold 1 has no validation data"):
        fold.valid  # noqa: B018


@pytest.mark.parametrize("seed", [None, 3])
def test_written_folds_match_a_plain_loop(tmp_path: Path, seed: int | None) -> None:
    """Fold f tests on subset f - 1 (cyclically) and validates on the one before."""
    count, order = 4, list(range(len(DATA)))
    if seed is not None:
        order = np.random.default_rng(seed).permutation(len(DATA)).tolist()
    size, remainder = divmod(len(order), count)
    subsets, begin = [], 0
    for number in range(count):
        end = begin + size + (number < remainder)
        subsets.append([DATA.queries[q] for q in order[begin:end]])
        begin = end
    fp.write_folds(DATA, tmp_path, count, seed)
    for number, fold in enumerate(fp.read_folds(tmp_path)):
        rotated = [subsets[(number + i) % count] for i in range(count)]
        assert list(fold.train.queries) == [query for subset in rotated[:-2] for query in subset]
        assert list(fold.valid.queries) == rotated[-2]
        assert list(fold.test.queries) == rotated[-1]


@pytest.mark.parametrize("count", [-1, 0, 2, 7])
def test_invalid_numbers_of_folds_are_refused(tmp_path: Path, count: int) -> None:
    with pytest.raises(
        DataError, match=f"{count} folds are not possible: .* at least 3, .* 6 queries"
    ):
        fp.write_folds(DATA, tmp_path, count)
    assert list(tmp_path.iterdir()) == []


def test_file_instead_of_folder_is_refused(tmp_path: Path) -> None:
    fp.write_letor(DATA, tmp_path / "a.txt")
    with pytest.raises(DataError, match=r"is a file, not a folder of folds; `firstpage convert"):
        fp.read_folds(tmp_path / "a.txt")


def test_malformed_split_is_reported_with_its_file(tmp_path: Path) -> None:
    fp.write_folds(DATA, tmp_path, 3)
    (tmp_path / "Fold2" / "vali.txt").write_text("1 qid:1 1:x\n")
    fold = fp.read_folds(tmp_path)[1]
    assert len(fold.test)
    with pytest.raises(DataError, match=r"Fold2/vali\.txt:1:11: "):
        fold.valid  # noqa: B018


def test_folds_of_an_earlier_split_are_not_mixed_with_new_ones(tmp_path: Path) -> None:
    fp.write_folds(DATA, tmp_path, 5)
    fp.write_folds(DATA, tmp_path, 5, seed=1)
    with pytest.raises(DataError, match="has Fold4 of another split; remove it"):
        fp.write_folds(DATA, tmp_path, 3)
    assert len(fp.read_folds(tmp_path)) == 5
