"""Training of linear rankers with rax, allRank and TF-Ranking (peers), for benchmarks/train.py.

Each peer runs in the configuration that costs it the least CPU time:

- float32 features, and Adam on mini-batches;
- lists of similar length padded together, which is not timed;
- an untimed first epoch that compiles everything;
- one thread for torch and tensorflow.  A second one added a third or more to the CPU time.  For jax
  it made no difference.

These configurations were tried, on MQ2008 (471 lists) and on 480 and 4,800 synthetic lists of 100
documents:

  steps per epoch (rate)     1 (0.1), 4 (0.1, 0.05), 8 (0.05, 0.03) and 16 (0.03) for the two
                             smaller data sets; 8 (0.05), 16 (0.03), 32 and 40 (0.02) and 80 (0.01)
                             for the larger one.  rax is fastest if a step fits the cache (about
                             6,000 documents), the others with few steps.
  padding                    at most 1.5, 2, 3 or 4 times the length of the shortest list padded
                             together, or no limit.  1.5 is best for rax and for pairs in
                             TF-Ranking; elsewhere fewer, larger operations are faster.
  rax                        one call per epoch (a scan) or per step.  A scan is faster with small
                             steps; with pairs it took up to 2.7 times as long.
  allRank                    torch.compile saved a quarter of the time of ListNet on MQ2008 and
                             added a third or more on long lists.  It gave wrong gradients for
                             ListMLE on padded lists.  RankNet selects pairs by a mask of varying
                             size and is not compiled.
  TF-Ranking                 graph mode or XLA.  XLA saved a third with pairs, doubled the time of
                             ListMLE, and made no difference for ListNet.

ListMLE breaks ties of grades at random.  allRank and TF-Ranking always do so, and the manual of rax
requires it: without it rax reached an NDCG@10 of 0.53 instead of 0.71 on MQ2008.  The target of
ListNet, the softmax of the grades, is computed before the timing if a peer takes it as labels (rax,
TF-Ranking).  No peer has RankCosine.

allRank 1.4.3 requires an old torch: install it with --no-deps, and torch, torchvision, attrs, gcsfs
and setuptools<81 separately.  TF-Ranking 0.5.5 imports tensorflow.estimator, which recent versions
of tensorflow lack; 2.14 has it and requires numpy<2.  Install TF-Ranking in an environment of its
own, and name its interpreter in PEER_PYTHONS (several are separated as in PATH).
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
MAX_REPEATED_SECONDS = 20.0  # CPU time after which a training is not repeated
RAX = {"ListNet": "softmax_loss", "ListMLE": "listmle_loss", "RankNet": "pairwise_logistic_loss"}
ALLRANK = {"ListNet": "listNet", "ListMLE": "listMLE", "RankNet": "rankNet"}
TFR = {"ListNet": "SoftmaxLoss", "ListMLE": "ListMLELoss", "RankNet": "PairwiseLogisticLoss"}


@dataclass(frozen=True)
class PeerRun:
    """CPU seconds of a training, and NDCG@10 on validation data after each epoch."""

    peer: str
    loss: str
    cpu: float
    ndcg: list[float]
    epochs: int


@dataclass(frozen=True)
class Training:
    """Median CPU seconds of a training, and the weights after each epoch."""

    peer: str
    cpu: float
    weights: list[list[float]]


@dataclass(frozen=True)
class Block:
    """Lists of similar length, padded; the axes are step, list, document (and feature)."""

    x: np.ndarray
    y: np.ndarray
    mask: np.ndarray  # False for padding

    @property
    def lists(self) -> int:
        return int(self.y.shape[1])

    def target(self, loss: str, padding: float) -> np.ndarray:
        """Return the grades, or the top-one probabilities of ListNet."""
        value = self.y
        if loss == "ListNet":
            value = np.exp(value - value.max(axis=-1, keepdims=True)) * self.mask
            value /= value.sum(axis=-1, keepdims=True)
        return np.where(self.mask, value, np.float32(padding))


def run_peers(
    loss: str,
    train: Lists,
    valid: Lists,
    ndcg: Callable[[np.ndarray], float],
    epochs: int = 30,
) -> list[PeerRun]:
    """Return the runs of all peers that are installed and have the loss.

    Validation runs after training, so that its threads do not add to the CPU time of training.
    """
    trainings = local_trainings(loss, train, epochs)
    for python in filter(None, os.environ.get("PEER_PYTHONS", "").split(os.pathsep)):
        trainings += remote_trainings(python, loss, train, epochs)
    runs = []
    for training in trainings:
        scores = [valid[0] @ np.asarray(w, np.float32) for w in training.weights]
        runs.append(PeerRun(training.peer, loss, training.cpu, [*map(ndcg, scores)], epochs))
    return runs


def ridge_cpu(train: Lists) -> float:
    """Return the CPU time of least squares in closed form, for comparison."""
    from sklearn.linear_model import Ridge
    from threadpoolctl import threadpool_limits

    x, y, _ = train
    with threadpool_limits(1):
        return cpu_seconds(lambda: Ridge().fit(x, y))


def local_trainings(loss: str, train: Lists, epochs: int) -> list[Training]:
    """Return the trainings of the peers that are installed in this environment."""
    trainings = [with_peer(loss, train, epochs) for with_peer in (with_rax, with_allrank, with_tfr)]
    return [training for training in trainings if training is not None]


def remote_trainings(python: str, loss: str, train: Lists, epochs: int) -> list[Training]:
    """Return the trainings of the peers in another environment."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.npz"
        np.savez(path, *train)
        command = [python, __file__, loss, str(path), str(epochs)]
        completed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return [Training(**fields) for fields in json.loads(completed.stdout.splitlines()[-1])]


def plan(train: Lists, docs: int) -> tuple[int, float]:
    """Return the steps per epoch, of about `docs` documents and at least 4, and Adam's rate."""
    steps = max(4, round(len(train[1]) / docs))
    return steps, 0.1 / steps**0.5


def has_small_steps(train: Lists, steps: int) -> bool:
    """Return whether steps are so small that the overhead of calls dominates."""
    return len(train[1]) < 4000 * steps


def blocks(train: Lists, steps: int, growth: float) -> list[Block]:
    """Return the lists in blocks, distributed over the steps of an epoch in proportion to length.

    All steps have the same shapes, so that one compiled function serves them.  `growth` limits the
    ratio of the longest to the shortest list of a block.  If the lists do not divide evenly, some
    of the shortest are used twice.
    """
    x, y, offsets = train
    rng = np.random.default_rng(0)
    length = np.diff(offsets)
    order = rng.permutation(np.flatnonzero(length))
    order = order[np.argsort(length[order], kind="stable")]
    missing = -len(order) % steps
    order = np.concatenate([np.repeat(order[:missing], 2), order[missing:]])
    assigned = rng.permuted(order.reshape(-1, steps), axis=1)
    longest = length[assigned].max(axis=1)
    padded_blocks = []
    stop = len(assigned)
    while stop:
        width = longest[stop - 1]
        start = int(np.searchsorted(longest, width / growth))
        queries = assigned[start:stop].T
        rows = offsets[queries][..., None] + np.arange(width)
        mask = rows < offsets[queries + 1][..., None]
        rows[~mask] = 0
        targets = (y[rows] * mask).astype(np.float32)
        padded_blocks.append(Block(x[rows] * mask[..., None], targets, mask))
        stop = start
    return padded_blocks


def initial_weights(features: int) -> np.ndarray:
    """Return small initial weights; at 0 the pairwise loss of TF-Ranking has no gradient."""
    return np.random.default_rng(1).normal(scale=0.01, size=features).astype(np.float32)


def timed(
    steps: int,
    epochs: int,
    initial_state: Callable[[], Any],
    epoch: Callable[[Any, np.ndarray], Any],
    weights: Callable[[Any], np.ndarray],
) -> tuple[float, list[list[float]]]:
    """Return the median CPU time of all epochs, after one that compiles, and all weights."""
    rng = np.random.default_rng(2)
    orders = [rng.permutation(steps) for _ in range(epochs)]
    weights(epoch(initial_state(), orders[0]))
    times: list[float] = []
    history: list[np.ndarray] = []
    while len(times) < REPEATS and sum(times) < MAX_REPEATED_SECONDS:
        state, history = initial_state(), []
        start = time.process_time()
        for order in orders:
            state = epoch(state, order)
            history.append(weights(state))
        times.append(time.process_time() - start)
    return statistics.median(times), np.array(history).tolist()


def with_rax(loss: str, train: Lists, epochs: int) -> Training | None:
    rax, optax, jax = peer("rax"), peer("optax"), peer("jax")
    if rax is None or optax is None or jax is None or loss not in RAX:
        return None
    jnp, value = jax.numpy, getattr(rax, RAX[loss])
    features = train[0].shape[1]
    steps, rate = plan(train, docs=6_000)
    train_blocks = blocks(train, steps, growth=1.5)
    lists = sum(block.lists for block in train_blocks)
    padded = [not block.mask.all() for block in train_blocks]
    arrays = [(block.x, block.target(loss, padding=0), block.mask) for block in train_blocks]
    adam = optax.adam(rate)

    def objective(w: Any, batch: Any, key: Any) -> Any:
        total = 0.0
        for i, (x, y, mask) in enumerate(batch):
            options = {"where": mask} if padded[i] else {}
            if loss == "ListMLE":
                options["key"] = jax.random.fold_in(key, i)
            scores = (x.reshape(-1, features) @ w).reshape(y.shape)
            total += value(scores, y, reduce_fn=jnp.sum, **options)
        return total / lists

    def step(state: Any, batch: Any) -> Any:
        w, moments, key = state
        key, step_key = jax.random.split(key) if loss == "ListMLE" else (key, key)
        update, moments = adam.update(jax.grad(objective)(w, batch, step_key), moments)
        return optax.apply_updates(w, update), moments, key

    def scan(state: Any, order: Any, data: Any) -> Any:
        def body(state: Any, i: Any) -> Any:
            return step(state, jax.tree.map(lambda array: array[i], data)), None

        return jax.lax.scan(body, state, order)[0]

    def initial_state() -> Any:
        w = jnp.asarray(initial_weights(features))
        return jax.block_until_ready((w, adam.init(w), jax.random.key(0, impl="rbg")))

    if loss != "RankNet" and has_small_steps(train, steps):
        data, compiled = jax.tree.map(jnp.asarray, arrays), jax.jit(scan)

        def epoch(state: Any, order: np.ndarray) -> Any:
            return compiled(state, order, data)
    else:
        batches = [[[jnp.asarray(a[i]) for a in block] for block in arrays] for i in range(steps)]
        compiled = jax.jit(step)

        def epoch(state: Any, order: np.ndarray) -> Any:
            for i in order:
                state = compiled(state, batches[i])
            return state

    name = f"rax {version('rax')} (jax {version('jax')})"
    return Training(
        name, *timed(steps, epochs, initial_state, epoch, lambda state: np.array(state[0]))
    )


def with_allrank(loss: str, train: Lists, epochs: int) -> Training | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        losses, torch = peer("allrank.models.losses"), peer("torch")
    if losses is None or torch is None or loss not in ALLRANK:
        return None
    value = getattr(losses, ALLRANK[loss])
    features = train[0].shape[1]
    steps, rate = plan(train, docs=30_000)
    train_blocks = blocks(train, steps, growth=np.inf if loss == "ListMLE" else 3.0)

    def batch(i: int) -> list[tuple[Any, Any, float]]:
        """Return the blocks of a step with their weights: fractions of the lists or pairs."""
        weighted = []
        for block in train_blocks:
            y = np.where(block.mask[i], block.y[i], np.float32(-1))
            terms = block.lists
            if loss == "RankNet":
                higher = (y[:, :, None] > y[:, None, :]) & block.mask[i][:, None, :]
                terms = int(higher.sum())
            if terms:
                weighted.append((torch.tensor(block.x[i]), torch.tensor(y), terms))
        total = sum(terms for _, _, terms in weighted)
        return [(x, y, terms / total) for x, y, terms in weighted]

    def objective(w: Any, weighted: Any) -> Any:
        total = 0.0
        for x, y, weight in weighted:
            total = total + weight * value((x.view(-1, features) @ w).view(y.shape), y)
        return total

    def initial_state() -> Any:
        w = torch.tensor(initial_weights(features), requires_grad=True)
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
    if loss == "ListNet" and has_small_steps(train, steps):
        torch._dynamo.config.suppress_errors = True  # without a C++ compiler it runs uncompiled
        compiled = torch.compile(objective, dynamic=False)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    try:
        timing = timed(
            steps, epochs, initial_state, epoch, lambda state: state[0].detach().numpy().copy()
        )
    finally:
        torch.set_num_threads(threads)
    return Training(f"allRank {version('allrank')} (torch {version('torch')})", *timing)


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
    train_blocks = blocks(train, steps, growth=1.5 if loss == "RankNet" else 4.0)
    lists = sum(block.lists for block in train_blocks)
    arrays = [(block.x, block.target(loss, padding=-1)) for block in train_blocks]
    batches = [[(tf.constant(x[i]), tf.constant(y[i])) for x, y in arrays] for i in range(steps)]
    w = tf.Variable(initial_weights(features))
    adam = tf.keras.optimizers.Adam(rate, jit_compile=False)
    adam.build([w])
    variables = [w, *adam.variables]
    initial_values = [variable.numpy() for variable in variables]

    @tf.function(jit_compile=loss == "RankNet")
    def step(batch: Any) -> None:
        with tf.GradientTape() as tape:
            total = 0.0
            for x, y in batch:
                scores = tf.linalg.matvec(tf.reshape(x, (-1, features)), w)
                total += value(y, tf.reshape(scores, y.shape))
            total /= lists
        adam.apply_gradients([(tape.gradient(total, w), w)])

    def initial_state() -> None:
        for variable, initial_value in zip(variables, initial_values, strict=True):
            variable.assign(initial_value)

    def epoch(_: None, order: np.ndarray) -> None:
        for i in order:
            step(batches[i])

    name = f"TF-Ranking {version('tensorflow-ranking')} (tensorflow {version('tensorflow')})"
    return Training(name, *timed(steps, epochs, initial_state, epoch, lambda _: w.numpy().copy()))


def main(loss: str, path: str, epochs: str) -> None:
    with np.load(path) as arrays:
        x, y, offsets = arrays.values()
    trainings = local_trainings(loss, (x, y, offsets), int(epochs))
    print(json.dumps([asdict(training) for training in trainings]))


if __name__ == "__main__":
    main(*sys.argv[1:])
