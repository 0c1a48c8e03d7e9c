"""A fit that breaks off leaves a file, from which the next goes on."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import firstpage as fp
from firstpage.errors import DataError, FirstpageWarning
from tests.engine.conftest import DATA


class Break(Exception):
    pass


def breaking(at: int):
    def callback(step) -> None:
        if step.iteration == at:
            raise Break

    return callback


EXACTLY = ["RankBoost(rounds=12)", "AdaRank(rounds=10)", "ListNet(solver='gd(max_iter=20)')"]
ABOUT = ["RankNet(k=5)", "RankSVM(k=5)", "TopMargin", "FocusedSVM(k=5)"]


@pytest.mark.parametrize("where", ["memory", "shards"])
@pytest.mark.parametrize("name", [*EXACTLY, *ABOUT])
def test_a_fit_goes_on(name: str, where: str, shards, tmp_path: Path) -> None:
    data, file = (DATA if where == "memory" else shards), tmp_path / "fit.ckpt"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstpageWarning)
        whole = fp.ranker(name).fit(data)
    with pytest.raises(Break):
        fp.ranker(name).fit(data, checkpoint=file, callback=breaking(4))
    assert file.exists()
    seen = []
    with pytest.warns(FirstpageWarning, match=r"going on from .*fit\.ckpt, where [34] iterations"):
        again = fp.ranker(name).fit(data, checkpoint=file, callback=seen.append)
    assert not file.exists()  # it is done
    if name in EXACTLY:
        assert np.array_equal(again.predict(DATA), whole.predict(DATA))
        assert again.n_iter_ == whole.n_iter_
    else:
        gap = max(whole.gap_ or 0.0, again.gap_ or 0.0)
        assert again.objective_ == pytest.approx(whole.objective_, rel=2 * gap + 1e-6)
    assert seen[-1].iteration >= 4


def test_the_best_so_far_is_kept_too(tmp_path: Path) -> None:
    file, valid = tmp_path / "fit.ckpt", DATA[:15]
    name = "ListNet(solver='gd(max_iter=20, rate=5)')"
    whole = fp.ranker(name).fit(DATA, valid=valid)
    with pytest.raises(Break):
        fp.ranker(name).fit(DATA, valid=valid, checkpoint=file, callback=breaking(15))
    with pytest.warns(FirstpageWarning, match="going on"):
        again = fp.ranker(name).fit(DATA, valid=valid, checkpoint=file)
    assert (again.best_iteration_, again.best_score_) == (whole.best_iteration_, whole.best_score_)
    assert np.array_equal(again.coef_, whole.coef_)


def test_a_checkpoint_of_another_fit_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "fit.ckpt"
    with pytest.raises(Break):
        fp.RankNet(k=5).fit(DATA, checkpoint=file, callback=breaking(3))
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
    with pytest.raises(DataError, match="SGD leaves no checkpoints"):
        fp.RankNet(solver="sgd").fit(DATA, checkpoint=tmp_path / "other.ckpt")


def test_it_is_written_every_so_often(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("firstpage.rankers.checkpoint.EVERY", 0.0)
    file, seen = tmp_path / "fit.ckpt", []
    fp.RankNet().fit(
        DATA, checkpoint=file, callback=lambda step: seen.append(file.exists()) and None
    )
    assert seen[0] is False
    assert all(seen[1:])
    assert len(seen) > 3
