from __future__ import annotations

import io
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import firstpage as fp
from firstpage.core.errors import DataError
from firstpage.data.formats.row_reader import NO_LIMITS, ReadLimits
from firstpage.data.formats.trec import read_uploaded_rows

QRELS = "1 0 a 2\n1 0 b 0\n2 0 a 1\n"
RUN = "1 Q0 b 1 0.9 tag\n1 Q0 a 2 0.5 tag\n2 Q0 a 1 -1e-3 tag\n"


def write(folder: Path, text: str, name: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_qrels_and_runs_are_read(tmp_path: Path) -> None:
    qrels = fp.read_qrels(write(tmp_path, QRELS, "q"))
    run = fp.read_run(write(tmp_path, RUN, "r"))
    assert qrels.to_dict() == {"1": {"a": 2, "b": 0}, "2": {"a": 1}}
    assert run.to_dict() == {"1": {"b": 0.9, "a": 0.5}, "2": {"a": -0.001}}
    assert run.name == "tag"
    assert qrels.labels.tolist() == [2, 0, 1]
    assert run.scores.tolist() == [0.9, 0.5, -0.001]
    assert len(run) == 2


def test_formatting_variants_are_read_alike(tmp_path: Path) -> None:
    odd = "\n\t1\tQ0  b 1 0.9 tag more junk\r\n1 Q0 a 2 0.5\r\n\n2 Q0 a 1 -1e-3 tag"
    assert (
        fp.read_run(write(tmp_path, odd, "r")).to_dict()
        == fp.read_run(write(tmp_path, RUN, "r2")).to_dict()
    )


def test_interleaved_queries(tmp_path: Path) -> None:
    text = "1 0 a 1\n2 0 a 1\n1 0 b 0\n"
    with pytest.warns(fp.FirstpageWarning, match="regrouped"):
        qrels = fp.read_qrels(write(tmp_path, text, "q"))
    assert qrels.to_dict() == {"1": {"a": 1, "b": 0}, "2": {"a": 1}}
    assert list(qrels.queries) == ["1", "2"]


@pytest.mark.parametrize(
    ("reader", "text", "message"),
    [
        ("read_qrels", "1 0 a\n", ":1:6: the line has 3 fields instead of 4: query iteration"),
        ("read_qrels", "1 0 a 1\n1 0 b x\n", ":2:7: the grade must be a number; got 'x'"),
        ("read_qrels", "1 0 a 1x\n", ":1:7: the grade must be a number; got '1x'"),
        ("read_qrels", "\n\n", "contains no grades"),
        ("read_run", "1 Q0 a 1\n", ":1:9: the line has 4 fields instead of 6"),
        ("read_run", "1 Q0 a 1 nan t\n", ":1: the score is not a number"),
        ("read_run", "1 Q0 a 1 . t\n", ":1:10: the score must be a number; got '.'"),
        ("read_run", "1 Q0 a 1 1_0 t\n", "the score must be a number"),
    ],
)
def test_errors_name_their_location(tmp_path: Path, reader: str, text: str, message: str) -> None:
    path = write(tmp_path, text, "file")
    with pytest.raises(fp.DataError, match=message):
        getattr(fp, reader)(path)


ids = st.text(st.characters(blacklist_categories=["Z", "C"]), min_size=1, max_size=6)
tables = st.dictionaries(
    ids,
    st.dictionaries(ids, st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=6),
    min_size=1,
    max_size=5,
)


@given(table=tables)
def test_runs_round_trip(tmp_path: Path, table) -> None:
    fp.write_run(fp.Run.from_dict(table, "me"), tmp_path / "x.run")
    back = fp.read_run(tmp_path / "x.run")
    assert back.to_dict() == table
    assert back.name == "me"
    ranks = [line.split()[3] for line in (tmp_path / "x.run").read_text().splitlines()]
    assert ranks == [str(i + 1) for docs in table.values() for i in range(len(docs))]


@given(table=tables)
def test_qrels_round_trip(tmp_path: Path, table) -> None:
    fp.write_qrels(fp.Qrels.from_dict(table), tmp_path / "x.qrels")
    assert fp.read_qrels(tmp_path / "x.qrels").to_dict() == table


def test_from_arrays_groups_rows() -> None:
    run = fp.Run.from_arrays(["b", "a", "b"], ["x", "y", "z"], [1, 2, 3])
    assert run.to_dict() == {"b": {"x": 1, "z": 3}, "a": {"y": 2}}
    with pytest.raises(fp.DataError, match="one query id per document"):
        fp.Run.from_arrays(["b"], ["x", "y"], [1, 2])
    with pytest.raises(fp.DataError, match="score of document 'x' in query 'b' is not a number"):
        fp.Run.from_arrays(["b"], ["x"], [np.nan])


def test_documents_without_ids_are_named_by_position() -> None:
    data = fp.Dataset.from_arrays([[1.0], [2.0], [3.0]], [1, 0, 2], [7, 7, 8])
    from firstpage.data.formats.trec import to_qrels, to_run

    with pytest.warns(fp.FirstpageWarning, match="3 of 3 documents have no id"):
        assert to_qrels(data).to_dict() == {"7": {"7-1": 1, "7-2": 0}, "8": {"8-1": 2}}
    with pytest.warns(fp.FirstpageWarning, match="no id"):
        assert to_run(data, [3, 2, 1], "x").to_dict()["7"] == {"7-1": 3, "7-2": 2}


def test_run_is_not_read_as_judgments(tmp_path: Path) -> None:
    (tmp_path / "x.run").write_text("1 Q0 a 1 0.5 me\n")
    with pytest.raises(
        fp.DataError, match=r":1:10: the line has more than the 4 fields.*is it a run"
    ):
        fp.read_qrels(tmp_path / "x.run")


WORDS = st.sampled_from(
    ["1", "q", "0", "Q0", "-1e-3", "x", "1_0", "nan", "inf", "\u00fc", "a\u00a0b", "NULL"]
)


@pytest.mark.parametrize("kind", [fp.Qrels, fp.Run])
@given(
    row=st.lists(WORDS, max_size=7),
    blank=st.sampled_from([" ", "\t", "  "]),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_uploads_and_files_accept_the_same_lines(
    kind: type, row: list[str], blank: str, end: str, tmp_path: Path
) -> None:
    """Both readers give the same values, or refuse the same line for the same reason."""
    text = f"1 0 d 7{end}" * (kind is fp.Qrels) + blank.join(row) + end
    path = write(tmp_path, text, "f")
    reader = fp.read_qrels if kind is fp.Qrels else fp.read_run
    messages = []
    try:
        rows = list(read_uploaded_rows(kind, str(path), io.BytesIO(text.encode()), NO_LIMITS, []))
    except DataError as error:
        messages.append(str(error))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fp.FirstpageWarning)
        try:
            column = reader(path)
        except DataError as error:
            messages.append(str(error))
    if not messages:
        assert rows
        pairs = [(q, d, v) for q, docs in column.to_dict().items() for d, v in docs.items()]
        assert {(q, d): v for q, d, v in pairs} == {(q, d): v for _, q, d, v in rows}
    elif len(messages) == 1:  # infinite scores and empty files
        assert "must be a number; got 'inf'" in messages[0] or "contains no" in messages[0]
    else:
        first, second = (text.removeprefix(str(path)).split(":")[1:] for text in messages)
        assert first[0] == second[0]  # the line


def test_uploads_have_limits() -> None:
    stream = io.BytesIO(b"1 0 a 1\n" * 9)
    with pytest.raises(DataError, match="more than 5 lines"):
        list(read_uploaded_rows(fp.Qrels, "g", stream, ReadLimits(lines=5), []))


# --- ids with blanks: fields separated by tabs


BLANK_IDS = {"red shoes": {"d 1": 2.0, "d2": 0.5}, "hat": {"d  3": 1.0}}


@pytest.mark.parametrize("kind", ["qrels", "run"])
def test_ids_with_blanks_round_trip_by_tabs(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"x.{kind}"
    column = (fp.Qrels if kind == "qrels" else fp.Run).from_dict(BLANK_IDS, "me")
    write_column = fp.write_qrels if kind == "qrels" else fp.write_run
    with pytest.warns(fp.FirstpageWarning, match="separated by tabs; trec_eval does not"):
        write_column(column, path)  # type: ignore[arg-type]
    back = fp.read(path)
    assert isinstance(back, type(column))
    assert back.to_dict() == BLANK_IDS
    assert (back.name == "me") == (kind == "run")
    path.rename(tmp_path / "any.txt")
    assert type(fp.read(tmp_path / "any.txt")) is type(column)
    rows = read_uploaded_rows(
        type(column), "f", io.BytesIO((tmp_path / "any.txt").read_bytes()), NO_LIMITS, []
    )
    assert {(q, d): v for _, q, d, v in rows} == {
        (q, d): v for q, docs in BLANK_IDS.items() for d, v in docs.items()
    }
    plain = {"q": {"d": 1.0}}
    write_column(type(column).from_dict(plain), path)  # type: ignore[arg-type]
    assert "\t" not in path.read_text()


def test_ids_with_blanks_are_joined_by_their_text(tmp_path: Path) -> None:
    qrels = fp.read_qrels(write(tmp_path, "a b\t0\tx y\t1\na b\t0\tz\t0\n", "q"))
    run = fp.Run.from_dict({"a b": {"z": 1.0, "x y": 2.0}})
    assert fp.evaluate(run, qrels, measures=["RR"])["RR"] == 1.0


def test_blanks_around_fields_are_removed(tmp_path: Path) -> None:
    text = "  red shoes \t 0\td 1 \t 2 \r\n\n1 0 a 1\n"  # a line without tabs is split at blanks
    assert fp.read_qrels(write(tmp_path, text, "q")).to_dict() == {
        "red shoes": {"d 1": 2.0},
        "1": {"a": 1.0},
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("red shoes\t0\t\t2\n", ":1:.*: the line has 3 fields instead of 4"),
        ("red shoes\t\ta b\t2\n", ":1:.*: the line has 3 fields instead of 4"),
        ("q\t0\td\t1\nq\t0\te\t2 x\n", ":2:7: the grade must be a number; got '2 x'"),
    ],
)
def test_errors_in_tabbed_lines(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(fp.DataError, match=message):
        fp.read_qrels(write(tmp_path, text, "q"))
    with pytest.raises(fp.DataError, match=message.split(": ", 1)[1]):
        list(read_uploaded_rows(fp.Qrels, "q", io.BytesIO(text.encode()), NO_LIMITS, []))


@pytest.mark.parametrize("name", [" a", "a ", "a\tb", "a\nb", "a\rb", ""])
def test_ids_that_tabs_cannot_separate_are_refused(tmp_path: Path, name: str) -> None:
    for table in ({name: {"d": 1.0}}, {"q": {name: 1.0}}):
        with pytest.raises(fp.DataError, match=r"id .* cannot be written to a TREC file") as error:
            fp.write_qrels(fp.Qrels.from_dict(table), tmp_path / "x.qrels")
        assert "\n" not in str(error.value)
    assert not list(tmp_path.iterdir())


def test_select_queries_keeps_weights() -> None:
    qrels = fp.Qrels.from_dict({"a": {"x": 1}, "b": {"y": 2, "z": 0}})
    weighted = replace(qrels, query_weights=np.array([0.5, 0.25]))
    selected = weighted.select_queries(np.array([1]))
    assert selected.to_dict() == {"b": {"y": 2, "z": 0}}
    assert selected.query_weights is not None
    assert selected.query_weights.tolist() == [0.25]
    with pytest.raises(fp.DataError, match="3 weights for 2 queries"):
        replace(qrels, query_weights=np.ones(3))
    with pytest.raises(fp.DataError, match="finite and not negative"):
        replace(qrels, query_weights=np.array([1.0, np.nan]))


def test_repeated_documents_are_not_merged(tmp_path: Path) -> None:
    (tmp_path / "q.qrels").write_text("1 0 a 2\n1 0 b 1\n1 0 a 0\n")
    (tmp_path / "r.run").write_text("1 Q0 a 1 3 t\n1 Q0 a 2 2 t\n")
    with pytest.raises(DataError, match=r"q.qrels:3: document 'a' occurs twice in query '1'\.$"):
        fp.read_qrels(tmp_path / "q.qrels").to_dict()
    with pytest.raises(DataError, match=r"r.run:2: document 'a' occurs twice in query '1'; drop"):
        fp.read_run(tmp_path / "r.run").to_dict()
