"""A small collection with feature names, models of every kind, and clients of the application."""

from __future__ import annotations

import io
import json
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from firstpage.data.io.json_files import write_json
from firstpage.learning.models.model_files import FILE, Model
from firstpage.learning.scorers.forward import Architecture
from firstpage.learning.scorers.linear import LinearScoring
from firstpage.learning.scorers.network_scoring import InputTransform, NetworkScoring
from firstpage.serving.app import Serving
from firstpage.serving.limits import Limits
from firstpage.serving.watched_model import WatchedModel
from tests.narrow import dense

with warnings.catch_warnings():  # Starlette warns that it prefers another HTTP library
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient as TestClient

from tests.logs import captured_log

NAMES = ["bm25", "pagerank", "clicks", "age"]
NPY = {"content-type": "application/x-npy"}
ARROW = {"content-type": "application/vnd.apache.arrow.stream"}
RANKERS: dict[str, Callable[[], Any]] = {
    "linear": lambda: fp.ListMLE(),
    "scaled": lambda: fp.ListMLE(normalize="minmax"),
    "global": lambda: fp.ListMLE(normalize="global standard"),
    "lightgbm": lambda: fp.LambdaMART(scorer="trees(count=20, leaves=7, min_docs=5)"),
    "xgboost": lambda: fp.ListMLE(scorer="trees(count=20, leaves=7, library=xgboost)"),
    "stumps": lambda: fp.RankBoost(rounds=30),
    "cascade": lambda: fp.TopRank(),
    "network": lambda: Network((16,)),
    "attention": lambda: Network((16, 8), "gelu", True, (1, 2, 8)),
}


class Network:
    """A network with random weights, which needs no PyTorch."""

    def __init__(self, *architecture: Any) -> None:
        self.shape = Architecture(4, *architecture)

    def fit(self, data: fp.Dataset) -> Network:
        values = np.random.default_rng(5).normal(0, 1, self.shape.size).astype(np.float32)
        self.scoring = NetworkScoring(
            self.shape, InputTransform.fit("standardize", dense(data.X)), values
        )
        return self

    def save(self, path: Path) -> None:
        saved_model = Model("ListMLE", {"scorer": "mlp"}, self.scoring, None, tuple(NAMES), {})
        write_json(saved_model.to_dict(), path)


@cache
def dataset() -> fp.Dataset:
    data = fp.Synthetic(queries=30, docs=12, features=4, grades=3, seed=2).dataset()
    return data.with_features(np.asarray(data.X, np.float32), NAMES)


@cache
def _text(kind: str) -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        RANKERS[kind]().fit(dataset()).save(path)
        return path.read_bytes()


def write_model(path: Path, kind: str = "linear") -> Path:
    path.write_bytes(_text(kind))
    return path


def linear_model(path: Path, names: Sequence[str] | None, width: int = 4) -> Path:
    """Write an untrained linear model with these features, or with `width` unnamed ones."""
    count = width if names is None else len(names)
    scoring = LinearScoring(np.arange(1.0, count + 1), 0.0)
    saved_model = Model("ListMLE", {}, scoring, None, None if names is None else tuple(names), {})
    write_json(saved_model.to_dict(), path)
    return path


def overflowing(path: Path, weight: float = 1e308, scaled: bool = True) -> None:
    """Give all weights of a linear model file one value, so that its scores overflow."""
    contents = json.loads(path.read_text())
    for key in ("format", "version", "sha256"):
        del contents[key]
    contents["scorer"]["weights"] = [weight] * contents["features"]["count"]
    contents["normalize"] = contents["normalize"] if scaled else None
    write_json(FILE.with_header(contents), path)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_model(tmp_path / "model.json")


@pytest.fixture
def client(model: Path) -> Iterator[TestClient]:
    yield from clients(model)


def clients(
    model: Path, limits: Limits | None = None, token: str | None = None
) -> Iterator[TestClient]:
    watched = WatchedModel(model)
    watched.reload()
    with TestClient(Serving(watched, limits, poll=None, token=token)) as client:
        yield client


def npy(X: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, X)
    return out.getvalue()


def loaded(content: bytes) -> np.ndarray:
    return np.load(io.BytesIO(content), allow_pickle=False)


def arrow(**columns: Any) -> bytes:
    pa = pytest.importorskip("pyarrow")
    table = pa.table(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table)
    return bytes(sink.getvalue())


def body(X: np.ndarray, **options: Any) -> dict[str, Any]:
    """Return a query as a JSON message, with features by name."""
    rows = [
        {"id": f"d{i}", "features": dict(zip(NAMES, row, strict=True))}
        for i, row in enumerate(X.tolist())
    ]
    return {"query": "q", "candidates": rows, **options}


@pytest.fixture(scope="session")
def shop(once: Callable[[str, Callable[[Path], object]], Path]) -> tuple[Path, Path]:
    """An index of texts and a model trained on it; tests that change them copy them first."""
    from tests.serving.texts import build

    folder = once("shop", build)
    return folder / "shop.index", folder / "model.json"


@pytest.fixture
def own_shop(shop: tuple[Path, Path], tmp_path: Path) -> tuple[Path, Path]:
    """A copy of the index and the model."""
    index, model = tmp_path / "shop.index", tmp_path / "model.json"
    shutil.copytree(shop[0], index)
    shutil.copy(shop[1], model)
    return index, model


@pytest.fixture
def serving_log() -> Iterator[io.StringIO]:
    """Yield what the server logs."""
    with captured_log("firstpage.serving") as text:
        yield text
