"""Trees as the library that grew them reads them."""

from __future__ import annotations

import json

from firstpage.interop.export.subject import Files, Subject

SUFFIX = {"lightgbm": "txt", "xgboost": "json"}
CALL = {
    "lightgbm": "lightgbm.Booster(model_file='model.txt').predict(X, raw_score=True)",
    "xgboost": (
        "booster = xgboost.Booster(); booster.load_model('model.json'); "
        "booster.predict(xgboost.DMatrix(X), output_margin=True)"
    ),
}


def export(subject: Subject) -> Files:
    model = subject.scoring.library_model
    assert model is not None, f"{subject.kind} is no model of a library"
    file = f"model.{SUFFIX[model.library]}"
    columns = json.dumps(list(subject.features.names), indent=1).encode() + b"\n"
    contents = {file: model.text.encode(), "columns.json": columns}
    how = f"In Python: `{CALL[model.library]}`. `columns.json` names the columns of X, in order."
    return Files(file, contents, how)
