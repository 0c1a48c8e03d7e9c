"""What `evaluate` and `compare` accept: files, data frames, dictionaries, rankers; and errors."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas
import polars
import pytest

import firstpage as fp
from firstpage.data.formats.trec import to_run
from firstpage.evaluation.measures.sources import unique_names
from tests.narrow import dense, instance

pytestmark = pytest.mark.filterwarnings("ignore:.*judged:firstpage.core.errors.FirstpageWarning")

QRELS = {"q1": {"a": 2, "b": 0, "c": 1}, "q2": {"d": 1, "e": 0}}
RUN = {"q1": {"b": 3.0, "a": 2.0, "c": 1.0}, "q2": {"e": 0.5, "d": 0.4}}
MEASURES = ["NDCG@10", "AP", "RR"]
EXPECTED = fp.evaluate(RUN, QRELS, measures=MEASURES).means
DATA = fp.Synthetic(queries=6, docs=8, features=3, grades=3, seed=1).dataset()


def rows(table: dict, *names: str) -> dict[str, list]:
    triples = [(q, d, v) for q, docs in table.items() for d, v in docs.items()]
    return dict(zip(names, map(list, zip(*triples, strict=True)), strict=True))


RUN_COLUMNS = (
    ("qid", "docno", "score"),  # PyTerrier
    ("query_id", "doc_id", "score"),  # ir_measures
    ("q_id", "doc_id", "score"),  # ranx
)
QRELS_COLUMNS = (
    ("qid", "docno", "label"),
    ("query_id", "doc_id", "relevance"),
    ("q_id", "doc_id", "score"),
)


@pytest.mark.parametrize("library", [pandas, polars])
@pytest.mark.parametrize(("run", "qrels"), list(zip(RUN_COLUMNS, QRELS_COLUMNS, strict=True)))
def test_data_frames_are_runs_and_judgments(library, run, qrels) -> None:
    run_frame = library.DataFrame(rows(RUN, *run))
    qrels_frame = library.DataFrame(rows(QRELS, *qrels))
    assert fp.evaluate(run_frame, qrels_frame, measures=MEASURES).means == EXPECTED
    assert fp.evaluate(RUN, qrels_frame, measures=MEASURES).means == EXPECTED
    assert fp.evaluate(run_frame, QRELS, measures=MEASURES).means == EXPECTED


def test_a_frame_of_scores_is_no_frame_of_judgments() -> None:
    frame = pandas.DataFrame(rows(RUN, "q_id", "doc_id", "score"))
    with pytest.raises(fp.DataError, match="has no column of grades"):
        fp.evaluate(RUN, frame)


class ScoredDoc(NamedTuple):
    query_id: str
    doc_id: str
    score: float


class Qrel(NamedTuple):
    query_id: str
    doc_id: str
    relevance: int


def test_records_of_ir_measures_are_runs_and_judgments() -> None:
    run = [ScoredDoc(q, d, s) for q, docs in RUN.items() for d, s in docs.items()]
    qrels = [Qrel(q, d, g) for q, docs in QRELS.items() for d, g in docs.items()]
    assert fp.evaluate(run, qrels, measures=MEASURES).means == EXPECTED
    assert fp.evaluate(iter(run), iter(qrels), measures=MEASURES).means == EXPECTED
    comparison = fp.compare({"a": run, "b": RUN}, iter(qrels), measures=MEASURES)
    assert [e.means for e in comparison.evaluations] == [EXPECTED, EXPECTED]


def test_a_frame_of_labels_goes_with_an_array_of_scores() -> None:
    frame = pandas.DataFrame({"qid": [1, 1, 2, 2], "label": [1, 0, 0, 1], "price": [1, 2, 3, 4]})
    assert fp.evaluate([2, 1, 2, 1], frame, measures="RR")["RR"] == 0.75
    assert fp.evaluate(frame["price"], frame, measures="RR")["RR"] == 0.75


def test_a_frame_of_pyterrier_is_joined_by_docno() -> None:
    frame = pandas.DataFrame(rows(RUN, "qid", "docno", "score"))
    frame["docid"], frame["query"] = range(len(frame)), "text"
    assert fp.evaluate(frame, QRELS, measures=MEASURES).means == EXPECTED


@pytest.fixture
def files(tmp_path: Path) -> Path:
    fp.write_run(fp.Run.from_dict(RUN, "ours"), tmp_path / "x.run")
    fp.write_qrels(fp.Qrels.from_dict(QRELS), tmp_path / "y.qrels")
    fp.write_letor(DATA, tmp_path / "test.txt")
    fp.write_scores(dense(DATA.X[:, 0]), tmp_path / "one.scores")
    return tmp_path


def test_file_names_are_read(files: Path) -> None:
    run, qrels = files / "x.run", files / "y.qrels"
    assert fp.evaluate(str(run), str(qrels), measures=MEASURES).means == EXPECTED
    assert fp.evaluate(run, QRELS, measures=MEASURES).means == EXPECTED
    from_files = fp.evaluate(files / "one.scores", files / "test.txt", measures="NDCG@5")
    in_memory = fp.evaluate(DATA.X[:, 0], DATA, measures="NDCG@5")
    assert from_files["NDCG@5"] == pytest.approx(in_memory["NDCG@5"], abs=1e-4)


def test_a_ranker_scores_the_data(files: Path) -> None:
    ranker = fp.Regression().fit(DATA)
    expected = fp.evaluate(ranker.predict(DATA), DATA, measures="NDCG@5").means
    assert fp.evaluate(ranker, DATA, measures="NDCG@5").means == expected
    comparison = fp.compare({"ranker": ranker, "first": DATA.X[:, 0]}, DATA, measures="NDCG@5")
    assert comparison.evaluations[0].means == expected


def test_a_run_is_joined_with_data_that_have_document_ids(files: Path) -> None:
    data = instance(fp.Dataset, fp.read(files / "test.txt"))
    fp.write_run(to_run(data, dense(data.X[:, 0]), "first"), files / "first.run")
    joined = fp.evaluate(files / "first.run", data, measures="NDCG@5")
    assert joined["NDCG@5"] == fp.evaluate(data.X[:, 0], data, measures="NDCG@5")["NDCG@5"]


def test_patterns_of_runs_are_compared_by_their_tags(files: Path) -> None:
    fp.write_run(fp.Run.from_dict(RUN, "theirs"), files / "z.run")
    pattern = str(files / "*.run")
    assert fp.compare(pattern, files / "y.qrels", measures="AP").systems == ("ours", "theirs")
    assert fp.compare([files / "z.run", RUN], QRELS, measures="AP").systems == (
        "theirs",
        "system 2",
    )
    with pytest.raises(fp.DataError, match=r"none\*: no file matches"):
        fp.compare(str(files / "none*"), QRELS)


@pytest.mark.parametrize(
    ("tags", "paths", "names"),
    [
        (["a", "b"], ["x.run", "y.run"], ["a", "b"]),
        (["a", "a"], ["x.run", "y.run"], ["x.run", "y.run"]),
        (["", ""], ["1/x.run", "2/x.run"], ["1/x.run", "2/x.run"]),
        (["a", "a", ""], [None, None, None], ["a", "a (2)", "system 3"]),
        (["a", "a"], ["x.run", "x.run"], ["x.run", "x.run (2)"]),
    ],
)
def test_names_of_systems_are_unique(tags, paths, names) -> None:
    assert unique_names(tags, paths) == names


FRAME = pandas.DataFrame(rows(RUN, "qid", "docno", "score"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fp.evaluate(FRAME.drop(columns="score"), QRELS), r"no column of scores \(score"),
        (lambda: fp.evaluate(FRAME, FRAME), r"no column of grades .*; it has: qid, docno, score"),
        (lambda: fp.evaluate(FRAME.assign(score="x"), QRELS), "'score' of run must have numbers"),
        (
            lambda: fp.evaluate(FRAME.assign(docno=None), QRELS),
            "docno of row 0 of the run is missing",
        ),
        (
            lambda: fp.evaluate(polars.DataFrame(FRAME.to_dict("list")).lazy(), QRELS),
            "LazyFrame; pass its collect",
        ),
        (lambda: fp.evaluate(fp.Regression().fit(DATA), QRELS), "needs data with features.*dict"),
        (lambda: fp.evaluate(3, [1, 0], qid=[1, 1]), "scores must be one number.*got int 3"),
        (lambda: fp.evaluate([1, 0], object(), qid=[1, 1]), "labels must be .*got object"),
        (lambda: fp.evaluate([1, 0], {"q": {"a": 1}}), "go with a run.*got list"),
        (lambda: fp.evaluate("no-such.run", QRELS), "no-such.run: no such file"),
        (
            lambda: fp.evaluate(RUN, fp.Dataset.from_arrays([[1.0]], [1], [1])),
            "have no document ids",
        ),
    ],
)
def test_errors_name_what_was_given(call, message: str) -> None:
    with pytest.raises(fp.DataError, match=message):
        call()


def test_a_run_in_the_place_of_judgments_is_an_error(files: Path) -> None:
    with pytest.raises(fp.DataError, match="is a run, not judgments"):
        fp.evaluate(files / "x.run", files / "x.run")
    with pytest.raises(fp.DataError, match="if it is a model"):
        fp.evaluate(files / "model.json", DATA)


def feed(monkeypatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_standard_input_is_a_file(monkeypatch, files: Path, pack) -> None:
    feed(monkeypatch, pack((files / "x.run").read_bytes()))
    assert fp.evaluate("-", QRELS, measures=MEASURES).means == EXPECTED
    feed(monkeypatch, pack((files / "y.qrels").read_bytes()))
    assert fp.evaluate(RUN, "-", measures=MEASURES).means == EXPECTED
    feed(monkeypatch, b"")
    with pytest.raises(fp.DataError, match="standard input: contains no scores"):
        fp.read_run("-")


def test_names_of_other_libraries_are_answered() -> None:
    for name, hint in (
        ("LambdaMart", "Did you mean 'fp.LambdaMART'"),
        ("LGBMRanker", "fp.LambdaMART"),
        ("fuse", "aggregate"),
    ):
        with pytest.raises(AttributeError, match=hint):
            getattr(fp, name)


def test_values_per_query_agree_for_all_forms() -> None:
    frame = pandas.DataFrame(rows(RUN, "qid", "docno", "score")).sample(frac=1, random_state=0)
    values = fp.evaluate(frame, QRELS, measures=MEASURES).values
    assert np.array_equal(values, fp.evaluate(RUN, QRELS, measures=MEASURES).values)


@pytest.mark.parametrize(
    ("system", "truth", "options", "message"),
    [
        (fp.ListNet, DATA, {}, r"ListNet is a class; pass a fitted ranker: ListNet\(\).fit"),
        (RUN, None, {}, "a run requires judgments: .* got NoneType None"),
        (RUN, 5, {}, "a run requires judgments: .* got int 5"),
        (RUN, QRELS, {"measures": 5}, "measures must be texts such as 'NDCG@10', .* got 5"),
        ({}, QRELS, {}, "the run has none, the judgments have q1, q2"),
        (RUN, {}, {}, "the run has q1, q2, the judgments have none"),
        (
            [{"query_id": "1", "doc_id": "a", "score": 1.0}, {"query_id": "1", "doc_id": "b"}],
            QRELS, {}, "every record must have query_id, doc_id, score",
        ),
    ],
)  # fmt: skip
def test_errors_name_what_was_passed(system, truth, options, message: str) -> None:
    with pytest.raises(fp.FirstpageError, match=message):
        fp.evaluate(system, truth, **options)


def test_dictionaries_are_records_too() -> None:
    run = [ScoredDoc(q, d, s)._asdict() for q, docs in RUN.items() for d, s in docs.items()]
    qrels = [Qrel(q, d, v)._asdict() for q, docs in QRELS.items() for d, v in docs.items()]
    assert fp.evaluate(run, qrels, measures=MEASURES).means == EXPECTED


def test_values_are_found_by_measures_and_by_their_texts() -> None:
    evaluation = fp.evaluate(RUN, QRELS, measures="map,ndcg_cut_10")
    assert evaluation[fp.measure("AP")] == evaluation["map"] == EXPECTED["AP"]
    assert evaluation.per_query(fp.measure("NDCG@10")).mean() == EXPECTED["NDCG@10"]
    with pytest.raises(KeyError, match="P@5 was not measured; available: map, ndcg_cut_10"):
        evaluation[fp.measure("P@5")]


def test_repeated_documents_are_answered_with_what_can_be_done(tmp_path: Path) -> None:
    path = tmp_path / "x.run"
    path.write_text("q1 Q0 a 1 2 t\nq1 Q0 a 2 1 t\n")
    with pytest.raises(
        fp.DataError, match=r"x.run:2: .* Or read the run with duplicates=, which says"
    ):
        fp.evaluate(path, QRELS)
    frame = pandas.DataFrame({"qid": ["q1"] * 2, "docno": ["a"] * 2, "score": [1, 2]})
    with pytest.raises(fp.DataError, match="occurs twice in query 'q1'; drop one"):
        fp.evaluate(frame, QRELS)
