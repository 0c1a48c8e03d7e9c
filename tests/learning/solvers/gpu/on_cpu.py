"""Compare device losses with those of the CPU; run in a process in which Triton interprets."""

from __future__ import annotations

import numpy as np

import firstpage as fp
from firstpage.learning.losses.focused import focused_net
from firstpage.learning.losses.listwise import (
    Cosine,
    PlackettLuce,
    SoftmaxCrossEntropy,
    SquaredError,
)
from firstpage.learning.losses.pairwise import PairwiseLogistic
from firstpage.learning.losses.permutation import PermutationCrossEntropy
from firstpage.learning.scorers.linear import Linear
from firstpage.learning.scorers.mlp import MLP
from firstpage.learning.solvers.gpu.objective import (
    LinearObjective,
    NetworkObjective,
    device_objective,
)
from firstpage.learning.solvers.objective import BlockObjective
from tests.narrow import dense

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
    dataset = fp.Synthetic(queries=6, docs=docs, features=features, grades=4, seed=3).dataset()
    return dataset if top is None else dataset.with_labels(dataset.truth.top_k(top, seed=0))


def compare(name: str, actual: tuple, expected: tuple, rel: float) -> None:
    value, gradient = abs(actual[0] - expected[0]), np.abs(actual[1] - expected[1]).max()
    assert value <= rel * abs(expected[0]) + 1e-7, (name, actual[0], expected[0])
    assert gradient <= rel * np.abs(expected[1]).max() + 1e-6, (name, gradient)


def linear(
    dataset: fp.Dataset, size: float, weights: bool, shift: float = 0.0, rel: float = 2e-5
) -> None:
    """Compare linear objectives; all scores are shifted by a feature that is 1 everywhere."""
    rng = np.random.default_rng(1)
    X = np.column_stack([dense(dataset.X), np.ones(dataset.n_docs)]) if shift else dataset.X
    row_weights = rng.integers(0, 3, dataset.n_docs).astype(float) if weights else None
    query_weights = rng.random(len(dataset)) + 0.1
    params = rng.normal(size=(X.shape[1],)) * size
    if shift:
        params[-1] = shift
    for name, loss in LOSSES.items():
        host = BlockObjective(
            loss,
            Linear().bind(X),
            dataset.truth,
            8,
            row_weights,
            query_weights,
            l2=0.01,
            threads=1,
        )
        device = device_objective(host, dataset.truth, "cpu")
        assert isinstance(device, LinearObjective), name
        compare(name, device(params), host(params), rel)


def network(dataset: fp.Dataset) -> None:
    bound = MLP(hidden=4).bind(dataset.X)
    for name in ("ListMLE(k=3)", "RankNet, T x F", "FocusedNet"):
        for batch in (None, 4):
            host = BlockObjective(LOSSES[name], bound, dataset.truth, 8, l2=0.01, batch=batch)
            device = device_objective(host, dataset.truth, "cpu")
            assert isinstance(device, NetworkObjective)
            params = bound.initial_params(0)
            compare(name, device(params), host(params), 1e-4)
            if batch is not None:
                compare(name, device.block(1, params), host.block(1, params), 1e-4)


def short(dataset: fp.Dataset) -> None:
    host = BlockObjective(PermutationCrossEntropy(), Linear().bind(dataset.X), dataset.truth, 8)
    params = np.random.default_rng(0).normal(size=dataset.n_features)
    compare(
        "permutations", device_objective(host, dataset.truth, "cpu")(params), host(params), 2e-5
    )


def main() -> None:
    linear(data("uniform(1, 30)", 5, None), 0.5, weights=False)
    linear(data("uniform(1, 30)", 5, None), 0.5, weights=True)
    linear(data("uniform(200, 300)", 17, 10), 0.5, weights=False)  # longer than a tile
    linear(data("uniform(1, 40)", 3, None), 200.0, weights=False)  # scores far apart
    for shift in (-120.0, 120.0):  # where exp(-shift) or exp(shift) overflows
        linear(data("uniform(1, 30)", 5, None), 0.5, weights=False, shift=shift, rel=1e-4)
    network(data("uniform(1, 30)", 5, None))
    short(data("uniform(1, 7)", 4, None))
    print("as on the CPU")


if __name__ == "__main__":
    main()
