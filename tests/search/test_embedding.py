"""Features of a local sentence-transformers model; the model is tiny, made here, and really loaded."""

from __future__ import annotations

import json
import shutil
import socket
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from firstpage import Index, TextFeatures
from firstpage.cli import app
from firstpage.core.errors import DataError, FirstpageWarning, MissingDependency
from firstpage.search import embedding
from firstpage.search.embedding import NAMES, passages
from tests.narrow import dense, instance, present

pytestmark = pytest.mark.torch

WORDS = [f"w{i}" for i in range(40)]
QUERIES = [("q1", "w1 w2 unknown"), ("q2", "w3"), ("q3", "w4 w5 w6")]


@pytest.fixture(scope="module")
def library() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("sentence_transformers")


@pytest.fixture(scope="module")
def model(library: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of two layers with random weights and a vocabulary of its own, saved to disk."""
    folder = tmp_path_factory.mktemp("model")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torch
        from transformers import BertConfig, BertModel, BertTokenizerFast

        try:
            from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
        except ImportError:  # an older version of the library
            from sentence_transformers.models import Pooling, Transformer
        vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", ":", *WORDS]
        (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
        config = BertConfig(
            vocab_size=len(vocabulary),
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=256,
            initializer_range=0.5,
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(5)
            BertModel(config).save_pretrained(folder / "bert")
        BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder / "bert")
        modules = [Transformer(str(folder / "bert")), Pooling(16)]
        prompts = {"query": "a: ", "document": "b: "}
        library.SentenceTransformer(modules=modules, prompts=prompts, device="cpu").save(
            str(folder / "st")
        )
    return folder / "st"


def documents() -> list[dict[str, Any]]:
    rng = np.random.default_rng(3)
    lengths = [3, 20, 95, 96, 97, 120, 180, 400, 1500]
    return [
        {
            "id": f"d{i}",
            "title": " ".join(rng.choice(WORDS, 4)),
            "text": "\n".join(rng.choice(WORDS, lengths[i % len(lengths)])),
        }
        for i in range(27)
    ]


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return Index.from_documents(documents(), tmp_path / "i", latent=0)


def embed(index: Index, model: Path, note: str = "embedding 27 of 27 documents") -> TextFeatures:
    """Return the features of the model; expect the note that vectors are computed."""
    with pytest.warns(FirstpageWarning, match=note) as notes:
        features = TextFeatures(index, "embedding", embed=model)
    assert len(notes) == 1
    return features


def values(features: TextFeatures, text: str = "w1 w2 w3") -> np.ndarray:
    rows = np.flatnonzero(~features.index.forward.deleted)
    return features.compute(features.index.forward.query(text), rows)


def reference(library: Any, model: Path, query: str, document: dict[str, Any]) -> list[float]:
    """Encode text by text, and compute cosines by their definition."""
    loaded = library.SentenceTransformer(str(model), local_files_only=True, device="cpu")

    def cosine(text: str) -> float:
        x, y = loaded.encode("a: " + query, prompt=""), loaded.encode("b: " + text, prompt="")
        return float(x @ y / np.sqrt((x @ x) * (y @ y)))

    words = f"{document['title']} {document['text']}".split()
    windows = [words[:100]]
    while len(windows) < 16 and len(words) > (len(windows) - 1) * 75 + 100:
        windows.append(words[len(windows) * 75 : len(windows) * 75 + 100])
    return [cosine(" ".join(words)), max(cosine(" ".join(window)) for window in windows)]


# --- values


def test_values_are_those_of_a_plain_reference(library: Any, index: Index, model: Path) -> None:
    features = embed(index, model)
    assert features.names == NAMES
    X = values(features)
    some = [0, 1, 2, 3, 4, 5, 6, 7, 8]
    expected = [reference(library, model, "w1 w2 w3", documents()[i]) for i in some]
    np.testing.assert_allclose(X[some], expected, atol=2e-5)
    long = np.array([len(passages(_words(document))) > 1 for document in documents()])
    assert (X[~long, 0] == X[~long, 1]).all()
    assert (X[long, 0] != X[long, 1]).all()
    assert np.ptp(X[:, 0]) > 0.01  # the model distinguishes documents


def _words(document: dict[str, Any]) -> list[str]:
    return f"{document['title']} {document['text']}".split()


@pytest.mark.parametrize(
    ("length", "count"), [(0, 0), (1, 1), (100, 1), (101, 3), (175, 3), (176, 4), (9999, 17)]
)
def test_passages_cover_a_document(length: int, count: int) -> None:
    words = [str(i) for i in range(length)]
    texts = passages(words)
    assert len(texts) == count
    if 1 < count < 17:
        assert {word for text in texts[1:] for word in text.split()} == set(words)
    assert all(25 < len(text.split()) <= 100 for text in texts[1:])


def test_values_do_not_depend_on_other_candidates_or_their_order(index: Index, model: Path) -> None:
    features = embed(index, model)
    X, query = values(features), index.forward.query("w1 w2 w3")
    rows = np.array([20, 3, 8])
    assert np.array_equal(features.compute(query, rows), X[rows])


def test_prompts_reach_a_library_without_roles(
    library: Any, index: Index, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = values(embed(index, model))
    shutil.rmtree(index.path / "embeddings")
    for name in ("encode_query", "encode_document"):
        if hasattr(library.SentenceTransformer, name):
            monkeypatch.delattr(library.SentenceTransformer, name)
    assert np.array_equal(values(embed(index, model)), expected)


def test_documents_without_text_and_empty_queries_have_zeros(tmp_path: Path, model: Path) -> None:
    rows = [{"id": "x", "title": "w1"}, {"id": "y", "title": " "}, {"id": "z"}]
    index = Index.from_documents(rows, tmp_path / "i", latent=0)
    with pytest.warns(FirstpageWarning) as notes:
        features = TextFeatures(index, "embedding", embed=model)
    assert "2 of 3 documents have no text; embedding.cosine and" in str(notes[1].message)
    X = values(features, "w1")
    assert X[0].all()
    assert not X[1:].any()
    assert not values(features, " \n").any()
    assert not features.compute(index.forward.query("w1"), np.array([2, 1])).any()


# --- selection, data and models


def test_the_features_are_added_to_any_set(index: Index, model: Path) -> None:
    embed(index, model)
    assert TextFeatures(index, "title.bm25", embed=model).names == ("title.bm25", *NAMES)
    assert TextFeatures(index, "embedding.cosine", embed=model).names == NAMES[:1]
    with pytest.raises(DataError, match="no feature of this index is named 'embedding'"):
        TextFeatures(index, "embedding")


def test_a_field_of_that_name_is_refused(tmp_path: Path, model: Path) -> None:
    index = Index.from_documents([{"id": "x", "embedding": "w1"}], tmp_path / "i", latent=0)
    with pytest.raises(DataError, match="has a field 'embedding'"):
        TextFeatures(index, "embedding", embed=model)


def test_threads_do_not_change_values(index: Index, model: Path) -> None:
    features, run = embed(index, model), index.candidates(QUERIES, 20)
    one, four = (features.dataset(QUERIES, run, threads=n).X for n in (1, 4))
    assert np.array_equal(dense(one), dense(four))


def _trained(index: Index, model: Path, tmp_path: Path) -> Path:
    features = embed(index, model)
    run = index.candidates(QUERIES, 20)
    qrels = fp.Qrels.from_dict(
        {q: {d: float(i % 3) for i, d in enumerate(row)} for q, row in run.to_dict().items()}
    )
    with pytest.warns(FirstpageWarning, match="are judged"):
        data = features.dataset(QUERIES, run, qrels)
    fp.ListNet().fit(data).save(tmp_path / "m.json")
    return tmp_path / "m.json"


def test_a_search_uses_the_recorded_model(
    index: Index, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranker = _trained(index, model, tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    searcher = fp.Searcher(index, ranker)
    assert searcher.features is not None
    assert searcher.features.names == NAMES
    first, second = searcher.search("w1 w2", 5, 2), fp.Searcher(index, ranker).search("w1 w2", 5, 2)
    assert first.ids == second.ids
    assert np.array_equal(first.scores, second.scores)
    assert {name for name, _ in first.reasons[0]} == set(NAMES)


def test_a_search_refuses_another_model(index: Index, model: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(model, copy)
    ranker = _trained(index, copy, tmp_path)
    (copy / "README.md").write_text("no part of the model")
    fp.Searcher(index, ranker)
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, "layer_norm_eps": 0.1}))
    with pytest.raises(DataError, match=r"are not those that .*m.json was trained with"):
        fp.Searcher(index, ranker)
    shutil.rmtree(copy)
    with pytest.raises(DataError, match=r"m.json: its embedding model is missing: .*copy: no such"):
        fp.Searcher(index, ranker)


# --- the cache


def _forbid_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise AssertionError("documents are embedded")

    monkeypatch.setattr(embedding.Embedding, "encode_documents", fail)


def test_documents_are_embedded_once(
    index: Index, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = values(embed(index, model))
    _forbid_documents(monkeypatch)
    assert np.array_equal(values(TextFeatures(Index(index.path), "embedding", embed=model)), before)


def test_only_new_texts_are_embedded(index: Index, model: Path) -> None:
    features = embed(index, model)
    before = values(features)
    index.add([{"id": "d0", "title": "w9 w8", "text": "w7"}, {"id": "new", "title": "w1 w2 w3"}])
    with pytest.warns(FirstpageWarning, match="has changed .* embedding 2 of 28 documents"):
        after = values(features)
    assert np.array_equal(after[:26], before[1:])
    index.delete(["new"])
    assert np.array_equal(values(embed(index, model, "embedding 0 of 27 documents")), after[:-1])
    fresh = Index.from_documents(
        [{**row, "title": "The " + row["title"]} for row in documents()],
        index.path,
        latent=0,
        overwrite=True,
    )
    assert (values(embed(fresh, model))[:, 0] != before[:, 0]).all()  # a stop word counts here


def test_the_index_is_unaware_of_the_cache(index: Index, model: Path) -> None:
    embed(index, model)
    assert [path.name for path in (index.path / "embeddings").iterdir()] == [
        embedding.model_digest(model)[:16]
    ]
    index.add([{"id": "new", "title": "w1"}])
    index.fit_latent(2)
    assert len(Index(index.path)) == 28


@pytest.mark.parametrize("damage", ["truncated", "changed", "header", "empty", "list"])
def test_a_damaged_cache_is_computed_again(index: Index, model: Path, damage: str) -> None:
    before = values(embed(index, model))
    (file,) = (index.path / "embeddings").iterdir()
    content = bytearray(file.read_bytes())
    if damage == "changed":
        content[-3] ^= 1
    broken: dict[str, bytes] = {
        "truncated": bytes(content[:-4]),
        "header": bytes(content[70:]),
        "empty": b"",
        "list": b"[1]\n",
    }
    file.write_bytes(broken.get(damage, content))
    again = embed(index, model, "damaged .* embedding 27 of 27 documents")
    assert np.array_equal(values(again), before)
    TextFeatures(index, "embedding", embed=model)  # the file is whole again


def test_a_folder_that_cannot_be_written_leaves_vectors_in_memory(
    index: Index, model: Path
) -> None:
    before = values(embed(index, model))
    shutil.rmtree(index.path / "embeddings")
    (index.path / "embeddings").write_text("a file in the way")
    with pytest.warns(FirstpageWarning) as notes:
        features = TextFeatures(index, "embedding", embed=model)
    assert "cannot be written" in str(notes[-1].message)
    assert np.array_equal(values(features), before)


def test_an_interrupted_computation_is_continued(
    index: Index, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "BLOCK", 10)

    def interrupt(done: int, total: int) -> None:
        assert total == 27
        if done == 20:
            raise KeyboardInterrupt

    with (
        pytest.warns(FirstpageWarning, match="27 of 27"),
        pytest.raises(KeyboardInterrupt),
    ):
        TextFeatures(index, "embedding", embed=model, progress=interrupt)
    features = embed(index, model, ": embedding 7 of 27 documents")
    shutil.rmtree(index.path / "embeddings")
    np.testing.assert_allclose(values(features), values(embed(index, model)), atol=1e-6)


# --- bad models


def test_nothing_is_downloaded(index: Index, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the network is used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    with pytest.raises(DataError, match=r"all-MiniLM-L6-v2: no such folder; .*nothing is downl"):
        TextFeatures(index, "embedding", embed="sentence-transformers/all-MiniLM-L6-v2")
    embed(index, model)


def _break_weights(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"\x10\x00\x00\x00\x00\x00\x00\x00broken")


def _remove_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def _drop_a_weight(folder: Path) -> None:
    from safetensors.numpy import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    weights.pop(next(name for name in weights if "word_embeddings" in name))
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


def _fill_with_nan(folder: Path) -> None:
    from safetensors.numpy import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    weights = {name: np.full_like(array, np.nan) for name, array in weights.items()}
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


def _remove_modules(folder: Path) -> None:
    (folder / "modules.json").unlink()


def _break_modules(folder: Path) -> None:
    (folder / "modules.json").write_text("{")


def _add_code(folder: Path) -> None:
    modules = json.loads((folder / "modules.json").read_text())
    modules[0]["type"] = "payload.Module"
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "payload.py").write_text("raise SystemExit('was imported')")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_break_weights, "the model cannot be loaded"),
        (_remove_weights, "the model cannot be loaded"),
        (_drop_a_weight, "weights of the model are missing or do not fit"),
        (_fill_with_nan, "the model does not return one finite vector per text"),
        (_remove_modules, "is not a sentence-transformers model"),
        (_break_modules, "the model cannot be loaded"),
        (_add_code, "its module 'payload.Module' is not part of sentence-transformers"),
        (shutil.rmtree, "no such folder"),
    ],
)
def test_broken_models_are_refused_in_one_line(
    index: Index, model: Path, tmp_path: Path, damage: Any, message: str
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(model, copy)
    damage(copy)
    with pytest.raises(DataError, match=f"copy: {message}") as caught:
        TextFeatures(index, "embedding", embed=copy)
    assert "\n" not in str(caught.value)
    assert not (index.path / "embeddings").exists()


def test_the_missing_package_is_named(
    index: Index, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingDependency, match=r"firstpage\[embed\]"):
        TextFeatures(index, "embedding", embed=model)


# --- the command


def test_the_command_writes_features_and_recipe(index: Index, model: Path, tmp_path: Path) -> None:
    from click.testing import CliRunner

    queries, run, data = (tmp_path / name for name in ("q.jsonl", "c.run", "data.npz"))
    queries.write_text("".join(json.dumps({"id": q, "text": t}) + "\n" for q, t in QUERIES))
    fp.write_run(index.candidates(QUERIES, 5), run)
    arguments = ["features", index.path, queries, run, "--set", "title.bm25", "-o", data]
    with pytest.warns(FirstpageWarning, match="embedding 27 of 27"):
        result = CliRunner().invoke(app, [str(a) for a in [*arguments, "--embed", model]])
    assert result.exit_code == 0, result.output
    read = instance(fp.Dataset, fp.read(data))
    assert read.feature_names == ("title.bm25", *NAMES)
    assert present(read.recipe)["embed"] == {
        "path": str(model),
        "digest": embedding.model_digest(model),
    }
