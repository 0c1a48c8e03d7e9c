"""Measures of files: their texts, their values, their ideals, and what they refuse."""

from __future__ import annotations

import copy
import json
import pickle
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import firstpage as fp
from firstpage.data.preferences.utility import MeasureSource
from firstpage.measures.inputs import make_lists
from firstpage.measures.learned import LearnedDCG, LearnedNDCG
from firstpage.measures.measure import convention
from tests.measures.reference import orders

# Runs and judgments that lack something of each other; `test_coverage` is about what is said then.
pytestmark = pytest.mark.filterwarnings("ignore:.*judged:firstpage.errors.FirstpageWarning")

STANDARD = fp.Utility.from_dcg("exp", range(5), 10)
RISING = fp.Utility.from_gains([0, 1, 4], [0.2, 1.0, 0.7, -0.3])
SEGMENTED = fp.Utility.from_gains(
    [0, 1, 3], [1, 0.5, 0.2], segments={"news": fp.Utility.from_gains([0, 2, 3], [1, 0.9])}
)
FREE = fp.Utility(
    (0, 1, 2),
    np.array([[0, 1.0, 1.1], [0, 0.2, 3.0], [0, 0.9, 0.95]]),
    np.array([0, 0.4, 1.0]),
    np.array([1.0, 0.8, 0.6]),
    "weights",
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    SEGMENTED.save("measure.json")
    return tmp_path


# --- texts


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("DCG(measure.json)@2", "DCG(measure.json)@2"),
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
def test_text_to_measure_to_canonical_text(here: Path, text: str, canonical: str) -> None:
    found = fp.measure(text)
    assert str(found) == canonical
    assert fp.measure(canonical) == found
    assert hash(fp.measure(canonical)) == hash(found)


@pytest.mark.parametrize(
    "name",
    [
        "a b.json", "a, b.json", "a (1).json", "a@5.json", "plain", "a=b.json", "gain=exp.json",
        "a, form=weights.json", "x)y.json", "[1,2].json", "'q'.json", " ends ", "f.json, segment=x",
    ],
)  # fmt: skip
def test_any_file_name_comes_back_from_its_text(here: Path, name: str) -> None:
    SEGMENTED.save(name)
    found = fp.measure("NDCG(form=gains)@2", of=name)
    again = fp.measure(str(found))
    assert again == found
    assert again.source == MeasureSource(name, "gains")


@pytest.mark.slow
@given(
    file=st.text("ab./,='\" form", min_size=1, max_size=12).filter(lambda t: '"' not in t),
    form=st.sampled_from([None, "gains", "weights"]),
    segment=st.none() | st.text("ab,. ()'", max_size=6),
)
def test_sources_are_read_back(file: str, form, segment) -> None:
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
    found = fp.evaluate([2, 1, 0], [2, 0, 1], qid=[1, 1, 1], measures=[SEGMENTED, FREE, "AP"])
    assert list(found.means) == [str(plain), str(fp.measure(FREE)), "AP"]
    assert fp.evaluate([2, 1], [2, 0], qid=[1, 1], measures=FREE).values[0, 0] == 1.1


def test_measures_are_values_that_can_be_copied() -> None:
    found = fp.measure("NDCG@2", of=FREE)
    for other in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert other == found
        assert str(other) == str(found)


def test_a_file_that_changes_is_read_anew(here: Path) -> None:
    first = fp.measure("DCG(measure.json)@1")
    fp.Utility.from_gains([0, 1, 2], [1, 0.5, 0.2]).save("measure.json")
    second = fp.measure("DCG(measure.json)@1")
    assert first != second
    assert str(first) == str(second)
    values = [
        fp.evaluate([1, 0], [1, 2], qid=[1, 1], measures=m).values[0, 0] for m in (first, second)
    ]
    assert values == pytest.approx([1 / 3, 1 / 2])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("DCG(measure.json)@4", "cut-off of DCG is 4, and measure.json has weights of 3 places"),
        ("DCG(measure.json, segment=news)@3", "weights of 2 places; choose one from 1 to 2"),
        ("DCG(measure.json)@0", "must be at least 1"),
        ("DCG(measure.json)@x", "must be a whole number"),
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
def test_bad_texts_are_answered_in_one_line(here: Path, text: str, says: str) -> None:
    Path("broken.json").write_text("{")
    Path("other.json").write_text("{}")
    with pytest.raises(fp.MeasureError, match=says) as error:
        fp.measure(text)
    assert "\n" not in str(error.value)


@pytest.mark.slow
@given(inside=st.text(max_size=12) | st.text("./,='\"()@\0 form=segment=", max_size=20))
def test_any_text_in_the_brackets_is_answered(here: Path, inside: str) -> None:
    for text in (f"NDCG({inside})@2", f"DCG(file={inside})", f"DCG(measure.json, {inside})"):
        try:
            found = fp.measure(text)
        except fp.MeasureError:
            continue
        assert fp.measure(str(found)) == found


def test_what_is_made_of_a_utility_must_be_a_dcg(here: Path) -> None:
    with pytest.raises(fp.MeasureError, match="only DCG and NDCG"):
        fp.measure("ERR@5", of=FREE)
    with pytest.raises(fp.MeasureError, match="names a file itself"):
        fp.measure("DCG(measure.json)", of=FREE)
    with pytest.raises(fp.MeasureError, match="this utility has weights of 3 places"):
        fp.measure(FREE) @ 4


# --- values


def worth(table, ranked) -> float:
    """Of grades down a list, None: unjudged or below the worst."""
    shown = zip(table, ranked, strict=False)
    return sum(float(row[0 if grade is None else grade] - row[0]) for row, grade in shown)


def best(table, pool) -> float:
    return max(worth(table, order) for order in permutations(pool))


documents = st.lists(
    st.tuples(st.sampled_from([None, -1, 0, 1, 2]), st.integers(0, 2)), min_size=1, max_size=6
)
utilities = st.sampled_from([SEGMENTED, RISING, FREE, FREE.with_form("gains"), RISING])


@pytest.mark.slow
@given(docs=documents, utility=utilities, cutoff=st.sampled_from([None, 1, 2]))
def test_values_are_means_over_the_orders_of_ties(docs, utility, cutoff) -> None:
    """By hand: all orders that scores allow, and the best of all orders of judged documents."""
    qrels = {"q": {f"d{i}": y for i, (y, _) in enumerate(docs) if y is not None}}
    if not qrels["q"]:
        return
    run = {"q": {f"d{i}": float(s) for i, (_, s) in enumerate(docs)}}
    grades = [None if y is None or y < 0 else y for y, _ in docs]
    table = utility.table()[:cutoff]
    all_orders = orders([s for _, s in docs])
    dcg = np.mean([worth(table, [grades[i] for i in order]) for order in all_orders])
    top = best(table, [g for g, (y, _) in zip(grades, docs, strict=True) if y is not None])
    measures = [fp.measure(name, of=utility) for name in ("DCG", "NDCG")]
    measures = [m if cutoff is None else m @ cutoff for m in measures]
    found = fp.evaluate(run, qrels, measures=measures)
    assert found.values[0, 0] == pytest.approx(dcg, abs=1e-12)
    assert found.values[1, 0] == pytest.approx(dcg / top if top > 0 else 0.0, abs=1e-12)


@pytest.mark.slow
@given(
    pool=st.lists(st.integers(0, 3), min_size=1, max_size=6),
    numbers=st.lists(st.integers(-4, 9), min_size=16, max_size=16),
    form=st.sampled_from(["gains", "weights"]),
)
def test_the_ideal_is_the_greatest_of_all_orders(pool, numbers, form) -> None:
    """Whatever the weights: rising discounts, falling gains, negative ones."""
    gains, weights = np.array(numbers[:4], float), np.array(numbers, float).reshape(4, 4)
    utility = fp.Utility((0, 1, 2, 3), weights, gains, np.array(numbers[4:8], float), form)
    lists = make_lists(np.zeros(len(pool)), pool, convention("default"), np.zeros(len(pool)), None)
    found = fp.measure("NDCG", of=utility)._ideal_dcg(lists)
    assert found == pytest.approx([best(utility.table(), pool)], abs=1e-9)


@pytest.mark.slow
@given(
    lists=st.lists(
        st.lists(
            st.tuples(st.sampled_from([None, -1, 0, 1, 2, 3, 4]), st.integers(-3, 3)),
            min_size=1, max_size=15,
        ),
        min_size=1, max_size=4,
    ),
    cutoff=st.integers(1, 10),
)  # fmt: skip
def test_the_usual_numbers_are_the_usual_measure(lists, cutoff: int) -> None:
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
    found = fp.evaluate(run, qrels, measures=ours).values
    want = fp.evaluate(run, qrels, measures=[f"DCG@{cutoff}", f"NDCG@{cutoff}"]).values
    assert found == pytest.approx(want[[0, 1, 1]], abs=1e-12)


def test_conventions_of_gains_do_not_apply_and_strict_cutoffs_do() -> None:
    ours, usual = fp.measure("NDCG@3", of=STANDARD), "NDCG(gain=exp, discount=log2)@3"
    data = ([3, 2, 1, 2, 1], [1, 0, 4, 0, 3])
    for name in ("default", "letor"):
        found = fp.evaluate(
            *data, qid=[1, 1, 1, 2, 2], measures=[ours, usual, STANDARD], convention=name
        )
        assert found.values[0] == pytest.approx(found.values[1])
        assert (found.values[0, 1] == 0) == (name == "letor")
        assert found.values[2, 1] > 0


def test_no_cutoff_means_all_places_of_the_file() -> None:
    labels = [0] * 3 + [2]
    found = fp.evaluate([4, 3, 2, 1], labels, qid=[1] * 4, measures=["DCG", SEGMENTED])
    assert found.values[:, 0] == pytest.approx([3 / np.log2(5), 0])


@pytest.mark.parametrize(("label", "shown"), [(3, "3"), (1.5, "1.5")])
@pytest.mark.parametrize("name", ["DCG", "NDCG"])
def test_labels_that_are_no_grades_are_told(label: float, shown: str, name: str) -> None:
    words = f"weights of the grades 0, 1, 2, and the data hold a label {shown}"
    with pytest.raises(fp.MeasureError, match=words):
        fp.evaluate([2, 1], [label, 0], qid=[1, 1], measures=fp.measure(name, of=FREE))
    unseen = ({"q": {"a": 1.0}}, {"q": {"a": 1, "b": label}})
    with pytest.raises(fp.MeasureError, match=words):
        fp.evaluate(*unseen, measures=fp.measure(name, of=FREE))


def test_grades_need_not_start_at_0_nor_be_neighbors() -> None:
    utility = fp.Utility.from_gains([-1, 0, 3], [1, 0.5], grades=[1, 2, 5])
    found = fp.evaluate([3, 2, 1], [0, 5, 1], qid=[1] * 3, measures=fp.measure("NDCG", of=utility))
    assert found.values[0, 0] == pytest.approx(0.5)


def test_a_worst_grade_that_is_worth_something_is_the_zero() -> None:
    utility = fp.Utility((0, 1), [[2.0, 3.0], [1.0, 4.0]], [0.5, 1.5], [1.0, 0.5], "weights")
    found = fp.evaluate([2, 1], [0, 1], qid=[1, 1], measures=utility)
    assert found.values[0, 0] == 3.0


def test_additive_parts_add_up_to_the_measure() -> None:
    rng = np.random.default_rng(3)
    labels, scores = rng.integers(0, 3, 200).astype(float), rng.normal(size=200)
    how = convention("default")
    lists = make_lists(scores, labels, how, np.repeat(np.arange(10), 20), None)
    for name in ("DCG", "NDCG"):
        one = fp.measure(f"{name}@3", of=RISING)
        parts = one.additive(lists, how)
        assert parts is not None
        gains = parts.gains.reshape(10, 20)
        ranked = np.take_along_axis(gains, np.argsort(-scores.reshape(10, 20)), 1)
        assert one.values(lists, how) == pytest.approx(ranked[:, :3] @ parts.discount)
        assert fp.measure(name, of=FREE).additive(lists, how) is None
    assert fp.measure("NDCG", of=RISING).additive(lists, convention("letor")) is None


def test_the_kernel_says_the_same_uncompiled(interpreted) -> None:
    rng = np.random.default_rng(5)
    labels, scores = rng.integers(0, 3, 60), rng.integers(0, 3, 60)
    found = fp.evaluate(
        scores, labels, qid=np.repeat([1, 2, 3], 20), measures=fp.measure("NDCG", of=FREE)
    )
    assert ((found.values > 0) & (found.values < 1)).all()


def test_many_queries_are_solved_by_their_kinds() -> None:
    """Queries with the same best documents share one assignment."""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 5, 40_000)
    qid = np.repeat(np.arange(1000), 40)
    one = fp.measure("NDCG(form=weights)@10", of=STANDARD)
    fp.evaluate(rng.normal(size=40_000), labels, qid=qid, measures=one)
    assert 0 < len(one.known) < 100


def test_kinds_of_many_grades_and_places_are_told_apart_too() -> None:
    """So many that a query's counts do not fit into one number."""
    rng = np.random.default_rng(2)
    labels, qid = rng.integers(0, 40, 600), np.repeat(np.arange(30), 20)
    utility = fp.Utility.from_dcg("linear", range(40), 50)
    found = fp.evaluate(
        rng.normal(size=600), labels, qid=qid,
        measures=[fp.measure("NDCG", of=utility), "NDCG(gain=linear)@50"],
    )  # fmt: skip
    assert found.values[0] == pytest.approx(found.values[1])


def test_the_catalog_names_the_form() -> None:
    from firstpage.measures.registry import forms

    found = dict(forms())
    assert "measure file" in found["DCG(file, form, segment)@n"]
    assert "measure file" in found["NDCG(file, form, segment)@n"]


def test_a_damaged_file_is_a_line_of_the_reader(here: Path) -> None:
    held = json.loads(Path("measure.json").read_text())
    held["gains"][1] = 0.9
    Path("measure.json").write_text(json.dumps(held))
    with pytest.raises(fp.MeasureError, match="checksum differs"):
        fp.measure("DCG(measure.json)")
