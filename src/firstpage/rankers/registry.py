"""All rankers by name."""

from __future__ import annotations

import os
from typing import Any

from firstpage.errors import DataError
from firstpage.rankers.methods import METHODS, create_ranker
from firstpage.rankers.model_files import parse_parameter, read_model
from firstpage.rankers.ranker import Ranker
from firstpage.rankers.toprank import TopRank

RANKERS: dict[str, type[Ranker]] = {**METHODS, "TopRank": TopRank}


def ranker(text: str, **given: Any) -> Ranker:
    """The ranker that a text names, as `ListMLE(k=10)`; "top-k" in front asks for that form."""
    return create_ranker(text, RANKERS, **given)


def describe_rankers() -> list[tuple[str, str, str]]:
    """(name, one line, paper) of every ranker."""
    return [(name, cls._about, cls._paper) for name, cls in RANKERS.items()]


def load(path: str | os.PathLike[str]) -> Any:
    """The fitted estimator of a model file."""
    model = read_model(path)
    given = {key: parse_parameter(value, model.source) for key, value in model.parameters.items()}
    found = ranker(model.ranker, **given)
    found._remember_features(model)
    try:
        found._set_fitted(model.scoring, model.training, model.transform)
    except (TypeError, ValueError) as error:
        raise DataError(f"{model.source}: damaged: its training record ({error}).") from None
    return found
