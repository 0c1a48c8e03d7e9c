"""A loaded model is the fitted one: all fitted attributes survive `save` and `load`."""

from __future__ import annotations

import copy
import json
import math
import pickle
from dataclasses import astuple, is_dataclass
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import firstpage as fp
from firstpage.core.errors import DataError, FirstpageWarning
from firstpage.data.io.json_files import json_digest
from firstpage.learning.models.model_files import FIELDS
from firstpage.learning.rankers.fit.progress import ATTRIBUTES, Step, fit_record, fitted_attributes
from firstpage.learning.rankers.registry import RANKERS
from firstpage.learning.solvers.descent import SGD, GradientDescent
from tests.narrow import present

DATA = fp.Synthetic(queries=40, docs="uniform(2, 12)", features=4, grades=3, seed=3).dataset()
TRAIN, VALID = DATA[:28], DATA[28:]
TREES = "trees(count=8, leaves=4)"
SMALL: dict[str, dict[str, Any]] = {
    "RankBoost": {"rounds": 9},
    "FocusedBoost": {"rounds": 9},
    "LambdaMART": {"scorer": TREES},
}
UNFITTED = [
    *(cls(**SMALL.get(name, {})) for name, cls in RANKERS.items()),
    fp.ListMLE(k=5, normalize="minmax"),
    fp.Regression(normalize="global standard"),
    fp.RankNet(solver="gd(rate=0.01, max_iter=30)", patience=3),
    fp.ListNet(solver="sgd(rate=0.01, max_iter=5)"),
    pytest.param(
        fp.ListNet(scorer="mlp(hidden=3)", solver="adam(rate=0.05, max_iter=6)"),
        marks=pytest.mark.torch,
    ),
    fp.ListNet(patience=2),
    fp.FocusedNet(k=5, scorer=TREES, patience=2),
    fp.ListMLE(scorer="trees(count=8, leaves=4, library=xgboost)"),
    fp.RankSVM(solver="cutting plane(max_iter=1)"),
    fp.TopMargin(reference="fixed", C=1e-9),
    fp.AdaRank(weak="stumps", rounds=9),
    fp.TopRank(k=5, depth=3, voters="RankNet + ListMLE", normalize="minmax"),
]


def bits_of(value: Any) -> Any:
    """Return a fitted attribute as strings and lists that show every bit of a float."""
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, bits_of(value.tolist())
    if hasattr(value, "to_dict"):
        return type(value).__name__, bits_of(value.to_dict())
    if is_dataclass(value) and not isinstance(value, type):
        return type(value).__name__, bits_of(astuple(value))
    if isinstance(value, dict):
        return {key: bits_of(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [bits_of(inner) for inner in value]
    return type(value).__name__, repr(value)


def fitted(ranker: Any) -> dict[str, Any]:
    names = [n for n in dir(ranker) if n.endswith("_") and not n.startswith("_")]
    return {name: bits_of(getattr(ranker, name)) for name in names}


def check_survives(ranker: Any, path: Any) -> Any:
    ranker.save(path)
    again = fp.load(path)
    assert set(ATTRIBUTES) <= fitted(ranker).keys()
    for other in (again, pickle.loads(pickle.dumps(ranker)), copy.deepcopy(ranker)):
        assert fitted(other) == fitted(ranker)
        assert other.predict(VALID).tolist() == ranker.predict(VALID).tolist()
    assert not fitted(clone(ranker))
    return again


@pytest.mark.filterwarnings("ignore::firstpage.core.errors.FirstpageWarning")
@pytest.mark.parametrize("valid", [None, VALID], ids=["alone", "valid"])
@pytest.mark.parametrize("unfitted", UNFITTED, ids=str)
def test_all_fitted_attributes_survive_save_and_load(unfitted, valid, tmp_path) -> None:
    ranker = clone(unfitted).fit(TRAIN, valid=valid)
    again = check_survives(ranker, tmp_path / "m.json")
    assert len(again.history_) == len(ranker.history_)
    if valid is not None and again.history_:
        assert again.best_score_ is not None
    again.save(tmp_path / "n.json")
    assert (tmp_path / "n.json").read_bytes() == (tmp_path / "m.json").read_bytes()


def test_attributes_after_special_fits_survive_save_and_load(tmp_path) -> None:
    import pandas as pd

    frame = pd.DataFrame(TRAIN.X, columns=list("abcd"))
    by_frame = fp.ListNet().fit(frame, TRAIN.y, qid=TRAIN.qid)
    by_frame.save(tmp_path / "frame.json")
    assert fitted(fp.load(tmp_path / "frame.json")) == fitted(by_frame)
    fp.write_shards(TRAIN, tmp_path / "shards", 40)
    shards = fp.read_shards(tmp_path / "shards")
    for unfitted in (fp.ListMLE(normalize="global minmax"), fp.RankSVM(), fp.RankBoost(rounds=5)):
        check_survives(unfitted.fit(shards, valid=VALID), tmp_path / "m.json")
    tuned = fp.tune(fp.RankSVM(), TRAIN, VALID, {"C": [0.1, 1.0]})
    assert check_survives(tuned.best, tmp_path / "m.json").gap_ <= 1e-3

    def stop(step: Step) -> None:
        if step.iteration == 3:
            raise KeyboardInterrupt

    with pytest.warns(FirstpageWarning, match="interrupted"):
        broken = fp.RankNet().fit(TRAIN, progress=stop, checkpoint=tmp_path / "c.json")
    assert check_survives(broken, tmp_path / "m.json").interrupted_
    with pytest.warns(FirstpageWarning, match="continuing from"):
        resumed = fp.RankNet().fit(TRAIN, checkpoint=tmp_path / "c.json")
    check_survives(resumed, tmp_path / "m.json")


def test_history_equals_the_reported_steps() -> None:
    reported: list[Step] = []
    ranker = fp.ListMLE(solver="gd(rate=0.01, max_iter=20)")
    history = ranker.fit(TRAIN, valid=VALID, progress=reported.append).history_
    assert history == reported == clone(ranker).fit(TRAIN, valid=VALID).history_
    assert [step.best for step in history] == [
        all(step.measure > before.measure for before in history[:at])
        for at, step in enumerate(history)
    ]
    assert all(present(step.seconds) >= 0 for step in reported)
    assert all(step.seconds is None for step in history)


@pytest.mark.parametrize(
    "unfitted",
    [
        pytest.param(fp.ListNet(scorer="mlp(hidden=3)"), marks=pytest.mark.torch),
        fp.RankNet(),
        fp.AdaRank(),
    ],
)
def test_a_loaded_model_continues_like_the_fitted_one(unfitted, tmp_path) -> None:
    ranker = clone(unfitted).set_params(warm_start=True)
    ranker.fit(TRAIN, progress=lambda step: step.iteration == 2)
    ranker.save(tmp_path / "m.json")
    again = fp.load(tmp_path / "m.json").fit(TRAIN, progress=lambda step: step.iteration == 2)
    assert fitted(again) == fitted(ranker.fit(TRAIN, progress=lambda step: step.iteration == 2))


def test_nan_and_infinities_survive_json() -> None:
    steps = [
        Step(1, math.inf, None, False),
        Step(2, math.nan, math.nan, True),
        Step(3, 0.1 + 0.2, -math.inf, True),
    ]
    for gap in (None, math.nan, math.inf, 1e-17):
        record = fit_record(3, -math.inf, np.bool_(True), False, steps[2], steps, gap)  # type: ignore[arg-type]
        contents = json.loads(json.dumps(record, allow_nan=False))
        assert contents == record
        read = fitted_attributes(contents)
        assert bits_of(read["history_"]) == bits_of(steps)
        assert bits_of(read["gap_"]) == bits_of(math.nan if gap is None else gap)
        assert (read["objective_"], read["best_score_"]) == (-math.inf, -math.inf)
        assert read["converged_"] is True
    record = fit_record(0, math.nan, False, False, None, [], None)
    assert record["objective"] is None  # as in earlier versions
    assert math.isnan(fitted_attributes(record)["objective_"])


def older(path, **changes: Any) -> None:
    """Rewrite a model file with another training record and its checksum."""
    contents = json.loads(path.read_text())
    contents["training"] = {
        k: v for k, v in {**contents["training"], **changes}.items() if v is not ...
    }
    contents["sha256"] = json_digest({name: contents[name] for name in FIELDS})
    path.write_text(json.dumps(contents))


def test_missing_attributes_of_older_files_cause_clear_errors(tmp_path) -> None:
    ranker, path = fp.ListNet().fit(TRAIN), tmp_path / "m.json"
    ranker.save(path)
    older(path, improved=..., gap=...)  # of a version that wrote neither
    old = fp.load(path)
    assert (old.n_iter_, old.objective_) == (ranker.n_iter_, ranker.objective_)
    for name in ("history_", "gap_"):
        assert not hasattr(old, name)
        with pytest.raises(AttributeError, match=f"{name} is not in the model file, .* fit again"):
            getattr(old, name)
    assert old.fit(TRAIN).history_ == ranker.history_
    with pytest.raises(AttributeError, match="'ListNet' object has no attribute 'history_'"):
        fp.ListNet().history_  # noqa: B018
    older(path, curve=[[1, 2]], improved=[])
    with pytest.raises(DataError, match=r"m\.json: damaged: its training record"):
        fp.load(path)

    text = tmp_path / "ranklib.txt"
    text.write_text("## Coordinate Ascent\n1:0.5 2:-1 3:0 4:2\n")
    model = fp.interop.read_ranklib(text)
    path.write_text(json.dumps(model.to_dict()))
    other = fp.load(path)
    assert other.predict(VALID).tolist() == model.predict(VALID).tolist()
    assert not any(hasattr(other, name) for name in ATTRIBUTES)
    assert other.coef_.tolist() == [0.5, -1, 0, 2]
    other.save(path)
    assert fitted(fp.load(path)) == fitted(other)


RNG = np.random.default_rng(0)


X = RNG.normal(size=(300, 5))


QID = np.repeat(np.arange(30), 10)


Y = np.clip(np.round(X @ [1.0, -1, 0.5, 0, 0] + 1), 0, 2)


def test_component_objects_survive_save_and_load(tmp_path) -> None:
    for unfitted in (
        fp.ListNet(solver=GradientDescent(rate=0.1, max_iter=7)),
        fp.ListNet(solver=SGD(rate=0.1, max_iter=2)),
        fp.ListNet(scorer="trees(count=3, options={'max_depth': 3, 'lambda_l2': 1.0})"),
        fp.ListNet(measure=fp.measure("NDCG@5")),
    ):
        unfitted.fit(X, Y, qid=QID).save(tmp_path / "m.json")
        again = fp.load(tmp_path / "m.json")
        assert again.fit(X, Y, qid=QID).predict(X).tolist() == unfitted.predict(X).tolist()
