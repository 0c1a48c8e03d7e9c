"""Fitting on a device: kernels are interpreted on the CPU, and compiled for a GPU."""

from __future__ import annotations

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.errors import DataError
from firstpage.learning.losses.focused import focused_net, focused_svm
from firstpage.learning.losses.listwise import PlackettLuce
from firstpage.learning.losses.structural import AveragePrecisionHinge
from firstpage.learning.scorers.linear import Linear
from firstpage.learning.solvers.gpu.objective import (
    HostLossObjective,
    _balanced_ranges,
    device_objective,
    uploaded,
)
from firstpage.learning.solvers.objective import BlockObjective, query_ranges
from tests.interpreted_kernels import check_interpreted

pytestmark = pytest.mark.torch

DATA = fp.Synthetic(queries=60, docs="uniform(2, 30)", features=6, grades=3, seed=1).dataset()


def triton_or_skip() -> None:
    pytest.importorskip("triton", reason="no Triton: its kernels are not tested")


def test_interpreted_kernels_match_the_cpu() -> None:
    check_interpreted("tests.learning.solvers.gpu.on_cpu")


def test_kernels_compile_for_a_gpu() -> None:
    triton_or_skip()
    import triton
    from triton.backends.compiler import GPUTarget

    from firstpage.learning.gpu import list_kernels

    kinds = dict.fromkeys("XWSGABKD", "*fp32") | {
        "OFFSETS": "*i64",
        "COUNTS": "*i32",
        "FACTORS": "*fp32",
        "QUERY_WEIGHTS": "*fp32",
        "FIRSTS": "*i32",
        "VALUES": "*fp64",
        "GRADIENTS": "*fp32",
        "first": "i32",
    }
    fixed = {"F": 46, "WIDE": 32, "REST": 16, "R": 32, "N": 128, "LOSS": list_kernels.pairs}
    for kernel in (list_kernels.fused_pass, list_kernels.each_query):
        names = kernel.arg_names
        source = triton.compiler.ASTSource(
            fn=kernel,
            signature={n: "constexpr" if n in fixed else kinds[n] for n in names},
            constexprs={(names.index(n),): v for n, v in fixed.items() if n in names},
        )
        built = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})
        assert ".visible .entry" in built.asm["ptx"]


def test_without_kernels_the_loss_is_computed_on_the_host() -> None:
    for loss in (PlackettLuce(3), AveragePrecisionHinge(3)):
        host = BlockObjective(loss, Linear().bind(DATA.X), DATA.truth, 24, l2=0.1)
        device = device_objective(host, DATA.truth, "cpu")
        assert isinstance(device, HostLossObjective)
        params = np.random.default_rng(0).normal(size=6)
        (value, gradient), expected = device(params), host(params)
        assert value == pytest.approx(expected[0], rel=1e-5)
        assert gradient == pytest.approx(expected[1], rel=1e-4, abs=1e-5)
        assert device.relative_error == 1e-7


def test_losses_with_kernels_have_terms() -> None:
    assert [t.kind for t in PlackettLuce().target(DATA.truth).terms() or ()] == ["plackett_luce"]
    assert AveragePrecisionHinge(3).target(DATA.truth).terms() is None
    assert focused_svm(5, 0.5).target(DATA.truth).terms() is None
    kinds = [t.kind for t in focused_net(5, 0.5).target(DATA.truth).terms() or ()]
    assert kinds[-1] == "pairs"


def test_features_are_uploaded_in_any_order_dense_or_sparse(monkeypatch) -> None:
    from scipy.sparse import csr_array

    monkeypatch.setattr("firstpage.learning.solvers.gpu.objective.CHUNK_ROWS", 7)
    rng = np.random.default_rng(0)
    X, order = rng.random((40, 3)), rng.permutation(40)
    for features in (X, csr_array(X)):
        assert uploaded(features, order, "cpu").numpy() == pytest.approx(X[order], rel=1e-6)
        assert uploaded(features, np.arange(40), "cpu").numpy() == pytest.approx(X, rel=1e-6)


def test_work_is_split_between_queries() -> None:
    offsets = np.array([0, 3, 3, 10, 11])
    assert query_ranges(offsets, 4) == [(0, 2), (2, 3), (3, 4)]
    ends = _balanced_ranges(offsets, 3)
    assert (ends[0], ends[-1]) == (0, 4)
    assert (np.diff(ends) >= 0).all()
    assert _balanced_ranges(np.array([0, 2]), 5).tolist()[-1] == 1


@pytest.mark.parametrize(
    ("ranker", "message"),
    [
        (fp.ListMLE(device="cuda:99"), "device 'cuda:99' cannot be used"),
        (fp.ListMLE(device="tpu"), "device 'tpu' cannot be used"),
        (
            fp.ListMLE(device="cuda", solver="cutting plane"),
            "by 'lbfgs' or a descent, not by CuttingPlane",
        ),
        (fp.ListMLE(device="cuda", scorer="trees"), "trees grow on the CPU"),
    ],
    ids=str,
)
def test_unsupported_devices_and_solvers_are_refused(ranker, message: str) -> None:
    with pytest.raises(DataError, match=message):
        ranker.fit(DATA)


def test_device_cpu_changes_nothing() -> None:
    default = fp.ListMLE(k=5).fit(DATA)
    assert fp.ListMLE(k=5, device="cpu").fit(DATA).coef_.tolist() == default.coef_.tolist()
    assert "device" in fp.RankNet().get_params()
