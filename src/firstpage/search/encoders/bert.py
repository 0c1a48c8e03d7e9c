"""The forward pass of BERT-like transformers as a graph of onnxruntime's fused operators.

References
----------
Devlin, Chang, Lee and Toutanova, BERT, NAACL 2019.  Operators:
github.com/microsoft/onnxruntime, docs/ContribOperators.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from firstpage.core import Array, DataError, install_command
from firstpage.search.encoders.encoder import Encoder
from firstpage.search.encoders.model_files import (
    file_digest,
    read_config,
    read_number,
    read_weights,
)
from firstpage.search.encoders.onnx_graph import CONTRIB, INT32, EncoderGraph
from firstpage.search.encoders.options import EncoderOptions
from firstpage.search.encoders.transformer import (
    Forward,
    open_session,
    read_settings,
    transformer_encoder,
)

ROBERTA = ("roberta", "xlm-roberta")  # positions begin after that of padding
TYPES = ("bert", *ROBERTA)
ACTIVATIONS = {"gelu": "BiasGelu", "gelu_new": "FastGelu", "gelu_pytorch_tanh": "FastGelu"}
PREFIXES = ("", "bert.", "roberta.")  # of the names of weights
WEIGHTS = "model.safetensors"
ROW_MAX, COLUMN_MAX = 127, 64  # of the integers of activations and of weights
ZERO = 128  # what unsigned integers represent 0 by
TINY = 1e-20  # scale of zeros


def is_bert(folder: Path) -> bool:
    """Return whether a folder contains a model of a type that is known here."""
    config = folder / "config.json"
    return (folder / WEIGHTS).is_file() and read_config(config).get("model_type") in TYPES


def bert_encoder(name: str, folder: Path, options: EncoderOptions) -> Encoder:
    """Return the encoder of a folder with `config.json`, `model.safetensors` and tokenizer."""
    shape = BertShape.read(name, folder / "config.json")
    settings = read_settings(name, folder, options, shape.positions - shape.first_position)
    precision = options.precision or "int8"
    return transformer_encoder(
        name,
        folder,
        settings,
        bert_forward(folder / WEIGHTS, shape, precision),
        kind="bert",
        weights=file_digest(folder / WEIGHTS),
        shape=asdict(shape),
        precision=precision,
    )


@dataclass(frozen=True)
class BertShape:
    """The numbers of a configuration that the forward pass depends on."""

    layers: int
    heads: int
    width: int
    positions: int
    first_position: int
    epsilon: float
    activation: str

    @classmethod
    def read(cls, name: str, path: Path) -> BertShape:
        """Return the shape; refuse models of other types."""
        config = read_config(path, required=True)
        kind, activation = config.get("model_type"), config.get("hidden_act", "gelu")
        problem = ""
        if kind not in TYPES:
            problem = f"model_type {kind!r}"
        elif activation not in ACTIVATIONS:
            problem = f"hidden_act {activation!r}"
        elif config.get("position_embedding_type", "absolute") != "absolute":
            problem = f"position_embedding_type {config['position_embedding_type']!r}"
        if problem:
            raise DataError(
                f"encoder {name}: {problem} is not supported here; export the model to ONNX, or "
                f"install sentence-transformers: {install_command('sentence-transformers')}"
            )
        epsilon = config.get("layer_norm_eps", 1e-12)
        if not isinstance(epsilon, float) or not 0 <= epsilon < 1:
            raise DataError(f"{path}: layer_norm_eps must be a small number; got {epsilon!r}.")
        heads, width = (
            read_number(path, config, key) for key in ("num_attention_heads", "hidden_size")
        )
        if width % heads:
            raise DataError(f"{path}: hidden_size must be a multiple of num_attention_heads.")
        return cls(
            read_number(path, config, "num_hidden_layers"),
            heads,
            width,
            read_number(path, config, "max_position_embeddings"),
            int(config.get("pad_token_id") or 0) + 1 if kind in ROBERTA else 0,
            epsilon,
            ACTIVATIONS[activation],
        )


def bert_forward(path: Path, shape: BertShape, precision: str) -> Forward:
    """Return the forward pass with the weights of a file."""
    graph = EncoderGraph()
    output = _BertGraph(
        graph, _Weights(path, read_weights(path)), shape, precision == "int8"
    ).build()
    model = graph.model({"ids": (INT32, 2)}, output, 3)
    session = open_session(model, path, graph.weights)

    def forward(ids: Array) -> Array:
        hidden: Array = session.run(None, {"ids": ids})[0]
        return hidden

    return forward


class _Weights:
    """The weights of a file, by names without the prefix of the file."""

    def __init__(self, path: Path, arrays: Mapping[str, Array]) -> None:
        self._path, self._arrays = path, arrays
        word = "embeddings.word_embeddings.weight"
        self._prefix = next((each for each in PREFIXES if each + word in arrays), "")

    def __call__(self, name: str, *shape: int) -> Array:
        """Return an array of this shape (-1: any length); raise if the file has none."""
        array = self._arrays.get(self._prefix + name)
        if array is None:
            raise DataError(f"{self._path}: has no weights {name!r}.")
        fits = len(shape) == array.ndim and all(
            expected in (-1, size) for expected, size in zip(shape, array.shape, strict=True)
        )
        if not fits:
            raise DataError(
                f"{self._path}: the weights {name!r} have shape {array.shape}, and should have "
                f"{shape}; does config.json belong to them?"
            )
        values: Array = np.asarray(array, np.float32)
        return values


class _BertGraph:
    """Adds the operators of a forward pass to a graph, with matrix products of int8 or float32."""

    def __init__(
        self, graph: EncoderGraph, weights: _Weights, shape: BertShape, integers: bool
    ) -> None:
        self._graph, self._weights, self._shape = graph, weights, shape
        self._product = self._integer_product if integers else self._float_product

    def build(self) -> str:
        """Return the name of the vectors of all tokens."""
        hidden = self._embeddings()
        for layer in range(self._shape.layers):
            hidden = self._layer(f"encoder.layer.{layer}.", hidden)
        return hidden

    def _embeddings(self) -> str:
        """Words, positions and the first type of tokens, added and normalized."""
        width, name = self._shape.width, "embeddings.{}_embeddings.weight"
        words = self._weights(name.format("word"), -1, width)
        positions = self._weights(name.format("position"), self._shape.positions, width)
        types = self._weights(name.format("token_type"), -1, width)
        positions = positions[self._shape.first_position :] + types[0]
        self._graph.nodes(
            f"{CONTRIB}:EmbedLayerNormalization",
            ["ids", "", *self._added(words, positions), "", *self._norm("embeddings")],
            ["embedded", "lengths"],
            epsilon=self._shape.epsilon,
        )
        return "embedded"

    def _layer(self, prefix: str, hidden: str) -> str:
        """Attention and two dense layers, each added to its input and normalized."""
        width, heads = self._shape.width, self._shape.heads
        dense = [
            self._dense(f"{prefix}attention.self.{name}", width, width)
            for name in ("query", "key", "value")
        ]
        weight, bias = (np.concatenate(parts, axis=-1) for parts in zip(*dense, strict=True))
        inputs = [f"{prefix}{name}" for name in ("query", "key", "value")]
        self._graph.nodes("Split", [self._product(hidden, weight)], inputs, axis=2)
        attended = self._graph.node(
            f"{CONTRIB}:MultiHeadAttention", [*inputs, *self._added(bias)], num_heads=heads
        )
        hidden = self._residual(f"{prefix}attention.output", attended, hidden, width)
        weight, bias = self._dense(f"{prefix}intermediate.dense", -1, width)
        inner = self._graph.node(
            f"{CONTRIB}:{self._shape.activation}",
            [self._product(hidden, weight), *self._added(bias)],
        )
        return self._residual(f"{prefix}output", inner, hidden, weight.shape[1])

    def _residual(self, prefix: str, values: str, residual: str, size: int) -> str:
        """Apply a dense layer, add its bias and the residual, and normalize.

        onnxruntime's SkipLayerNormalization, which does that at once, takes three times as long.
        """
        add = self._graph.node
        weight, bias = self._dense(f"{prefix}.dense", self._shape.width, size)
        total = add("Add", [self._product(values, weight), residual])
        total = add("Add", [total, *self._added(bias)])
        return add(
            "LayerNormalization",
            [total, *self._norm(prefix)],
            axis=-1,
            epsilon=self._shape.epsilon,
        )

    def _float_product(self, values: str, weight: Array) -> str:
        return self._graph.node("MatMul", [values, *self._added(weight)])

    def _integer_product(self, values: str, weight: Array) -> str:
        """Multiply integers of 8 bits; the largest value of each row and column sets its scale.

        Every token has its own scale, so that its vector does not depend on other texts.  Columns
        have 7 bits: the sum of two products fits into 16 bits, as processors without VNNI need.
        """
        add, one = self._graph.node, np.array(1, np.float32)
        columns = np.maximum(np.abs(weight).max(axis=0), TINY) / COLUMN_MAX
        largest = add("ReduceMax", [add("Abs", [values])], axes=(-1,))
        scale = add("Mul", [largest, *self._added(np.array([1 / ROW_MAX], np.float32))])
        scale = add("Max", [scale, *self._added(np.array([TINY], np.float32))])
        zero = np.array(ZERO, np.uint8)
        rows = add("QuantizeLinear", [add("Div", [values, scale]), *self._added(one, zero)])
        product = add(
            f"{CONTRIB}:MatMulIntegerToFloat",
            [
                rows,
                *self._added(np.rint(weight / columns).astype(np.int8), one),
                *self._added(columns.astype(np.float32), zero, np.zeros(len(columns), np.int8)),
            ],
        )
        return add("Mul", [product, scale])

    def _dense(self, name: str, outputs: int, inputs: int) -> tuple[Array, Array]:
        """Return weights (inputs in rows) and bias of a dense layer."""
        weight = self._weights(f"{name}.weight", outputs, inputs).T
        return weight, self._weights(f"{name}.bias", weight.shape[1])

    def _norm(self, prefix: str) -> list[str]:
        return self._added(
            *(
                self._weights(f"{prefix}.LayerNorm.{name}", self._shape.width)
                for name in ("weight", "bias")
            )
        )

    def _added(self, *arrays: Array) -> list[str]:
        return [self._graph.weight(each) for each in arrays]
