"""CSV files for people: spreadsheets find no formulas in them, and our readers the same texts."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import firstpage as fp
from firstpage.core.table import Table, escape_formula, unescape_formula
from firstpage.data.preferences.pair_files import Vote, csv_lines, read_vote_rows
from firstpage.interop.read.judgments import read_quepid
from firstpage.labeling.app.analysis.truth import QueryTruth
from firstpage.labeling.app.exports.make import quepid_csv

FORMULAS = [
    "=1+1", "=HYPERLINK(\"http://x\")", "+cmd|' /C calc'!A0", "-2+3", "@SUM(1)", "\t=1", "\r=1",
    "\n=1", "-1 OR", "+1-800-555", "'=1", "''@x", "\uff1d1+1", "--1", "+-1", "-1e", "=1'",
]  # fmt: skip
NUMBERS = ["-0.5", "+0.0123", "-1e-05", "-.5", "+3.", "-inf", "-nan", "-12%", "0", "-", "+"]
MARKED = st.text(alphabet="'=+-@\t\r\n0.1e%ax ")


@given(st.one_of(st.text(), MARKED, st.sampled_from(FORMULAS + NUMBERS)))
def test_every_text_is_read_back(text: str) -> None:
    assert unescape_formula(escape_formula(text)) == text


@given(st.one_of(MARKED, st.sampled_from(FORMULAS)))
def test_what_begins_like_a_formula_is_a_number_or_escaped(text: str) -> None:
    cell = escape_formula(text)
    if len(cell) > 1 and cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n")):
        assert isinstance(float(cell.removesuffix("%")), float)


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_stay_as_they_are(number: str) -> None:
    assert escape_formula(number) == unescape_formula(number) == number
    assert unescape_formula(f"'{number}") == f"'{number}"


@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_tables_have_no_formulas(delimiter: str) -> None:
    table = Table(["system", "=head"], [[formula, "-0.5"] for formula in FORMULAS])
    text = io.StringIO(table.csv(delimiter), newline="")
    head, *rows = csv.reader(text, delimiter=delimiter)
    assert head == ["system", "'=head"]
    assert rows == [[f"'{formula}", "-0.5"] for formula in FORMULAS]


def test_votes_are_read_back(tmp_path: Path) -> None:
    ids = [*FORMULAS, *NUMBERS]
    votes = [Vote(name, f"{name}a", name, 1, 2.0, name) for name in ids]
    path = tmp_path / "votes.csv"
    path.write_text("".join(csv_lines(votes)), newline="")
    for row in csv.reader(io.StringIO("".join(csv_lines(votes)), newline="")):
        assert all(cell[0] not in "=@\t\r\n" for cell in row)
    again = list(read_vote_rows(path))
    assert [(v.query, v.left, v.right, v.voter) for v in again] == [
        (v.query, v.left, v.right, v.voter) for v in votes
    ]


def test_samples_are_read_back(tmp_path: Path) -> None:
    sample = fp.planning.QuerySample.draw(["=1+1", "-5 degrees", "-5", "'@x"], 2, seed=0)
    sample.write(tmp_path / "sample.csv")
    assert "'=1+1,0.5," in (tmp_path / "sample.csv").read_text()
    assert fp.planning.QuerySample.read(tmp_path / "sample.csv").queries == sample.queries


def test_ratings_are_read_back(tmp_path: Path) -> None:
    documents = ("=d", "-1", "'+d", "''+d")
    truth = QueryTruth(
        "q",
        "-5 degrees in fahrenheit",
        "grades",
        documents,
        1,
        documents,
        dict.fromkeys(documents, 2),
        (),
        (),
        (),
        None,
        None,
        None,
        1,
        3,
        0,
        (),
    )
    text = "".join(quepid_csv([truth]))
    assert " '-5 degrees in fahrenheit, '=d,2\n" in text
    path = tmp_path / "ratings.csv"
    path.write_text(text)
    assert read_quepid(path).to_dict() == {truth.text: dict.fromkeys(documents, 2.0)}


def test_values_per_query_are_read_as_a_table_of_queries(tmp_path: Path) -> None:
    qrels = fp.Qrels.from_dict({"=1": {"a": 1}, "q": {"a": 0, "b": 1}})
    run = fp.Run.from_dict({"=1": {"a": 1.0}, "q": {"a": 2.0, "b": 1.0}}, "=cmd")
    rows = fp.evaluate(run, qrels, measures="AP").to_csv()
    assert "\n=" not in rows
    (tmp_path / "values.csv").write_text(rows)
    table = fp.QueryTable.read(tmp_path / "values.csv")
    assert set(table.column("AP")) == {"=1", "q"}
