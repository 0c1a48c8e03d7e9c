"""An interrupted fit leaves a file, from which the next one resumes."""

from __future__ import annotations

import errno
import json
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.errors import DataError, FirstpageWarning
from firstpage.learning.rankers.fit.checkpoint import _from_json, _to_json
from firstpage.learning.rankers.fit.progress import Step
from firstpage.papers.cheng2014.n_slack import NSlack
from tests.core.engine.conftest import DATA
from tests.narrow import present


class Interrupted(Exception):
    pass


def interrupt_at(iteration: int):
    def progress(step) -> None:
        if step.iteration == iteration:
            raise Interrupted

    return progress


EXACTLY = [
    "RankBoost(rounds=12)",
    "AdaRank(rounds=10)",
    "ListNet(solver='gd(max_iter=20)')",
    "ListNet(solver='sgd(max_iter=8, decay=0.1)')",
    "PLRank(samples=2, solver='adam(rate=0.05, max_iter=8, whiten=true)')",  # draws at random
    "PLRank(samples=2, solver='gd(rate=1, max_iter=8)')",
    "LambdaRank(solver='adam(rate=0.05, max_iter=8, whiten=true)')",
]
ABOUT = ["RankNet(k=5)", "RankSVM(k=5)", "TopMargin", "FocusedSVM(k=5)"]


@pytest.mark.parametrize("where", ["memory", "shards"])
@pytest.mark.parametrize("name", [*EXACTLY, *ABOUT])
def test_an_interrupted_fit_resumes(name: str, where: str, shards, tmp_path: Path) -> None:
    data, file = (DATA if where == "memory" else shards), tmp_path / "fit.ckpt"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstpageWarning)
        uninterrupted = fp.ranker(name).fit(data)
    with pytest.raises(Interrupted):
        fp.ranker(name).fit(data, checkpoint=file, progress=interrupt_at(4))
    assert file.exists()
    steps: list[Step] = []
    with pytest.warns(
        FirstpageWarning, match=r"continuing from .*fit\.ckpt, after [34] iterations"
    ):
        resumed = fp.ranker(name).fit(data, checkpoint=file, progress=steps.append)
    assert not file.exists()  # it is done
    if name in EXACTLY:
        assert np.array_equal(resumed.predict(DATA), uninterrupted.predict(DATA))
        assert resumed.n_iter_ == uninterrupted.n_iter_
    else:
        gap = max(np.nan_to_num([uninterrupted.gap_, resumed.gap_]))
        assert resumed.objective_ == pytest.approx(uninterrupted.objective_, rel=2 * gap + 1e-6)
    assert steps[-1].iteration >= 4


@pytest.mark.filterwarnings("ignore:.*validation queries are also in the training data")
@pytest.mark.parametrize(
    "name",
    [
        "ListNet(solver='gd(max_iter=20, rate=5)')",
        "PLRank(samples=2, solver='adam(rate=0.3, max_iter=20, whiten=true)')",
        pytest.param(
            "ListNet(scorer='mlp(hidden=3)', solver='adam(rate=0.1, max_iter=20)')",
            marks=pytest.mark.torch,
        ),
    ],
)
def test_the_best_iteration_is_restored(tmp_path: Path, name: str) -> None:
    file, valid = tmp_path / "fit.ckpt", DATA[:15]
    uninterrupted = fp.ranker(name).fit(DATA, valid=valid)
    with pytest.raises(Interrupted):
        fp.ranker(name).fit(DATA, valid=valid, checkpoint=file, progress=interrupt_at(15))
    with pytest.warns(FirstpageWarning, match="continuing"):
        resumed = fp.ranker(name).fit(DATA, valid=valid, checkpoint=file)
    assert (resumed.best_iteration_, resumed.best_score_) == (
        uninterrupted.best_iteration_,
        uninterrupted.best_score_,
    )
    assert np.array_equal(present(resumed.params_), present(uninterrupted.params_))
    assert resumed.history_ == uninterrupted.history_


def test_a_checkpoint_of_another_fit_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "fit.ckpt"
    with pytest.raises(Interrupted):
        fp.RankNet(k=5).fit(DATA, checkpoint=file, progress=interrupt_at(3))
    for ranker, data, difference in (
        (fp.RankNet(k=6), DATA, "parameters"),
        (fp.ListNet(k=5), DATA, "ranker"),
        (fp.RankNet(k=5), DATA[:50], "data"),
    ):
        with pytest.raises(DataError, match=f"checkpoint of another fit .its {difference} differ"):
            ranker.fit(data, checkpoint=file)
    stored = json.loads(file.read_text())
    stored["state"]["iterations"] = 7
    file.write_text(json.dumps(stored))
    with pytest.raises(DataError, match="do not match its checksum"):
        fp.RankNet(k=5).fit(DATA, checkpoint=file)
    file.write_text("{}")
    with pytest.raises(DataError, match="not a checkpoint of Firstpage"):
        fp.RankNet(k=5).fit(DATA, checkpoint=file)
    with pytest.raises(DataError, match="cannot be written there"):
        fp.RankNet(k=5).fit(DATA, checkpoint=tmp_path)


def test_a_checkpoint_is_written_periodically(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("firstpage.learning.rankers.fit.checkpoint.WRITE_INTERVAL", 0.0)
    file, existed = tmp_path / "fit.ckpt", []

    def record(_: Step) -> None:
        existed.append(file.exists())

    fp.RankNet().fit(DATA, checkpoint=file, progress=record)
    assert existed[0] is False
    assert all(existed[1:])
    assert len(existed) > 3


def test_a_checkpoint_depends_on_the_warm_start(tmp_path: Path) -> None:
    file = tmp_path / "fit.ckpt"
    ranker = fp.RankBoost(rounds=3, warm_start=True).fit(DATA)
    with pytest.raises(Interrupted):
        ranker.set_params(rounds=8).fit(DATA, checkpoint=file, progress=interrupt_at(4))
    with pytest.raises(DataError, match="its warm start differ"):
        fp.RankBoost(rounds=8).fit(DATA, checkpoint=file)
    with pytest.warns(FirstpageWarning, match="continuing from"):
        ranker.fit(DATA, checkpoint=file)
    uninterrupted = fp.RankBoost(rounds=3, warm_start=True).fit(DATA).set_params(rounds=8).fit(DATA)
    assert np.array_equal(ranker.predict(DATA), uninterrupted.predict(DATA))


def test_a_checkpoint_of_another_version_is_refused(tmp_path: Path, monkeypatch) -> None:
    file = tmp_path / "fit.ckpt"
    with monkeypatch.context() as patch:
        patch.setattr(
            "firstpage.learning.rankers.fit.checkpoint.versions", lambda: {"firstpage": "0.0.1"}
        )
        with pytest.raises(Interrupted):
            fp.ListNet().fit(DATA, checkpoint=file, progress=interrupt_at(3))
    with pytest.raises(DataError, match="was written by another version of Firstpage"):
        fp.ListNet().fit(DATA, checkpoint=file)


@pytest.mark.filterwarnings("ignore:.*validation queries are also in the training data")
@pytest.mark.parametrize("valid", [None, DATA[:15]])
def test_a_descent_resumed_after_its_last_step_takes_no_more(
    tmp_path: Path, monkeypatch, valid
) -> None:
    """The last step must not be taken twice."""
    file, name = tmp_path / "fit.ckpt", "ListNet(solver='gd(max_iter=9, rate=5)')"
    uninterrupted = fp.ranker(name).fit(DATA, valid=valid)
    monkeypatch.setattr("firstpage.learning.rankers.fit.checkpoint.WRITE_INTERVAL", -1.0)
    with monkeypatch.context() as patch:
        patch.setattr(
            "firstpage.learning.rankers.fit.checkpoint.Checkpoint.done", lambda self: None
        )
        fp.ranker(name).fit(DATA, valid=valid, checkpoint=file)
    with pytest.warns(FirstpageWarning, match="after 9 iterations"):
        resumed = fp.ranker(name).fit(DATA, valid=valid, checkpoint=file)
    assert np.array_equal(resumed.coef_, uninterrupted.coef_)
    assert (resumed.n_iter_, resumed.objective_) == (
        uninterrupted.n_iter_,
        uninterrupted.objective_,
    )
    assert resumed.best_iteration_ == uninterrupted.best_iteration_
    assert resumed.history_ == uninterrupted.history_


def test_a_full_disk_does_not_end_the_fit(tmp_path: Path, monkeypatch) -> None:
    def full(contents, path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("firstpage.learning.rankers.fit.checkpoint.WRITE_INTERVAL", -1.0)
    monkeypatch.setattr("firstpage.learning.rankers.fit.checkpoint.write_json", full)
    with pytest.warns(FirstpageWarning, match=r"cannot be written \(No space left") as warned:
        ranker = fp.RankNet().fit(DATA, checkpoint=tmp_path / "fit.ckpt")
    assert len(warned) == 1  # not in every iteration
    assert ranker.converged_
    with pytest.warns(FirstpageWarning, match="cannot be written"), pytest.raises(Interrupted):
        fp.RankNet().fit(DATA, checkpoint=tmp_path / "fit.ckpt", progress=interrupt_at(3))


def test_a_read_only_folder_is_reported_before_the_fit(tmp_path: Path, monkeypatch) -> None:
    def read_only(dir: Path) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(
        "firstpage.learning.rankers.fit.checkpoint.tempfile.TemporaryFile", read_only
    )
    with pytest.raises(DataError, match=r"cannot be written there \(Read-only file system\)"):
        fp.RankNet().fit(DATA, checkpoint=tmp_path / "fit.ckpt")


def test_infinite_numbers_survive_a_round_trip() -> None:
    state: dict[str, Any] = {
        "losses": [1.0, np.inf, -np.inf],
        "x": np.float64(2),
        "w": np.arange(3.0),
    }
    resumed = _from_json(json.loads(json.dumps(_to_json(state), allow_nan=False)))
    assert resumed["losses"] == state["losses"]
    assert np.array_equal(resumed["w"], state["w"])


@pytest.mark.parametrize(
    ("ranker", "message"),
    [
        (fp.ListNet(scorer="trees(count=3)"), "trees do not support checkpoints"),
        (fp.RankSVM(solver=NSlack()), "NSlack does not support checkpoints"),
    ],
)
def test_rankers_without_checkpoints_refuse_one(
    tmp_path: Path, ranker: fp.Ranker, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        ranker.fit(DATA, checkpoint=tmp_path / "fit.ckpt")
    assert not list(tmp_path.iterdir())
