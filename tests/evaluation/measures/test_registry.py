from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import firstpage as fp
from firstpage.core.errors import MeasureError
from firstpage.evaluation.measures.base import MAX_CUTOFF
from firstpage.evaluation.measures.binary import AP, P
from firstpage.evaluation.measures.graded import ERR, NDCG, kNDCG
from firstpage.evaluation.measures.names import expand
from firstpage.evaluation.measures.order import WKT
from firstpage.evaluation.measures.registry import measure_classes


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("NDCG@10", "NDCG@10"),
        ("ndcg @ 10", "NDCG@10"),
        ("nDCG@10", "NDCG@10"),
        ("ndcg_cut_10", "NDCG@10"),
        ("NDCG(gain=linear)@10", "NDCG(gain=linear)@10"),
        ("NDCG(gain=[0,1,3], discount=letor)@5", "NDCG(gain=[0, 1, 3], discount=letor)@5"),
        ("map", "AP"),
        ("map_cut_5", "AP@5"),
        ("MRR@10", "RR@10"),
        ("recip_rank", "RR"),
        ("P_10", "P@10"),
        ("precision@3", "P@3"),
        ("recall_100", "Recall@100"),
        ("R@5", "Recall@5"),
        ("k-NDCG(k=10)@5", "kNDCG(k=10)@5"),
        ("κ-ERR", "kERR"),
        ("Rprec", "Rprec"),
        ("AP(rel=2)", "AP(rel=2)"),
        ("RBO(p=0.95)", "RBO(p=0.95)"),
        ("RBO(p=0.9)", "RBO"),
        ("WKT(norm=true)@10", "WKT(norm=true)@10"),
        ("ERR(max=query)@5", "ERR(max=query)@5"),
        ("ERR(max=4)", "ERR(max=4)"),
        ("mean-ndcg", "MeanNDCG"),
        ("AP(judged_only=True)@10", "AP(condensed=true)@10"),
        ("IPrec(judged_only=True)@0.1", "IPrec(recall=0.1, condensed=true)"),
        ("nDCG(gains={2:5})@10", "NDCG(gain=[0, 1, 5])@10"),
        ("nDCG(gains={0: 0, 1: 2}, judged_only=False)", "NDCG(gain=[0, 2])"),
        ("nDCG(gains={})@10", "NDCG(gain=linear)@10"),
        ("ndcg.1=3.5,2=9", "NDCG(gain=[0, 3.5, 9])"),
        ("Rndcg.2=-1", "Rndcg(gain=[0, 1, -1])"),
        ("utility.2,-.5,1,0", "SetUtility(relevant=2, nonrelevant=-0.5, missed=1)"),
        ("NumRet(rel=2)", "NumRelRet(rel=2)"),
        ("SetP(rel=2, relative=True)", "SetRelP(rel=2)"),
        ("SetP(relative=False)", "SetP"),
        ("precision", "SetP"),
        ("hit_rate", "SetSuccess"),
        ("nDCG(dcg='log2', gains={1: 1e-3})@5", "NDCG(gain=[0, 0.001])@5"),
        ("nDCG(gains={1:2.}, dcg='log2')", "NDCG(gain=[0, 2])"),
        ("NumRet(judged_only=True, rel=2)", "NumRelRet(rel=2, condensed=true)"),
        ("Compat", "RBO(p=0.95, truncated=true)"),
        ("Compat(rel=2)@5", "RBO(rel=2, p=0.95, truncated=true)@5"),
        ("Compat(p=0.8)", "RBO(p=0.8, truncated=true)"),
        ("compatibility", "RBO(p=0.95)"),
        ("Compatibility(p=0.8, rel=2)@5", "RBO(rel=2, p=0.8)@5"),
        ("AP (rel=2) @ 5", "AP(rel=2)@5"),
    ],
)
def test_text_to_measure_to_canonical_text(text: str, canonical: str) -> None:
    measure = fp.measure(text)
    assert str(measure) == canonical
    assert fp.measure(canonical) == measure
    assert hash(fp.measure(canonical)) == hash(measure)


@given(cutoff=st.one_of(st.none(), st.integers(1, 10**6)), data=st.data())
def test_every_measure_round_trips_through_its_text(cutoff: int | None, data) -> None:
    kind = data.draw(st.sampled_from(measure_classes()))
    names = kind.__dataclass_fields__
    parameters: dict = {}
    if "cutoff" in names:
        parameters["cutoff"] = cutoff or (10 if kind.without_cutoff else None)
    if "rel" in names:
        parameters["rel"] = data.draw(st.sampled_from([None, 1.0, 2.0, 0.5]))
    if "gain" in names:
        table = [] if kind.__name__ == "RBP" else [(0.0, 1.5, 3.0)]
        parameters["gain"] = data.draw(st.sampled_from([None, "exp", "linear", *table]))
    measure = kind(**parameters)
    assert fp.measure(str(measure)) == measure


def test_measures_are_immutable_values() -> None:
    assert NDCG() @ 10 == NDCG(cutoff=10) == fp.measure("NDCG@10")
    assert {P(cutoff=5), P(cutoff=5)} == {fp.measure("P@5")}
    assert AP(rel=2) != AP()
    assert kNDCG(k=3) @ 5 == fp.measure("kNDCG(k=3)@5")
    with pytest.raises(AttributeError):
        NDCG().cutoff = 5  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("NDGC@10", "no measure 'NDGC'. Nearest: NDCG"),
        ("zzz", "There are: NDCG"),
        ("NDCG@ten", "cut-off must be an integer; got 'ten'"),
        ("NDCG@0", "cut-off of NDCG must be at least 1"),
        ("NDCG@-3", "at least 1"),
        ("Tau@5", "Tau takes no cut-off"),
        ("NDCG(rel=2)", "NDCG has no parameter 'rel' .it has: gain, discount."),
        ("AP(rel=two)", "rel must be a number; got 'two'"),
        ("AP(rel=1, rel=2)", "rel is given twice"),
        ("NDCG(linear)", "parameters are written name=value"),
        ("NDCG(gain=cubic)", "gain of NDCG must be exp, linear or a list"),
        ("NDCG(gain=[1,x])", "not a list of numbers"),
        ("NDCG(discount=none)", "discount of NDCG must be log2 or letor"),
        ("WKT(norm=maybe)", "norm must be true or false"),
        ("RBO(p=1.5)", "p of RBO must lie between 0 and 1"),
        ("RBP(p=0)", "p of RBP must lie between 0 and 1"),
        ("kNDCG(k=0)", "k of kNDCG must be at least 1"),
        ("ERR(max=high)", "max of ERR must be a number, data or query"),
        ("P", "'P' names 9 measures .P_5, P_10, ....; one is needed here"),
        ("NDCG@{5,10}", "names 2 measures .NDCG@5, NDCG@10.; one is needed here"),
        ("P(rel=2)", "P needs a cut-off"),
        ("hit", "Success needs a cut-off"),
        ("utility.1,-1,0,2", "'utility.1,-1,0,2': the fourth weight must be 0"),
        ("NDCG(gains={a:1})", "gains are written {label: gain, ...}, .* got 'a:1'"),
        ("NDCG(gains={99999999999:1})", "each label once, from 0 to 9999"),
        (f"NDCG(gains={{{'9' * 5000}:1}})", "each label once, from 0 to 9999"),
        ("nDCG(gains={1:2, 1:3})", "each label once"),
        ("ndcg.1=2,1=3", "each label once"),
        ("nDCG(dcg='exp-log2', gains={1:2})", "gains cannot be combined with dcg='exp-log2'"),
        ("NDCG(gain=[1,2)@10", "the list .1,2 has no ]"),
        ("SetP(relative=maybe)", "relative of SetP must be true or false, once"),
        ("SetP(relative=true, relative=false)", "must be true or false, once"),
        ("SetUtility(relevant=nan)", "relevant of SetUtility must be finite"),
        ("INST(min=-inf)", "min of INST must be finite"),
        ("INST(T=1e308)", "T of INST must be finite, at most 1e.100"),
        ("Q(beta=1e308)", "beta of Q must be finite"),
        ("NDCG@99999999999999999999", "cut-off of NDCG must be at most 100,000,000"),
        ("kNDCG(k=99999999999999999999)", "k of kNDCG must be at least 1 and at most 100,000,000"),
        ("TopK01", "TopK01 needs a cut-off"),
        ("NDCG@10@5", "cannot parse the measure"),
        ("", "cannot parse the measure"),
        ("@10", "cannot parse the measure"),
        ("()" * 200_000, "cannot parse the measure"),
        ("\U000f0001", "cannot parse the measure"),
    ],
)
def test_invalid_texts_raise_an_error(text: str, message: str) -> None:
    with pytest.raises(fp.MeasureError, match=message):
        fp.measure(text)


@given(text=st.text(max_size=20))
def test_any_text_parses_or_raises_measure_error(text: str) -> None:
    try:
        result = fp.measure(text)
    except fp.MeasureError:
        return
    assert fp.measure(str(result)) == result


def test_keys_are_the_texts_that_were_typed() -> None:
    result = fp.evaluate([1, 0], [1, 0], qid=[1, 1], measures=["map", ERR(), "ndcg_cut_5"])
    assert list(result.means) == ["map", "ERR", "ndcg_cut_5"]
    assert list(result.to_dict()["measures"]) == ["map", "ERR", "ndcg_cut_5"]
    assert result["AP"] == result["map"] == 1.0
    assert result.row("NDCG@5") == 2
    for unknown in ("RR", "no measure"):
        with pytest.raises(KeyError, match=f"'{unknown}' was not measured"):
            result.per_query(unknown)


def test_the_greatest_cutoff_includes_all_documents() -> None:
    texts = [f"{name}@{MAX_CUTOFF}" for name in ("NDCG", "Recall", "F1", "Unjudged", "alpha-nDCG")]
    run, qrels = {"q": {"a": 2.0, "b": 1.0}}, {"q": {"a": 1}}
    with pytest.warns(fp.FirstpageWarning, match="are unjudged"):
        means = fp.evaluate(run, qrels, measures=texts[:-1]).means
    assert means[texts[0]] == means[texts[1]] == 1
    subtopics = {"q": {"1": {"a": 1}}}
    assert fp.evaluate({"q": {"a": 1.0}}, subtopics, measures=texts[-1])[texts[-1]] == 1


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("P_5,10 map", ["P_5", "P_10", "map"]),
        ("map, P_5, 10", ["map", "P_5", "P_10"]),
        ("rbp_p=0.9,0.5", ["rbp_p=0.9", "rbp_p=0.5"]),
        ("set_F.0.5,1", ["set_F.0.5", "set_F_1"]),
        ("ndcg.1=2,2=3 utility.1,-1,0,0,map", ["ndcg.1=2,2=3", "utility.1,-1,0,0", "map"]),
        ("nDCG@[5, 10] NDCG(gain=[0, 1])@{1, 3}",
         ["nDCG@5", "nDCG@10", "NDCG(gain=[0, 1])@1", "NDCG(gain=[0, 1])@3"]),
        ("NDCG(a (b) @ G.1=2.json)@5", ["NDCG(a (b) @ G.1=2.json)@5"]),
    ],
)  # fmt: skip
def test_texts_of_several_measures(text: str, texts: list[str]) -> None:
    assert expand(text) == texts


def test_weights_of_wkt_come_from_a_list_or_from_a_file(tmp_path) -> None:
    scores, labels, qid = [4, 3, 2, 1], [0, -1, 2, 1], [1] * 4
    expected = 5 * 2 + 2 * 2 + 1 * 0  # true ranks: label 2, label 1, label 0, label -1
    file = tmp_path / "w.txt"
    for contents in ("5\n2\n1\n7\n", "[5, 2, 1, 7]", "5 2, 1 7"):
        file.write_text(contents)
        parsed = fp.measure(f"WKT(weights={file})")
        assert str(parsed) == "WKT(weights=[5, 2, 1, 7])"
        assert fp.evaluate(scores, labels, qid=qid, measures=parsed).values[0].mean() == expected
    file.write_text("1 1 1 1")  # the file is read at every call
    assert str(fp.measure(f"WKT(weights={file})")) == "WKT(weights=[1, 1, 1, 1])"
    assert fp.measure(
        "WKT",
    ) == WKT(weights=None)
    assert WKT(weights=[5, 2]).weights == (5.0, 2.0)  # type: ignore[arg-type]
    normed = WKT(weights=[5, 2, 1, 7], norm=True, cutoff=3)  # type: ignore[arg-type]
    result = fp.evaluate(scores, labels, qid=qid, measures=normed)
    assert result.values[0].mean() == pytest.approx(expected / 8)
    assert fp.measure(str(normed)) == normed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("WKT(weights=[1, -2])", "at least 0; that of rank 2 is -2"),
        ("WKT(weights=[nan, 1])", "that of rank 1 is nan"),
        ("WKT(weights=[1, inf])", "that of rank 2 is inf"),
        ("WKT(weights=[0, 0])", "must have a positive number"),
        ("WKT(weights=[1, x])", "not a list of numbers"),
        ("WKT(weights=[1, 2])@3", "needs a weight for each of 3 true ranks; weights has 2"),
        ("WKT(weights=missing.txt)", r"missing.txt: the weights of WKT cannot be read \(No such"),
    ],
)
def test_invalid_weights_of_wkt_are_refused(text: str, message: str) -> None:
    with pytest.raises(MeasureError, match=message):
        fp.measure(text)


def test_too_few_weights_for_a_query_are_refused() -> None:
    with pytest.raises(MeasureError, match="2 weights, and a query has 3 judged documents; give"):
        fp.evaluate([3, 2, 1], [0, 1, 2], qid=[1] * 3, measures="WKT(weights=[1, 2])")
