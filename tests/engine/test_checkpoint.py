"""A fit that breaks off leaves a file, from which the next goes on."""

from __future__ import annotations

import errno
import json
import os
import warnings
from pathlib import Path

import numpy as np
import pytest

import firstpage as fp
from firstpage.errors import DataError, FirstpageWarning
from firstpage.rankers.fit.checkpoint import _from_json, _to_json
from tests.engine.conftest import DATA


class Break(Exception):
    pass


def breaking(at: int):
    def progress(step) -> None:
        if step.iteration == at:
            raise Break

    return progress


EXACTLY = ["RankBoost(rounds=12)", "AdaRank(rounds=10)", "ListNet(solver='gd(max_iter=20)')"]
ABOUT = ["RankNet(k=5)", "RankSVM(k=5)", "TopMargin", "FocusedSVM(k=5)"]


@pytest.mark.slow
@pytest.mark.parametrize("where", ["memory", "shards"])
@pytest.mark.parametrize("name", [*EXACTLY, *ABOUT])
def test_a_fit_goes_on(name: str, where: str, shards, tmp_path: Path) -> None:
    data, file = (DATA if where == "memory" else shards), tmp_path / "fit.ckpt"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstpageWarning)
        whole = fp.ranker(name).fit(data)
    with pytest.raises(Break):
        fp.ranker(name).fit(data, checkpoint=file, progress=breaking(4))
    assert file.exists()
    seen = []
    with pytest.warns(
        FirstpageWarning, match=r"continuing from .*fit\.ckpt, after [34] iterations"
    ):
        again = fp.ranker(name).fit(data, checkpoint=file, progress=seen.append)
    assert not file.exists()  # it is done
    if name in EXACTLY:
        assert np.array_equal(again.predict(DATA), whole.predict(DATA))
        assert again.n_iter_ == whole.n_iter_
    else:
        gap = max(np.nan_to_num([whole.gap_, again.gap_]))
        assert again.objective_ == pytest.approx(whole.objective_, rel=2 * gap + 1e-6)
    assert seen[-1].iteration >= 4


@pytest.mark.filterwarnings("ignore:.*validation queries are also in the training data")
def test_the_best_so_far_is_kept_too(tmp_path: Path) -> None:
    file, valid = tmp_path / "fit.ckpt", DATA[:15]
    name = "ListNet(solver='gd(max_iter=20, rate=5)')"
    whole = fp.ranker(name).fit(DATA, valid=valid)
    with pytest.raises(Break):
        fp.ranker(name).fit(DATA, valid=valid, checkpoint=file, progress=breaking(15))
    with pytest.warns(FirstpageWarning, match="continuing from"):
        again = fp.ranker(name).fit(DATA, valid=valid, checkpoint=file)
    assert (again.best_iteration_, again.best_score_) == (whole.best_iteration_, whole.best_score_)
    assert np.array_equal(again.coef_, whole.coef_)


def test_a_checkpoint_of_another_fit_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "fit.ckpt"
    with pytest.raises(Break):
        fp.RankNet(k=5).fit(DATA, checkpoint=file, progress=breaking(3))
    for ranker, data, what in (
        (fp.RankNet(k=6), DATA, "parameters"), (fp.ListNet(k=5), DATA, "ranker"),
        (fp.RankNet(k=5), DATA[:50], "data"),
    ):  # fmt: skip
        with pytest.raises(DataError, match=f"checkpoint of another fit .its {what} differ"):
            ranker.fit(data, checkpoint=file)
    held = json.loads(file.read_text())
    held["state"]["iterations"] = 7
    file.write_text(json.dumps(held))
    with pytest.raises(DataError, match="do not match its checksum"):
        fp.RankNet(k=5).fit(DATA, checkpoint=file)
    file.write_text("{}")
    with pytest.raises(DataError, match="not a checkpoint of Firstpage"):
        fp.RankNet(k=5).fit(DATA, checkpoint=file)
    with pytest.raises(DataError, match="cannot be written there"):
        fp.RankNet(k=5).fit(DATA, checkpoint=tmp_path)
    with pytest.raises(DataError, match="SGD does not support checkpoints"):
        fp.RankNet(solver="sgd").fit(DATA, checkpoint=tmp_path / "other.ckpt")


def test_it_is_written_every_so_often(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("firstpage.rankers.fit.checkpoint.WRITE_INTERVAL", 0.0)
    file, seen = tmp_path / "fit.ckpt", []
    fp.RankNet().fit(
        DATA, checkpoint=file, progress=lambda step: seen.append(file.exists()) and None
    )
    assert seen[0] is False
    assert all(seen[1:])
    assert len(seen) > 3


def test_what_a_fit_began_with_belongs_to_it(tmp_path: Path) -> None:
    file = tmp_path / "fit.ckpt"
    ranker = fp.RankBoost(rounds=3, warm_start=True).fit(DATA)
    with pytest.raises(Break):
        ranker.set_params(rounds=8).fit(DATA, checkpoint=file, progress=breaking(4))
    with pytest.raises(DataError, match="its warm start differ"):
        fp.RankBoost(rounds=8).fit(DATA, checkpoint=file)
    with pytest.warns(FirstpageWarning, match="continuing from"):
        ranker.fit(DATA, checkpoint=file)
    held = fp.RankBoost(rounds=3, warm_start=True).fit(DATA).set_params(rounds=8).fit(DATA)
    assert np.array_equal(ranker.predict(DATA), held.predict(DATA))


def test_a_checkpoint_of_another_version_is_refused(tmp_path: Path, monkeypatch) -> None:
    file = tmp_path / "fit.ckpt"
    with monkeypatch.context() as patch:
        patch.setattr("firstpage.rankers.fit.checkpoint.versions", lambda: {"firstpage": "0.0.1"})
        with pytest.raises(Break):
            fp.ListNet().fit(DATA, checkpoint=file, progress=breaking(3))
    with pytest.raises(DataError, match="was written by another version of Firstpage"):
        fp.ListNet().fit(DATA, checkpoint=file)


@pytest.mark.filterwarnings("ignore:.*validation queries are also in the training data")
@pytest.mark.parametrize("valid", [None, DATA[:15]])
def test_a_descent_that_was_all_but_done_is_done(tmp_path: Path, monkeypatch, valid) -> None:
    """Killed after its last step, which must not be taken twice."""
    file, name = tmp_path / "fit.ckpt", "ListNet(solver='gd(max_iter=9, rate=5)')"
    whole = fp.ranker(name).fit(DATA, valid=valid)
    monkeypatch.setattr("firstpage.rankers.fit.checkpoint.WRITE_INTERVAL", -1.0)
    with monkeypatch.context() as patch:
        patch.setattr("firstpage.rankers.fit.checkpoint.Checkpoint.done", lambda self: None)
        fp.ranker(name).fit(DATA, valid=valid, checkpoint=file)
    with pytest.warns(FirstpageWarning, match="after 9 iterations"):
        again = fp.ranker(name).fit(DATA, valid=valid, checkpoint=file)
    assert np.array_equal(again.coef_, whole.coef_)
    assert (again.n_iter_, again.objective_) == (whole.n_iter_, whole.objective_)
    assert again.best_iteration_ == whole.best_iteration_


def test_a_full_disk_ends_no_fit(tmp_path: Path, monkeypatch) -> None:
    def full(held, path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("firstpage.rankers.fit.checkpoint.WRITE_INTERVAL", -1.0)
    monkeypatch.setattr("firstpage.rankers.fit.checkpoint.write_json", full)
    with pytest.warns(FirstpageWarning, match=r"cannot be written \(No space left") as said:
        found = fp.RankNet().fit(DATA, checkpoint=tmp_path / "fit.ckpt")
    assert len(said) == 1  # not in every iteration
    assert found.converged_
    with pytest.warns(FirstpageWarning, match="cannot be written"), pytest.raises(Break):
        fp.RankNet().fit(DATA, checkpoint=tmp_path / "fit.ckpt", progress=breaking(3))


def test_a_place_where_nothing_can_be_written_is_said_at_once(tmp_path: Path, monkeypatch) -> None:
    def none(dir: Path) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr("firstpage.rankers.fit.checkpoint.tempfile.TemporaryFile", none)
    with pytest.raises(DataError, match=r"cannot be written there \(Read-only file system\)"):
        fp.RankNet().fit(DATA, checkpoint=tmp_path / "fit.ckpt")


def test_numbers_that_are_none_are_kept_too() -> None:
    state = {"losses": [1.0, np.inf, -np.inf], "x": np.float64(2), "w": np.arange(3.0)}
    again = _from_json(json.loads(json.dumps(_to_json(state), allow_nan=False)))
    assert again["losses"] == state["losses"]
    assert np.array_equal(again["w"], state["w"])


@pytest.mark.parametrize(
    "name", ["ListNet(scorer='trees(count=3)')", "TopRank", "RankNet(solver='sgd(max_iter=2)')"]
)
def test_rankers_that_leave_no_checkpoints_refuse_one(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"not support checkpoints"):
        fp.ranker(name).fit(DATA, checkpoint=tmp_path / "fit.ckpt")
    assert not list(tmp_path.iterdir())
