"""The base class of rankers: scikit-learn's, which is imported when it is first needed.

Importing scikit-learn takes longer than training on a small file.  `LazyEstimator` has what
training and scoring need of an estimator.  When anything else of scikit-learn's interface is used,
such as tags, metadata routing or the printed form, `use_sklearn` replaces it by `BaseEstimator` in
the bases of its subclasses: from then on they are scikit-learn's estimators.
"""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Self, TypeVar

T = TypeVar("T")
LINE = 78  # characters, with a pair of parentheses
_lock = threading.RLock()


class LazyEstimator:
    """An estimator that becomes scikit-learn's `BaseEstimator` on demand."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of this estimator, by name.

        Parameters
        ----------
        deep : bool, default True
            Whether to include the parameters of parameters that are estimators.

        Returns
        -------
        dict of str to object
            Values by parameter name.
        """
        params: dict[str, Any] = {}
        for name in parameter_names(type(self)):
            value = getattr(self, name)
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                params |= {f"{name}__{key}": v for key, v in value.get_params().items()}
            params[name] = value
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters of this estimator; `name__parameter` sets those of a nested one.

        Parameters
        ----------
        **params : dict
            Values by parameter name.

        Returns
        -------
        self
            This estimator.
        """
        if any("__" in name for name in params) or not params.keys() <= set(
            parameter_names(type(self))
        ):
            use_sklearn()  # nested parameters, and the error message for unknown ones
            return self.set_params(**params)
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __getattr__(self, name: str) -> Any:
        """Look up an attribute of scikit-learn's interface; fitted attributes end in `_`."""
        if name.startswith("__sklearn_") or not name.endswith("_"):
            use_sklearn()
            return getattr(self, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        """Return the name and the parameters that differ from their defaults."""
        defaults = inspect.signature(type(self)).parameters
        params = self.get_params(deep=False)
        changed = {n: v for n, v in params.items() if repr(v) != repr(defaults[n].default)}
        text = ", ".join(f"{name}={value!r}" for name, value in changed.items())
        plain = all(v is None or isinstance(v, (bool, int, float, str)) for v in changed.values())
        if plain and len(text) + len(type(self).__name__) < LINE:
            return f"{type(self).__name__}({text})"
        use_sklearn()  # which breaks lines
        return repr(self)

    def _repr_html_(self) -> str:
        use_sklearn()
        html: str = self._repr_html_()
        return html

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        use_sklearn()
        return self._repr_mimebundle_(**options)

    def __sklearn_tags__(self) -> Any:
        use_sklearn()
        from sklearn.base import BaseEstimator

        return BaseEstimator.__sklearn_tags__(self)


def parameter_names(cls: type) -> list[str]:
    """Return the names of the parameters of an estimator, sorted, as scikit-learn lists them."""
    return sorted(name for name in inspect.signature(cls).parameters)


def use_sklearn() -> None:
    """Import scikit-learn and make all subclasses of `LazyEstimator` its estimators."""
    from sklearn.base import BaseEstimator

    with _lock:
        for cls in LazyEstimator.__subclasses__():
            bases = tuple(BaseEstimator if b is LazyEstimator else b for b in cls.__bases__)
            cls.__bases__ = bases
            for subclass in _with_subclasses(cls):
                parent: Any = super(cls, subclass)
                parent.__init_subclass__()  # adds the methods of metadata routing


def _with_subclasses(cls: type[LazyEstimator]) -> Iterator[type[LazyEstimator]]:
    yield cls
    for subclass in cls.__subclasses__():
        yield from _with_subclasses(subclass)


def adopt_sklearn() -> None:
    """Use scikit-learn at once where the process has imported it already."""
    if "sklearn.base" in sys.modules:
        use_sklearn()


def clone(estimator: T) -> T:
    """Return an unfitted estimator with the same parameters, as scikit-learn's `clone` does."""
    if isinstance(estimator, (list, tuple, set, frozenset)):
        return type(estimator)(clone(item) for item in estimator)
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        return deepcopy(estimator)
    if not isinstance(estimator, LazyEstimator):
        from sklearn.base import clone as clone_estimator

        cloned: T = clone_estimator(estimator)
        return cloned
    parameters = estimator.get_params(deep=False)
    return type(estimator)(**{name: clone(value) for name, value in parameters.items()})


def check_is_fitted(estimator: object) -> None:
    """Raise scikit-learn's error if a ranker was not fitted."""
    if not hasattr(estimator, "model_"):
        from sklearn.exceptions import NotFittedError

        raise NotFittedError(
            f"This {type(estimator).__name__} instance is not fitted yet. Call 'fit' with "
            "appropriate arguments before using this estimator."
        )
