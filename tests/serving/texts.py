"""A small shop of documents, hostile ones among them, with an index, a model, and clients."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import firstpage as fp
from firstpage.data.runs import Qrels
from firstpage.serving.app import Serving
from firstpage.serving.feedback import FeedbackFolder
from firstpage.serving.limits import Limits
from firstpage.serving.served_index import IndexSource
from firstpage.serving.watched_model import WatchedModel
from tests.serving.conftest import TestClient

SCRIPT = "<script>document.title='stolen'</script><img src=x onerror=alert(1)>"
OVERRIDE = "invoice\u202egnp.exe"
COLORS = ("red", "blue", "green", "black", "white", "brown")
THINGS = ("shoes", "coat", "hat", "gloves")
QUERIES = [
    (f"q{i}", f"{color} {thing}")
    for i, (color, thing) in enumerate((c, t) for c in COLORS[:4] for t in THINGS)
]
HOST = "http://127.0.0.1:8220"


def documents() -> list[dict[str, Any]]:
    shop = [
        {
            "id": f"{color}-{thing}-{n}",
            "title": f"{color.title()} {thing}" if n else f"{thing.title()} for the winter",
            "text": f"These {thing} are {color}. " * (1 + n)
            + f"Runners like them{', as do walkers' * n}; the {color} one's price is fair.",
            "price": 20.0 + 7 * n + len(color),
        }
        for color in COLORS
        for thing in THINGS
        for n in range(3)
    ]
    hostile = [
        {
            "id": SCRIPT,
            "title": f"Hostile {SCRIPT}",
            "text": f"{SCRIPT} hostile text",
            "price": 1.0,
        },
        {"id": "long", "title": "hostile " * 100, "text": "huge hostile " * 40_000, "price": 1.0},
        {
            "id": OVERRIDE,
            "title": f"hostile {OVERRIDE}",
            "text": f"{OVERRIDE} hostile",
            "price": 1.0,
        },
        {"id": "x" * 190, "title": "hostile", "text": "w" * 5000 + " hostile", "price": 1.0},
        {
            "id": "zalgo",
            "title": "hostile " + "a" + "\u0301" * 500,
            "text": "hostile",
            "price": 1.0,
        },
    ]
    return shop + hostile


def grades() -> dict[str, dict[str, float]]:
    """Documents of the right color and thing are good, the cheap ones best."""
    judged: dict[str, dict[str, float]] = {}
    for name, text in QUERIES:
        color, thing = text.split()
        judged[name] = {
            each["id"]: 3.0 - int(each["id"][-1])
            if each["id"].startswith(f"{color}-{thing}")
            else 0.0
            for each in documents()
            if thing in each["id"]
        }
    return judged


def build(folder: Path, features: str = "short,values") -> tuple[Path, Path]:
    """Write an index and a model; return their paths."""
    index = fp.Index.from_documents(documents(), folder / "shop.index", latent=8)
    data = dataset(index, features)
    fp.ListNet(normalize="minmax").fit(data).save(folder / "model.json")
    return folder / "shop.index", folder / "model.json"


def dataset(index: fp.Index, features: str = "short,values", own: Sequence[str] = ()) -> fp.Dataset:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        candidates = index.candidates(QUERIES, depth=30)
        return fp.TextFeatures(index, features, own).dataset(
            QUERIES, candidates, Qrels.from_dict(grades())
        )


def application(
    index: Path,
    model: Path,
    feedback: Path | None = None,
    limits: Limits | None = None,
    **options: Any,
) -> Serving:
    watched = WatchedModel(model, source=IndexSource(index, **options))
    watched.reload()
    folder = None if feedback is None else FeedbackFolder(feedback)
    return Serving(watched, limits, poll=None, token="right", feedback=folder)


def text_clients(index: Path, model: Path, **options: Any) -> Iterator[TestClient]:
    app = application(index, model, **options)
    with TestClient(app, base_url=HOST, follow_redirects=False) as client:
        yield client
