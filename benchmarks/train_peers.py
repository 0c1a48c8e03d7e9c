"""Training speed, the peers' side: linear scorers that rax, allRank and TF-Ranking train.

Used by benchmarks/train.py. Peers get the configuration that cost them least: float32, lists of
similar length padded together before the clock starts, everything compiled by an epoch that does
not count, one thread for torch and tensorflow (what counts is CPU time, and a second one added a
third or more to it; to jax it made no difference), and Adam on mini-batches. What was tried, on
MQ2008 (471 lists) and on 480 and 4800 synthetic lists of 100 documents:

  steps per epoch (rate)     for the smaller two 1 (0.1), 4 (0.1 and 0.05), 8 (0.05 and 0.03),
                             16 (0.03); for the larger 8 (0.05), 16 (0.03), 32 and 40 (0.02), 80
                             (0.01): rax is quickest where a step fits the cache, some 6000
                             documents, the others where steps are few
  padding                    1.5, 2, 3, 4 and no limit on the longest over the shortest list padded
                             together: 1.5 is best for rax and for pairs in TF-Ranking; elsewhere
                             fewer, larger operations pay
  rax                        one call per epoch (a scan) or per step: a scan where steps are
                             small; pairs in a scan took up to 2.7 times as long
  allRank                    torch.compile saved a quarter of ListNet's time on MQ2008 but cost
                             a third or more on long lists; ListMLE's gradients came out wrong
                             on padded lists; RankNet picks its pairs by a mask, whose size
                             changes, and is left as it is
  TF-Ranking                 graph or XLA: XLA saved a third with pairs, took twice as long with
                             ListMLE, and made no difference to ListNet

ListMLE breaks ties of grades at random, as allRank and TF-Ranking do anyway and rax's manual
asks for: without it rax reached an NDCG@10 of 0.53 instead of 0.71 on MQ2008. ListNet's target,
the softmax of the grades, is computed before the clock starts where a peer takes it as its
labels (rax, TF-Ranking). No peer has RankCosine.

allRank 1.4.3 pins an old torch: install it with --no-deps, and torch, torchvision, attrs, gcsfs
and setuptools<81 besides. TF-Ranking 0.5.5 imports tensorflow.estimator, which newer tensorflow
lacks; 2.14 has it and needs numpy<2, which we do not run on. So put TF-Ranking into an
environment of its own, and name that one's interpreter in PEER_PYTHONS (several are separated
as in PATH).
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from common import cpu_seconds, peer

Lists = tuple[np.ndarray, np.ndarray, np.ndarray]  # X, y, offsets

REPEATS = 5
PATIENCE = 20.0  # CPU seconds after which a training is not repeated
RAX = {"ListNet": "softmax_loss", "ListMLE": "listmle_loss", "RankNet": "pairwise_logistic_loss"}
ALLRANK = {"ListNet": "listNet", "ListMLE": "listMLE", "RankNet": "rankNet"}
TFR = {"ListNet": "SoftmaxLoss", "ListMLE": "ListMLELoss", "RankNet": "PairwiseLogisticLoss"}


@dataclass(frozen=True)
class PeerRun:
    """What a peer's training took, and how good the scorer was after each epoch."""

    peer: str
    loss: str
    cpu: float
    ndcg: list[float]
    epochs: int


@dataclass(frozen=True)
class Training:
    """A training not yet judged: median CPU time and the weights after each epoch."""

    peer: str
    cpu: float
    weights: list[list[float]]


@dataclass(frozen=True)
class Block:
    """Lists of similar length, padded; the axes are step, list, document (and feature)."""

    x: np.ndarray
    y: np.ndarray
    there: np.ndarray

    @property
    def lists(self) -> int:
        return int(self.y.shape[1])

    def target(self, loss: str, padding: float) -> np.ndarray:
        """Grades, or the top-one probabilities that ListNet compares with."""
        value = self.y
        if loss == "ListNet":
            value = np.exp(value - value.max(axis=-1, keepdims=True)) * self.there
            value /= value.sum(axis=-1, keepdims=True)
        return np.where(self.there, value, np.float32(padding))


def run_peers(
    loss: str,
    train: Lists,
    valid: Lists,
    ndcg: Callable[[np.ndarray], float],
    epochs: int = 30,
) -> list[PeerRun]:
    """Train with every peer that is installed and has the loss.

    Validation waits until the training is over: threads it wakes would count as training.
    """
    trainings = trainings_here(loss, train, epochs)
    for python in filter(None, os.environ.get("PEER_PYTHONS", "").split(os.pathsep)):
        trainings += trainings_there(python, loss, train, epochs)
    runs = []
    for training in trainings:
        scores = [valid[0] @ np.asarray(w, np.float32) for w in training.weights]
        runs.append(PeerRun(training.peer, loss, training.cpu, [*map(ndcg, scores)], epochs))
    return runs


def ridge_cpu(train: Lists) -> float:
    """CPU time of least squares in closed form: what a linear scorer costs without ranking."""
    from sklearn.linear_model import Ridge
    from threadpoolctl import threadpool_limits

    x, y, _ = train
    with threadpool_limits(1):
        return cpu_seconds(lambda: Ridge().fit(x, y))


def trainings_here(loss: str, train: Lists, epochs: int) -> list[Training]:
    found = [with_peer(loss, train, epochs) for with_peer in (with_rax, with_allrank, with_tfr)]
    return [training for training in found if training is not None]


def trainings_there(python: str, loss: str, train: Lists, epochs: int) -> list[Training]:
    """The same in another environment, for peers whose pins exclude ours."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.npz"
        np.savez(path, *train)
        command = [python, __file__, loss, str(path), str(epochs)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return [Training(**fields) for fields in json.loads(done.stdout.splitlines()[-1])]


def plan(train: Lists, docs: int) -> tuple[int, float]:
    """Steps in an epoch, of about `docs` documents but never fewer than 4, and Adam's rate."""
    steps = max(4, round(len(train[1]) / docs))
    return steps, 0.1 / steps**0.5


def small(train: Lists, steps: int) -> bool:
    """Whether calls cost more than arithmetic, so that fewer of them pay."""
    return len(train[1]) < 4000 * steps


def blocks(train: Lists, steps: int, growth: float) -> list[Block]:
    """Lists dealt out to the steps of an epoch so that each gets all lengths in proportion.

    All steps then have the same shapes, and one compiled function serves them. `growth` limits
    the longest over the shortest list of a block. Where the lists do not divide evenly, a few
    of the shortest are dealt twice.
    """
    x, y, offsets = train
    rng = np.random.default_rng(0)
    length = np.diff(offsets)
    order = rng.permutation(np.flatnonzero(length))
    order = order[np.argsort(length[order], kind="stable")]
    missing = -len(order) % steps
    order = np.concatenate([np.repeat(order[:missing], 2), order[missing:]])
    dealt = rng.permuted(order.reshape(-1, steps), axis=1)
    longest = length[dealt].max(axis=1)
    found = []
    stop = len(dealt)
    while stop:
        width = longest[stop - 1]
        start = int(np.searchsorted(longest, width / growth))
        queries = dealt[start:stop].T
        rows = offsets[queries][..., None] + np.arange(width)
        there = rows < offsets[queries + 1][..., None]
        rows[~there] = 0
        found.append(Block(x[rows] * there[..., None], (y[rows] * there).astype(np.float32), there))
        stop = start
    return found


def first_weights(features: int) -> np.ndarray:
    """Small but not zero: TF-Ranking's pairwise loss has no gradient where all scores tie."""
    return np.random.default_rng(1).normal(scale=0.01, size=features).astype(np.float32)


def timed(
    steps: int,
    epochs: int,
    fresh: Callable[[], Any],
    epoch: Callable[[Any, np.ndarray], Any],
    weights: Callable[[Any], np.ndarray],
) -> tuple[float, list[list[float]]]:
    """Median CPU time of all epochs, after one that compiles, and the weights after each."""
    rng = np.random.default_rng(2)
    orders = [rng.permutation(steps) for _ in range(epochs)]
    weights(epoch(fresh(), orders[0]))
    times: list[float] = []
    found: list[np.ndarray] = []
    while len(times) < REPEATS and sum(times) < PATIENCE:
        state, found = fresh(), []
        start = time.process_time()
        for order in orders:
            state = epoch(state, order)
            found.append(weights(state))
        times.append(time.process_time() - start)
    return statistics.median(times), np.array(found).tolist()


def with_rax(loss: str, train: Lists, epochs: int) -> Training | None:
    rax, optax, jax = peer("rax"), peer("optax"), peer("jax")
    if rax is None or optax is None or jax is None or loss not in RAX:
        return None
    jnp, value = jax.numpy, getattr(rax, RAX[loss])
    features = train[0].shape[1]
    steps, rate = plan(train, docs=6_000)
    dealt = blocks(train, steps, growth=1.5)
    lists = sum(block.lists for block in dealt)
    padded = [not block.there.all() for block in dealt]
    arrays = [(block.x, block.target(loss, padding=0), block.there) for block in dealt]
    adam = optax.adam(rate)

    def objective(w: Any, batch: Any, key: Any) -> Any:
        total = 0.0
        for i, (x, y, there) in enumerate(batch):
            options = {"where": there} if padded[i] else {}
            if loss == "ListMLE":
                options["key"] = jax.random.fold_in(key, i)
            scores = (x.reshape(-1, features) @ w).reshape(y.shape)
            total += value(scores, y, reduce_fn=jnp.sum, **options)
        return total / lists

    def step(state: Any, batch: Any) -> Any:
        w, moments, key = state
        key, now = jax.random.split(key) if loss == "ListMLE" else (key, key)
        update, moments = adam.update(jax.grad(objective)(w, batch, now), moments)
        return optax.apply_updates(w, update), moments, key

    def scan(state: Any, order: Any, data: Any) -> Any:
        def body(state: Any, i: Any) -> Any:
            return step(state, jax.tree.map(lambda part: part[i], data)), None

        return jax.lax.scan(body, state, order)[0]

    def fresh() -> Any:
        w = jnp.asarray(first_weights(features))
        return jax.block_until_ready((w, adam.init(w), jax.random.key(0, impl="rbg")))

    if loss != "RankNet" and small(train, steps):
        data, compiled = jax.tree.map(jnp.asarray, arrays), jax.jit(scan)

        def epoch(state: Any, order: np.ndarray) -> Any:
            return compiled(state, order, data)
    else:
        batches = [[[jnp.asarray(a[i]) for a in part] for part in arrays] for i in range(steps)]
        compiled = jax.jit(step)

        def epoch(state: Any, order: np.ndarray) -> Any:
            for i in order:
                state = compiled(state, batches[i])
            return state

    name = f"rax {version('rax')} (jax {version('jax')})"
    return Training(name, *timed(steps, epochs, fresh, epoch, lambda state: np.array(state[0])))


def with_allrank(loss: str, train: Lists, epochs: int) -> Training | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        losses, torch = peer("allrank.models.losses"), peer("torch")
    if losses is None or torch is None or loss not in ALLRANK:
        return None
    value = getattr(losses, ALLRANK[loss])
    features = train[0].shape[1]
    steps, rate = plan(train, docs=30_000)
    dealt = blocks(train, steps, growth=np.inf if loss == "ListMLE" else 3.0)

    def batch(i: int) -> list[tuple[Any, Any, float]]:
        """The parts of a step; their means are weighted by what they are means over."""
        parts = []
        for block in dealt:
            y = np.where(block.there[i], block.y[i], np.float32(-1))
            terms = block.lists
            if loss == "RankNet":
                higher = (y[:, :, None] > y[:, None, :]) & block.there[i][:, None, :]
                terms = int(higher.sum())
            if terms:
                parts.append((torch.tensor(block.x[i]), torch.tensor(y), terms))
        total = sum(terms for _, _, terms in parts)
        return [(x, y, terms / total) for x, y, terms in parts]

    def objective(w: Any, parts: Any) -> Any:
        total = 0.0
        for x, y, weight in parts:
            total = total + weight * value((x.view(-1, features) @ w).view(y.shape), y)
        return total

    def fresh() -> Any:
        w = torch.tensor(first_weights(features), requires_grad=True)
        return w, torch.optim.Adam([w], lr=rate, fused=True)

    def epoch(state: Any, order: np.ndarray) -> Any:
        w, adam = state
        for i in order:
            adam.zero_grad()
            compiled(w, batches[i]).backward()
            adam.step()
        return state

    batches = [batch(i) for i in range(steps)]
    compiled = objective
    if loss == "ListNet" and small(train, steps):
        torch._dynamo.config.suppress_errors = True  # without a C++ compiler it runs as it is
        compiled = torch.compile(objective, dynamic=False)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    try:
        took = timed(steps, epochs, fresh, epoch, lambda state: state[0].detach().numpy().copy())
    finally:
        torch.set_num_threads(threads)
    return Training(f"allRank {version('allrank')} (torch {version('torch')})", *took)


def with_tfr(loss: str, train: Lists, epochs: int) -> Training | None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    tfr, tf = peer("tensorflow_ranking"), peer("tensorflow")
    if tfr is None or tf is None or loss not in TFR:
        return None
    if not tf.config.threading.get_intra_op_parallelism_threads():
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)
    value = getattr(tfr.keras.losses, TFR[loss])(reduction=tf.keras.losses.Reduction.SUM)
    features = train[0].shape[1]
    steps, rate = plan(train, docs=30_000)
    dealt = blocks(train, steps, growth=1.5 if loss == "RankNet" else 4.0)
    lists = sum(block.lists for block in dealt)
    arrays = [(block.x, block.target(loss, padding=-1)) for block in dealt]
    batches = [[(tf.constant(x[i]), tf.constant(y[i])) for x, y in arrays] for i in range(steps)]
    w = tf.Variable(first_weights(features))
    adam = tf.keras.optimizers.Adam(rate, jit_compile=False)
    adam.build([w])
    variables = [w, *adam.variables]
    begin = [variable.numpy() for variable in variables]

    @tf.function(jit_compile=loss == "RankNet")
    def step(batch: Any) -> None:
        with tf.GradientTape() as tape:
            total = 0.0
            for x, y in batch:
                scores = tf.linalg.matvec(tf.reshape(x, (-1, features)), w)
                total += value(y, tf.reshape(scores, y.shape))
            total /= lists
        adam.apply_gradients([(tape.gradient(total, w), w)])

    def fresh() -> None:
        for variable, first in zip(variables, begin, strict=True):
            variable.assign(first)

    def epoch(_: None, order: np.ndarray) -> None:
        for i in order:
            step(batches[i])

    name = f"TF-Ranking {version('tensorflow-ranking')} (tensorflow {version('tensorflow')})"
    return Training(name, *timed(steps, epochs, fresh, epoch, lambda _: w.numpy().copy()))


def main(loss: str, path: str, epochs: str) -> None:
    with np.load(path) as arrays:
        x, y, offsets = arrays.values()
    found = trainings_here(loss, (x, y, offsets), int(epochs))
    print(json.dumps([asdict(training) for training in found]))


if __name__ == "__main__":
    main(*sys.argv[1:])
