"""Graphs of ONNX written as bytes: what onnxruntime reads, without the package onnx.

The bytes hold no weights: they are passed to the session as arrays, which it copies.

References
----------
The message types of onnx.proto3 (github.com/onnx/onnx), and the wire format of protocol buffers
(protobuf.dev/programming-guides/encoding).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from firstpage.core import Array

IR_VERSION, OPSET = 8, 17
CONTRIB = "com.microsoft"  # the domain of onnxruntime's fused operators
FLOAT, UINT8, INT8, INT32 = 1, 2, 3, 6  # TensorProto.DataType
DATA_TYPES = {"float32": FLOAT, "uint8": UINT8, "int8": INT8, "int32": INT32}
EXTERNAL = 1  # TensorProto.DataLocation
KIND_FLOAT, KIND_INT, KIND_INTS = 1, 2, 7  # AttributeProto.AttributeType
VARINT, BYTES, FIXED32 = 0, 2, 5  # wire types

Attribute = int | float | tuple[int, ...]


@dataclass
class EncoderGraph:
    """Collects nodes and weights; both are named by the caller or numbered."""

    weights: dict[str, Array] = field(default_factory=dict)
    _nodes: list[bytes] = field(default_factory=list)

    def weight(self, values: Array) -> str:
        """Add an array and return its name."""
        name = f"w{len(self.weights)}"
        self.weights[name] = np.ascontiguousarray(values)
        return name

    def node(
        self, kind: str, inputs: Sequence[str], output: str = "", **attributes: Attribute
    ) -> str:
        """Add an operator with one output, and return the output's name; "" is a missing input."""
        output = output or f"v{len(self._nodes)}"
        self.nodes(kind, inputs, [output], **attributes)
        return output

    def nodes(
        self,
        kind: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        **attributes: Attribute,
    ) -> None:
        """Add an operator; a name with a colon begins with the operator's domain."""
        domain, _, operator = kind.rpartition(":")
        self._nodes.append(
            b"".join(
                [
                    *(_text(1, name) for name in inputs),
                    *(_text(2, name) for name in outputs),
                    _text(3, f"n{len(self._nodes)}"),
                    _text(4, operator),
                    *(_bytes(5, _attribute(key, value)) for key, value in attributes.items()),
                    _text(7, domain),
                ]
            )
        )

    def model(self, inputs: dict[str, tuple[int, int]], output: str, rank: int) -> bytes:
        """Return the model: the type and rank of each input, and an output of type float32."""
        graph = [
            *(_bytes(1, node) for node in self._nodes),
            _text(2, "encoder"),
            *(_bytes(5, _external(name, array)) for name, array in self.weights.items()),
            *(_bytes(11, _value(name, *kind)) for name, kind in inputs.items()),
            _bytes(12, _value(output, FLOAT, rank)),
        ]
        opsets = [_text(1, "") + _number(2, OPSET), _text(1, CONTRIB) + _number(2, 1)]
        return b"".join(
            [
                _number(1, IR_VERSION),
                _bytes(7, b"".join(graph)),
                *(_bytes(8, opset) for opset in opsets),
            ]
        )


def _attribute(name: str, value: Attribute) -> bytes:
    if isinstance(value, float):
        content = _key(2, FIXED32) + struct.pack("<f", value) + _number(20, KIND_FLOAT)
    elif isinstance(value, int):
        content = _number(3, value) + _number(20, KIND_INT)
    else:
        content = b"".join(_number(8, each) for each in value) + _number(20, KIND_INTS)
    return _text(1, name) + content


def _external(name: str, array: Array) -> bytes:
    """Return a tensor whose values are passed to the session."""
    return b"".join(
        [
            *(_number(1, size) for size in array.shape),
            _number(2, DATA_TYPES[array.dtype.name]),
            _text(8, name),
            _bytes(13, _text(1, "location") + _text(2, name)),
            _number(14, EXTERNAL),
        ]
    )


def _value(name: str, kind: int, rank: int) -> bytes:
    dimensions = b"".join(_bytes(1, _text(2, f"{name}_{axis}")) for axis in range(rank))
    return _text(1, name) + _bytes(2, _bytes(1, _number(1, kind) + _bytes(2, dimensions)))


def _varint(value: int) -> bytes:
    """Return an unsigned or two's-complement 64-bit number, 7 bits per byte, lowest first."""
    value &= (1 << 64) - 1
    digits = bytearray()
    while value > 127:
        digits.append(value & 127 | 128)
        value >>= 7
    digits.append(value)
    return bytes(digits)


def _key(number: int, wire: int) -> bytes:
    return _varint(number << 3 | wire)


def _number(number: int, value: int) -> bytes:
    return _key(number, VARINT) + _varint(value)


def _bytes(number: int, content: bytes) -> bytes:
    return _key(number, BYTES) + _varint(len(content)) + content


def _text(number: int, content: str) -> bytes:
    return _bytes(number, content.encode())
