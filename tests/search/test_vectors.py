"""Vectors in an index: similarities, exact search, changes, resuming, crashes and bad input."""

from __future__ import annotations

import hashlib
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firstpage import Index
from firstpage.core.errors import DataError, FirstpageWarning
from firstpage.search import storage
from firstpage.search.encoders import Encoder
from firstpage.search.precomputed import PrecomputedVectors
from firstpage.search.vector_writer import JOURNAL, MAX_PASSAGES, STEP, WINDOW, passages
from firstpage.search.vectors import StoredVectors, document_codes, query_codes, sign_words


class HashEncoder(Encoder):
    """A vector per text that depends on its words only, and a record of what was encoded."""

    def __init__(
        self,
        dimensions: int = 16,
        salt: str = "",
        fail_after: int | None = None,
        name: str = "hash",
    ) -> None:
        digest = hashlib.sha256(f"{dimensions} {salt}".encode()).hexdigest()
        encode = self.encode_documents
        super().__init__(name, digest, dimensions, queries=encode, documents=encode)
        self.salt, self.fail_after = salt, fail_after
        self.encoded: list[str] = []

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)  # which the class does not allow others

    def encode_documents(self, texts: Sequence[str]) -> np.ndarray:
        if self.fail_after is not None and len(self.encoded) + len(texts) > self.fail_after:
            raise DataError("http://localhost: the endpoint answered 500.")
        self.encoded += texts
        return np.array([self.vector(text) for text in texts], np.float32)

    encode_queries = encode_documents

    def vector(self, text: str) -> np.ndarray:
        total = np.zeros(self.dimensions)
        for word in text.lower().split():
            seed = hashlib.sha256(f"{self.salt}{word}".encode()).digest()[:4]
            total += np.random.default_rng(int.from_bytes(seed)).standard_normal(self.dimensions)
        length = np.linalg.norm(total)
        return total / length if length else total


DOCUMENTS: list[dict[str, Any]] = [
    {"id": "a", "title": "Red shoes", "text": "Running shoes for women."},
    {"id": "b", "title": "Blue coat", "text": "A warm coat for winter."},
    {"id": "c", "title": "", "text": ""},
    {"id": "d", "title": "long", "text": " ".join(f"w{i}" for i in range(260))},
]
WITHOUT_TEXT = "ignore:.* have no text, and therefore no vectors"


@pytest.fixture
def encoder() -> HashEncoder:
    return HashEncoder()


@pytest.fixture
def index(tmp_path: Path, encoder: HashEncoder) -> Index:
    with pytest.warns(FirstpageWarning, match="1 of 4 documents have no text, .* such as 'c'"):
        return Index.from_documents(DOCUMENTS, tmp_path / "i", latent=0, vectors=encoder)


def stored(index: Index) -> StoredVectors:
    assert index.vectors is not None
    return index.vectors


def by_id(index: Index) -> dict[str, list[list[int]]]:
    """Return the codes of each live document."""
    vectors = stored(index)
    return {
        name: vectors.of_row(row)[0].tolist()
        for name, row in index.forward.row_of.items()
        if vectors.counts[row]
    }


def expected_codes(encoder: HashEncoder, text: str) -> list[list[int]]:
    texts = passages(text.split())
    return document_codes(np.array([encoder.vector(each) for each in texts], np.float32))[
        0
    ].tolist()


# --- passages and contents


def test_passages() -> None:
    assert passages([]) == []
    words = [f"w{i}" for i in range(WINDOW)]
    assert passages(words) == [" ".join(words)]
    words = [f"w{i}" for i in range(WINDOW + 1)]
    assert passages(words) == [
        " ".join(words), " ".join(words[:WINDOW]), " ".join(words[STEP : STEP + WINDOW]),
    ]  # fmt: skip
    many = passages([str(i) for i in range(10_000)])
    assert len(many) == 1 + MAX_PASSAGES
    assert many[-1].split()[0] == str((MAX_PASSAGES - 1) * STEP)


def test_contents(index: Index, encoder: HashEncoder) -> None:
    vectors = stored(index)
    assert index.encoder_record == encoder.to_dict()
    assert vectors.dimensions == 16
    assert vectors.counts.tolist() == [1, 1, 0, 5]
    assert vectors.n_vectors == 7
    assert vectors.n_bytes == 7 * (16 + 4 + 8)
    long = " ".join(["long", *(f"w{i}" for i in range(260))])
    assert by_id(index) == {
        "a": expected_codes(encoder, "Red shoes Running shoes for women."),
        "b": expected_codes(encoder, "Blue coat A warm coat for winter."),
        "d": expected_codes(encoder, long),
    }
    assert by_id(Index(index.path)) == by_id(index)
    assert Index(index.path).encoder_record == encoder.to_dict()
    assert not (index.path / JOURNAL).exists()


def test_an_index_without_vectors(tmp_path: Path) -> None:
    index = Index.from_documents(DOCUMENTS, tmp_path / "i", latent=0)
    assert index.vectors is None
    assert index.encoder_record is None
    encoder = HashEncoder()
    assert index.add([{"id": "n", "text": "new"}]).embedded == 0
    with pytest.warns(FirstpageWarning, match="1 of 6 documents have no text"):
        assert index.add([{"id": "o", "text": "old"}], vectors=encoder).embedded == 5
    assert sorted(by_id(index)) == ["a", "b", "d", "n", "o"]


# --- similarities and search


def random_vectors(
    seed: int, n_rows: int, dimensions: int, n_passages: int | None = None
) -> StoredVectors:
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 4, n_rows) if n_passages is None else np.full(n_rows, n_passages)
    counts[0] = 1
    table = rng.standard_normal((counts.sum(), dimensions)).astype(np.float32)
    table[rng.integers(0, len(table), len(table) // 2)] = table[0]  # ties
    return stored_table(table, np.cumsum(counts))


def stored_table(table: np.ndarray, ends: np.ndarray) -> StoredVectors:
    digests, (codes, scales) = np.zeros((len(ends), 16), np.uint8), document_codes(table)
    return StoredVectors({}, ends, digests, codes, scales, sign_words(codes))


def plain_similarities(vectors: StoredVectors, query: np.ndarray) -> list[list[float]]:
    """Return the cosine of each vector of each row, from Python's integers."""
    codes, scale = query_codes(query, vectors.dimensions)
    products = vectors.codes.astype(np.int64) @ codes.astype(np.int64)
    values = products.astype(float) * vectors.scales.astype(float) * scale
    return [each.tolist() for each in np.split(values, vectors.ends[:-1])]


@pytest.mark.parametrize("seed", range(6))
def test_search_is_exact(seed: int) -> None:
    rng = np.random.default_rng(seed)
    vectors = random_vectors(seed, 300, int(rng.integers(1, 70)))
    deleted = rng.random(300) < 0.2
    query = rng.standard_normal(vectors.dimensions) * 10.0 ** rng.integers(-30, 30)
    values = plain_similarities(vectors, query)
    whole, best = vectors.similarities(query, np.arange(300))
    assert whole.tolist() == [each[0] if each else 0.0 for each in values]
    assert best.tolist() == [max(each, default=0.0) for each in values]
    ranked = sorted(
        (-max(each), row) for row, each in enumerate(values) if each and not deleted[row]
    )
    for depth in (1, 7, 1000, 10**12):
        rows, scores = vectors.search(query, depth, deleted)
        assert list(zip((-scores).tolist(), rows.tolist(), strict=True)) == ranked[:depth]


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, query = random_vectors(3, 500, 24), np.random.default_rng(3).standard_normal(24)
    deleted = np.zeros(500, bool)
    alone = vectors.search(query, 40, deleted)
    monkeypatch.setattr("firstpage.search.vectors.PARALLEL_SIZE", 1)
    for threads in (1, 2, 5):
        rows, scores = vectors.search(query, 40, deleted, threads=threads)
        np.testing.assert_array_equal(rows, alone[0])
        np.testing.assert_array_equal(scores, alone[1])


def nearest(distances: np.ndarray, among: np.ndarray, wanted: int) -> np.ndarray:
    """Return which of the vectors `among` have the `wanted` smallest distances, and ties."""
    within = np.sort(distances[among])[:wanted].max(initial=-1)
    return among[distances[among] <= within]


@pytest.mark.parametrize("n_passages", [None, 1])
@pytest.mark.parametrize("seed", range(4))
def test_search_in_two_steps(
    seed: int, n_passages: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ranks the documents with the most common signs, of which ties are all taken."""
    rng = np.random.default_rng(seed)
    vectors = random_vectors(seed, 400, (5, 64, 370, 230)[seed], n_passages)
    n_rows = len(vectors.ends)
    deleted, query = rng.random(n_rows) < 0.3, rng.standard_normal(vectors.dimensions)
    differs = (vectors.codes > 0) != (query_codes(query, vectors.dimensions)[0] > 0)
    row_of = np.repeat(np.arange(n_rows), vectors.counts)
    present = np.flatnonzero(~deleted[row_of])
    monkeypatch.setattr("firstpage.search.vectors.CHOSEN", 30)
    monkeypatch.setattr("firstpage.search.vectors.CHOSEN_PER_RESULT", 10)
    monkeypatch.setattr("firstpage.search.vectors.COARSELY_CHOSEN", 3)
    _, best = vectors.similarities(query, np.arange(n_rows))
    for depth in (1, 5, 10, 1000):
        wanted = max(30, 10 * depth) * vectors.n_vectors // int((vectors.counts > 0).sum())
        chosen = nearest(differs[:, :192].sum(axis=1), present, 3 * wanted)
        chosen = nearest(differs.sum(axis=1), chosen, wanted)
        rows_chosen = np.unique(row_of[chosen]).tolist()
        ranked = sorted(rows_chosen, key=lambda row: (-best[row], row))[:depth]
        for parallel_size in (1, 1 << 30):
            monkeypatch.setattr("firstpage.search.vectors.PARALLEL_SIZE", parallel_size)
            rows, scores = vectors.search(query, depth, deleted, threads=3, exact=False)
            assert rows.tolist() == ranked
            assert scores.tolist() == best[ranked].tolist()
    everything = vectors.search(query, 400, deleted)
    np.testing.assert_array_equal(rows, everything[0])
    assert len(vectors.search(query, 9, np.ones(n_rows, bool), exact=False)[0]) == 0


def test_many_vectors_of_one_document_hide_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the chosen vectors are those of fewer documents than wanted, all are compared."""
    table = np.ones((60, 8), np.float32)
    table[50:, 0] = -np.arange(1, 11)
    vectors = stored_table(table, np.array([50, *range(51, 61)]))
    monkeypatch.setattr("firstpage.search.vectors.CHOSEN", 1)
    monkeypatch.setattr("firstpage.search.vectors.CHOSEN_PER_RESULT", 1)
    rows, _ = vectors.search(np.ones(8), 4, np.zeros(11, bool), exact=False)
    assert rows.tolist() == [0, 1, 2, 3]


def test_many_vectors_are_searched_in_two_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, query = random_vectors(5, 300, 20), np.random.default_rng(5).standard_normal(20)
    deleted = np.zeros(300, bool)
    monkeypatch.setattr("firstpage.search.vectors.CHOSEN", 5)
    monkeypatch.setattr("firstpage.search.vectors.CHOSEN_PER_RESULT", 1)
    exact, fast = (
        vectors.search(query, 5, deleted, exact=each)[0].tolist() for each in (True, False)
    )
    assert exact != fast
    assert vectors.search(query, 5, deleted)[0].tolist() == exact
    monkeypatch.setattr("firstpage.search.vectors.EXACT_VECTORS", vectors.n_vectors - 1)
    assert vectors.search(query, 5, deleted)[0].tolist() == fast
    few = vectors.recall(deleted, depth=5)
    monkeypatch.setattr("firstpage.search.vectors.CHOSEN", 100)
    assert 0 < few < vectors.recall(deleted, depth=5) <= 1
    monkeypatch.setattr("firstpage.search.vectors.CHOSEN", 300)
    assert vectors.recall(deleted, depth=5) == vectors.recall(deleted, sample=1000) == 1.0
    assert vectors.recall(~deleted) == 1.0


def test_a_candidate_does_not_depend_on_the_others() -> None:
    vectors, query = random_vectors(1, 100, 33), np.random.default_rng(1).standard_normal(33)
    whole, best = vectors.similarities(query, np.arange(100))
    for rows in (np.array([5]), np.arange(100)[::-1], np.array([], np.int64)):
        part = vectors.similarities(query, rows)
        np.testing.assert_array_equal(part[0], whole[rows])
        np.testing.assert_array_equal(part[1], best[rows])


def test_codes_are_close_to_vectors() -> None:
    table = np.random.default_rng(0).standard_normal((200, 384)).astype(np.float32)
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    codes, scales = document_codes(table)
    cosines = (codes * scales[:, None] * table).sum(axis=1)
    assert cosines.min() > 0.9999
    vectors = stored_table(table, np.arange(1, 201))
    whole, _ = vectors.similarities(table[7], np.arange(200))
    np.testing.assert_allclose(whole, table @ table[7], atol=2e-3)
    assert 0.9999 < whole[7] <= 1 + 1e-6


@pytest.mark.parametrize("scale", [1e-45, 1e-30, 1e30])
def test_codes_of_extreme_lengths(scale: float) -> None:
    table = np.array([[1.0, -2.0, 0.0]]) * scale
    codes, scales = document_codes(table)
    assert codes.tolist() == [[64, -127, 0]] if scale > 1e-40 else np.isfinite(scales).all()


def test_bad_queries(index: Index) -> None:
    vectors, deleted = stored(index), index.forward.deleted
    for query, message in (
        (np.ones(5), r"has the shape \(5,\); the index has vectors of 16 dimensions"),
        (np.ones((1, 16)), r"has the shape \(1, 16\)"),
        (np.full(16, np.nan), "components that are not finite"),
        (np.full(16, np.inf), "components that are not finite"),
    ):
        with pytest.raises(DataError, match=message):
            vectors.search(query, 3, deleted)
        with pytest.raises(DataError, match=message):
            vectors.similarities(query, np.array([0]))
    assert len(vectors.search(np.zeros(16), 3, deleted)[0]) == 0
    assert [each.tolist() for each in vectors.similarities(np.zeros(16), np.arange(4))] == [
        [0.0] * 4
    ] * 2


# --- changes


@pytest.mark.filterwarnings(WITHOUT_TEXT)
def test_changes_embed_new_texts_only(index: Index, encoder: HashEncoder) -> None:
    encoder.encoded.clear()
    changes = index.add(
        [{"id": "a", "title": "Red shoes", "text": "Running shoes for women."},  # the same text
         {"id": "b", "text": "green coat"}, {"id": "e", "text": "green coat"}, {"id": "f"}]
    )  # fmt: skip
    assert str(changes) == "2 added, 2 replaced, 1 embedded"
    assert encoder.encoded == ["green coat"]
    assert by_id(index)["b"] == by_id(index)["e"] == expected_codes(encoder, "green coat")
    assert by_id(index)["a"] == expected_codes(encoder, "Red shoes Running shoes for women.")
    index.delete(["b"])
    assert sorted(by_id(index)) == ["a", "d", "e"]
    query = encoder.vector("green coat")
    rows, scores = stored(index).search(query, 10, index.forward.deleted)
    assert index.forward.ids[rows[0]] == "e"
    assert len(rows) == 3
    assert scores[0] == pytest.approx(1, abs=1e-3)
    assert str(index.add_vectors(encoder)) == "no change"
    assert sorted(by_id(index)) == ["a", "d", "e"]


@pytest.mark.filterwarnings(WITHOUT_TEXT)
def test_overwriting_uses_known_vectors(index: Index, encoder: HashEncoder) -> None:
    encoder.encoded.clear()
    new = [DOCUMENTS[3], {"id": "z", "text": "something new"}, DOCUMENTS[0]]
    again = Index.from_documents(new, index.path, latent=0, overwrite=True, vectors=encoder)
    assert encoder.encoded == ["something new"]
    assert sorted(by_id(again)) == ["a", "d", "z"]
    with pytest.warns(FirstpageWarning, match="had vectors of hash; the new index has none"):
        Index.from_documents(new, index.path, latent=0, overwrite=True)
    assert Index(index.path).vectors is None


def test_dropping_vectors(index: Index) -> None:
    index.drop_vectors()
    assert index.vectors is None
    assert Index(index.path).encoder_record is None
    assert not list(index.path.glob("dense-*"))


@pytest.mark.filterwarnings(WITHOUT_TEXT)
def test_another_encoder(index: Index) -> None:
    other = HashEncoder(8, "other")
    with pytest.raises(
        DataError, match=r"has vectors of the encoder 'hash' .*Replace them with replace=True"
    ):
        index.add_vectors(other)
    with pytest.raises(DataError, match="has vectors of 16 dimensions; those of 'hash' have 8"):
        index.add([{"id": "n", "text": "x"}], vectors=other)
    with pytest.raises(DataError, match="has vectors of the encoder 'hash' with the digest"):
        index.add([{"id": "n", "text": "x"}], vectors=HashEncoder(16, "other"))
    with pytest.raises(DataError, match="its vectors are of the encoder 'hash'; those of new"):
        index.add([{"id": "n", "text": "x"}], vectors=(["n"], np.ones((1, 16))))
    assert "n" not in index.forward.row_of
    index.add_vectors(other, replace=True)
    assert stored(index).dimensions == 8
    assert len(other.encoded) == 7
    assert len(list(index.path.glob("dense-*"))) == 1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.filterwarnings(WITHOUT_TEXT)
def test_any_changes_equal_a_fresh_index(seed: int, tmp_path: Path) -> None:
    rng, encoder = random.Random(seed), HashEncoder()

    def document(name: str) -> dict[str, Any]:
        length = rng.choice([0, 1, 3, 150])
        return {"id": name, "text": " ".join(f"w{rng.randrange(30)}" for _ in range(length))}

    live = {f"d{i}": document(f"d{i}") for i in range(5)} | {"x": {"id": "x", "text": "x"}}
    index = Index.from_documents(live.values(), tmp_path / "a", latent=0, vectors=encoder)
    for _ in range(8):
        if rng.random() < 0.7:
            names = rng.sample([f"d{i}" for i in range(12)], rng.randrange(1, 5))
            changed = {name: document(name) for name in names}
            index.add(changed.values())
            live |= changed
        else:
            names = rng.sample(sorted(live), 1)
            index.delete(names)
            live = {name: each for name, each in live.items() if name not in names}
    fresh = Index.from_documents(live.values(), tmp_path / "b", latent=0, vectors=HashEncoder())
    assert by_id(index) == by_id(fresh) == by_id(Index(index.path))
    query, results = encoder.vector("w1 w2 w3"), []
    for each in (index, fresh):
        rows, scores = stored(each).search(query, 100, each.forward.deleted)
        results.append(sorted(zip(scores.tolist(), each.forward.ids[rows], strict=True)))
    assert results[0] == results[1]


# --- interruptions and damage


def many(count: int) -> list[dict[str, Any]]:
    return [{"id": f"d{i}", "text": f"word{i}"} for i in range(count)]


def test_a_failing_encoder_loses_nothing(tmp_path: Path) -> None:
    failing, path = HashEncoder(fail_after=600), tmp_path / "i"
    with (
        pytest.raises(DataError, match="the endpoint answered 500"),
        pytest.warns(FirstpageWarning) as notes,
    ):
        Index.from_documents(many(1000), path, latent=0, vectors=failing)
    assert [str(note.message) for note in notes] == [
        f"{path}: the vectors of 512 documents are kept, so that they need not be computed again.",
        f"{path}: is complete but for vectors; `firstpage index -o {path} --vectors hash` adds "
        "them.",
    ]
    index = Index(path)
    assert (len(index), index.vectors) == (1000, None)
    assert (path / JOURNAL).exists()
    encoder = HashEncoder()
    reports: list[tuple[int, int]] = []
    changes = index.add_vectors(encoder, lambda done, total: reports.append((done, total)))
    assert changes.embedded == len(encoder.encoded) == 488
    assert reports[-1] == (1000, 1000)
    assert not (path / JOURNAL).exists()
    assert by_id(index) == {f"d{i}": expected_codes(encoder, f"word{i}") for i in range(1000)}


def test_a_failing_encoder_leaves_the_old_vectors(index: Index, encoder: HashEncoder) -> None:
    before = by_id(index)
    encoder.encoded.clear()
    encoder.fail_after = 0
    with pytest.raises(DataError, match="answered 500"):
        index.add([{"id": "n", "text": "new"}])
    assert by_id(Index(index.path)) == by_id(index) == before
    assert "n" not in Index(index.path).forward.row_of


@pytest.mark.parametrize("cut", [1, 10, 30, 400])
@pytest.mark.parametrize("rest", [b"", b"\xff" * 200])
def test_a_journal_that_was_cut(tmp_path: Path, cut: int, rest: bytes) -> None:
    path = tmp_path / "i"
    with pytest.raises(DataError), pytest.warns(FirstpageWarning):
        Index.from_documents(many(600), path, latent=0, vectors=HashEncoder(fail_after=300))
    journal = path / JOURNAL
    content = journal.read_bytes()
    journal.write_bytes(content[:-cut] + rest)
    encoder = HashEncoder()
    assert Index(path).add_vectors(encoder).embedded > 344
    assert by_id(Index(path)) == {f"d{i}": expected_codes(encoder, f"word{i}") for i in range(600)}


def test_a_journal_of_another_encoder_or_of_nonsense(tmp_path: Path) -> None:
    path, encoder = tmp_path / "i", HashEncoder()
    with pytest.raises(DataError), pytest.warns(FirstpageWarning):
        Index.from_documents(many(300), path, latent=0, vectors=HashEncoder(fail_after=280))
    assert Index(path).add_vectors(HashEncoder(salt="other")).embedded == 300
    (path / JOURNAL).write_bytes(b"\xff" * 1000)
    index = Index(path)
    assert index.add_vectors(encoder, replace=True).embedded == 300
    assert by_id(index)["d7"] == expected_codes(encoder, "word7")


KILLED = """
import sys, time
from tests.search.test_vectors import HashEncoder, many
import firstpage as fp

class Slow(HashEncoder):
    def encode_documents(self, texts):
        if len(self.encoded) >= 512:
            print("ready", flush=True)
            time.sleep(100)
        return super().encode_documents(texts)

index = fp.Index(sys.argv[1])
if sys.argv[2] == "vectors":
    index.add_vectors(Slow(), replace=True)
else:
    index.add(many(1500), vectors=Slow())
"""


@pytest.mark.parametrize("change", ["vectors", "documents"])
def test_a_killed_writer(tmp_path: Path, change: str) -> None:
    path = tmp_path / "i"
    salt = "old" if change == "vectors" else ""
    documents = many(1500) if change == "vectors" else [{"id": "first", "text": "word"}]
    before = Index.from_documents(documents, path, latent=0, vectors=HashEncoder(salt=salt))
    code = [sys.executable, "-c", KILLED, str(path), change]
    with subprocess.Popen(code, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        writer.kill()
    left = Index(path)
    assert by_id(left) == by_id(before)
    encoder = HashEncoder()
    if change == "vectors":
        assert left.add_vectors(encoder, replace=True).embedded == 1500 - 512
    else:
        assert left.add(many(1500), vectors=encoder).embedded == 1500 - 512
    assert by_id(left)["d1499"] == expected_codes(encoder, "word1499")
    assert by_id(left)["d3"] == expected_codes(encoder, "word3")
    kinds = {re.sub("-.*", "", entry.name) for entry in path.iterdir()}
    assert kinds == {"engine", "forward", "index.json", "statistics", "dense"}


@pytest.mark.parametrize("name", ["codes", "scales", "signs", "ends", "digests"])
def test_damaged_files(index: Index, name: str, tmp_path: Path) -> None:
    folder = next(index.path.glob("dense-*"))
    copy = tmp_path / "copy"
    shutil.copytree(index.path, copy)
    file = copy / folder.name / name
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(DataError, match=f"{name}: damaged .* build the index again"):
        Index(copy)
    file.unlink()
    with pytest.raises(DataError, match="damaged"):
        Index(copy)
    if name in ("scales", "ends"):
        file.write_bytes(b"\xff" * 1000)
        with pytest.raises(DataError, match=r"damaged .*its numbers are impossible"):
            Index(copy)


def test_a_second_writer_is_refused(index: Index, encoder: HashEncoder) -> None:
    with storage.writer_lock(index.path):
        for change in (lambda: index.add_vectors(encoder), index.drop_vectors):
            with pytest.raises(DataError, match="another process writes to this index"):
                change()


# --- vectors that were computed elsewhere


def test_precomputed_vectors(tmp_path: Path) -> None:
    table = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    with pytest.warns(FirstpageWarning) as notes:
        index = Index.from_documents(
            DOCUMENTS, tmp_path / "i", latent=0, vectors=(["a", "d", "zz", "d"], table)
        )
    assert [str(note.message).partition(": ")[2] for note in notes] == [
        "1 of 3 ids are not those of documents, such as 'zz'; their vectors are left out.",
        "2 of 4 documents have no vectors in the table of vectors, such as 'b'.",
    ]
    record = index.encoder_record
    assert record is not None
    assert (record["name"], record["dimensions"]) == ("file", 6)
    codes = document_codes(table)[0].tolist()
    assert by_id(index) == {"a": [codes[0]], "d": [codes[1], codes[3]]}
    with pytest.warns(FirstpageWarning, match="2 of 2 documents have no vectors; those of this"):
        index.add([{"id": "n", "text": "new"}, {"id": "m", "text": "more"}])
    changes = index.add([{"id": "n", "text": "newer"}], vectors=(["n"], table[:1]))
    assert changes.embedded == 1
    assert by_id(index)["n"] == [codes[0]]
    index.add([{**DOCUMENTS[0], "id": "a"}])  # its text is the same, so its vector stays
    assert by_id(index)["a"] == [codes[0]]
    with pytest.raises(DataError, match="has vectors of 6 dimensions; those of 'file' have 3"):
        index.add([{"id": "o", "text": "x"}], vectors=(["o"], np.eye(3)[:1]))
    with pytest.raises(DataError, match="its vectors were computed elsewhere; those of new"):
        index.add([{"id": "o", "text": "x"}], vectors=HashEncoder(6))


BAD_TABLES = [
    (["a"], [[0.0, 0.0]], "1 vectors are zero, such as that of 'a'"),
    (["a", "b"], [[1.0, 0.0], [np.nan, 0.0]], "1 vectors are not finite, such as that of 'b'"),
    (["a"], np.eye(2), "there are 2 vectors, but 1 ids"),
    ([], np.empty((0, 2)), r"has no table of vectors; its shape is \(0, 2\)"),
    (["a"], [1.0, 2.0], r"has no table of vectors; its shape is \(2,\)"),
    (["a"], [["x"]], "the vectors are not numbers of one shape"),
    (["a", "b"], [[1.0], [1.0, 2.0]], "the vectors are not numbers of one shape"),
    (["q", "r"], np.eye(2), "none of its 2 ids is that of a document; they are such as 'q'"),
]


@pytest.mark.parametrize(("ids", "table", "message"), BAD_TABLES)
def test_bad_tables(tmp_path: Path, ids: list[str], table: Any, message: str) -> None:
    index = Index.from_documents(DOCUMENTS, tmp_path / "i", latent=0)
    with pytest.raises(DataError, match=message) as raised:
        index.add_vectors((ids, table))
    assert "\n" not in str(raised.value)
    assert Index(index.path).vectors is None


def test_lengths_are_reported() -> None:
    with pytest.warns(FirstpageWarning, match="lengths from 1 to 5; they are scaled to length 1"):
        PrecomputedVectors(["a", "b"], np.array([[1.0, 0.0], [3.0, 4.0]]))
    PrecomputedVectors(["a", "b"], np.array([[0.0, 5.0], [3.0, 4.0]]))


def test_bad_encoders(tmp_path: Path) -> None:
    index = Index.from_documents(many(3), tmp_path / "i", latent=0)

    answer = np.ones((3, 4))
    encoder = Encoder("wrong", "1", 16, lambda _: answer, lambda _: answer)
    with pytest.raises(DataError, match="wrong: its vectors have 4 dimensions now"):
        index.add_vectors(encoder)
    answer = np.zeros((3, 16))  # texts without tokens
    with pytest.warns(FirstpageWarning, match="3 of 3 documents have no text"):
        index.add_vectors(encoder)
    assert stored(index).n_vectors == 0
    assert len(stored(index).search(np.ones(16), 5, index.forward.deleted)[0]) == 0


@pytest.mark.parametrize(
    "name", ["own:embed", "own:embed?query=q", "http://localhost:1/v1/embeddings#m"]
)
def test_an_index_calls_only_what_is_named(
    index: Index, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index of somebody else must neither run code nor send texts and keys anywhere."""
    encoder = HashEncoder(salt="own", name=name)
    with pytest.warns(FirstpageWarning, match="1 of 4 documents have no text"):
        index.add_vectors(encoder, replace=True)
    index.add([{"id": "m", "text": "red"}])
    again = Index(index.path)
    monkeypatch.setattr(
        "firstpage.search.dense_stage.load_encoder", lambda *_: pytest.fail("loaded")
    )
    with pytest.raises(DataError, match=r"An index may call only functions and addresses that"):
        again.add([{"id": "n", "text": "red"}])
    assert again.add([{"id": "n", "text": "red shoes"}], vectors=encoder).embedded == 1
    again.delete(["n"])


def test_the_encoder_is_loaded_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = []

    def load(name: str, digest: str | None = None, source: str = "") -> HashEncoder:
        loaded.append((name, digest, source))
        return HashEncoder()

    for module in ("index", "dense_stage"):
        monkeypatch.setattr(f"firstpage.search.{module}.load_encoder", load)
    path = tmp_path / "i"
    index = Index.from_documents(many(3), path, latent=0, vectors="hash")
    index.add([{"id": "n", "text": "new"}])
    assert loaded == [("hash", None, "")]
    index = Index(path)
    for name in ("m", "o"):
        index.add([{"id": name, "text": name}])
    assert loaded[1:] == [("hash", HashEncoder().digest, str(path))]
    index.delete(["m"])
    assert len(loaded) == 2
    assert by_id(index)["n"] == expected_codes(HashEncoder(), "new")
