"""Rankers without scikit-learn, and the moment at which they become its estimators."""

from __future__ import annotations

import subprocess
import sys

import pytest

BEFORE = """
import sys
import firstpage as fp
from firstpage.rankers.fit.estimator import clone
ranker = fp.ListNet(k=3, seed=1)
data = fp.Synthetic(queries=5, docs=6, features=3, seed=0).dataset()
fitted = clone(ranker).fit(data)
texts = [repr(ranker), repr(clone(ranker).set_params(k=None)), str(sorted(ranker.get_params()))]
assert not hasattr(ranker, "model_") and fitted.predict(data).shape == (30,)
assert "sklearn" not in sys.modules, "scikit-learn was imported"
"""
AFTER = {
    "tags": "from sklearn.utils import get_tags; assert get_tags(ranker).target_tags.required",
    "clone": "from sklearn.base import clone as c; assert c(ranker).k == 3",
    "routing": "assert ranker.set_fit_request(qid=True) is ranker",
    "html": "assert 'ListNet' in ranker._repr_html_()",
    "nested": "assert fp.TopRank(first=ranker).set_params(first__k=3).first.k == 3",
}


@pytest.mark.parametrize("name", AFTER)
def test_scikit_learn_is_imported_when_its_interface_is_used(name: str) -> None:
    code = f"""{BEFORE}
import sklearn
if {name == "routing"}: sklearn.set_config(enable_metadata_routing=True)
{AFTER[name]}
from firstpage.rankers.fit.estimator import use_sklearn
use_sklearn()
from sklearn.base import BaseEstimator
assert isinstance(ranker, BaseEstimator) and isinstance(fitted, BaseEstimator)
assert texts == [
    repr(ranker), repr(clone(ranker).set_params(k=None)), str(sorted(ranker.get_params()))
]
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_unknown_parameters_and_unfitted_rankers_have_the_usual_errors() -> None:
    code = """
import firstpage as fp
ranker = fp.ListNet()
try: ranker.set_params(depth=1)
except ValueError as error: assert "Invalid parameter 'depth'" in str(error)
from sklearn.exceptions import NotFittedError
try: ranker.predict([[1.0]])
except NotFittedError as error: assert "is not fitted yet" in str(error)
try: ranker.coefficients
except AttributeError as error: assert "coefficients" in str(error)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
