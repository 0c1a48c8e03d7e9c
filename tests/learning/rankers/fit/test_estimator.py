"""Rankers without scikit-learn, and the moment at which they become its estimators."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

BEFORE = """
import json, os, sys, traceback
import firstpage as fp
from firstpage.learning.rankers.fit.estimator import clone
ranker = fp.ListNet(k=3, seed=1)
data = fp.Synthetic(queries=5, docs=6, features=3, seed=0).dataset()
fitted = clone(ranker).fit(data)
texts = [repr(ranker), repr(clone(ranker).set_params(k=None)), str(sorted(ranker.get_params()))]
assert not hasattr(ranker, "model_") and fitted.predict(data).shape == (30,)
assert "sklearn" not in sys.modules, "scikit-learn was imported"
import joblib, pandas, scipy.stats  # most of the time of importing scikit-learn, once for all
assert "sklearn" not in sys.modules

def raised(call):
    try: call()
    except Exception as error: return error
"""
FIRST_USES = {
    "tags": "\nfrom sklearn.utils import get_tags; assert get_tags(ranker).target_tags.required",
    "clone": "\nfrom sklearn.base import clone as c; assert c(ranker).k == 3",
    "routing": """
import sklearn
sklearn.set_config(enable_metadata_routing=True)
assert ranker.set_fit_request(qid=True) is ranker""",
    "html": "assert 'ListNet' in ranker._repr_html_()",
    "nested": "assert fp.TopRank(first=ranker).set_params(first__k=3).first.k == 3",
    "errors": """
from sklearn.exceptions import NotFittedError
error = raised(lambda: ranker.set_params(depth=1))
assert isinstance(error, ValueError) and "Invalid parameter 'depth'" in str(error)
error = raised(lambda: ranker.predict([[1.0]]))
assert isinstance(error, NotFittedError) and "is not fitted yet" in str(error)
error = raised(lambda: ranker.coefficients)
assert isinstance(error, AttributeError) and "coefficients" in str(error)""",
}
AFTER = """
from firstpage.learning.rankers.fit.estimator import use_sklearn
use_sklearn()
from sklearn.base import BaseEstimator
assert isinstance(ranker, BaseEstimator) and isinstance(fitted, BaseEstimator)
assert texts == [
    repr(ranker), repr(clone(ranker).set_params(k=None)), str(sorted(ranker.get_params()))
]
"""
FORKS = """
errors = {}
for name, code in json.load(sys.stdin).items():
    read, write = os.pipe()
    if os.fork() == 0:
        with os.fdopen(write, "w") as out:
            try: exec(code)
            except BaseException: out.write(traceback.format_exc())
        os._exit(0)
    os.close(write)
    errors[name] = open(read).read()
    os.wait()
print(json.dumps(errors))
"""


@pytest.fixture(scope="module")
def errors() -> dict[str, str]:
    """Run each first use of scikit-learn in a copy of one process that has not imported it."""
    code = {name: first_use + AFTER for name, first_use in FIRST_USES.items()}
    result = subprocess.run(
        [sys.executable, "-c", BEFORE + FORKS],
        input=json.dumps(code),
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize("first_use", FIRST_USES)
def test_scikit_learn_is_imported_when_its_interface_is_used(
    first_use: str, errors: dict[str, str]
) -> None:
    assert errors[first_use] == ""
