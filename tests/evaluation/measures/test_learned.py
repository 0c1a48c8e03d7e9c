"""Measures of measure files: texts, values, ideal values, and errors."""

from __future__ import annotations

import copy
import json
import pickle
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import firstpage as fp
from firstpage.data.preferences.utility import MeasureSource
from firstpage.evaluation.measures.inputs import make_lists
from firstpage.evaluation.measures.learned import LearnedDCG, LearnedNDCG
from tests.evaluation.measures.reference import orders

# Runs and judgments with different queries or documents warn; `test_coverage` tests that.
pytestmark = pytest.mark.filterwarnings("ignore:.*judged:firstpage.core.errors.FirstpageWarning")

STANDARD = fp.dcglearn.Utility.from_dcg("exp", range(5), 10)
RISING = fp.dcglearn.Utility.from_gains([0, 1, 4], [0.2, 1.0, 0.7, -0.3])
SEGMENTED = fp.dcglearn.Utility.from_gains(
    [0, 1, 3], [1, 0.5, 0.2], segments={"news": fp.dcglearn.Utility.from_gains([0, 2, 3], [1, 0.9])}
)
FREE = fp.dcglearn.Utility(
    (0, 1, 2),
    np.array([[0, 1.0, 1.1], [0, 0.2, 3.0], [0, 0.9, 0.95]]),
    np.array([0, 0.4, 1.0]),
    np.array([1.0, 0.8, 0.6]),
    "weights",
)


@pytest.fixture
def working_folder(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    SEGMENTED.save("measure.json")
    return tmp_path


# --- texts


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("DCG(measure.json)@2", "DCG(measure.json)@2"),
        ("DCG(condensed=true, measure.json)@2", "DCG(measure.json, condensed=true)@2"),
        ("NDCG(measure.json, judged_only=True)", "NDCG(measure.json, condensed=true)"),
        ("ndcg( measure.json ) @ 2", "NDCG(measure.json)@2"),
        ("NDCG(file=measure.json)", "NDCG(measure.json)"),
        ("NDCG('measure.json')", "NDCG(measure.json)"),
        ("DCG(form=weights, file=./measure.json)", "DCG(./measure.json, form=weights)"),
        (
            "DCG(measure.json, segment=news, form=weights)@1",
            "DCG(measure.json, form=weights, segment=news)@1",
        ),
    ],
)
def test_text_to_measure_to_canonical_text(working_folder: Path, text: str, canonical: str) -> None:
    result = fp.measure(text)
    assert str(result) == canonical
    assert fp.measure(canonical) == result
    assert hash(fp.measure(canonical)) == hash(result)


@pytest.mark.parametrize(
    "name",
    [
        "a b.json", "a, b.json", "a (1).json", "a@5.json", "plain", "a=b.json", "gain=exp.json",
        "a, form=weights.json", "x)y.json", "[1,2].json", "'q'.json", " ends ", "f.json, segment=x",
    ],
)  # fmt: skip
def test_any_file_name_round_trips_through_the_text(working_folder: Path, name: str) -> None:
    SEGMENTED.save(name)
    result = fp.measure("NDCG(form=gains)@2", of=name)
    again: Any = fp.measure(str(result))
    assert again == result
    assert again.source == MeasureSource(name, "gains")


@given(
    file=st.text("ab./,='\" form", min_size=1, max_size=12).filter(lambda t: '"' not in t),
    form=st.sampled_from([None, "gains", "weights"]),
    segment=st.none() | st.text("ab,. ()'", max_size=6),
)
def test_sources_round_trip_through_their_text(file: str, form, segment) -> None:
    source = MeasureSource(file, form, segment)
    assert MeasureSource.parse(str(source)) == source


def test_a_utility_is_a_measure() -> None:
    plain = fp.measure(SEGMENTED)
    assert isinstance(plain, LearnedDCG)
    assert plain @ 2 == fp.measure("DCG@2", of=SEGMENTED)
    ndcg = fp.measure("NDCG(segment=news, form=weights)@2", of=SEGMENTED)
    assert isinstance(ndcg, LearnedNDCG)
    assert ndcg.utility is SEGMENTED.segments["news"]
    assert str(fp.measure(FREE)) != str(plain)
    result = fp.evaluate([2, 1, 0], [2, 0, 1], qid=[1, 1, 1], measures=[SEGMENTED, FREE, "AP"])
    assert list(result.means) == [str(plain), str(fp.measure(FREE)), "AP"]
    assert fp.evaluate([2, 1], [2, 0], qid=[1, 1], measures=FREE).values[0, 0] == 1.1


def test_measures_can_be_copied_and_pickled() -> None:
    result = fp.measure("NDCG@2", of=FREE)
    for other in (copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
        assert other == result
        assert str(other) == str(result)


def test_changed_file_is_read_again(working_folder: Path) -> None:
    first = fp.measure("DCG(measure.json)@1")
    fp.dcglearn.Utility.from_gains([0, 1, 2], [1, 0.5, 0.2]).save("measure.json")
    second = fp.measure("DCG(measure.json)@1")
    assert first != second
    assert str(first) == str(second)
    values = [
        fp.evaluate([1, 0], [1, 2], qid=[1, 1], measures=m).values[0, 0] for m in (first, second)
    ]
    assert values == pytest.approx([1 / 3, 1 / 2])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("DCG(measure.json)@4", "cut-off of DCG is 4, and measure.json has weights of 3 ranks"),
        ("DCG(measure.json, segment=news)@3", "weights of 2 ranks; choose one from 1 to 2"),
        ("DCG(measure.json)@0", "must be at least 1"),
        ("DCG(measure.json)@x", "must be an integer"),
        ("DCG(mesure.json)@2", "mesure.json: no such file. Did you mean measure.json"),
        ("DCG(.)", "is a folder"),
        ("DCG(broken.json)", "broken.json:1: not a measure file, or a damaged one"),
        ("DCG(other.json)", "other.json: not a measure of Firstpage"),
        ("DCG(measure.json, form=both)", "form must be gains or weights; got 'both'"),
        ("DCG(measure.json, segment=shop)", "measure.json: there is no segment 'shop'"),
        ("DCG(measure.json, gain=exp)", "gain cannot be combined with a measure file"),
        ("DCG(gain=exp, file=measure.json)", "gain cannot be combined with a measure file"),
        ("DCG(measure.json, file=measure.json)", "file is given twice"),
        ("DCG(form=gains)", "no measure file is named"),
        ("DCG(file=)", "no measure file is named"),
        ("NDCG(measure)", "a measure file is named by file=measure"),
        ("ERR(measure.json)", "ERR has no parameter 'measure.json'"),
    ],
)
def test_invalid_texts_raise_an_error_of_one_line(
    working_folder: Path, text: str, message: str
) -> None:
    Path("broken.json").write_text("{")
    Path("other.json").write_text("{}")
    with pytest.raises(fp.MeasureError, match=message) as error:
        fp.measure(text)
    assert "\n" not in str(error.value)


@given(inside=st.text(max_size=12) | st.text("./,='\"()@\0 form=segment=", max_size=20))
def test_any_text_in_parentheses_parses_or_raises_measure_error(
    working_folder: Path, inside: str
) -> None:
    for text in (f"NDCG({inside})@2", f"DCG(file={inside})", f"DCG(measure.json, {inside})"):
        try:
            result = fp.measure(text)
        except fp.MeasureError:
            continue
        assert fp.measure(str(result)) == result


def test_only_dcg_and_ndcg_can_be_made_of_a_utility(working_folder: Path) -> None:
    with pytest.raises(fp.MeasureError, match="only DCG and NDCG"):
        fp.measure("ERR@5", of=FREE)
    with pytest.raises(fp.MeasureError, match="names a file itself"):
        fp.measure("DCG(measure.json)", of=FREE)
    with pytest.raises(fp.MeasureError, match="this utility has weights of 3 ranks"):
        fp.measure(FREE) @ 4


# --- values


def list_value(table, ranked) -> float:
    """Return the value of grades in ranked order; None is unjudged or below the lowest grade."""
    ranked_weights = zip(table, ranked, strict=False)
    return sum(float(row[0 if grade is None else grade] - row[0]) for row, grade in ranked_weights)


def ideal_value(table, pool) -> float:
    return max(list_value(table, order) for order in permutations(pool))


documents = st.lists(
    st.tuples(st.sampled_from([None, -1, 0, 1, 2]), st.integers(0, 2)), min_size=1, max_size=6
)
utilities = st.sampled_from([SEGMENTED, RISING, FREE, FREE.with_form("gains"), RISING])


@given(docs=documents, utility=utilities, cutoff=st.sampled_from([None, 1, 2]))
def test_value_is_the_mean_over_all_orders_of_ties(docs, utility, cutoff) -> None:
    """The reference enumerates all orders that scores allow, and all orders of the judged ones."""
    qrels = {"q": {f"d{i}": y for i, (y, _) in enumerate(docs) if y is not None}}
    if not qrels["q"]:
        return
    run = {"q": {f"d{i}": float(s) for i, (_, s) in enumerate(docs)}}
    grades = [None if y is None or y < 0 else y for y, _ in docs]
    table = utility.table()[:cutoff]
    all_orders = orders([s for _, s in docs])
    dcg = np.mean([list_value(table, [grades[i] for i in order]) for order in all_orders])
    top = ideal_value(table, [g for g, (y, _) in zip(grades, docs, strict=True) if y is not None])
    measures = [fp.measure(name, of=utility) for name in ("DCG", "NDCG")]
    measures = [m if cutoff is None else m @ cutoff for m in measures]
    result = fp.evaluate(run, qrels, measures=measures)
    assert result.values[0, 0] == pytest.approx(dcg, abs=1e-12)
    assert result.values[1, 0] == pytest.approx(dcg / top if top > 0 else 0.0, abs=1e-12)


@given(
    pool=st.lists(st.integers(0, 3), min_size=1, max_size=6),
    numbers=st.lists(st.integers(-4, 9), min_size=16, max_size=16),
    form=st.sampled_from(["gains", "weights"]),
)
def test_ideal_is_the_maximum_over_all_orders(pool, numbers, form) -> None:
    """It is, for any weights: increasing discounts, decreasing gains, negative ones."""
    gains, weights = np.array(numbers[:4], float), np.array(numbers, float).reshape(4, 4)
    utility = fp.dcglearn.Utility((0, 1, 2, 3), weights, gains, np.array(numbers[4:8], float), form)
    lists = make_lists(np.zeros(len(pool)), pool, fp.Convention(), np.zeros(len(pool)), None)
    learned: Any = fp.measure("NDCG", of=utility)
    result = learned._ideal_dcg(lists)
    assert result == pytest.approx([ideal_value(utility.table(), pool)], abs=1e-9)


@given(
    lists=st.lists(
        st.lists(
            st.tuples(st.sampled_from([None, -1, 0, 1, 2, 3, 4]), st.integers(-3, 3)),
            min_size=1,
            max_size=15,
        ),
        min_size=1,
        max_size=4,
    ),
    cutoff=st.integers(1, 10),
)
def test_standard_utility_gives_the_standard_measure(lists, cutoff: int) -> None:
    qrels = {
        str(q): {str(i): y for i, (y, _) in enumerate(docs) if y is not None}
        for q, docs in enumerate(lists)
    }
    run = {
        str(q): {str(i): float(s) for i, (_, s) in enumerate(docs)} for q, docs in enumerate(lists)
    }
    if not any(qrels.values()):
        return
    texts = ["DCG(form=weights)", "NDCG(form=weights)", "NDCG(form=gains)"]
    ours = [fp.measure(f"{text}@{cutoff}", of=STANDARD) for text in texts]
    result = fp.evaluate(run, qrels, measures=ours).values
    expected = fp.evaluate(run, qrels, measures=[f"DCG@{cutoff}", f"NDCG@{cutoff}"]).values
    assert result == pytest.approx(expected[[0, 1, 1]], abs=1e-12)


def test_gain_conventions_do_not_apply_but_strict_cutoffs_do() -> None:
    ours, usual = fp.measure("NDCG@3", of=STANDARD), "NDCG(gain=exp, discount=log2)@3"
    data = ([3, 2, 1, 2, 1], [1, 0, 4, 0, 3])
    for name in ("default", "letor"):
        result = fp.evaluate(
            *data, qid=[1, 1, 1, 2, 2], measures=[ours, usual, STANDARD], convention=name
        )
        assert result.values[0] == pytest.approx(result.values[1])
        assert (result.values[0, 1] == 0) == (name == "letor")
        assert result.values[2, 1] > 0


def test_condensed_lists_lack_the_unjudged_documents() -> None:
    run, qrels = {"q": {"u": 3.0, "a": 2.0, "b": 1.0}}, {"q": {"a": 1, "b": 2}}
    plain = fp.measure("NDCG", of=SEGMENTED)
    condensed = fp.measure("NDCG(condensed=true)", of=SEGMENTED)
    assert str(plain) != str(condensed)
    values = fp.evaluate(run, qrels, measures=[plain, condensed]).values[:, 0]
    short = {"q": {"a": 2.0, "b": 1.0}}
    assert values[1] == fp.evaluate(short, qrels, measures=plain).values[0, 0] > values[0]


def test_without_cutoff_all_ranks_of_the_file_count() -> None:
    labels = [0] * 3 + [2]
    result = fp.evaluate([4, 3, 2, 1], labels, qid=[1] * 4, measures=["DCG", SEGMENTED])
    assert result.values[:, 0] == pytest.approx([3 / np.log2(5), 0])


@pytest.mark.parametrize(("label", "text"), [(3, "3"), (1.5, "1.5")])
@pytest.mark.parametrize("name", ["DCG", "NDCG"])
def test_labels_that_are_not_grades_raise_an_error(label: float, text: str, name: str) -> None:
    message = f"weights of the grades 0, 1, 2, and the data hold a label {text}"
    with pytest.raises(fp.MeasureError, match=message):
        fp.evaluate([2, 1], [label, 0], qid=[1, 1], measures=fp.measure(name, of=FREE))
    unseen = ({"q": {"a": 1.0}}, {"q": {"a": 1, "b": label}})
    with pytest.raises(fp.MeasureError, match=message):
        fp.evaluate(*unseen, measures=fp.measure(name, of=FREE))


def test_grades_need_not_start_at_0_or_be_consecutive() -> None:
    utility = fp.dcglearn.Utility.from_gains([-1, 0, 3], [1, 0.5], grades=[1, 2, 5])
    result = fp.evaluate([3, 2, 1], [0, 5, 1], qid=[1] * 3, measures=fp.measure("NDCG", of=utility))
    assert result.values[0, 0] == pytest.approx(0.5)


def test_weights_are_relative_to_the_lowest_grade() -> None:
    utility = fp.dcglearn.Utility(
        (0, 1),
        np.array([[2.0, 3.0], [1.0, 4.0]]),
        np.array([0.5, 1.5]),
        np.array([1.0, 0.5]),
        "weights",
    )
    result = fp.evaluate([2, 1], [0, 1], qid=[1, 1], measures=utility)
    assert result.values[0, 0] == 3.0


def test_learned_weights_have_a_form() -> None:
    rng = np.random.default_rng(3)
    labels, scores = rng.integers(0, 3, 200).astype(float), rng.normal(size=200)
    convention = fp.Convention()
    lists = make_lists(scores, labels, convention, np.repeat(np.arange(10), 20), None)
    for name in ("DCG", "NDCG"):
        measure = fp.measure(f"{name}@3", of=RISING)
        form = measure.rank_form(lists)
        assert isinstance(form, fp.extend.AdditiveForm)
        gains = form.gains.reshape(10, 20)
        ranked = np.take_along_axis(gains, np.argsort(-scores.reshape(10, 20)), 1)
        expected = ranked[:, :3] @ form.discounts[: form.depth]
        assert measure.values(lists, convention) == pytest.approx(expected)
        assert isinstance(fp.measure(name, of=FREE).rank_form(lists), fp.extend.TableForm)


def test_interpreted_kernel_gives_values_in_range(interpreted) -> None:
    rng = np.random.default_rng(5)
    labels, scores = rng.integers(0, 3, 60), rng.integers(0, 3, 60)
    result = fp.evaluate(
        scores, labels, qid=np.repeat([1, 2, 3], 20), measures=fp.measure("NDCG", of=FREE)
    )
    assert ((result.values > 0) & (result.values < 1)).all()


def test_ideal_values_are_cached_by_grade_counts() -> None:
    """Queries with the same best documents share one assignment problem."""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 5, 40_000)
    qid = np.repeat(np.arange(1000), 40)
    measure: Any = fp.measure("NDCG(form=weights)@10", of=STANDARD)
    fp.evaluate(rng.normal(size=40_000), labels, qid=qid, measures=measure)
    assert 0 < len(measure.ideal_cache) < 100


def test_grade_counts_of_many_grades_are_distinguished() -> None:
    """There are so many that the counts of a query do not fit into one integer."""
    rng = np.random.default_rng(2)
    labels, qid = rng.integers(0, 40, 600), np.repeat(np.arange(30), 20)
    utility = fp.dcglearn.Utility.from_dcg("linear", range(40), 50)
    result = fp.evaluate(
        rng.normal(size=600),
        labels,
        qid=qid,
        measures=[fp.measure("NDCG", of=utility), "NDCG(gain=linear)@50"],
    )
    assert result.values[0] == pytest.approx(result.values[1])


def test_catalog_lists_the_form_of_measure_files() -> None:
    from firstpage.evaluation.measures.registry import list_measures

    result = {listing.signature: listing.about for listing in list_measures()}
    assert "measure file" in result["DCG(file, form, segment)@n"]
    assert "measure file" in result["NDCG(file, form, segment)@n"]


def test_damaged_file_raises_an_error(working_folder: Path) -> None:
    content = json.loads(Path("measure.json").read_text())
    content["gains"][1] = 0.9
    Path("measure.json").write_text(json.dumps(content))
    with pytest.raises(fp.MeasureError, match="checksum differs"):
        fp.measure("DCG(measure.json)")
