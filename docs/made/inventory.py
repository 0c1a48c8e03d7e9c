"""Where the types of other libraries are documented: inventories of Sphinx, written from a table.

The site is built without a network, so that the inventories of these libraries cannot be fetched.
"""

from __future__ import annotations

import zlib
from pathlib import Path

STANDARD = "https://docs.python.org/3/"
NUMPY = "https://numpy.org/doc/stable/"
# Addresses by site and name.
TYPES = {
    "python": (
        STANDARD,
        {
            "bool": "library/functions.html#bool",
            "False": "library/constants.html#False",
            "bytes": "library/stdtypes.html#bytes",
            "dict": "library/stdtypes.html#dict",
            "float": "library/functions.html#float",
            "int": "library/functions.html#int",
            "list": "library/stdtypes.html#list",
            "None": "library/constants.html#None",
            "os.PathLike": "library/os.html#os.PathLike",
            "pathlib.Path": "library/pathlib.html#pathlib.Path",
            "True": "library/constants.html#True",
            "str": "library/stdtypes.html#str",
            "tuple": "library/stdtypes.html#tuple",
            "collections.abc.Callable": "library/collections.abc.html#collections.abc.Callable",
            "collections.abc.Iterable": "library/collections.abc.html#collections.abc.Iterable",
            "collections.abc.Iterator": "library/collections.abc.html#collections.abc.Iterator",
            "collections.abc.Mapping": "library/collections.abc.html#collections.abc.Mapping",
            "collections.abc.Sequence": "library/collections.abc.html#collections.abc.Sequence",
        },
    ),
    "numpy": (
        NUMPY,
        {
            "numpy.ndarray": "reference/generated/numpy.ndarray.html",
            "numpy.random.Generator": "reference/random/generator.html",
            "numpy.typing.ArrayLike": "reference/typing.html#numpy.typing.ArrayLike",
        },
    ),
    "scipy": (
        "https://docs.scipy.org/doc/scipy/",
        {
            "scipy.sparse.csr_array": "reference/generated/scipy.sparse.csr_array.html",
            "scipy.sparse.spmatrix": "reference/sparse.html",
        },
    ),
    "pandas": (
        "https://pandas.pydata.org/docs/",
        {"pandas.DataFrame": "reference/api/pandas.DataFrame.html"},
    ),
    "polars": (
        "https://docs.pola.rs/api/python/stable/",
        {"polars.DataFrame": "reference/dataframe/index.html"},
    ),
    "torch": (
        "https://docs.pytorch.org/docs/stable/",
        {"torch.Tensor": "tensors.html", "torch.nn.Module": "generated/torch.nn.Module.html"},
    ),
    "distributed": (
        "https://distributed.dask.org/en/stable/",
        {"distributed.Client": "api.html#distributed.Client"},
    ),
}
# How docstrings write them, where that is not the last part of the name.
WORDS = {
    "array": "numpy.ndarray",
    "array-like": "numpy.typing.ArrayLike",
    "array_like": "numpy.typing.ArrayLike",
    "callable": "collections.abc.Callable",
    "iterable": "collections.abc.Iterable",
    "iterator": "collections.abc.Iterator",
    "mapping": "collections.abc.Mapping",
    "path": "os.PathLike",
    "sequence": "collections.abc.Sequence",
}


def aliases() -> dict[str, str]:
    """Return the full name of each type as docstrings write it."""
    names = [name for _, types in TYPES.values() for name in types]
    last = {name.rpartition(".")[2]: name for name in names if name not in WORDS.values()}
    return {name: name for name in names} | last | WORDS | {"DataFrame": "polars.DataFrame"}


def write_inventories(folder: Path) -> dict[str, tuple[str, str]]:
    """Write an inventory per library, and return Sphinx's mapping to them."""
    folder.mkdir(parents=True, exist_ok=True)
    mapping = {}
    for project, (site, types) in TYPES.items():
        rows = "".join(f"{name} py:class 1 {address} -\n" for name, address in types.items())
        head = f"# Sphinx inventory version 2\n# Project: {project}\n# Version: \n"
        head += "# The remainder of this file is compressed using zlib.\n"
        file = folder / f"{project}.inv"
        file.write_bytes(head.encode() + zlib.compress(rows.encode()))
        mapping[project] = (site, str(file))
    return mapping
