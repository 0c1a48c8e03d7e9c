"""Models in ONNX: a folder with one `.onnx` file and `tokenizer.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from firstpage.core import Array, DataError
from firstpage.search.encoders.encoder import Encoder
from firstpage.search.encoders.model_files import file_digest, first_line
from firstpage.search.encoders.options import EncoderOptions
from firstpage.search.encoders.transformer import (
    Forward,
    open_session,
    read_settings,
    transformer_encoder,
)

IDS, MASK, TYPES = "input_ids", "attention_mask", "token_type_ids"
POOLED = "sentence_embedding"  # output of graphs that pool
DYNAMIC = b"DynamicQuantize"  # operators by which the vectors of a batch depend on one another
DTYPES = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}


def onnx_files(folder: Path) -> list[Path]:
    """Return the models of a folder, which may be in its folder `onnx`."""
    return sorted([*folder.glob("*.onnx"), *folder.glob("onnx/*.onnx")])


def onnx_encoder(name: str, folder: Path, options: EncoderOptions) -> Encoder:
    """Return the encoder of a folder with a model in ONNX; of several, that of `model.onnx`."""
    files = onnx_files(folder)
    chosen = [path for path in files if path.name == "model.onnx"] if len(files) > 1 else files
    if len(chosen) != 1:
        names = ", ".join(str(path.relative_to(folder)) for path in files)
        raise DataError(f"encoder {name}: give a folder with one of its models: {names}.")
    options.refuse_all_but(name, "query", "document", "max_tokens", "pooling")
    model = chosen[0]
    session = open_session(model, model)
    pools = POOLED in {output.name for output in session.get_outputs()}
    settings = read_settings(name, folder, options, pools=pools)
    return transformer_encoder(
        name,
        folder,
        settings,
        _forward(model, session, pools),
        1 if DYNAMIC in model.read_bytes() else None,
        kind="onnx",
        weights=[file_digest(path) for path in sorted(model.parent.glob(f"{model.name}*"))],
    )


def _forward(path: Path, session: Any, pools: bool) -> Forward:
    """Return the forward pass of a session."""
    types = {each.name: DTYPES.get(each.type) for each in session.get_inputs()}
    other = [each for each in types if each not in (IDS, MASK, TYPES) or types[each] is None]
    if other or IDS not in types:
        raise DataError(
            f"{path}: the model needs inputs {', '.join(types)}; only {IDS}, {MASK} and {TYPES}, "
            "integers, are supported."
        )
    output = POOLED if pools else session.get_outputs()[0].name

    def forward(ids: Array) -> Array:
        values = {IDS: ids, MASK: np.ones_like(ids), TYPES: np.zeros_like(ids)}
        try:
            result: Array = session.run(
                [output], {each: values[each].astype(dtype) for each, dtype in types.items()}
            )[0]
        except Exception as error:  # the library has an error class per status
            raise DataError(f"{path}: the model failed ({first_line(error)}).") from error
        if result.ndim != (2 if pools else 3):
            raise DataError(
                f"{path}: its output {output!r} has {result.ndim} dimensions; it must be the "
                f"vectors of all tokens, or be named {POOLED!r}."
            )
        return np.asarray(result, np.float32)

    return forward
