"""Networks: gradients by PyTorch, scores by NumPy, and attention within a list."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from firstpage.core.errors import DataError
from firstpage.core.registry import ParameterError
from firstpage.core.types import Floats
from firstpage.learning.scorers import network_gradient, network_scoring
from firstpage.learning.scorers.forward import NumpyOperations
from firstpage.learning.scorers.mlp import MLP
from firstpage.learning.scorers.network import Network, torch_threads
from firstpage.learning.scorers.network_scoring import InputTransform, NetworkScoring
from tests.learning.scorers.checks import check_gradient, forward

RNG = np.random.default_rng(0)
X = RNG.normal(2.0, 3.0, size=(90, 4))
X[:, 3] = 7.0  # a constant feature is only shifted
OFFSETS = np.array([0, 1, 4, 24, 24, 25, 60, 90])  # with lists of one document and of none
CASES = {
    "one layer": Network((3,)),
    "no layer": Network(()),
    "deep": Network((5, 4, 3), "tanh"),
    "layer norm": Network((4, 3), "gelu", norm="layer"),
    "log1p": Network((4,), "silu", input="log1p"),
    "both transforms": Network((4,), input="log1p+standardize"),
    "no transform": Network((4,), input="none"),
    "attention": Network((4,), attention=(1, 2)),
    "two blocks": Network((3, 4), "gelu", norm="layer", attention=(2, 2, 3)),
}
MLP_FILE = {
    "kind": "mlp",
    "mean": [1.0, 2.0],
    "deviation": [0.5, 4.0],
    "W": [[1.0, -2.0, 0.5], [0.25, 1.0, -1.0]],
    "b": [0.5, 0.0, -1.0],
    "v": [1.0, -1.0, 2.0],
    "c": 0.125,
}


def scoring_of(case: str, scale: float = 1.0) -> NetworkScoring:
    """Return a network with random parameters, which needs no PyTorch."""
    network = CASES[case]
    shape = network.architecture(4)
    values = np.random.default_rng(3).normal(0, scale, shape.size).astype(np.float32)
    return NetworkScoring(shape, InputTransform.fit(network.input, X), values)


def reference(scoring: NetworkScoring, params: Floats, rows: Floats, ends: list[int]) -> Floats:
    """Return the scores of transformed features in float64."""
    shape = scoring.architecture
    operations = NumpyOperations(shape.activation, shape.heads, ends)
    return np.asarray(shape.scores(operations, rows, shape.split(params)))


@pytest.mark.torch
@pytest.mark.parametrize("case", CASES)
def test_the_gradient_of_each_piece_matches_differences_of_the_numpy_scores(case: str) -> None:
    import torch

    ends = np.array([0, 1, 4, 10])
    bound = CASES[case].bind(X[:10], ends)
    scoring = bound.scoring(bound.initial_params(0))
    params = np.random.default_rng(1).normal(0, 0.7, bound.size)
    rows, upstream = bound.inputs.apply(X[:10]), RNG.normal(size=10)
    flat = torch.tensor(params, requires_grad=True)
    scores = bound.scores(bound.operations(ends), torch.tensor(rows), flat)
    expected = reference(scoring, params, rows, ends.tolist())
    assert scores.detach().numpy() == pytest.approx(expected, rel=1e-10, abs=1e-10)
    scores.backward(gradient=torch.tensor(upstream))
    gradient = flat.grad.numpy()
    for name, of_piece in bound.architecture.split(np.arange(bound.size)).items():
        shift = np.zeros(bound.size)
        shift[of_piece] = RNG.normal(0, 1e-6, of_piece.shape)  # a random direction
        up, down = (reference(scoring, params + s * shift, rows, ends.tolist()) for s in (1, -1))
        derivative = float(upstream @ (up - down)) / 2e-6
        assert gradient @ shift / 1e-6 == pytest.approx(derivative, rel=1e-4, abs=1e-5), name


@pytest.mark.torch
@pytest.mark.parametrize("form", [X, X.astype(np.float32), csr_array(X)], ids=["64", "32", "csr"])
def test_training_scores_are_those_of_the_model(form) -> None:
    bound = CASES["two blocks"].bind(form, OFFSETS)
    params = bound.initial_params(5)
    expected = bound.scoring(params).predict(form, offsets=OFFSETS)
    assert forward(bound, params, 0, 90) == pytest.approx(expected, rel=1e-5, abs=1e-5)
    assert forward(bound, params, 4, 60) == pytest.approx(expected[4:60], rel=1e-5, abs=1e-5)
    assert bound.predict(params, form, OFFSETS).tolist() == expected.tolist()


@pytest.mark.torch
@pytest.mark.parametrize("scorer", [MLP(3), CASES["two blocks"]], ids=["mlp", "attention"])
def test_slices_back_propagate(scorer) -> None:
    bound = scorer.bind(X, OFFSETS)
    check_gradient(bound, bound.initial_params(0), 1e-2, 2e-2)


@pytest.mark.torch
def test_mlp_is_a_network_with_one_layer() -> None:
    bound, network = MLP(3).bind(X), Network((3,)).bind(X)
    first = bound.initial_params(1)
    assert len(first) == bound.size == (4 + 2) * 3 + 1
    assert first.tolist() == network.initial_params(1).tolist() != bound.initial_params(2).tolist()
    assert bound.preconditioner([np.array([0, 90])], np.ones(90), 0.1) is None
    W, b, v, c = np.split(first, [12, 15, 18])
    z = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    expected = np.maximum(z @ W.reshape(4, 3) + b, 0) @ v + c
    assert bound.predict(first, X) == pytest.approx(expected, rel=1e-5, abs=1e-5)
    assert bound.scoring(first).params == pytest.approx(first, rel=1e-6)


@settings(max_examples=20)
@given(seed=st.integers(0, 1000))
def test_attention_is_equivariant_to_permutations_within_lists(seed: int) -> None:
    scoring, rng = scoring_of("two blocks", 0.7), np.random.default_rng(seed)
    scores = scoring.predict(X, offsets=OFFSETS)
    bounds = pairwise(OFFSETS)
    order = np.concatenate([lo + rng.permutation(hi - lo) for lo, hi in bounds])
    assert scoring.predict(X[order], offsets=OFFSETS) == pytest.approx(scores[order], rel=1e-9)


def test_attention_reads_the_list_and_nothing_else() -> None:
    scoring = scoring_of("attention")
    scores = scoring.predict(X, offsets=OFFSETS)
    for lo, hi in pairwise(OFFSETS):
        alone = scoring.predict(X[lo:hi], offsets=np.array([0, hi - lo]))
        assert alone == pytest.approx(scores[lo:hi], rel=1e-12)
    changed = X.copy()
    changed[30] += 1.0  # of the list 25:60
    moved = scoring.predict(changed, offsets=OFFSETS) != scores
    assert moved[25:60].all()
    assert not moved[:25].any()
    assert not moved[60:].any()


def test_rows_and_attention_weights_are_computed_in_chunks(monkeypatch) -> None:
    expected = {case: scoring_of(case).predict(X, offsets=OFFSETS) for case in CASES}
    monkeypatch.setattr(network_scoring, "CHUNK_VALUES", 150)
    monkeypatch.setattr(NumpyOperations, "max_cells", 7)
    for case, scores in expected.items():
        assert scoring_of(case).predict(X, offsets=OFFSETS) == pytest.approx(scores, rel=1e-10)
        assert scoring_of(case).predict(X[:0]).shape == (0,)


@pytest.mark.torch
def test_padded_batches_contain_each_row_once_and_few_attention_weights(monkeypatch) -> None:
    from firstpage.learning.scorers.torch_operations import ListBatches

    bound = CASES["attention"].bind(X, OFFSETS)
    monkeypatch.setattr("firstpage.learning.scorers.torch_operations.MAX_BATCH_CELLS", 1 << 16)
    lengths = np.concatenate([RNG.integers(0, 120, 200), [3000, 1, 0]])
    ends = np.concatenate([[0], np.cumsum(lengths)])
    lists, heads = ListBatches.of(ends, 2, bound.upload), 2
    padded = lists.rows.numpy()
    assert padded[lists.positions.numpy()].tolist() == list(range(ends[-1]))
    assert len(padded) < 1.3 * ends[-1]
    assert len(padded) == sum(count * width for count, width, _ in lists.shapes)
    for count, width, _ in lists.shapes:
        assert count == 1 or heads * count * width**2 <= 1 << 16


@pytest.mark.torch
def test_dropout_is_seeded_and_off_in_prediction() -> None:
    scorer = Network((64,), dropout=0.5)

    def evaluations(seed: int, skipped: int = 0) -> list[list[float]]:
        bound = scorer.bind(X, OFFSETS, seed)
        bound.load(bound.initial_params(0))
        bound.skip_draws(skipped)
        scores = np.empty(90)
        run, _ = bound.bind_slice(0, 90, scores, np.empty(90), np.empty(bound.size))
        return [(run(), scores.tolist())[1] for _ in range(3)]

    first, second, third = evaluations(1)
    assert first != second != third
    assert evaluations(1) == [first, second, third] != evaluations(2)
    assert evaluations(1, skipped=2)[0] == third
    bound = scorer.bind(X, OFFSETS, 1)
    params = bound.initial_params(0)
    without = Network((64,)).bind(X).predict(params, X)
    assert bound.predict(params, X).tolist() == without.tolist()
    draws = [forward(bound, params, 0, 90) for _ in range(200)]
    assert np.mean(draws, axis=0) == pytest.approx(without, abs=0.4)  # the expected score


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("none", X),
        ("log1p", np.sign(X) * np.log(1 + np.abs(X))),
        ("standardize", (X - X.mean(0)) / [*X.std(0)[:3], 1.0]),
    ],
)
def test_input_transforms_by_hand(name: str, expected: Floats) -> None:
    assert InputTransform.fit(name, X).apply(X) == pytest.approx(expected, abs=1e-12)


def test_both_input_transforms_standardize_the_logarithm() -> None:
    z = InputTransform.fit("log1p+standardize", X).apply(X)
    assert z.mean(axis=0) == pytest.approx(0, abs=1e-12)
    assert z.std(axis=0) == pytest.approx([1, 1, 1, 0], abs=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_networks_survive_files(case: str) -> None:
    scoring = scoring_of(case)
    read = NetworkScoring.from_dict(json.loads(json.dumps(scoring.to_dict())))
    assert read.predict(X, offsets=OFFSETS).tolist() == (
        scoring.predict(X, offsets=OFFSETS).tolist()
    )
    assert read.to_dict() == scoring.to_dict()
    assert read.by_query is (CASES[case].attention is not None)
    strength = read.explain().values
    assert strength.shape == (4,)
    assert (strength > 0).all()


def test_files_of_networks_with_one_layer_are_read() -> None:
    scoring = NetworkScoring.from_mlp_dict(MLP_FILE)
    assert scoring.predict(np.array([[2.0, 6.0]])).tolist() == [  # z = (2, 1)
        (2.0 + 0.25 + 0.5) - max(-4.0 + 1.0, 0.0) + 2 * max(1.0 - 1.0 - 1.0, 0.0) + 0.125
    ]
    strength = scoring.explain().values
    assert strength.tolist() == [1 + 2 + 0.5 * 2, 0.25 + 1 + 2]


@pytest.mark.parametrize("case", CASES)
def test_contributions_are_gradients_times_transformed_features(case: str, monkeypatch) -> None:
    monkeypatch.setattr(network_gradient, "MAX_CELLS", 5000)
    scoring, step = scoring_of(case), 1e-6
    rows = np.array([0, 3, 2, 40, 89])
    contributions = scoring.contributions(X, OFFSETS, rows)
    inputs = scoring.inputs.apply(X)
    identity = NetworkScoring(
        scoring.architecture, InputTransform("none", np.zeros(4), np.ones(4)), scoring.values
    )
    for i, row in enumerate(rows):
        for feature in range(4):
            ends = inputs.copy(), inputs.copy()
            ends[0][row, feature] += step
            ends[1][row, feature] -= step
            up, down = (identity.predict(end, offsets=OFFSETS)[row] for end in ends)
            expected = (up - down) / (2 * step) * inputs[row, feature]
            assert contributions.values[i, feature] == pytest.approx(expected, rel=1e-4, abs=1e-4)
    scores = scoring.predict(X, offsets=OFFSETS)
    assert contributions.values.sum(axis=1) + contributions.base == pytest.approx(scores[rows])
    monkeypatch.setattr(network_scoring, "EXPLAINED_ROWS", 7)
    of_all = scoring.contributions(X, OFFSETS)
    assert of_all.values[rows] == pytest.approx(contributions.values, rel=1e-9, abs=1e-12)


@pytest.mark.torch
def test_an_unknown_device_is_refused() -> None:
    with pytest.raises(DataError, match=r"device 'nowhere' cannot be used") as error:
        Network(device="nowhere").bind(X)
    assert "\n" not in str(error.value)


@pytest.mark.torch
def test_threads_are_limited_inside_the_context() -> None:
    import torch

    before = torch.get_num_threads()
    with torch_threads(1):
        assert torch.get_num_threads() == 1
    with torch_threads(None):
        assert torch.get_num_threads() == before
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"layers": (0,)}, "layers of Network must be integers of at least 1"),
        ({"layers": "x"}, "layers of Network must be integers of at least 1"),
        ({"layers": (2.5,)}, "layers of Network must be integers"),
        ({"activation": "rleu"}, "no activation 'rleu'. Did you mean 'relu'?"),
        ({"norm": "batch"}, "there is no norm 'batch'"),
        ({"input": "log"}, "there is no input 'log'"),
        ({"dropout": 1.0}, "dropout of Network must be below 1; got 1.0"),
        ({"dropout": -0.1}, "dropout of Network must be a number of at least 0"),
        ({"attention": (1,)}, "must be (blocks, heads)"),
        ({"attention": 2}, "attention of Network must be integers"),
        ({"attention": (1, 3)}, "must divide the units of the last layer; got 3 heads"),
        ({"attention": (1, 1), "layers": ()}, "must divide the units of the last layer"),
    ],
)
def test_invalid_parameters_are_refused(parameters: dict, message: str) -> None:
    with pytest.raises(ParameterError) as error:
        Network(**parameters)
    assert message in str(error.value)


@pytest.mark.parametrize("hidden", [0, -1, 2.5, "x"])
def test_the_number_of_hidden_units_is_a_positive_integer(hidden) -> None:
    with pytest.raises(ParameterError, match="hidden of MLP must be an integer of at least 1"):
        MLP(hidden=hidden)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"b": [0.5, 0.0]}, "do not match"),
        ({"W": [[1.0, -2.0, 0.5]]}, "do not match"),
        ({"v": [1.0, float("nan"), 2.0]}, "do not match"),
        ({"deviation": [0.0, 4.0]}, "is not above 0"),
        ({"c": float("inf")}, "is not finite"),
    ],
)
def test_invalid_networks_of_one_layer_are_refused(change: dict, message: str) -> None:
    with pytest.raises(DataError, match=message):
        NetworkScoring.from_mlp_dict({**MLP_FILE, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layers": [3, 6]}, "do not match"),
        ({"layers": [3, "4"]}, "not known"),
        ({"activation": "sine"}, "not known"),
        ({"attention": [2, 3, 3]}, "not known"),
        ({"attention": [2, 2]}, "not known"),
        ({"input": "log"}, "not known"),
        ({"params": [1.0]}, "do not match"),
        ({"mean": [1.0]}, "do not match"),
    ],
)
def test_invalid_networks_are_refused(change: dict, message: str) -> None:
    with pytest.raises(DataError, match=message):
        NetworkScoring.from_dict({**scoring_of("two blocks").to_dict(), **change})
