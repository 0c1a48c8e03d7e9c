"""Off-policy estimates on arrays: equal to those of the package obp, and intervals that cover."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import firstpage as fp

# Estimates of obp 0.4.1 (InverseProbabilityWeighting, SelfNormalizedInverseProbabilityWeighting,
# DirectMethod, DoublyRobust) on the 10,000 rows of Open Bandit that obp contains, with the policies
# and the reward model of `open_bandit`.
RECORDED: dict[tuple[str, str], dict[str, float]] = {
    ("bts", "all"): {
        "ips": 0.0023596395168460037,
        "snips": 0.002333713893161806,
        "dm": 0.005010064229046868,
        "dr": 0.00420349495588972,
    },
    ("bts", "men"): {
        "ips": 0.003008626327256482,
        "snips": 0.0031894231622774027,
        "dm": 0.004063588468494362,
        "dr": 0.0025027535190954527,
    },
    ("bts", "women"): {
        "ips": 0.00743757754192316,
        "snips": 0.0023730461434477677,
        "dm": 0.00387657685639671,
        "dr": 0.006301534943558063,
    },
    ("random", "all"): {
        "ips": 0.005034997009506054,
        "snips": 0.005252617919964268,
        "dm": 0.005103550124874364,
        "dr": 0.004985318370919601,
    },
    ("random", "men"): {
        "ips": 0.005655954135067826,
        "snips": 0.005739521979551792,
        "dm": 0.005727131987450179,
        "dr": 0.0056834128002111045,
    },
    ("random", "women"): {
        "ips": 0.005805331637937384,
        "snips": 0.005832666144700866,
        "dm": 0.0059780910801652985,
        "dr": 0.0059225978638905935,
    },
}
Arrays = dict[str, np.ndarray]


def open_bandit(folder: Path, log: str, campaign: str) -> tuple[Arrays, np.ndarray, np.ndarray]:
    """Return a log, the other log's policy (action, position), and a reward model of this one.

    The policy of a log is its smoothed frequency of actions by position; that of the random log is
    uniform.
    """
    columns: dict[str, Arrays] = {}
    for name in ("random", "bts"):
        with (folder / name / campaign / f"{campaign}.csv").open() as lines:
            rows = list(csv.DictReader(lines))
        columns[name] = {
            "action": np.array([int(row["item_id"]) for row in rows]),
            "position": np.array([int(row["position"]) for row in rows]) - 1,
            "reward": np.array([float(row["click"]) for row in rows]),
            "pscore": np.array([float(row["propensity_score"]) for row in rows]),
        }
    actions = max(int(c["action"].max()) for c in columns.values()) + 1
    policy = np.full((actions, 3), 1.0 / actions)
    if log == "random":
        np.add.at(policy, (columns["bts"]["action"], columns["bts"]["position"]), 1)
        policy /= policy.sum(axis=0)
    this = columns[log]
    shown, clicks = np.full((2, actions, 3), [[[1.0]], [[0.01]]])
    np.add.at(shown, (this["action"], this["position"]), 1)
    np.add.at(clicks, (this["action"], this["position"]), this["reward"])
    return this, policy, clicks / shown


def arguments(log: Arrays, policy: np.ndarray, model: np.ndarray) -> dict[str, Any]:
    """Return the arguments of `off_policy`."""
    place = log["action"], log["position"]
    return {
        "reward": log["reward"], "weight": policy[place] / log["pscore"],
        "predicted": model[place], "expected": (policy * model).sum(axis=0)[log["position"]],
    }  # fmt: skip


@pytest.mark.parametrize(("log", "campaign"), RECORDED)
def test_estimates_on_open_bandit_are_those_of_obp(
    real_data: Path, log: str, campaign: str
) -> None:
    given = arguments(*open_bandit(real_data / "clicks/openbandit", log, campaign))
    for method, value in RECORDED[log, campaign].items():
        given["method"] = method
        assert fp.clicks.off_policy(**given).value == pytest.approx(value, abs=1e-9)


def bandit(rng: np.random.Generator, users: int = 60) -> dict[str, Any]:
    """Return a log of three actions with rewards that depend on the user."""
    user = rng.integers(users, size=1500)
    action = rng.choice(3, len(user), p=[0.6, 0.3, 0.1])
    rate = np.array([0.1, 0.3, 0.6])[action] + rng.uniform(-0.1, 0.1, users)[user]
    reward = (rng.random(len(user)) < rate).astype(float)
    weight = np.array([0.2, 0.3, 0.5])[action] / np.array([0.6, 0.3, 0.1])[action]
    model = np.array([0.2, 0.2, 0.5])
    expected = np.full(len(user), model @ [0.2, 0.3, 0.5])
    return {
        "reward": reward, "weight": weight, "predicted": model[action], "expected": expected,
        "group": user,
    }  # fmt: skip


@pytest.mark.parametrize("method", ["ips", "snips", "dr"])
def test_intervals_cover_the_value_of_the_new_policy(method: Any) -> None:
    value = np.array([0.1, 0.3, 0.6]) @ [0.2, 0.3, 0.5]
    rng = np.random.default_rng(5)
    covered = 0.0
    for _ in range(300):
        estimate = fp.clicks.off_policy(**bandit(rng), method=method)
        covered += float(estimate.low <= value <= estimate.high)
    assert 0.92 <= covered / 300 <= 0.98


def test_rows_of_a_group_are_not_independent() -> None:
    reward, weight = [1, 1, 0, 0, 1, 1], np.ones(6)
    alone = fp.clicks.off_policy(reward, weight)
    grouped = fp.clicks.off_policy(reward, weight, group=["a", "a", "b", "b", "c", "c"])
    assert grouped.groups == 3
    assert grouped.error == pytest.approx(alone.error * np.sqrt(2 * (3 / 2) / (6 / 5)))
    single = fp.clicks.off_policy(reward, weight, group=["a"] * 6)
    assert single.low == -np.inf
    assert single.high == np.inf


def test_clipping_bounds_the_weights() -> None:
    estimate = fp.clicks.off_policy([1, 1, 0, 0], [8, 1, 1, 0], clip=2)
    assert estimate.value == 3 / 4
    assert estimate.effective_rows == 16 / 6


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"method": "dr"}, "dr needs predicted: the numbers of a reward model"),
        ({"method": "dm"}, "dm needs expected"),
        ({"method": "magic"}, "one of ips, snips, dm, dr; got 'magic'"),
        ({"weight": [np.inf, 1]}, "weight must be one finite number per row"),
        ({"weight": [1]}, "weight must be one finite number per row"),
        ({"weight": [0, 0]}, "the log has no support"),
        ({"weight": [-1, 2]}, "weights must be at least 0"),
        ({"clip": 0}, "clip must be above 0; got 0"),
        ({"level": 1}, "confidence level is between 0 and 1"),
        ({"group": ["a"]}, "group must be one value per row"),
    ],
)
def test_mistakes_are_one_line(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(fp.DataError, match=message):
        fp.clicks.off_policy(**{"reward": [1, 0], "weight": [1, 1], **changed})
