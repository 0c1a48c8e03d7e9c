"""Click models by name, and files of fitted ones."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from firstpage.clicks.models.base import ClickModel
from firstpage.clicks.models.chains import CCM, DBN, DCM, Cascade, SimplifiedDBN
from firstpage.clicks.models.tables import PBM, UBM, DocumentCTR, GlobalCTR, RankCTR
from firstpage.core import DataError, Registry, by_class_name
from firstpage.data.io import JsonFormat, json_digest, write_bytes

MODELS: Mapping[str, type[ClickModel]] = by_class_name(
    GlobalCTR, RankCTR, DocumentCTR, PBM, Cascade, DCM, SimplifiedDBN, DBN, UBM, CCM
)
ALIASES = {"CTR": "GlobalCTR", "RCTR": "RankCTR", "DCTR": "DocumentCTR", "SDBN": "SimplifiedDBN"}
CLICK_MODELS = Registry("click model", MODELS, ALIASES)
MODEL_FORMAT = JsonFormat("firstpage.click-model", 1, "click model")
HEADER = ("format", "version", "sha256")


def click_model(model: str | ClickModel) -> ClickModel:
    """Return the click model that a text names, such as `PBM` or `UBM(prior=(1, 1))`.

    Parameters
    ----------
    model : str or ClickModel
        A name with parameters, or a model.

    Returns
    -------
    ClickModel
        The model.

    Raises
    ------
    ParameterError
        If there is no such model or parameter.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.clicks.click_model("ubm(prior=(1, 1))")
    UBM(prior=(1.0, 1.0))
    """
    return model if isinstance(model, ClickModel) else CLICK_MODELS.create(model)


def save_model(model: ClickModel, path: str | os.PathLike[str]) -> None:
    """Write a fitted click model to a JSON file.

    Parameters
    ----------
    model : ClickModel
        The fitted model.
    path : path
        The file; `.json.gz` is compressed.

    Examples
    --------
    See `load_model`.
    """
    stored = MODEL_FORMAT.with_header(model.to_dict())
    with write_bytes(Path(path), sync=True) as out:
        out.write(json.dumps(stored, allow_nan=False).encode() + b"\n")


def load_model(path: str | os.PathLike[str]) -> ClickModel:
    """Read a fitted click model from a file of `save_model` or `firstpage clicks fit`.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    ClickModel
        The fitted model.

    Raises
    ------
    DataError
        If the file is missing, damaged, of another kind, or written by a newer version.

    Examples
    --------
    >>> import os, tempfile
    >>> import firstpage as fp
    >>> sessions = fp.Sessions.from_arrays(
    ...     query=["q"] * 2, document=["a", "b"], rank=[1, 2], clicked=[1, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.json")
    ...     fp.clicks.save_model(fp.clicks.PBM(prior=(1, 1)).fit(sessions), path)
    ...     fp.clicks.load_model(path)
    PBM(prior=(1.0, 1.0))
    """
    name, stored = os.fspath(path), MODEL_FORMAT.read(path)
    content = {key: value for key, value in stored.items() if key not in HEADER}
    if stored.get("sha256") not in (None, json_digest(content)):
        raise DataError(
            f"{name}: its numbers are not those that were written (the checksum differs); if you "
            "changed them by hand, remove its sha256."
        )
    return _restored(name, content)


def _restored(name: str, content: Mapping[str, Any]) -> ClickModel:
    try:
        given = content["settings"].items()
        settings = {name: tuple(x) if isinstance(x, list) else x for name, x in given}
        return CLICK_MODELS.instance(content["model"], settings).restored(content)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise DataError(f"{name}: damaged ({reason}).") from None
