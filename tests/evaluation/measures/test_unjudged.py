"""Condensed lists, bounds for unjudged documents, and segments of an evaluation."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import firstpage as fp

DOCUMENTS = "abcdefgh"
runs = st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(0, 4), min_size=1)
judgments = st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(-1, 2), min_size=1)
MEASURES = ["NDCG@3", "AP", "RR", "P@2", "bpref", "NumRet"]
CONDENSED = {  # a measure with the parameter: the same without it
    "NDCG(condensed=true)@3": "NDCG@3", "nDCG(judged_only=True)@2": "NDCG@2",
    "AP(rel=2, condensed=true)": "AP(rel=2)", "RR(condensed=true)": "RR", "P(condensed=true)@2": "P@2",
    "NumRet(condensed=true)": "NumRet", "ERR(condensed=true)@2": "ERR@2", "Tau(condensed=true)": "Tau",
    "RBPResidual(condensed=true)": "RBPResidual", "Judged(condensed=true)@3": "Judged@3",
}  # fmt: skip


def quiet(*arguments, **options) -> fp.results.Evaluation:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fp.FirstpageWarning)
        return fp.evaluate(*arguments, **options)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(runs, judgments), min_size=1, max_size=3),
    st.sampled_from(["default", "trec"]),
)
def test_condensed_lists_lack_the_unjudged_documents(pairs, convention) -> None:
    run = {str(q): docs for q, (docs, _) in enumerate(pairs)}
    qrels = {str(q): judged for q, (_, judged) in enumerate(pairs)}
    least = 0 if convention == "trec" else -1  # trec_eval: grades below 0 are unjudged
    short = {
        q: {d: s for d, s in docs.items() if qrels[q].get(d, -np.inf) >= least}
        for q, docs in run.items()
    }
    chosen = {"measures": MEASURES, "convention": convention}
    expected = quiet(short, qrels, **chosen)
    for table, judged in (
        (run, qrels),
        (fp.Run.from_dict(run), fp.Qrels.from_dict(qrels)),
    ):
        shortened = fp.Convention(convention, condensed=True)
        condensed = quiet(table, judged, measures=MEASURES, convention=shortened)
        np.testing.assert_allclose(condensed.values, expected.values)
        chosen["measures"] = [*CONDENSED, "NDCG@3"]
        single = quiet(table, judged, **chosen)
        for text, plain in [*CONDENSED.items(), ("NDCG@3", "")]:
            system, measured = (short, plain) if plain else (run, text)
            value = quiet(system, qrels, measures=measured, convention=convention).values[0]
            np.testing.assert_allclose(single.per_query(text), value, err_msg=text)
        chosen["measures"] = MEASURES


@pytest.mark.parametrize("options", [{"depth": 2}, {"ties": "shuffle"}, {"ties": "worst"}], ids=str)
@pytest.mark.parametrize("convention", ["default", "trec"])
def test_the_parameter_is_the_setting_for_one_measure(options: dict, convention: str) -> None:
    """Unjudged documents are removed below the depth, as by trec_eval -M 2 -J."""
    run = {"q": {"u": 9.0, "a": 8.0, "v": 7.0, "b": 7.0, "c": 7.0}}
    qrels = {"q": {"a": 1, "b": 1, "c": 0}}
    setting = fp.Convention(convention, **options)
    short = fp.Convention(setting, condensed=True)
    texts = ["AP(condensed=true)", "NDCG(condensed=true)"]
    measured = quiet(run, qrels, measures=texts, convention=setting)
    expected = quiet(run, qrels, measures=["AP", "NDCG"], convention=short)
    np.testing.assert_array_equal(measured.values, expected.values)
    if "depth" in options:
        assert measured["AP(condensed=true)"] == 0.5  # a alone is judged in the first two ranks


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(runs, st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(0, 2), min_size=1))
def test_bounds_are_the_means_under_other_judgments(run, qrels) -> None:
    ranked = sorted(run, key=lambda d: -run[d])
    if len(set(run.values())) < len(run):  # ties would make the first ranks ambiguous
        run = {d: -float(rank) for rank, d in enumerate(ranked)}
    all_relevant = {d: max([*qrels.values(), 1]) for d in ranked[:2]} | qrels
    bounds = quiet({"q": run}, {"q": qrels}, measures=["P@2", "RR@2"], bounds=True).bounds
    for text, bound in bounds.items():
        most = quiet({"q": run}, {"q": all_relevant}, measures=text)[text]
        least = quiet({"q": run}, {"q": qrels}, measures=text)[text]
        assert bound.relevant == pytest.approx(most)
        assert least <= bound.relevant + 1e-12


def test_warnings_point_to_the_caller_and_name_the_removed_documents() -> None:
    run, qrels = {"q": {"a": 2, "b": 1}}, {"q": {"a": 1}}
    with pytest.warns(fp.FirstpageWarning, match="1 unjudged documents are removed") as caught:
        fp.evaluate(run, qrels, convention=fp.Convention(condensed=True))
    assert caught[0].filename == __file__


SCORES, LABELS, QID = [2, 1, 2, 1, 1, 2], [1, 0, 1, 0, 1, 0], [1, 1, 2, 2, 3, 3]


def test_segments_are_evaluations_of_their_queries() -> None:
    table = fp.QueryTable(
        {"language": {"1": "en", "2": "de", "3": "en"}, "traffic": {"1": 3, "2": 1, "3": 1}}
    )
    chosen = {"qid": QID, "measures": ["RR", "NumQ"]}
    evaluation = fp.evaluate(
        SCORES, LABELS, by="language", weights="traffic", query_table=table, ci=True, **chosen
    )
    english = fp.evaluate(
        [2, 1, 1, 2], [1, 0, 1, 0], qid=[1, 1, 3, 3], measures=["RR", "NumQ"], ci=True,
        weights={"1": 3, "3": 1},
    )  # fmt: skip
    assert list(evaluation.segments) == ["en", "de"]
    assert evaluation.segments["en"].means == english.means == {"RR": 0.875, "NumQ": 2.0}
    assert evaluation.segments["en"].intervals == english.intervals
    assert evaluation.segments_table().rows[1][:2] == ["de", "1"]
    assert str(evaluation).endswith(evaluation.segments_table().text())
    same = fp.evaluate(SCORES, LABELS, by={1: "en", 2: "de", 3: "en"}, **chosen)
    assert same.segments["de"].means == {"RR": 1.0, "NumQ": 1.0}


def test_tables_of_what_was_not_computed_are_refused() -> None:
    evaluation = fp.evaluate(SCORES, LABELS, qid=QID, measures="RR")
    with pytest.raises(fp.DataError, match="call evaluate with by"):
        evaluation.segments_table()
    with pytest.raises(fp.DataError, match="call evaluate with bounds=True"):
        evaluation.bounds_table()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": "language"}, "give query_table too"),
        ({"weights": "traffic"}, "give query_table too"),
        ({"convention": fp.Convention(condensed=True)}, "about the unjudged documents of a run"),
        ({"bounds": True}, "about the unjudged documents of a run"),
        ({"bounds": True, "convention": fp.Convention(condensed=True)}, "Leave out condensed=."),
        ({"by": {"9": "en"}}, "no query has a segment"),
    ],
)
def test_what_cannot_be_computed_is_refused(options, message) -> None:
    with pytest.raises(fp.FirstpageError, match=message), warnings.catch_warnings():
        warnings.simplefilter("ignore", fp.FirstpageWarning)
        fp.evaluate(SCORES, LABELS, qid=QID, measures="RR", **options)


def test_bounds_are_of_the_queries_of_the_mean() -> None:
    """Judged as relevant, documents bring back queries that were skipped."""
    run = {"p": {"a": 2.0, "u": 1.0}, "q": {"u": 2.0, "b": 1.0}}
    qrels = {"p": {"a": 1}, "q": {"b": 0}}
    skip = fp.Convention(without_relevant="skip")
    options = {"measures": "RR", "convention": skip, "bounds": True}
    for weights in (None, {"p": 1.0, "q": 5.0}):
        assert quiet(run, qrels, weights=weights, **options).bounds["RR"] == (1.0, 1.0)
