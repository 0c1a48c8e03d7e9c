"""An encoder of texts by the concepts that their words name: `tests.search.meaning:encode`."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from firstpage.core import Array

CONCEPTS = ("shoe sneaker trainer boot", "coat jacket parka", "hat cap", "red crimson", "blue navy")
AXIS = {word: axis for axis, words in enumerate(CONCEPTS) for word in words.split()}
ENCODER = f"{__name__}:encode"
OTHER = f"{__name__}:encode_other"


def encode(texts: Sequence[str]) -> Array:
    """Return the number of words of each concept, as vectors of length 1; zeros without any."""
    vectors = np.zeros((len(texts), len(CONCEPTS)), np.float32)
    for vector, text in zip(vectors, texts, strict=True):
        for word in re.findall("[a-z]+", text.lower()):
            axis = AXIS.get(word, AXIS.get(word.removesuffix("s")))
            if axis is not None:
                vector[axis] += 1
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, norms, out=vectors, where=norms > 0)


def encode_other(texts: Sequence[str]) -> Array:
    """Return other vectors."""
    return encode(texts)[:, ::-1].copy()
