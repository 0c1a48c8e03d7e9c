"""combine(): judgments of people, machines and clicks in one, and estimates with them."""

from __future__ import annotations

import numpy as np
import pytest

import firstpage as fp
from firstpage.evaluation.planning.combination import FOLDS, _Judged

QUERIES, DOCUMENTS = 120, 12
rng = np.random.default_rng(5)
GRADES = rng.choice(4, (QUERIES, DOCUMENTS), p=[0.5, 0.25, 0.15, 0.1]).astype(float)
ROBOT = np.clip(np.round(GRADES + rng.normal(0, 1.0, GRADES.shape)), 0, 3)
CLICKS = np.clip(np.round(GRADES / 1.5 + rng.normal(0, 0.7, GRADES.shape)), 0, 3)


def table(values: np.ndarray, queries=range(QUERIES), missing=()) -> dict:
    return {
        f"q{q}": {f"d{d}": values[q, d] for d in range(DOCUMENTS) if (q, d) not in missing}
        for q in queries
    }


HUMAN = table(GRADES, range(40))
HIDDEN = {(q, d) for q in range(QUERIES) for d in range(8, DOCUMENTS)}


def errors(qrels: fp.Qrels, queries) -> float:
    grades = qrels.to_dict()
    wrong = [grades[f"q{q}"][f"d{d}"] - GRADES[q, d] for q in queries for d in range(DOCUMENTS)]
    return float(np.sqrt(np.mean(np.square(wrong))))


def test_three_sources_beat_each_alone_where_people_did_not_judge() -> None:
    sources = {"robot": table(ROBOT), "clicks": table(CLICKS, missing=HIDDEN)}
    combined = fp.planning.combine(HUMAN, sources)
    robot = fp.planning.combine(HUMAN, {"robot": table(ROBOT)})
    rest = range(40, QUERIES)
    raw = float(np.sqrt(np.mean((ROBOT - GRADES)[40:] ** 2)))
    assert errors(combined.qrels(), rest) < errors(robot.qrels(), rest) - 0.05
    assert errors(robot.qrels(), rest) <= raw
    assert combined.error < min(source.error for source in combined.sources)
    assert [source.shared for source in combined.sources] == [480, 320]
    assert all(source.weight > 0.2 for source in combined.sources)


def test_the_grades_of_people_stay() -> None:
    combined = fp.planning.combine(HUMAN, [fp.Qrels.from_dict(table(ROBOT), "robot")])
    qrels = combined.qrels().to_dict()
    assert {query: qrels[query] for query in HUMAN} == HUMAN
    assert len(qrels) == QUERIES
    assert set(combined.predicted.values) <= {0.0, 1.0, 2.0, 3.0}


def test_predicted_grades_are_as_frequent_as_human_ones() -> None:
    combined = fp.planning.combine(
        HUMAN, {"robot": table(ROBOT + rng.normal(0, 0.01, ROBOT.shape))}
    )
    judged = np.array([c for q, c in combined.predicted.to_dict().items() if q in HUMAN])
    predicted = np.bincount([int(g) for c in judged for g in c.values()], minlength=4)
    human = np.bincount(GRADES[:40].astype(int).ravel(), minlength=4)
    assert np.abs(predicted - human).max() <= 1


def test_weights_are_those_of_least_squares() -> None:
    combined = fp.planning.combine(HUMAN, {"a": table(ROBOT), "b": table(CLICKS)})
    x = np.column_stack([np.ones(480), ROBOT[:40].ravel(), CLICKS[:40].ravel()])
    expected = np.linalg.lstsq(x, GRADES[:40].ravel(), rcond=None)[0][1:]
    assert [source.weight for source in combined.sources] == pytest.approx(expected, abs=1e-4)


def test_predictions_of_a_judged_query_ignore_its_judgments() -> None:
    sources = [fp.Qrels.from_dict(table(values)) for values in (ROBOT, CLICKS)]
    changed = {**HUMAN, "q0": dict.fromkeys(HUMAN["q0"], 3.0)}
    tables = [_Judged.of(fp.Qrels.from_dict(human), sources) for human in (HUMAN, changed)]
    fold = np.where(tables[0].query < 0, FOLDS, tables[0].query % FOLDS)
    before, after = (t.cross_fitted(fold, np.ones(2, bool)) for t in tables)
    in_fold = fold == 0  # that of q0
    assert np.array_equal(before[in_fold], after[in_fold])
    assert not np.allclose(before[~in_fold], after[~in_fold])


def test_equal_sources_and_useless_sources_are_no_trouble() -> None:
    twice = fp.planning.combine(HUMAN, {"a": table(ROBOT), "b": table(ROBOT)})
    once = fp.planning.combine(HUMAN, {"a": table(ROBOT)})
    assert twice.error == pytest.approx(once.error, abs=1e-3)
    noise = fp.planning.combine(HUMAN, {"a": table(ROBOT), "n": table(rng.random(GRADES.shape))})
    assert abs(noise.sources[1].weight) < 0.3


def test_sources_that_do_not_overlap_with_people_are_refused() -> None:
    with pytest.raises(fp.FirstpageError, match="robot: judges 0 documents that people judge too"):
        fp.planning.combine(HUMAN, {"robot": table(ROBOT, range(50, QUERIES))})
    with pytest.raises(fp.FirstpageError, match="people judge 3 queries"):
        fp.planning.combine(table(GRADES, range(3)), {"robot": table(ROBOT)})
    with pytest.raises(fp.FirstpageError, match="judgments are qrels; got int"):
        fp.planning.combine(HUMAN, {"robot": 3})


def test_estimates_take_several_sources() -> None:
    scores = GRADES + rng.normal(0, 2.0, GRADES.shape)
    system = {"x": table(scores)}
    sample = fp.planning.QuerySample.draw(table(GRADES), 40, seed=3)
    human = {query: table(GRADES)[query] for query in sample.drawn_queries}
    sources = [fp.Qrels.from_dict(table(v), n) for v, n in ((ROBOT, "robot"), (CLICKS, "clicks"))]
    both = fp.planning.estimate(system, human, sources, sample)
    alone = fp.planning.estimate(system, human, sources[0], sample)
    truth = fp.evaluate(fp.Run.from_dict(system["x"]), table(GRADES), measures="NDCG@10")["NDCG@10"]
    mean = both.means[0]
    assert mean.low < truth < mean.high
    assert mean.high - mean.low < alone.means[0].high - alone.means[0].low
    assert alone.combination is None
    assert [s["name"] for s in both.to_dict()["combination"]["sources"]] == ["robot", "clicks"]
    assert "judgments combined" in str(both)


def test_a_machine_that_contains_the_human_grades_is_noticed() -> None:
    system = {"x": table(GRADES + rng.normal(0, 2.0, GRADES.shape))}
    sample = fp.planning.QuerySample.draw(table(GRADES), 40, seed=3)
    human = {query: table(GRADES)[query] for query in sample.drawn_queries}
    contaminated = fp.planning.combine(human, {"robot": table(ROBOT)}).qrels()
    with pytest.warns(UserWarning, match="must not contain those of people"):
        fp.planning.estimate(system, human, contaminated, sample)
