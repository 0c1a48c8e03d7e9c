"""Mistakes of a caller: one line that says what is wrong."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.errors import install_command

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

LOSS = fp.torch.ListMLELoss()
ZEROS = torch.zeros(2, 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((ZEROS, torch.zeros(3, 2)), "differ in shape: (2, 3) and (3, 2)"),
        ((ZEROS, ZEROS, torch.ones(2, 2, dtype=torch.bool)), "scores and mask differ in shape"),
        ((ZEROS, ZEROS, torch.ones(2, 3)), "mask must be bool"),
        ((torch.zeros(3), torch.zeros(3)), "one dimension with offsets; got (3,)"),
        ((torch.zeros(2, 3, dtype=torch.int64), ZEROS), "scores must be floating-point"),
        ((ZEROS, [[0, 1, 2], [0, 1, 2]]), "labels must be a torch.Tensor; got list"),
        ((np.zeros((2, 3)), ZEROS), "scores must be a torch.Tensor; got ndarray"),
        (([[0.0]], ZEROS), "scores must be a torch.Tensor; got list"),
        ((torch.zeros(0, 3), torch.zeros(0, 3)), "the batch is empty"),
        ((ZEROS, ZEROS.to(torch.complex64)), "must be real numbers"),
        ((ZEROS.to("meta"), ZEROS), "scores are on meta, labels on cpu"),
    ],
)
def test_shapes_and_types(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(fp.DataError) as caught:
        LOSS(*arguments)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("name", ["score", "label"])
def test_numbers_that_are_not_finite(name: str, value: float) -> None:
    bad = ZEROS.clone()
    bad[1, 2] = value
    arguments = (bad, ZEROS) if name == "score" else (ZEROS, bad)
    with pytest.raises(fp.DataError, match=rf"a {name} is -?(nan|inf) \(list 1, document 2\)"):
        LOSS(*arguments)
    flat = tuple(x.flatten() for x in arguments)
    with pytest.raises(fp.DataError, match=rf"a {name} is -?(nan|inf) \(row 5\)"):
        LOSS(*flat, offsets=torch.tensor([0, 6]))
    with pytest.raises(fp.DataError, match=rf"a {name} is -?(nan|inf) \(list 1, document 2\)"):
        fp.torch.ListNetLoss()(*arguments)
    mask = torch.ones(2, 3, dtype=torch.bool)
    mask[1, 2] = False
    assert torch.isfinite(LOSS(*arguments, mask))  # padding may be anything
    if name == "score":
        fp.torch.ListMLELoss(check=False)(*arguments)  # not checked on request


def test_large_finite_numbers_are_no_error() -> None:
    scores = torch.full((2, 3), 3e38)
    assert torch.isfinite(LOSS(scores, ZEROS))


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        ([0], "the batch is empty"),
        ([0, 3], "from 0 to the number of scores, 4; they are from 0 to 3"),
        ([1, 4], "they are from 1 to 4"),
        ([0, 3, 2, 4], "and descend in between"),
        ([0.0, 4.0], "offsets must be integers"),
    ],
)
def test_offsets(offsets: list[Any], message: str) -> None:
    with pytest.raises(fp.DataError) as caught:
        LOSS(torch.zeros(4), torch.zeros(4), offsets=torch.tensor(offsets))
    assert message in str(caught.value)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.uint16])
def test_unsigned_offsets(dtype: Any) -> None:
    with pytest.raises(fp.DataError, match="descend in between"):
        LOSS(torch.zeros(6), torch.zeros(6), offsets=torch.tensor([0, 3, 1, 6], dtype=dtype))
    flat = LOSS(ZEROS.flatten(), ZEROS.flatten(), offsets=torch.tensor([0, 3, 6], dtype=dtype))
    assert flat == LOSS(ZEROS, ZEROS)


def test_sparse_tensors_and_negated_views() -> None:
    with pytest.raises(fp.DataError, match=r"scores must be a dense tensor; got torch\.sparse_coo"):
        LOSS(ZEROS.to_sparse(), ZEROS)
    negated = torch.complex(ZEROS, torch.arange(6.0).view(2, 3)).conj().imag
    for loss in (LOSS, fp.torch.ListNetLoss()):
        assert loss(negated, ZEROS) == loss(negated.clone(), ZEROS)


def test_offsets_and_other_forms_exclude_each_other() -> None:
    offsets = torch.tensor([0, 3, 6])
    with pytest.raises(fp.DataError, match="not both"):
        LOSS(torch.zeros(6), torch.zeros(6), torch.ones(6, dtype=torch.bool), offsets=offsets)
    with pytest.raises(fp.DataError, match="one dimension"):
        LOSS(ZEROS, ZEROS, offsets=offsets)


@pytest.mark.parametrize("weights", [torch.ones(3), torch.ones(2) * 1j, [1.0, 2.0]])
def test_weights_of_lists(weights: Any) -> None:
    with pytest.raises(fp.DataError, match=r"one real number per list, 2|weights must be a"):
        LOSS(ZEROS, ZEROS, weights=weights)


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf")])
def test_weights_that_are_no_weights(weight: float) -> None:
    for loss in (LOSS, fp.torch.ListNetLoss(reduction="sum")):
        with pytest.raises(fp.DataError, match=f"not negative; that of list 1 is {weight}"):
            loss(ZEROS, ZEROS, weights=torch.tensor([1.0, weight]))


def test_lists_of_length_zero_add_nothing() -> None:
    for name in ("ListMLELoss", "ListNetLoss", "RankNetLoss", "RankCosineLoss", "SquaredErrorLoss"):
        scores = torch.zeros(2, 0, requires_grad=True)
        loss = getattr(fp.torch, name)()(scores, torch.zeros(2, 0))
        loss.backward()
        assert loss == 0


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("ListMLELoss", {"k": 0}, "k of ListMLELoss must be an integer of at least 1; got 0"),
        ("ListMLELoss", {"k": 2.5}, "must be an integer"),
        ("ListMLELoss", {"reduction": "max"}, "reduction must be"),
        ("ListNetLoss", {"temperature": 0}, "temperature of ListNetLoss must be a number above 0"),
        ("RankCosineLoss", {"floor": 0}, "floor of RankCosineLoss"),
        ("RankNetLoss", {"pairs": "some"}, "pairs must be 'all' or 'cross'"),
        ("FocusedNetLoss", {"beta": 1.5}, "beta must be from 0 to 1"),
        ("FocusedNetLoss", {"k": None}, "k of FocusedNetLoss must be an integer"),
    ],
)
def test_parameters(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(fp.FirstpageError) as caught:
        getattr(fp.torch, name)(**options)
    assert message in str(caught.value)


def test_without_pytorch_one_line_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import firstpage as fp\n"
        "dir(fp.torch)\n"
        "try: fp.torch.ListMLELoss\n"
        "except fp.FirstpageError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == (
        "fp.torch needs the package 'torch', which is not installed. "
        f"Install it with: {install_command('torch')}"
    )
