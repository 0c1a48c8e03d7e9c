"""Run by a process of its own, in which Triton interprets: device losses against those of the CPU."""

from __future__ import annotations

import sys

import numpy as np

import firstpage as fp
from firstpage.losses.focused import focused_net
from firstpage.losses.listwise import Cosine, PlackettLuce, SoftmaxCrossEntropy, SquaredError
from firstpage.losses.pairwise import PairwiseLogistic
from firstpage.losses.permutation import PermutationCrossEntropy
from firstpage.scorers.linear import Linear
from firstpage.scorers.mlp import MLP
from firstpage.solvers.gpu.objective import LinearObjective, NetworkObjective, device_objective
from firstpage.solvers.objective import BlockObjective

LOSSES = {
    "ListMLE": PlackettLuce(), "ListMLE(k=3)": PlackettLuce(3),
    "ListMLE, mean": PlackettLuce(3, average=True),
    "RankNet": PairwiseLogistic(), "RankNet(k=3)": PairwiseLogistic(3),
    "RankNet, T x F": PairwiseLogistic(3, pairs="cross", average=True),
    "ListNet": SoftmaxCrossEntropy(), "ListNet(k=3)": SoftmaxCrossEntropy(3, 0.5),
    "RankCosine": Cosine(), "Regression": SquaredError(),
    "FocusedNet": focused_net(3, 0.4),
}  # fmt: skip


def data(docs: str, features: int, top: int | None) -> fp.Dataset:
    made = fp.Synthetic(queries=6, docs=docs, features=features, grades=4, seed=3).dataset()
    return made if top is None else made.with_labels(made.truth.top_k(top, seed=0))


def compared(name: str, found: tuple, wanted: tuple, rel: float) -> None:
    value, slope = abs(found[0] - wanted[0]), np.abs(found[1] - wanted[1]).max()
    assert value <= rel * abs(wanted[0]) + 1e-7, (name, found[0], wanted[0])
    assert slope <= rel * np.abs(wanted[1]).max() + 1e-6, (name, slope)


def linear(given: fp.Dataset, size: float, weights: bool) -> None:
    rng = np.random.default_rng(1)
    each = rng.integers(0, 3, given.n_docs).astype(float) if weights else None
    shares = rng.random(len(given)) + 0.1
    params = rng.normal(size=given.n_features) * size
    for name, loss in LOSSES.items():
        host = BlockObjective(
            loss, Linear().bind(given.X), given.truth, 8, each, shares, l2=0.01, threads=1
        )
        there = device_objective(host, given.truth, "cpu")
        assert isinstance(there, LinearObjective), name
        compared(name, there(params), host(params), 2e-5)


def network(given: fp.Dataset) -> None:
    bound = MLP(hidden=4).bind(given.X)
    for name in ("ListMLE(k=3)", "RankNet, T x F", "FocusedNet"):
        for batch in (None, 4):
            host = BlockObjective(LOSSES[name], bound, given.truth, 8, l2=0.01, batch=batch)
            there = device_objective(host, given.truth, "cpu")
            assert isinstance(there, NetworkObjective)
            params = bound.start(0)
            compared(name, there(params), host(params), 1e-4)
            if batch is not None:
                compared(name, there.block(1, params), host.block(1, params), 1e-4)


def short(given: fp.Dataset) -> None:
    host = BlockObjective(PermutationCrossEntropy(), Linear().bind(given.X), given.truth, 8)
    params = np.random.default_rng(0).normal(size=given.n_features)
    compared("permutations", device_objective(host, given.truth, "cpu")(params), host(params), 2e-5)


def main() -> None:
    linear(data("uniform(1, 30)", 5, None), 0.5, weights=False)
    linear(data("uniform(1, 30)", 5, None), 0.5, weights=True)
    linear(data("uniform(200, 300)", 17, 10), 0.5, weights=False)  # longer than a tile
    linear(data("uniform(1, 40)", 3, None), 200.0, weights=False)  # scores far apart
    network(data("uniform(1, 30)", 5, None))
    short(data("uniform(1, 7)", 4, None))
    print("as on the CPU")


if __name__ == "__main__":
    sys.exit(main())
