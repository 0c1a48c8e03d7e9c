"""Time of passes and whole fits on a GPU, relative to the time of reading the features.

    python benchmarks/device.py [--rows N]
    python benchmarks/device.py --operations [--rows N]

Synthetic data have the size of WEB30K: 31,531 queries, 3,771,125 documents, 136 features and five
grades.

Held equal: GPU and CPU compute the same objective at the same parameters; each line reports the
relative difference of value and gradient.

With --operations, passes by the Triton kernels are compared with passes by operations of PyTorch:
scores, the formulas of `firstpage.torch` on lists that are padded to powers of two, and the product
of features and gradient.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median

import numpy as np

import firstpage as fp
from firstpage.learning.gpu import has_kernels
from firstpage.learning.losses import PairwiseLogistic, PlackettLuce
from firstpage.learning.losses.listwise import Cosine, SoftmaxCrossEntropy, SquaredError
from firstpage.learning.scorers import Linear
from firstpage.learning.solvers import BlockObjective, device_objective, torch
from firstpage.learning.torch.batches import Lists

QUERIES, ROWS, FEATURES = 31_531, 3_771_125, 136
GRADE_FRACTIONS = (0.52, 0.32, 0.13, 0.02, 0.01)  # about those of MSLR


def web30k(rows: int) -> fp.Dataset:
    """Return lists with lengths like those of WEB30K; labels are noisy functions of features."""
    rng = np.random.default_rng(0)
    queries = max(1, QUERIES * rows // ROWS)
    lengths = np.clip(rng.lognormal(4.5, 0.75, queries), 1, 1251)
    lengths = np.maximum(1, lengths * rows / lengths.sum()).astype(np.int64)
    n = int(lengths.sum())
    X = rng.standard_normal((n, FEATURES), np.float32)
    utility = X[:, :40] @ rng.normal(size=40).astype(np.float32) + 6 * rng.standard_normal(n)
    y = np.searchsorted(np.quantile(utility, np.cumsum(GRADE_FRACTIONS)[:-1]), utility)
    return fp.Dataset.from_arrays(X, y, np.repeat(np.arange(queries), lengths))


def device_time(run: Callable[[], object], repeats: int = 20) -> float:
    """Return the median time on the device in milliseconds."""
    t = torch()
    for _ in range(3):
        run()
    times = []
    for _ in range(repeats):
        start, end = t.cuda.Event(enable_timing=True), t.cuda.Event(enable_timing=True)
        start.record()
        run()
        end.record()
        t.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return median(times)


def copy_time(data: fp.Dataset) -> float:
    """Return the milliseconds of a copy of the features on the device (a read and a write)."""
    X = torch().tensor(data.X, device="cuda")
    other = torch().empty_like(X)
    return device_time(lambda: other.copy_(X))


def operations(data: fp.Dataset) -> None:
    """Print the times of passes by kernels and by operations of PyTorch."""
    from firstpage.learning import torch as losses

    t = torch()
    X, offsets = t.tensor(data.X, device="cuda"), data.truth.offsets
    y = t.tensor(data.y, device="cuda", dtype=t.float32)
    lengths = np.diff(offsets)
    widths = np.where(lengths > 0, 1 << np.ceil(np.log2(np.maximum(lengths, 1))).astype(int), 0)
    groups = []
    for width in np.unique(widths[widths > 0]).tolist():
        queries = np.flatnonzero(widths == width)
        at = t.tensor(offsets[queries], device="cuda")[:, None] + t.arange(width, device="cuda")
        mask = t.arange(width, device="cuda") < t.tensor(lengths[queries], device="cuda")[:, None]
        rows = t.where(mask, at, 0)
        inside = mask.flatten().nonzero().squeeze(-1)
        groups.append((rows, mask, t.where(mask, y[rows], -t.inf), inside, rows.flatten()[inside]))
    w = t.randn(FEATURES, device="cuda") * 0.1
    for name, loss, module in (
        ("ListMLE", PlackettLuce(), losses.ListMLELoss()),
        ("ListMLE(k=10)", PlackettLuce(10), losses.ListMLELoss(k=10)),
        ("ListNet", SoftmaxCrossEntropy(), losses.ListNetLoss()),
        ("RankCosine", Cosine(), losses.RankCosineLoss()),
        ("SquaredError", SquaredError(), losses.SquaredErrorLoss()),
        ("RankNet(k=10)", PairwiseLogistic(10), losses.RankNetLoss(k=10)),
        ("RankNet", PairwiseLogistic(), losses.RankNetLoss()),
    ):
        on_cpu = BlockObjective(loss, Linear().bind(data.X), data.truth, 4 * FEATURES)
        on_gpu = device_objective(on_cpu, data.truth, "cuda")

        def unfused(module=module, on_gpu=on_gpu):
            grad = on_gpu._losses.run(0, len(data), on_gpu._X @ w)[1]
            return on_gpu._X.T @ grad

        def by_operations(module=module):
            scores, grad = X @ w, t.zeros(len(X), device="cuda")
            for rows, mask, key, inside, own in groups:
                lists = Lists(scores[rows].masked_fill_(~mask, 0.0), key, mask)
                grad[own] = module._formula(lists)[1].flatten()[inside]
            return X.T @ grad

        times = []
        for run in (lambda on_gpu=on_gpu: on_gpu._pass(w), unfused, by_operations):
            if run is by_operations:
                losses.device.has_kernels = lambda device: False
            try:
                times.append(f"{device_time(run):.3f}")
            except (RuntimeError, t.OutOfMemoryError) as error:
                times.append(str(error).splitlines()[0][:60])
        losses.device.has_kernels = has_kernels
        print(
            f"{name}: a fused pass {times[0]} ms, kernels of lists {times[1]}, "
            f"operations {times[2]}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--operations", action="store_true", help="compare with operations")
    args = parser.parse_args()
    data, t = web30k(args.rows), torch()
    print(f"{t.cuda.get_device_name()}: {len(data):,} queries, {data.n_docs:,} documents")
    read_time = copy_time(data) / 2
    speed = data.X.nbytes * 1e-9 / read_time
    print(f"reading the features takes {read_time:.3f} ms ({speed:.2f} TB/s)")
    if args.operations:
        operations(data)
        return
    top_10 = data.with_labels(data.truth.top_k(10, seed=0))
    cases = [
        ("ListMLE(k=10), grades", PlackettLuce(10), data),
        ("ListMLE, top-10 truth", PlackettLuce(), top_10),
        ("RankNet, top 10 x rest, top-10 truth", PairwiseLogistic(10, pairs="cross"), top_10),
        ("RankNet, top 10 x rest, grades", PairwiseLogistic(10, pairs="cross"), data),
        ("RankNet, all pairs of grades", PairwiseLogistic(), data),
    ]
    for name, loss, labeled in cases:
        on_cpu = BlockObjective(loss, Linear().bind(labeled.X), labeled.truth, 4 * FEATURES)
        on_gpu = device_objective(on_cpu, labeled.truth, "cuda")
        w = t.randn(FEATURES, device="cuda") * 0.1
        pass_time = device_time(lambda f=on_gpu, w=w: f._pass(w))
        params = w.double().cpu().numpy()
        value, gradient = on_gpu(params)
        start = time.perf_counter()
        cpu_value, cpu_gradient = on_cpu(params)
        cpu_time = time.perf_counter() - start
        value_error = abs(value / cpu_value - 1)
        gradient_error = np.abs(gradient - cpu_gradient).max() / np.abs(cpu_gradient).max()
        print(
            f"{name}: a pass takes {pass_time:.3f} ms, {pass_time / read_time:.2f} times a read; "
            f"relative difference from the CPU (a pass of {cpu_time:.2f} s): value "
            f"{value_error:.1e}, gradient {gradient_error:.1e}"
        )
    for ranker in (fp.ListMLE(k=10, device="cuda"), fp.RankNet(k=10, device="cuda")):
        for fit in ("first fit", "second fit"):
            start = time.perf_counter()
            ranker.fit(data)
            duration = time.perf_counter() - start
            print(f"{ranker}, {fit}: {duration:.2f} s, {ranker.n_iter_} iterations")
    small = data[: len(data) // 20]
    cpu_scores = fp.ListMLE(k=10).fit(small).predict(small)
    gpu_scores = fp.ListMLE(k=10, device="cuda").fit(small).predict(small)
    difference = np.abs(gpu_scores - cpu_scores).max()
    print(
        "scores of fits on a twentieth of the queries: GPU and CPU differ by at most "
        f"{difference:.1e} in a range of {np.ptp(cpu_scores):.1f}"
    )


if __name__ == "__main__":
    main()
