"""Single steps: simulated people, folds without leaks, votes, held-out preferences."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import firstpage as fp
from firstpage.demo.labeling import sorting_comparisons
from firstpage.demo.project import (
    QUESTIONS,
    TEAM,
    SimulatedAssessor,
    SimulatedEditor,
    add_tasks,
    assign_team,
    finished_queries,
    open_store,
    page_utility,
)
from firstpage.demo.rankings import RANKERS, combine_rankings, learned_runs, tuned_bm25
from firstpage.labeling.app.store import projects
from firstpage.labeling.assessors import DocumentText, QueryText
from tests.demo.small import small_collection
from tests.labeling.app.site import add_query, query

QUERY = QueryText("q", "a question")


@pytest.fixture(scope="module")
def data() -> fp.Dataset:
    made = fp.Synthetic(queries=18, docs=8, features=4, grades=4).dataset()
    return fp.Dataset.from_arrays(
        made.X, made.y, made.qid, [f"d{row}" for row in range(made.n_docs)]
    )


def test_assessor_errors_have_the_stated_standard_deviation() -> None:
    relevance = {"q": {f"d{i}": 2.0 * (i % 2) for i in range(4000)}}
    person = SimulatedAssessor(1, "pairs", relevance)
    errors = []
    for i in range(0, 4000, 2):
        answer = person.judge(QUERY, DocumentText(f"d{i}", ""), DocumentText(f"d{i + 1}", ""))
        assert (
            answer.outcome
            == (
                -1 if person.perceived[QUERY, f"d{i}"] < person.perceived[QUERY, f"d{i + 1}"] else 1
            )
            or len(answer.bad) == 2
        )
        errors += [person.perceived[QUERY, f"d{i}"], person.perceived[QUERY, f"d{i + 1}"] - 2]
    assert np.std(errors) == pytest.approx(0.5, abs=0.02)
    assert np.mean(errors) == pytest.approx(0.0, abs=0.03)


def test_assessors_perceive_a_document_always_alike() -> None:
    relevance = {"q": dict.fromkeys("abc", 1.0)}
    first, second = (SimulatedAssessor(7, "pairs", relevance) for _ in range(2))
    first.judge(QUERY, DocumentText("a", ""), DocumentText("b", ""))
    second.judge(QUERY, DocumentText("c", ""), DocumentText("a", ""))  # another order of questions
    second.judge(QUERY, DocumentText("b", ""), DocumentText("a", ""))
    assert first.perceived[QUERY, "a"] == second.perceived[QUERY, "a"]
    other = SimulatedAssessor(8, "pairs", relevance)
    other.judge(QUERY, DocumentText("a", ""), DocumentText("b", ""))
    assert other.perceived[QUERY, "a"] != first.perceived[QUERY, "a"]


def test_mean_time_per_answer_is_the_published_one() -> None:
    person = SimulatedAssessor(1, "pairs", {})
    assert np.mean([person.seconds() for _ in range(20000)]) == pytest.approx(5.51, rel=0.02)


def page(*documents: str) -> DocumentText:
    return DocumentText("page", "", kind="list", items=[{"id": name} for name in documents])


def test_editors_prefer_the_page_of_greater_utility() -> None:
    editor = SimulatedEditor(1, "lists", {"q": {"best": 3, "helps": 1}})
    good, poor = page("best", "x", "x", "x", "x"), page("x", "x", "x", "x", "helps")
    assert {editor.judge(QUERY, good, poor).outcome for _ in range(50)} == {1}
    assert {editor.judge(QUERY, good, good).outcome for _ in range(200)} == {-1, 0, 1}
    assert page_utility([3, 0, 0, 0, 0]) == 1.0


def test_tasks_are_assigned_evenly() -> None:
    assigned = assign_team(map(str, range(48)), 6)
    assert sum(len(people) == 2 for people in assigned.values()) == 8
    assert all(len(set(people)) == len(people) for people in assigned.values())
    load = Counter(login for people in assigned.values() for login in people)
    assert set(load) == set(TEAM)
    assert max(load.values()) - min(load.values()) <= 4


def test_a_question_with_one_candidate_is_finished_without_an_answer(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    with store.write() as tx:
        project = projects.create(tx, QUESTIONS)
        for number in (1, 2):
            add_query(tx, project.id, query(number, documents=number), number)
    assert add_tasks(store, project, {"q1": ["ada"], "q2": ["ada"]}) == 2
    assert finished_queries(store, project, "ada") == {"q1"}
    store.close()


def test_sorting_comparisons_are_the_log_of_the_number_of_orders() -> None:
    assert sorting_comparisons(1) == 0
    assert sorting_comparisons(5) == pytest.approx(np.log2(120))


def test_no_question_is_ranked_by_a_model_trained_on_it(data: fp.Dataset) -> None:
    folds = fp.split_folds(data, 5, 0)
    tested = set(folds[0].test.queries)
    rows = np.isin(data.qid.astype(str), list(tested))
    changed = replace(data, y=np.where(rows, 3 - data.y, data.y))
    runs, others = (learned_runs(fp.split_folds(d, 5, 0)) for d in (data, changed))
    assert list(runs) == list(RANKERS)
    for name, run in runs.items():
        before, after = run.to_dict(), others[name].to_dict()
        assert set(before) == set(data.queries)
        assert all(before[q] == after[q] for q in tested), name
        assert before != after, name


def test_no_question_is_ranked_by_a_bm25_tuned_on_it(tmp_path) -> None:
    collection = small_collection()
    index = fp.Index.from_documents(collection.documents, tmp_path / "index")
    candidates = index.candidates(collection.queries, 5)
    features = fp.TextFeatures(index, "first_stage")
    with pytest.warns(fp.FirstpageWarning, match="are judged"):
        data = features.dataset(collection.queries, candidates, collection.qrels)
    folds = fp.split_folds(data, 5, 0)
    tested = set(folds[0].test.queries)
    grades = collection.qrels.to_dict()
    other = {
        q: dict.fromkeys(list(grades[q])[-1:], 1.0) if q in tested else grades[q] for q in grades
    }
    runs = [
        tuned_bm25(index, collection.queries, qrels, folds, 5).to_dict()
        for qrels in (collection.qrels, fp.Qrels.from_dict(other))
    ]
    assert all(runs[0][q] == runs[1][q] for q in tested)


def test_better_rankers_get_more_weight() -> None:
    labels = fp.Qrels.from_dict({f"q{i}": {"a": 2, "b": 1, "c": 0} for i in range(5)})
    good = fp.Run.from_dict({f"q{i}": {"a": 3, "b": 2, "c": 1} for i in range(5)})
    bad = fp.Run.from_dict({f"q{i}": {"a": 1, "b": 2, "c": 3} for i in range(5)})
    combined = combine_rankings({"good": good, "bad": bad}, labels)
    assert combined.weights["good"] > combined.weights["bad"]
    assert list(combined.run.docids)[:3] == ["a", "b", "c"]
