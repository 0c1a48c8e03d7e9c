"""Cross-encoders in ONNX: models that read a query and a document together, and return a score."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from firstpage.core import Array, DataError, Floats
from firstpage.search.encoders.model_files import (
    file_digest,
    first_line,
    read_config,
    read_tokenizer,
    settings_digest,
)
from firstpage.search.encoders.onnx_folder import DTYPES, IDS, MASK, TYPES, onnx_files
from firstpage.search.encoders.transformer import MAX_TOKENS, TOKENIZER, open_session


class CrossEncoder:
    """A cross-encoder of a folder with `tokenizer.json` and `model.onnx`, also in `onnx/`.

    Such a folder is that of a cross-encoder of sentence-transformers with its export to ONNX.

    Parameters
    ----------
    folder : path
        The folder.

    Attributes
    ----------
    digest : str
        Digest of model and tokenizer.

    Raises
    ------
    DataError
        If the folder has no such model.
    MissingDependency
        If onnxruntime or tokenizers are not installed.
    """

    def __init__(self, folder: Path) -> None:
        files = onnx_files(folder)
        chosen = [each for each in files if each.name == "model.onnx"] if len(files) > 1 else files
        if len(chosen) != 1:
            raise DataError(
                f"cross-encoder {folder}: needs {TOKENIZER}, and model.onnx here or in onnx/; "
                "sentence-transformers writes them with backend='onnx'."
            )
        self._path = chosen[0]
        limit = read_config(folder / "tokenizer_config.json").get("model_max_length")
        longest = limit if type(limit) is int and 0 < limit < MAX_TOKENS else MAX_TOKENS
        self._tokenizer = read_tokenizer(folder / TOKENIZER, longest)
        self._session = open_session(self._path, self._path)
        self._types = {each.name: DTYPES.get(each.type) for each in self._session.get_inputs()}
        if not {IDS} <= set(self._types) <= {IDS, MASK, TYPES} or None in self._types.values():
            raise DataError(
                f"{self._path}: the model needs inputs {', '.join(self._types)}; only {IDS}, "
                f"{MASK} and {TYPES}, integers, are supported."
            )
        self.digest = settings_digest(
            weights=file_digest(self._path), tokenizer=file_digest(folder / TOKENIZER)
        )

    def scores(self, query: str, texts: Sequence[str]) -> Floats:
        """Return the score of each text for a query.

        Parameters
        ----------
        query : str
            The query.
        texts : sequence of str
            The texts; tokens after the model's limit are not read.

        Returns
        -------
        ndarray of float
            The scores; a greater one is better.
        """
        encoded = self._tokenizer.encode_batch([(query, text) for text in texts])
        return np.array([self._score(each) for each in encoded], np.float64)

    def _score(self, encoded: Any) -> float:
        values = {IDS: encoded.ids, MASK: encoded.attention_mask, TYPES: encoded.type_ids}
        inputs = {name: np.array([values[name]], kind) for name, kind in self._types.items()}
        try:
            output: Array = self._session.run(None, inputs)[0]
        except Exception as error:  # the library has an error class per status
            raise DataError(f"{self._path}: the model failed ({first_line(error)}).") from error
        if output.size != 1 or not np.isfinite(output).all():
            raise DataError(
                f"{self._path}: returns {output.size} numbers for a query and a text; a "
                "cross-encoder returns one finite score."
            )
        return float(output.ravel()[0])
