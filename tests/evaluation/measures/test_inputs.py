"""Validation of the input of `evaluate`, since kernels do not check it."""

from __future__ import annotations

import numpy as np
import pytest

import firstpage as fp


def test_lengths_are_validated() -> None:
    with pytest.raises(fp.DataError, match="1 document ids for 3 documents"):
        fp.evaluate(
            [1, 1, 1], [1, 0, 1], qid=[1, 1, 1], docid=["a"], convention=fp.Convention(ties="docid")
        )
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


def test_any_integer_is_a_valid_seed() -> None:
    for seed in (-1, np.int64(3), 10**30):
        assert sorted(fp.Truth.from_labels([0, 0]).full_order(seed).labels) == [0, 1]  # type: ignore[arg-type]
        shuffled = fp.Convention(ties="shuffle", seed=seed)  # type: ignore[arg-type]
        evaluation = fp.evaluate([1, 1], [0, 1], qid=[1, 1], convention=shuffled, ci=True)
        assert evaluation["NDCG@10"] in (1.0, pytest.approx(1 / np.log2(3)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fp.evaluate([1], [1], qid=[1], measures=[5]), "a measure must be a string"),  # type: ignore[list-item]
        (lambda: fp.evaluate([1], [1], qid=[1], measures=None), "measures must be texts"),  # type: ignore[arg-type]
        (lambda: fp.evaluate([1, 2], [1, 0], qid=["a", None]), "qid of row 1 is missing"),
        (lambda: fp.measure("AP(rel=nan)"), "rel of AP must be finite"),
        (lambda: fp.measure("NDCG(gain=[0, inf])"), "gain of NDCG must be finite"),
        (lambda: fp.Truth.from_labels([1, 0]).top_k(2.5), "k must be an integer"),  # type: ignore[arg-type]
        (lambda: fp.Truth.from_labels([1, 0]).top_k(10**20), "k must be an integer"),
        (lambda: fp.Truth.from_labels([1, 0]).pairs("foo"), "which must be"),  # type: ignore[arg-type]
        (lambda: fp.Dataset.from_arrays([[1.0]], ["x"], [1]), "labels must be numbers"),
        (lambda: fp.Dataset.from_arrays([[1j]], [1], [1]), "real numbers"),
        (lambda: fp.Dataset.from_arrays([[1.0]], [1], [1])[[0.5]], "integers or a mask"),
        (lambda: fp.Run.from_dict({"a": ["x"]}), "must map documents to numbers"),  # type: ignore[dict-item]
        (lambda: fp.read_letor("x", dtype="foo"), "dtype must be float32 or float64"),  # type: ignore[arg-type]
        (lambda: fp.Synthetic(seed=-1), "seed must not be negative"),
        (lambda: fp.Synthetic(docs="poisson(-1)"), "positive numbers"),
        (lambda: fp.Synthetic(docs="uniform(5, 2)"), "positive numbers"),
    ],
)
def test_invalid_input_raises_an_error(call, message: str) -> None:
    with pytest.raises(fp.FirstpageError, match=message):
        call()
