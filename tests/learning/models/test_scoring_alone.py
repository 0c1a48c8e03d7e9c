"""Scoring imports neither rankers nor scikit-learn, in processes that do nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import firstpage as fp

COMMAND = """
import sys
from firstpage.cli import main
sys.argv = ["firstpage", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
"""
SERVED = """
import sys, warnings
warnings.simplefilter("ignore")
from pathlib import Path
from starlette.testclient import TestClient
from firstpage.serving.app import Serving
from firstpage.serving.watched_model import WatchedModel
watched = WatchedModel(Path(sys.argv[1]))
watched.reload()
with TestClient(Serving(watched, None, poll=None)) as client:
    candidates = [{"id": str(i), "features": [float(i), 1.0, 2.0]} for i in range(3)]
    answer = client.post("/rank", json={"candidates": candidates})
    assert answer.status_code == 200, answer.text
"""
MODULES = """
names = [m for m in sys.modules if m == "sklearn" or m.startswith("firstpage.learning.")]
open(PATH, "w").write(" ".join(names))
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write data, an index, and the models of both."""
    folder = tmp_path_factory.mktemp("scoring")
    data = fp.Synthetic(queries=6, docs=5, features=3, grades=3, seed=0).dataset()
    fp.write(data, folder / "data.txt")
    fp.ListMLE(normalize="standard").fit(data).save(folder / "model.json")
    documents = [{"id": f"d{i}", "title": f"red shoe {i} " + "x " * i} for i in range(8)]
    index = fp.Index.from_documents(documents, folder / "shop.index")
    queries = [("q1", "red shoe"), ("q2", "shoe")]
    qrels = fp.Qrels.from_dict({"q1": {"d1": 1, "d2": 0}, "q2": {"d3": 2, "d4": 0}})
    texts = fp.TextFeatures(index).dataset(queries, index.candidates(queries), qrels)
    fp.ListNet().fit(texts).save(folder / "texts.json")
    return folder


CASES = {
    "rank": (COMMAND, ["rank", "model.json", "data.txt", "-o", "scores.txt"]),
    "evaluate": (COMMAND, ["evaluate", "data.txt", "--model", "model.json"]),
    "search": (COMMAND, ["search", "shop.index", "red shoe", "--model", "texts.json"]),
    "serve": (SERVED, ["model.json"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore::firstpage.FirstpageWarning")
def test_scoring_imports_no_rankers_and_no_scikit_learn(name: str, files: Path) -> None:
    code, arguments = CASES[name]
    modules = files / f"{name}.modules"
    program = code + MODULES.replace("PATH", repr(str(modules)))
    subprocess.run([sys.executable, "-c", program, *arguments], cwd=files, check=True)
    imported = modules.read_text().split()
    assert "firstpage.learning.models.model_files" in imported
    assert [m for m in imported if m.startswith(("sklearn", "firstpage.learning.rankers"))] == []
