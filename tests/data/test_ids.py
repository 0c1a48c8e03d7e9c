"""Identifiers of queries and documents."""

from __future__ import annotations

from pathlib import Path

import pytest

import firstpage as fp


def test_ids_that_are_not_utf_8_are_preserved(tmp_path: Path) -> None:
    (tmp_path / "x.qrels").write_bytes(b"q\xe9 0 d 1\nq\xe8 0 d 0\n")
    (tmp_path / "x.run").write_bytes(b"q\xe9 Q0 d 1 1 t\nq\xe8 Q0 d 1 1 t\n")
    qrels = fp.read_qrels(tmp_path / "x.qrels")
    evaluation = fp.evaluate(fp.read_run(tmp_path / "x.run"), qrels, measures="AP")
    assert evaluation.values.tolist() == [[1, 0]]
    fp.write_qrels(qrels, tmp_path / "y.qrels")
    assert (tmp_path / "y.qrels").read_bytes() == (tmp_path / "x.qrels").read_bytes()
    with pytest.raises(fp.DataError, match="same query id"):
        fp.Run.from_dict({1: {"a": 1}, "1": {"a": 2}})  # type: ignore[dict-item]
