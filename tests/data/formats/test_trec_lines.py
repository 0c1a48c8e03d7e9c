"""Runs of three fields, and documents that occur twice."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import firstpage as fp
from firstpage.data.formats.row_reader import ReadLimits
from firstpage.data.formats.trec import read_uploaded_rows, with_second_field

NOTE = "three fields are read as query, document and rank"


def written(folder: Path, *lines: str) -> Path:
    path = folder / "x.run"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_ms_marco_runs_are_ranked_by_their_third_field(tmp_path: Path) -> None:
    path = written(tmp_path, "q1\ta\t2", "", "q1\tb\t1", "  q2 c 10")
    with pytest.warns(fp.FirstpageWarning, match=NOTE):
        run = fp.read_run(path)
    assert run.to_dict() == {"q1": {"a": -2.0, "b": -1.0}, "q2": {"c": -10.0}}
    assert [run.line_of(row) for row in range(3)] == [1, 3, 4]
    with pytest.warns(fp.FirstpageWarning, match=NOTE):
        assert fp.evaluate(path, {"q1": {"a": 0, "b": 1}, "q2": {"c": 1}}, measures="RR")["RR"] == 1


@given(
    st.lists(
        st.lists(st.text("ab1.", min_size=1, max_size=3), max_size=4).map(" \t".join), max_size=5
    )
)
def test_the_second_field_follows_the_first_of_every_line(lines: list[str]) -> None:
    content = "\n".join(lines).encode()
    expected = [[*line.split()[:1], "0", *line.split()[1:]] for line in lines if line.split()]
    result = with_second_field(content).decode().splitlines()
    assert [line.split() for line in result if line.split()] == expected


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("q1 a 1", "q1 b 0.5"), r"x.run:2: 0.5 is not a rank; .* Scores need six fields"),
        (("q1 a 1", "q1 b"), r"x.run:2:5: the line has 2 fields instead of 3: query document rank"),
        (("q1 a 1", "q1 Q0 b 1 0.5 tag"), "x.run:2:9: the line has more than the 3 fields"),
        (("q1 a 1", "q1 b 2 3"), r"x.run:2:8: the line has more than the 3 fields"),
        (("q1 a x",), r"x.run:1:6: the rank must be a number; got 'x'"),
        (("q1 a -1",), r"x.run:1: -1 is not a rank"),
    ],
)
def test_errors_in_three_fields_name_the_line(tmp_path: Path, lines, message: str) -> None:
    path = written(tmp_path, *lines)
    with pytest.raises(fp.DataError, match=message):
        fp.read_run(path)
    without_column = re.sub(r"(:\d):\d", r"\1", message)
    with path.open("rb") as stream, pytest.raises(fp.DataError, match=without_column):
        list(read_uploaded_rows(fp.Run, "x.run", stream, ReadLimits(), []))


@pytest.mark.parametrize("blanks", ["{} {} {}", "{}\t{} {}", " {} {}\t{}", "{}\t\t{}\t{}"])
def test_blanks_of_any_kind_separate_three_fields(tmp_path: Path, blanks: str) -> None:
    path = written(tmp_path, blanks.format("q1", "a", 2), blanks.format("q1", "b", 1))
    notes: list[str] = []
    with pytest.warns(fp.FirstpageWarning, match=NOTE):
        assert fp.read_run(path).to_dict() == {"q1": {"a": -2.0, "b": -1.0}}
    with path.open("rb") as stream:
        rows = list(read_uploaded_rows(fp.Run, "x.run", stream, ReadLimits(), notes))
    assert [row[1:] for row in rows] == [("q1", "a", -2.0), ("q1", "b", -1.0)]
    assert len(notes) == 1
    assert NOTE in notes[0]


REPEATED = ("q1 Q0 a 1 0.5 t", "q1 Q0 b 2 0.4 t", "q2 Q0 a 1 9 t", "q1 Q0 a 3 0.7 t")


@pytest.mark.filterwarnings("ignore:.*(grouped|contradict|regroup|contiguous|interleave)")
@pytest.mark.parametrize(("duplicates", "score", "line"), [("first", 0.5, 4), ("best", 0.7, 1)])
def test_the_first_or_the_best_line_counts(tmp_path, duplicates, score, line) -> None:
    path = written(tmp_path, *REPEATED)
    with pytest.warns(fp.FirstpageWarning, match=rf"1 lines repeat .* 'q1' \(line {line}\)"):
        run = fp.read_run(path, duplicates=duplicates)
    assert run.to_dict() == {"q1": {"a": score, "b": 0.4}, "q2": {"a": 9.0}}


def test_repeated_documents_are_refused_with_their_line(tmp_path: Path) -> None:
    run = fp.read_run(written(tmp_path, "q1 Q0 a 1 0.5 t", "", "q1 Q0 a 2 0.4 t"))
    with pytest.raises(
        fp.DataError, match=r"x.run:3: document 'a' occurs twice .* with duplicates="
    ):
        fp.evaluate(run, {"q1": {"a": 1}})
    with pytest.raises(fp.DataError, match="refuse, first or best; got 'last'"):
        fp.read_run(tmp_path / "x.run", duplicates="last")  # type: ignore[arg-type]
