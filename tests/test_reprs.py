"""Results print as a few lines, however large the data are."""

from __future__ import annotations

import inspect
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

import firstpage as fp
from firstpage.data.formats.trec import to_run
from firstpage.learning.models.model_files import read_model

DATA = fp.Synthetic(queries=120, docs=40, features=30, grades=5).dataset()
RNG = np.random.default_rng(0)
SYSTEMS = {f"system {i}": RNG.random(DATA.n_docs) for i in range(9)}
TWO = {name: SYSTEMS[name] for name in list(SYSTEMS)[:2]}
MOST_CHARACTERS, MOST_LINES = 2400, 40


def results(folder: Path) -> dict[str, Any]:
    """One large instance of everything that a call returns."""
    fitted = fp.ListNet().fit(DATA[:80], valid=DATA[80:])
    fitted.save(folder / "model.json")
    fp.write_folds(DATA, folder / "folds", 3)
    folds = fp.read_folds(folder / "folds")
    grades = np.array([0, 0, 1, 1, 2, 2, 3, 3, 4, 4])
    left, right = (np.array([RNG.permutation(grades)[:5] for _ in range(60)]) for _ in "ab")
    outcome = np.sign((left - right) @ np.array([1, 0.6, 0.5, 0.4, 0.3])).astype(int)
    preferences = fp.dcglearn.Preferences.from_grades(left, right, outcome)
    learner = fp.dcglearn.DCGLearn(5, C=1.0).fit(preferences)
    aggregation = fp.aggregation.aggregate([to_run(DATA, s, n) for n, s in SYSTEMS.items()])
    return {
        "dataset": DATA,
        "truth": DATA.truth,
        "run": to_run(DATA, next(iter(SYSTEMS.values()))),
        "evaluation": fp.evaluate(SYSTEMS["system 0"], DATA, ci=True),
        "comparison": fp.compare(SYSTEMS, DATA, rounds=100, ci=False),
        "cross-validation": fp.cross_validate([fp.ListNet(), fp.RankNet()], folds, seeds=[0, 1]),
        "fold": folds[0],
        "tuned": fp.tune(
            fp.ListNet(), DATA[:80], DATA[80:], {"l2": [0.1 * i for i in range(1, 30)]}
        ),
        "ranker": fitted,
        "linear": fitted.model_,
        "stumps": fp.RankBoost(rounds=10).fit(DATA).model_,
        "trees": fp.ListNet(scorer="trees(count=5)").fit(DATA).model_,
        "cascade": fp.TopRank().fit(DATA).model_,
        "explanation": fp.explain(folder / "model.json"),
        "model": read_model(folder / "model.json"),
        "export": fp.export(folder / "model.json", "numpy"),
        "minmax": fp.MinMax("global").fit(DATA),
        "description": fp.describe(DATA),
        "shards": fp.write_shards(DATA, folder / "shards", 1000),
        "aggregation": aggregation,
        "ballots": aggregation.ballots,
        "weights": fp.aggregation.supervised_weights(list(SYSTEMS.values()), DATA),
        "preferences": preferences,
        "learner": learner,
        "utility": learner.utility_,
        "intervals": fp.dcglearn.intervals(learner, 3),
        "advice": fp.dcglearn.advice(learner),
        "coherence": fp.dcglearn.coherence(SYSTEMS, DATA, "NDCG@10", "DCG@10"),
        "verdict": fp.dcglearn.verdicts(TWO, DATA, "DCG@3")[0],
        "sensitivity": fp.papers.order_sensitive("ListMLE", samples=3),
        "consistency": fp.papers.consistency("ListMLE", samples=3, spaces=2),
        "collection": fp.demo.stdlib_collection(),
    }


def test_results_print_as_a_few_lines(tmp_path: Path) -> None:
    made = results(tmp_path)
    for name, result in made.items():
        for text in (repr(result), str(result)):
            assert len(text) <= MOST_CHARACTERS, (name, len(text))
            assert text.count("\n") < MOST_LINES, name
    shown = str(made["cross-validation"])
    found = made["cross-validation"]
    assert "120 test queries in 3 folds, 2 seeds" in shown
    assert f"NDCG@10 {found.mean('ListNet()', 'NDCG@10'):.4f} ± " in shown
    assert "more, in `differences`" in str(made["comparison"])


def test_no_public_class_prints_its_arrays() -> None:
    """The repr that a dataclass makes by itself would."""
    arrays = ("Floats", "Ints", "Features", "Dataset", "bytes", "Ids")
    for name in dir(fp):
        found = getattr(fp, name)
        if not inspect.isclass(found) or not is_dataclass(found):
            continue
        own = inspect.unwrap(found.__repr__).__code__.co_filename != "<string>"
        held = [f for f in fields(found) if f.repr and any(w in str(f.type) for w in arrays)]
        assert own or not held, (name, held)
