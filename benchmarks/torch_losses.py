"""Time of forward and backward passes of ranking losses in PyTorch, against other libraries.

    python benchmarks/torch_losses.py [--device cuda] [--lists 32] [--documents 100] [--k 10]
                                      [--only ListNet] [--padded] [--graph] [--operations]
    python benchmarks/torch_losses.py --steps --device cuda [--flat] [--hidden 64]

Peers are allRank and sentence-transformers, where they are installed.  Losses of allRank read
padded scores, as ours do.  Those of sentence-transformers read texts: theirs and ours (through
`CrossEncoderLoss`) get a model that returns stored scores, so that the loss and the handling of
lists remain.  allRank imports torchvision, pkg_resources and gcsfs, which its losses do not use:
where they are missing, empty modules are put in their place.

Held equal: the same scores and labels (five grades, no padding) in float32, one thread on the CPU.
All jobs run in turn, round after round, each twice, of which the second is timed; times are medians
of the rounds.  On the CPU they are CPU times of the process, so that other programs of the machine
do not count.  With --graph, passes are CUDA graphs, whose replays are timed: the device alone,
without the time to start each operation.  Passes that wait for the device cannot be such graphs,
and are left out.  With --operations, losses on a GPU are computed by operations of PyTorch instead
of Triton kernels.

With --steps, steps of training are timed instead: a network of 136 features and two hidden layers
(--hidden units each), the loss, the backward pass and Adam (fused on a GPU).  On a GPU every loss
is computed by Triton kernels and by operations of PyTorch in turn, and the ratio of their times is
printed; --flat takes lists of different lengths one after the other, in place of rows.

Definitions differ: allRank breaks ties of labels at random, and its LambdaLoss is a sum over the
batch; sentence-transformers takes the order of documents as given unless
`respect_input_order=False`.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import types
import warnings
from collections.abc import Callable
from typing import Any

import torch

import firstpage as fp
from common import peer, show, versions
from firstpage.learning.torch import device

Job = Callable[[], Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--lists", type=int, default=32)
    parser.add_argument("--documents", type=int, default=100)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--only", default="", help="losses whose name contains this")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--padded", action="store_true", help="padded scores only")
    parser.add_argument("--operations", action="store_true", help="no Triton kernels")
    parser.add_argument("--graph", action="store_true", help="time the device alone")
    parser.add_argument("--steps", action="store_true", help="time steps of training")
    parser.add_argument("--flat", action="store_true", help="lists one after the other")
    parser.add_argument("--hidden", type=int, default=64)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if args.steps:
        steps(args)
        return
    if args.operations:
        device.has_kernels = lambda device: False  # type: ignore[assignment]
    torch.manual_seed(0)
    scores = torch.randn(args.lists, args.documents, device=args.device)
    labels = torch.randint(0, 5, scores.shape, device=args.device).float()
    print(versions("torch", "allRank", "sentence-transformers"), f"device {args.device}")
    ours = our_losses(args.k)
    jobs = {f"firstpage {name}": padded(loss, scores, labels) for name, loss in ours.items()}
    jobs |= allrank_jobs(scores, labels, args.k)
    table("padded scores", jobs, args)
    jobs = {} if args.padded else sentence_transformers_jobs(scores, labels, ours, args.k)
    if jobs:
        table("lists of texts, stored scores", jobs, args)


FEATURES = 136


def steps(args: argparse.Namespace) -> None:
    """Print the times of training steps of all losses, by kernels and by operations."""
    torch.manual_seed(0)
    lengths = torch.randint(args.documents // 2, 3 * args.documents // 2 + 1, (args.lists,))
    rows = (int(lengths.sum()),) if args.flat else (args.lists, args.documents)
    X = torch.randn(*rows, FEATURES, device=args.device)
    labels = torch.randint(0, 5, rows, device=args.device).float()
    options = {}
    if args.flat:
        ends = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
        options["offsets"] = ends.to(args.device)
    kernels = ("kernels", "operations") if args.device.startswith("cuda") else ("kernels",)
    jobs = {
        f"{by} {name}": step(loss, X, labels, options, args.hidden, by)
        for name, loss in our_losses(args.k).items()
        for by in kernels
    }
    times = run_in_turn({name: job for name, job in jobs.items() if args.only in name}, args)
    cells: dict[str, list[float]] = {}
    for name, values in times.items():
        cells.setdefault(name.partition(" ")[2], []).append(1e3 * statistics.median(values))
    table = [
        [name, *(f"{t:.3f}" for t in medians), *(f"{t / medians[0]:.2f}" for t in medians[1:])]
        for name, medians in cells.items()
    ]
    print(versions("torch", "triton"), f"device {args.device}")
    shape = " x ".join(map(str, rows)) if not args.flat else f"{args.lists} lists, {rows[0]} rows"
    show(
        f"steps of training, {shape}: ms, median",
        ["loss", *kernels, *["ratio"] * (len(kernels) - 1)],
        table,
    )


def step(
    loss: Any,
    X: torch.Tensor,
    labels: torch.Tensor,
    options: dict[str, Any],
    hidden: int,
    by: str,
) -> Job:
    """Return a step of training whose loss is computed by "kernels" or by "operations"."""
    n = torch.nn
    torch.manual_seed(0)
    layers = [n.Linear(FEATURES, hidden), n.ReLU(), n.Linear(hidden, hidden), n.ReLU()]
    model = n.Sequential(*layers, n.Linear(hidden, 1)).to(X.device)
    optimizer = torch.optim.Adam(model.parameters(), fused=X.device.type == "cuda")
    has_kernels = device.has_kernels if by == "kernels" else lambda device: False

    def run() -> None:
        device.has_kernels = has_kernels
        optimizer.zero_grad()
        loss(model(X).squeeze(-1), labels, **options).backward()
        optimizer.step()

    return run


def our_losses(k: int) -> dict[str, Any]:
    t = fp.torch
    pairs: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
        "ListMLE": (t.ListMLELoss, {}),
        "ListNet": (t.ListNetLoss, {}),
        "RankNet": (t.RankNetLoss, {}),
        "LambdaLoss": (t.LambdaRankLoss, {"measure": "NDCG"}),
        "RankCosine": (t.RankCosineLoss, {}),
        "SquaredError": (t.SquaredErrorLoss, {}),
        "PLRank": (t.PLRankLoss, {"measure": "NDCG"}),
    }
    losses = {}
    for name, (loss, options) in pairs.items():
        losses[name] = loss(**options)
        losses[f"{name}, k={k}"] = loss(k=k, **options)
    losses[f"FocusedNet, k={k}"] = t.FocusedNetLoss(k=k)
    return losses


def padded(loss: Callable[..., Any], scores: torch.Tensor, labels: torch.Tensor) -> Job:
    leaf = scores.clone().requires_grad_()

    def run() -> None:
        leaf.grad = None
        loss(leaf, labels).backward()

    return run


UNUSED = {
    "torchvision": ["transforms"],
    "torchvision.transforms": ["Compose"],
    "pkg_resources": ["Requirement", "resource_filename"],
    "gcsfs": [],
}


def replace_missing_modules() -> None:
    """Put empty modules in the place of those that allRank imports and its losses do not use."""
    missing = [name for name in UNUSED if peer(name) is None]
    for name in missing:
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(dict.fromkeys(UNUSED[name]))


def allrank_jobs(scores: torch.Tensor, labels: torch.Tensor, k: int) -> dict[str, Job]:
    replace_missing_modules()
    losses = peer("allrank.models.losses")
    if losses is None:
        return {}

    def with_k(**options: Any) -> Callable[..., Any]:
        return lambda s, y: losses.lambdaLoss(s, y, **options)

    scheme = "lambdaRank_scheme"
    functions = {
        "ListMLE": losses.listMLE,
        "ListNet": losses.listNet,
        "RankNet": losses.rankNet,
        "LambdaLoss": with_k(weighing_scheme=scheme),
        f"LambdaLoss, k={k}": with_k(weighing_scheme=scheme, k=k),
    }
    return {f"allRank {name}": padded(f, scores, labels) for name, f in functions.items()}


class StoredScores(torch.nn.Module):
    """A model in the place of a CrossEncoder, which returns its parameters as scores."""

    num_labels = 1

    def __init__(self, scores: torch.Tensor) -> None:
        super().__init__()
        self.scores = torch.nn.Parameter(scores.flatten().clone())
        self.device = scores.device

    def preprocess(self, pairs: list[Any], **options: Any) -> dict[str, Any]:
        return {}

    def forward(self, features: dict[str, Any]) -> dict[str, torch.Tensor]:
        return {"scores": self.scores}


def sentence_transformers_jobs(
    scores: torch.Tensor, labels: torch.Tensor, ours: dict[str, Any], k: int
) -> dict[str, Job]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peers = peer("sentence_transformers.cross_encoder.losses")
    if peers is None:
        return {}
    model = StoredScores(scores)
    inputs = [["q"] * len(scores), [["d"] * scores.shape[1]] * len(scores)]
    rows = list(labels)

    def job(loss: torch.nn.Module) -> Job:
        def run() -> None:
            model.scores.grad = None
            loss(inputs, rows).backward()

        return run

    scheme = peers.LambdaRankScheme()
    theirs = {
        "ListMLE": peers.ListMLELoss(model, mini_batch_size=-1, respect_input_order=False),
        "ListMLE, order given": peers.ListMLELoss(model, mini_batch_size=-1),
        "ListNet": peers.ListNetLoss(model, mini_batch_size=-1),
        "RankNet": peers.RankNetLoss(model, mini_batch_size=-1),
        "LambdaLoss": peers.LambdaLoss(model, scheme, mini_batch_size=-1),
        f"LambdaLoss, k={k}": peers.LambdaLoss(model, scheme, k=k, mini_batch_size=-1),
    }
    jobs = {
        f"firstpage {name}": job(fp.torch.CrossEncoderLoss(model, loss, mini_batch_size=-1))
        for name, loss in ours.items()
    }
    return jobs | {f"sentence-transformers {name}": job(loss) for name, loss in theirs.items()}


PASSES = 50  # of a CUDA graph, so that its start does not count


def cuda_graph(job: Job) -> Job | None:
    """Return the replay of many passes, or None where a pass waits for the device."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            job()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            for _ in range(PASSES):
                job()
    except RuntimeError:
        torch.cuda.synchronize()
        return None
    return graph.replay


def run_in_turn(jobs: dict[str, Job], args: argparse.Namespace) -> dict[str, list[float]]:
    """Return the seconds of every job in every round."""
    times: dict[str, list[float]] = {name: [] for name in jobs}
    wait = torch.cuda.synchronize if args.device.startswith("cuda") else (lambda: None)
    clock = time.perf_counter if args.device.startswith("cuda") else time.process_time
    for round_number in range(args.rounds + 3):
        for name, job in jobs.items():
            job()  # so that the caches are those of this job
            wait()
            start = clock()
            job()
            wait()
            if round_number >= 3:
                times[name].append((clock() - start) / (PASSES if args.graph else 1))
    return times


def table(title: str, jobs: dict[str, Job], args: argparse.Namespace) -> None:
    """Run all jobs in turn and print their times, next to those of the peers."""
    jobs = {name: job for name, job in jobs.items() if args.only in name}
    if args.graph:
        jobs = {name: graph for name, job in jobs.items() if (graph := cuda_graph(job))}
    times = run_in_turn(jobs, args)
    medians = {name: statistics.median(values) for name, values in times.items()}
    least = {name: min(values) for name, values in times.items()}
    losses: dict[str, dict[str, str]] = {}
    for name in jobs:
        library, _, loss = name.partition(" ")
        losses.setdefault(loss, {})[library] = (
            f"{1e3 * medians[name]:.4f} ({1e3 * least[name]:.4f})"
        )
    libraries = list(dict.fromkeys(name.partition(" ")[0] for name in jobs))
    rows = [
        [loss, *(cells.get(library, "") for library in libraries)] for loss, cells in losses.items()
    ]
    show(
        f"forward and backward of {args.lists} x {args.documents}, {title}: ms, median (least)",
        ["loss", *libraries],
        rows,
    )


if __name__ == "__main__":
    main()
