"""What holds for all scorings: scores, explanations, contributions, files and exports."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import firstpage as fp
from firstpage.core.registry import ParameterError
from firstpage.learning.models.model_files import Model
from firstpage.learning.models.scorings import Stage, VoterCascade, scoring_from_dict
from firstpage.learning.scorers.linear import Linear, LinearScoring
from firstpage.learning.scorers.mlp import MLP
from firstpage.learning.scorers.network_scoring import NetworkScoring
from firstpage.learning.scorers.registry import scorer
from firstpage.learning.scorers.scorer import Scoring
from firstpage.learning.scorers.stumps import StumpsScoring
from firstpage.learning.scorers.trees import Trees
from tests.learning.scorers import test_trees

X = np.random.default_rng(3).normal(size=(24, 4)).astype(np.float32)
OFFSETS = np.array([0, 5, 6, 17, 24])
NETWORK = NetworkScoring.from_layer(
    np.zeros(4), np.ones(4), X[:4, :3].copy(), X[4, :3].copy(), X[5, :3].copy(), 0.5
)


def linear() -> LinearScoring:
    return LinearScoring(np.array([1.0, -2.0, 0.0, 0.5]), 0.25)


def stumps() -> StumpsScoring:
    return StumpsScoring.from_stumps(4, [0, 0, 2], [0.0, 0.5, -1.0], [1.0, -3.0, 2.0])


def cascade() -> VoterCascade:
    scaled = Stage("scaled", linear(), fp.MinMax())
    voters = (scaled, Stage("stumps", stumps()), Stage("network", NETWORK))
    return VoterCascade(
        Stage("first", linear()), voters, np.array([0.5, 0.25, 0.25]), 3, "extended", 2, 4
    )


SCORINGS: dict[str, Callable[[], Scoring]] = {
    "linear": linear,
    "network": lambda: NETWORK,
    "stumps": stumps,
    "lightgbm": cache(lambda: test_trees.scoring("lightgbm")),
    "xgboost": cache(lambda: test_trees.scoring("xgboost")),
    "cascade": cache(cascade),
}
EACH = pytest.mark.parametrize("kind", SCORINGS)


@EACH
def test_a_scoring_survives_a_round_trip_through_json(kind: str) -> None:
    scoring = SCORINGS[kind]()
    stored = json.loads(json.dumps(scoring.to_dict()))
    again = scoring_from_dict(stored)
    assert again.to_dict() == stored
    assert repr(again) == repr(scoring)
    scores = scoring.predict(X, 1, OFFSETS)
    assert again.predict(X, 1, OFFSETS).tolist() == scores.tolist()
    assert scores.shape == (24,)
    assert scores.dtype == np.float64


@EACH
def test_contributions_sum_to_the_scores(kind: str) -> None:
    scoring = SCORINGS[kind]()
    contributions = scoring.contributions(X, OFFSETS)
    names = contributions.names or range(scoring.n_features)
    assert contributions.values.shape == (24, len(names))
    if contributions.base is None:
        assert kind == "cascade"
        return
    total = contributions.base + contributions.values.sum(axis=1)
    assert total == pytest.approx(scoring.predict(X), rel=1e-5, abs=1e-5)
    if kind in ("linear", "stumps"):  # additive: only the value of this feature counts
        moved = X.copy()
        moved[:, 1] += 10.0
        others = [0, 2, 3]
        again = scoring.contributions(moved).values[:, others]
        assert again.tolist() == contributions.values[:, others].tolist()


@EACH
def test_explanations_have_a_value_per_feature_or_voter(kind: str) -> None:
    scoring = SCORINGS[kind]()
    importances = scoring.explain()
    assert len(importances.values) == len(importances.names or range(scoring.n_features))
    names = ("a", "b", "c", "d")
    shown = fp.explain(Model("Some", {}, scoring, None, names, {}))
    assert shown.kind == importances.kind
    assert shown.names == (("scaled", "stumps", "network") if kind == "cascade" else names)
    assert shown.values.tolist() == importances.values.tolist()
    assert set(shown.steps) == ({"a", "c"} if kind == "stumps" else set())


@EACH
def test_only_cascades_depend_on_the_other_documents_of_a_query(kind: str) -> None:
    scoring = SCORINGS[kind]()
    grouped, single = scoring.predict(X, None, OFFSETS), scoring.predict(X)
    assert scoring.by_query == (kind == "cascade") == (grouped.tolist() != single.tolist())
    assert list(scoring.stages) == (
        ["first", "voter 1", "voter 2", "voter 3"] if kind == "cascade" else []
    )


@EACH
def test_empty_and_sparse_features(kind: str) -> None:
    scoring = SCORINGS[kind]()
    if kind not in ("lightgbm", "xgboost"):  # which reject data without rows
        assert scoring.predict(X[:0]).tolist() == []
    if kind == "cascade":
        with pytest.raises(fp.DataError, match="would make a sparse matrix dense"):
            scoring.predict(csr_array(X), None, OFFSETS)
    else:
        assert scoring.predict(csr_array(X)) == pytest.approx(scoring.predict(X), abs=1e-12)


@EACH
def test_export_accepts_the_kinds_of_a_scoring(kind: str) -> None:
    from firstpage.interop.export.targets import TARGETS

    scoring = SCORINGS[kind]()
    model = Model("Some", {}, scoring, None, None, {})
    for name, target in TARGETS.items():
        if set(target.kinds) & set(scoring.export_kinds):
            assert fp.export(model, name).files
            continue
        with pytest.raises(fp.DataError, match=r"export|accepts") as error:
            fp.export(model, name)
        assert "\n" not in str(error.value)


def test_only_the_components_of_its_kind_are_set() -> None:
    scorings = {kind: create() for kind, create in SCORINGS.items()}
    assert [kind for kind, s in scorings.items() if s.coefficients is not None] == ["linear"]
    assert [kind for kind, s in scorings.items() if s.network is not None] == ["network"]
    libraries = {kind: s.library_model for kind, s in scorings.items() if s.library_model}
    assert {kind: model.library for kind, model in libraries.items()} == {
        "lightgbm": "lightgbm",
        "xgboost": "xgboost",
    }
    assert [k for k, s in scorings.items() if s.params is not None] == [
        "linear",
        "network",
        "stumps",
    ]
    with pytest.raises(AssertionError, match="LinearScoring has no trees"):
        scorings["linear"].forest("model")


def test_a_cascade_votes_on_the_first_documents_of_each_query() -> None:
    scoring = cascade()
    scores = scoring.predict(X, None, OFFSETS)
    first = linear().predict(X)
    for lo, hi in pairwise(OFFSETS.tolist()):
        order = np.argsort(-first[lo:hi], kind="stable")
        n = hi - lo
        assert sorted(scores[lo:hi]) == list(range(1, n + 1))
        assert set(np.argsort(-scores[lo:hi])[:3]) == set(order[:3])
        assert np.argsort(-scores[lo:hi])[3:].tolist() == order[3:].tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": [1.0]}, "one weight per voter"),
        ({"weights": [1.0, -1.0, 1.0]}, "finite and at least 0"),
        ({"depth": 0}, "the depth or the credit"),
        ({"credit": "some"}, "the depth or the credit"),
        ({"n_features": 5}, "have different numbers of features"),
        ({"voters": []}, "one weight per voter"),
    ],
)
def test_invalid_cascades_are_refused(change: dict, message: str) -> None:
    with pytest.raises(fp.DataError, match=message):
        VoterCascade.from_dict({**cascade().to_dict(), **change})


def test_scorers_are_created_by_name() -> None:
    assert scorer("linear") == Linear()
    assert scorer("mlp(hidden=8)") == MLP(hidden=8)
    assert scorer("trees(count=5, library=xgboost)") == Trees(count=5, library="xgboost")
    trees = Trees(leaves=7)
    assert scorer(trees) is trees
    assert len({Trees(), Trees(), Trees(options={"max_depth": 3})}) == 2
    cases: list[Any] = [3, None, linear()]
    for wrong in cases:
        with pytest.raises(
            ParameterError, match="scorer must be a string such as 'linear', or a scorer"
        ):
            scorer(wrong)
    with pytest.raises(ParameterError, match=r"no scorer 'liner'\. Did you mean 'linear'"):
        scorer("liner")
