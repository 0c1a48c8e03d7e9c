"""What an encoder is, and the checks that all encoders share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from firstpage.core import Array, DataError

Vectors = Callable[[Sequence[str]], Any]
"""A function from texts to an array with one vector per text."""


@dataclass(frozen=True, eq=False)
class Encoder:
    """Turns texts into vectors whose inner product is the similarity of query and document.

    `load_encoder` returns one of a model; one of your own is made of two functions.  Threads may
    share an encoder if they may share its functions.

    Parameters
    ----------
    name : str
        The name by which `load_encoder` loads it, and messages call it.
    digest : str
        A digest of all that changes the vectors: weights, tokenizer, prefixes, settings.
    dimensions : int
        The length of a vector.
    queries, documents : callable
        Functions from a list of texts, none of them blank, to one vector per text, of any length.

    Examples
    --------
    >>> import firstpage as fp
    >>> def letters(texts):
    ...     return [[text.count(letter) for letter in "abc"] for text in texts]
    >>> encoder = fp.extend.Encoder("letters", "1", 3, queries=letters, documents=letters)
    >>> encoder.encode_queries(["aa", "", "aaaabbb"]).astype(float).round(3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.8, 0.6, 0.0]]
    """

    name: str
    digest: str
    dimensions: int
    queries: Vectors = field(repr=False)
    documents: Vectors = field(repr=False)

    def encode_queries(self, texts: Sequence[str]) -> Array:
        """Return one vector per query.

        Parameters
        ----------
        texts : sequence of str
            The queries.

        Returns
        -------
        array of float32, shape (n, dimensions)
            Vectors of Euclidean length 1; that of a text without tokens is 0.

        Raises
        ------
        DataError
            If the model fails, or does not return one finite vector per text.
        """
        return self._encode(self.queries, texts)

    def encode_documents(self, texts: Sequence[str]) -> Array:
        """Return one vector per document or passage.

        Parameters
        ----------
        texts : sequence of str
            The documents or passages.

        Returns
        -------
        array of float32, shape (n, dimensions)
            Vectors of Euclidean length 1; that of a text without tokens is 0.

        Raises
        ------
        DataError
            If the model fails, or does not return one finite vector per text.
        """
        return self._encode(self.documents, texts)

    def to_dict(self) -> dict[str, str | int]:
        """Return what a recipe records.

        Returns
        -------
        dict
            `name`, `digest` and `dimensions`.
        """
        return {"name": self.name, "digest": self.digest, "dimensions": self.dimensions}

    def _encode(self, compute: Vectors, texts: Sequence[str]) -> Array:
        """Compute the vectors of all texts that are not blank."""
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise DataError(f"encoder {self.name}: texts must be a sequence of str.")
        rows = [row for row, text in enumerate(texts) if text.strip()]
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        if rows:
            computed = check_vectors(
                self.name, compute([encodable(texts[row]) for row in rows]), len(rows)
            )
            if computed.shape[1] != self.dimensions:
                raise DataError(
                    f"encoder {self.name}: its vectors have {computed.shape[1]} dimensions now, "
                    f"and had {self.dimensions} before."
                )
            vectors[rows] = unit_vectors(computed)
        return vectors


def encodable(text: str) -> str:
    """Return a text that can be encoded as UTF-8: lone surrogates are replaced."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def check_vectors(name: str, vectors: Any, count: int) -> Array:
    """Return an array of float32 with one finite vector per text, or raise."""
    try:
        array: Array = np.asarray(vectors, np.float32)
    except (ValueError, TypeError, OverflowError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise DataError(f"encoder {name}: it returns no array of numbers ({reason}).") from error
    if array.ndim != 2 or len(array) != count or not array.shape[1]:
        raise DataError(
            f"encoder {name}: it must return one vector per text; for {count} texts it returned "
            f"an array of shape {array.shape}."
        )
    if not np.isfinite(array).all():
        raise DataError(
            f"encoder {name}: a vector contains {array[~np.isfinite(array)][0]}; are the weights "
            "damaged?"
        )
    return array


def unit_vectors(vectors: Array) -> Array:
    """Return the vectors divided by their Euclidean lengths; a vector of zeros stays."""
    scale = np.abs(vectors).max(axis=1, keepdims=True)  # so that no square overflows or vanishes
    scaled = vectors / np.where(scale > 0, scale, 1)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    unit: Array = scaled / np.where(lengths > 0, lengths, 1)
    return unit


def with_prefix(prefix: str, compute: Vectors) -> Vectors:
    """Return a function that puts a prefix before every text."""
    if not prefix:
        return compute
    return lambda texts: compute([prefix + text for text in texts])
