"""Public namespaces: names are listed in a stub and imported on first use."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# Names that users of LightGBM, XGBoost, CatBoost, ranx and trec_eval try.
NAMES_ELSEWHERE = dict.fromkeys(
    ("lgbmranker", "xgbranker", "catboostranker", "lightgbm", "xgboost"), "fp.LambdaMART"
) | {
    "fuse": "fp.aggregation.aggregate",
    "load_model": "fp.load",
    "read_trec_run": "fp.read_run",
    "read_trec_qrels": "fp.read_qrels",
    "ndcg": 'fp.measure("NDCG@10")',
    "map": 'fp.measure("AP")',
    "mrr": 'fp.measure("RR")',
}


def lazy_namespace(
    package: str, init_file: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` for a package.

    The public names of the package are the imports of `__init__.pyi` beside its `__init__.py`.
    Type checkers read the same file, so that no name is listed twice.
    """
    module_of = stub_imports(Path(init_file).with_suffix(".pyi"))

    def get(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}" + _hint(name))
        module = module_of[name]
        if module == package.partition(".")[0]:  # a namespace of the package, such as fp.dcglearn
            value = import_module(f"{module}.{name}")
        else:
            value = getattr(import_module(module), name)
        setattr(import_module(package), name, value)
        return value

    def _hint(name: str) -> str:
        if name.startswith("_") or find_spec(f"{package}.{name}") is not None:
            return ""  # the import system asks for a submodule in this way
        from difflib import get_close_matches

        names = dict(_paths(package, module_of))
        if name.casefold() in NAMES_ELSEWHERE:
            return f". Its name here is {NAMES_ELSEWHERE[name.casefold()]}."
        close = get_close_matches(name.casefold(), names, 1, 0.8)
        return f". Did you mean {names[close[0]]!r}?" if close else ""

    public = [*module_of, "__version__"] if package == "firstpage" else list(module_of)
    return get, lambda: sorted(public), public


def stub_imports(stub: Path) -> dict[str, str]:
    """Return the modules of the names that a stub file imports."""
    return {
        alias.name: node.module
        for node in ast.parse(stub.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }


def _paths(package: str, module_of: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the public names below a package in lower case, with the paths that lead to them."""
    for name in module_of:
        yield name.casefold(), f"{package}.{name}"
    for name, module in module_of.items():
        if module == package:
            for inner in stub_imports(Path(__file__).parent / name / "__init__.pyi"):
                yield inner.casefold(), f"{package}.{name}.{inner}"
