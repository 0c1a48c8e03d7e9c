"""Calibration of machines: planted agreement, biases and worth are found again."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.errors import DataError
from firstpage.labeling.machines.biases import length_bias, position_test
from firstpage.labeling.machines.calibration import _beta_prior
from firstpage.labeling.statistics.intervals import format_p
from firstpage.labeling.statistics.records import Record

QUERIES, PAIRS = 60, 10


def answers(accuracy: dict[str, float], seed: int = 0, queries: int = QUERIES) -> list[Record]:
    """Return answers of assessors of known accuracy to the same pairs; `a` is always better."""
    rng = np.random.default_rng(seed)
    return [
        Record(f"q{q}", who, "pairs", f"a{p}", f"b{p}", outcome=1 if rng.random() < right else -1)
        for q in range(queries)
        for p in range(PAIRS)
        for who, right in accuracy.items()
    ]


PEOPLE = {"ann": 0.85, "bob": 0.85}


@pytest.mark.parametrize(
    ("accuracy", "queries", "trust"),
    [(0.9, 60, "trusted"), (0.85, 200, "trusted"), (0.65, 60, "not trusted")],
)
def test_trust_follows_accuracy(accuracy: float, queries: int, trust: str) -> None:
    records = answers({**PEOPLE, "robot": accuracy}, queries=queries)
    report = fp.labeling.calibrate(records, ["robot"])[0]
    assert report.trust == trust
    two = 0.85**2 + 0.15**2
    assert report.reference.low < two < report.reference.high
    mixed = 0.85 * accuracy + 0.15 * (1 - accuracy)
    assert report.agreement.low < mixed < report.agreement.high
    assert report.questions == queries * PAIRS
    json.dumps(report.to_dict(), allow_nan=False)
    assert trust in str(report)


@pytest.mark.parametrize(
    ("accuracy", "sentence"),
    [
        (0.6, "Robo agrees with people less often than people do with each other: 0.5"),
        (0.85, "It is not known whether Robo agrees with people as often as people do with each"),
        (1.0, "Robo agrees with people more often than people do with each other: 0.8"),
    ],
)
def test_the_summary_is_a_plain_sentence(accuracy: float, sentence: str) -> None:
    report = fp.labeling.calibrate(answers({**PEOPLE, "robot": accuracy}), ["robot"])[0]
    summary = report.summary("Robo")
    assert summary.startswith(sentence)
    assert f" against {report.reference.value:.2f} " in summary.replace(",", " ")
    assert report.to_dict()["summary"] == summary.replace("Robo", "robot")


def test_a_preference_for_a_position_is_named_with_a_readable_p() -> None:
    orders = {("q", f"a{n}", f"b{n}"): (1, -1) for n in range(300)}
    records = answers({**PEOPLE, "robot": 0.85})
    report = fp.labeling.calibrate(records, ["robot"], orders={"robot": orders})[0]
    preference = "It prefers the document that is shown first: in both orders of 300 pairs"
    assert preference in report.summary()
    assert report.summary().endswith("(p < .001).")
    assert "e-" not in str(report)


@pytest.mark.parametrize(
    ("p", "text"),
    [
        (4e-87, "p < .001"), (0.0, "p < .001"), (0.001, "p = .001"), (0.0342, "p = .034"),
        (1.0, "p = 1.000"), (math.nan, "p is not defined"),
    ],
)  # fmt: skip
def test_p_values_are_readable(p: float, text: str) -> None:
    assert format_p(p) == text


def test_queries_are_listed_by_their_names() -> None:
    records = answers({**PEOPLE, "robot": 0.3})
    report = fp.labeling.calibrate(records, ["robot"])[0]
    query = report.people_needed[0]
    tables = report.tables({query: "rain boots"})
    assert tables[-1].rows[0][0] == "rain boots"
    assert report.tables()[-1].rows[0][0] == query


def information(p: float) -> float:
    return 1 + p * math.log2(p) + (1 - p) * math.log2(1 - p)


@pytest.mark.parametrize("accuracy", [0.7, 0.85, 0.95])
def test_worth_is_the_ratio_of_information(accuracy: float) -> None:
    records = answers({**PEOPLE, "carl": 0.85, "robot": accuracy}, seed=1, queries=300)
    report = fp.labeling.calibrate(records, ["robot"], rounds=300)[0]
    expected = information(accuracy) / information(0.85)
    assert report.worth.low < expected < report.worth.high
    assert report.worth.high - report.worth.low < 0.5


def test_few_answers_leave_it_undecided() -> None:
    report = fp.labeling.calibrate(answers({**PEOPLE, "robot": 0.8}, queries=4), ["robot"])[0]
    assert report.trust == "undecided"
    assert "let people judge more" in report.reason


@pytest.mark.parametrize(
    ("queries", "trust"), [(1, "undecided"), (71, "undecided"), (72, "trusted")]
)
def test_agreement_everywhere_proves_little_on_few_queries(queries: int, trust: str) -> None:
    """With p = .05 of a query on which it loses everything, 71 queries may lack one: .95^71 > .025."""
    perfect = {"ann": 1.0, "bob": 1.0, "robot": 1.0}
    report = fp.labeling.calibrate(answers(perfect, queries=queries), ["robot"], rounds=20)[0]
    assert report.gap.value == 0
    assert report.trust == trust
    assert report.summary().startswith("It is not known") == (trust == "undecided")


@pytest.mark.parametrize("queries", [2, 5, 20, 60])
def test_a_worse_machine_is_rarely_trusted(queries: int) -> None:
    """It agrees with people .12 less often than they do; the samples have few disagreements."""
    accuracy = {"ann": 0.97, "bob": 0.97, "robot": 0.85}
    trusted = 0
    for seed in range(40):
        records = [r for r in answers(accuracy, seed, queries) if r.left == "a0"]
        trusted += fp.labeling.calibrate(records, ["robot"], rounds=20)[0].trust == "trusted"
    assert trusted <= 4  # 1 of 40 is allowed for; 5 or more have a probability below .004


def test_one_person_is_no_reference() -> None:
    report = fp.labeling.calibrate(answers({"ann": 0.9, "robot": 0.9}), ["robot"])[0]
    assert report.trust == "undecided"
    assert math.isnan(report.gap.value)
    assert "at least two people" in report.reason
    assert report.people_needed == ()
    json.dumps(report.to_dict(), allow_nan=False)


def test_queries_that_need_people_are_found() -> None:
    """On ten queries the machine answers at random."""
    records = answers({**PEOPLE, "robot": 0.9})
    rng = np.random.default_rng(5)
    hard = {f"q{q}" for q in range(10)}
    records = [
        Record(r.query, r.assessor, "pairs", r.left, r.right, outcome=int(rng.choice([1, -1])))
        if r.assessor == "robot" and r.query in hard
        else r
        for r in records
    ]
    records.append(Record("alone", "robot", "pairs", "a", "b", outcome=1))
    report = fp.labeling.calibrate(records, ["robot"])[0]
    needed = set(report.people_needed)
    assert len(needed & hard) >= 8
    assert len(needed - hard) <= 5
    assert {row.query for row in report.queries if row.need == "not checked"} == {"alone"}


def test_the_prior_is_as_wide_as_the_queries_differ() -> None:
    totals = np.full(200, 20.0)
    same = np.random.default_rng(0).binomial(20, 0.8, 200).astype(float)
    assert _beta_prior(same, totals)[1] > 50
    differing = np.where(np.arange(200) % 2, 18.0, 8.0)
    assert _beta_prior(differing, totals)[1] < 5


def test_a_preference_for_the_first_position_is_found() -> None:
    rng = np.random.default_rng(0)
    orders = {}
    for q in range(50):
        for p in range(4):
            first = rng.random() < 0.3  # takes the first document, whatever it is
            orders[f"q{q}", f"a{p}", f"b{p}"] = (1, -1) if first else (1, 1)
    test = position_test(orders)
    assert test.bias.low < 0.3 < test.bias.high
    assert test.second == 0
    assert test.p < 1e-6
    fair = {key: ((1, 1), (1, -1), (-1, 1))[i % 3] for i, key in enumerate(orders)}
    test = position_test(fair)
    assert test.bias.low < 0 < test.bias.high
    assert test.p > 0.5
    assert test.consistent.value == pytest.approx(1 / 3, abs=0.01)


def test_a_preference_for_length_is_that_beyond_people() -> None:
    rng = np.random.default_rng(0)
    items = [(f"q{q}", f"a{p}", f"b{p}") for q in range(50) for p in range(4)]
    lengths = {(q, d): int(rng.integers(1, 99)) for q, a, b in items for d in (a, b)}
    longer = {
        (q, a, b): 1 if lengths[q, a] > lengths[q, b] else -1
        for q, a, b in items
        if lengths[q, a] != lengths[q, b]
    }
    human = {item: [int(rng.choice([1, -1]))] for item in longer}
    biased = length_bias(longer, human, lengths)
    assert biased.low < 1 < biased.high
    assert biased.low > 0
    as_people = length_bias({item: rows[0] for item, rows in human.items()}, human, lengths)
    assert as_people.value == 0
    assert math.isnan(length_bias(longer, human, {}).value)


def test_agreement_by_side() -> None:
    """The machine is right whenever the better document is on the left, else half the time."""
    records, rng = [], np.random.default_rng(0)
    for q in range(50):
        for p, swapped in enumerate([False, True] * 3):
            left, right = (f"b{p}", f"a{p}") if swapped else (f"a{p}", f"b{p}")
            better = -1 if swapped else 1
            own = better if not swapped or rng.random() < 0.5 else -better
            records += [
                Record(f"q{q}", "ann", "pairs", left, right, outcome=better),
                Record(f"q{q}", "robot", "pairs", left, right, outcome=own),
            ]
    report = fp.labeling.calibrate(records, ["robot"])[0]
    assert report.positions["left"].value == 1
    assert report.positions["right"].low < 0.5 < report.positions["right"].high


def test_grades_by_the_grade_of_people() -> None:
    """The machine gives one grade too many to documents of grade 1."""
    records = []
    for q in range(20):
        for d in range(4):
            for who in ("ann", "bob", "robot"):
                grade = 2 if who == "robot" and d == 1 else d
                records.append(Record(f"q{q}", who, "grades", f"d{d}", grade=grade))
    report = fp.labeling.calibrate(records, ["robot"])[0]
    by_grade = {row.grade: row for row in report.grades}
    assert by_grade[1].counts == {2: 40}
    assert by_grade[1].bias.value == 1
    assert by_grade[3].bias.value == 0
    assert report.agreement.value == pytest.approx(5 / 6)  # the pair of d1 and d2 is tied now
    assert "machine 2" in str(report)


def test_queries_that_were_examples_are_left_out() -> None:
    records = answers({**PEOPLE, "robot": 0.9})
    report = fp.labeling.calibrate(records, ["robot"], shown={"robot": ["q0", "q1"]})[0]
    assert report.questions == (QUERIES - 2) * PAIRS
    assert report.left_out == 2


@pytest.mark.parametrize(
    ("machines", "message"),
    [(["r2"], "no answers of 'r2'"), (["ann", "bob", "robot"], "no answers of people")],
)
def test_refused(machines: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        fp.labeling.calibrate(answers({**PEOPLE, "robot": 0.9}, queries=1), machines)
