"""Trees as the library that grew them reads them."""

from __future__ import annotations

import json

from firstpage.errors import DataError
from firstpage.interop.export.subject import Files, Subject
from firstpage.scorers.trees import TreesScoring

SUFFIX = {"lightgbm": "txt", "xgboost": "json"}
CALL = {
    "lightgbm": "lightgbm.Booster(model_file='model.txt').predict(X, raw_score=True)",
    "xgboost": (
        "booster = xgboost.Booster(); booster.load_model('model.json'); "
        "booster.predict(xgboost.DMatrix(X), output_margin=True)"
    ),
}


def lightgbm(subject: Subject) -> Files:
    return _export(subject, "lightgbm", "LightGBM")


def xgboost(subject: Subject) -> Files:
    return _export(subject, "xgboost", "XGBoost")


def _export(subject: Subject, library: str, name: str) -> Files:
    if not isinstance(subject.scoring, TreesScoring) or subject.scoring.library != library:
        grown = "trees of XGBoost" if library == "lightgbm" else "trees of LightGBM"
        what = grown if isinstance(subject.scoring, TreesScoring) else "no trees of a library"
        raise DataError(
            f"{subject.source} has {what}; {library} takes what {name} has grown "
            f"(scorer='trees(library={library})')."
        )
    if subject.transform is not None:
        raise DataError(
            f"{subject.source} scales features, and a file of {name} cannot; export to onnx or "
            "numpy, or train without normalize."
        )
    file = f"model.{SUFFIX[library]}"
    columns = json.dumps(list(subject.features.names), indent=1).encode() + b"\n"
    contents = {file: subject.scoring.text.encode(), "columns.json": columns}
    how = f"In Python: `{CALL[library]}`. `columns.json` names the columns of X, in order."
    return Files(file, contents, how)
