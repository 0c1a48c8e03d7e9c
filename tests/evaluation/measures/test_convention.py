"""Conventions: settings of a named one, replaced by keyword; texts that show what is replaced."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import firstpage as fp

NAMES = ("default", "trec", "letor", "lightgbm", "xgboost")
STRICT = fp.Convention("trec", ties="worst", rel=2)


@pytest.mark.parametrize(
    ("convention", "shown", "text"),
    [
        (fp.Convention(), "Convention('default')", "default"),
        (fp.Convention("xgboost", ties="file"), "Convention('xgboost')", "xgboost"),
        (STRICT, "Convention('trec', ties='worst', rel=2.0)", "trec(ties=worst, rel=2)"),
        (
            fp.Convention("letor", rel=0.5, depth=np.int64(3), condensed=True),  # type: ignore[arg-type]
            "Convention('letor', rel=0.5, depth=3, condensed=True)",
            "letor(rel=0.5, depth=3, condensed=true)",
        ),
        (
            fp.Convention("trec", single=False, queries="judged", seed=7),
            "Convention('trec', queries='judged', single=False, seed=7)",
            "trec(queries=judged, single=false, seed=7)",
        ),
    ],
)
def test_texts_show_what_is_replaced(convention: fp.Convention, shown: str, text: str) -> None:
    assert repr(convention) == shown
    assert str(convention) == text
    assert eval(repr(convention), {"Convention": fp.Convention}) == convention
    assert pickle.loads(pickle.dumps(convention)) == convention


@pytest.mark.parametrize("name", NAMES)
def test_other_settings_are_those_of_the_named_convention(name: str) -> None:
    named, changed = fp.Convention(name), fp.Convention(name, rel=3)
    assert changed.rel == 3
    assert replace(changed, rel=named.rel) == named
    assert {named: 1}[fp.Convention(name)] == 1


def test_a_convention_is_replaced_by_one_expression() -> None:
    deeper = fp.Convention(STRICT, depth=100)
    assert (deeper.name, deeper.ties, deeper.rel, deeper.depth) == ("trec", "worst", 2, 100)
    assert fp.Convention(STRICT) == STRICT
    assert STRICT.depth is None
    assert replace(deeper, depth=None) == STRICT


def test_the_result_shows_the_convention() -> None:
    run, qrels = {"q": {"a": 1, "b": 1}}, {"q": {"a": 1, "b": 2}}
    evaluation = fp.evaluate(run, qrels, measures="RR", convention=STRICT)
    assert evaluation.convention == STRICT
    assert evaluation["RR"] == 0.5
    assert str(evaluation).startswith("1 queries, convention trec(ties=worst, rel=2)\n")
    assert evaluation.to_dict()["convention"] == str(STRICT)
    comparison = fp.compare([run, run], qrels, measures="RR", convention=STRICT, rounds=100)
    assert comparison.to_dict()["convention"] == str(STRICT)


def test_the_seed_of_a_comparison_is_that_of_its_convention() -> None:
    rng = np.random.default_rng(0)
    systems, labels = {"a": rng.random(60), "b": rng.random(60)}, [0, 1, 2] * 20
    options: dict[str, Any] = {"qid": np.repeat(np.arange(20), 3), "measures": "DCG", "rounds": 100}
    first, again, other = (
        fp.compare(systems, labels, convention=fp.Convention(seed=seed), **options)
        for seed in (0, 0, 1)
    )
    assert (first.seed, other.seed) == (0, 1)
    assert first.evaluations[0].intervals == again.evaluations[0].intervals
    assert first.evaluations[0].intervals != other.evaluations[0].intervals
    p = [each.differences[0].p_tukey for each in (first, again, other)]
    assert p[0] == p[1] != p[2]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ties": "guess"}, "ties must be one of average, file, .*; got 'guess'"),
        ({"gain": "log"}, "gain must be one of exp, linear; got 'log'"),
        ({"discount": "log"}, "discount must be one of log2, letor; got 'log'"),
        ({"queries": "all"}, "queries must be one of judged, run; got 'all'"),
        ({"without_relevant": 0}, "without_relevant must be one of zero, skip, one; got 0"),
        ({"rel": "x"}, "rel must be a finite number; got 'x'"),
        ({"rel": np.nan}, "rel must be a finite number; got nan"),
        ({"depth": 0}, "depth must be an integer of at least 1; got 0"),
        ({"depth": 1.5}, "depth must be an integer of at least 1; got 1.5"),
        ({"seed": 1.5}, "seed must be an integer; got 1.5"),
        ({"single": "yes"}, "single must be True or False; got 'yes'"),
        ({"condensed": 1}, "condensed must be True or False; got 1"),
        ({"name": "trek"}, "no convention 'trek'; .* Did you mean 'trec'"),
        ({"name": 5}, "no convention 5; there are default, trec"),
        ({"name": None}, "no convention None; there are default, trec"),
    ],
)
def test_wrong_values_are_one_line(settings: dict, message: str) -> None:
    with pytest.raises(fp.MeasureError, match=message) as caught:
        fp.Convention(**settings)
    assert "\n" not in str(caught.value)
