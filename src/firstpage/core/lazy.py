"""Public namespaces: names are listed in a stub and imported on first use."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

IMPORT = re.compile(r"^from (\S+) import \(?\s*\w+ as (\w+)", re.MULTILINE)
ALL = re.compile(r"^__all__ = \[(.*?)\]", re.MULTILINE | re.DOTALL)
DECLARATION = re.compile(r"^(\w+): ", re.MULTILINE)
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

    The names that others may take are the imports of `__init__.pyi` beside its `__init__.py`, which
    type checkers read too.  If the stub has a list `__all__`, these names are for users, and the
    others for other packages of Firstpage.
    """
    stub = Path(init_file).with_suffix(".pyi")
    module_of = stub_imports(stub)
    for_users = public_names(stub)

    def get(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}" + _hint(name))
        if module_of[name] == package:  # a module of the package, such as its namespaces
            return import_module(f"{package}.{name}")
        value = getattr(import_module(module_of[name]), name)
        setattr(import_module(package), name, value)
        return value

    def _hint(name: str) -> str:
        is_package = Path(init_file).name == "__init__.py"
        if name.startswith("_") or (is_package and find_spec(f"{package}.{name}") is not None):
            return ""  # the import system asks for a submodule in this way
        from difflib import get_close_matches

        if name.casefold() in NAMES_ELSEWHERE:
            return f". Its name here is {NAMES_ELSEWHERE[name.casefold()]}."
        paths = list(_paths(package, stub))
        folded = {known.casefold(): path for known, path in reversed(paths)}
        close = get_close_matches(name.casefold(), folded, 1, 0.8)
        suggested = dict(reversed(paths)).get(name) or (folded[close[0]] if close else None)
        return f". Did you mean {suggested!r}?" if suggested else ""

    return get, lambda: sorted(for_users), for_users


def stub_imports(stub: Path) -> dict[str, str]:
    """Return the modules of the names that a stub file imports."""
    return {name: module for module, name in IMPORT.findall(stub.read_text(encoding="utf-8"))}


def public_names(stub: Path) -> list[str]:
    """Return the names of a stub's `__all__`, or all names that it has."""
    text = stub.read_text(encoding="utf-8")
    listed = ALL.search(text)
    if listed:
        return re.findall(r'"(\w+)"', listed[1])
    return [name for _, name in IMPORT.findall(text)] + DECLARATION.findall(text)


def _paths(package: str, stub: Path) -> Iterator[tuple[str, str]]:
    """Yield the public names below a package, with the paths by which users reach them."""
    root = Path(__file__).parents[2]
    module_of, top = stub_imports(stub), stub_imports(root / "firstpage" / "__init__.pyi")
    last = package.rpartition(".")[2]
    prefix = "fp" if package == "firstpage" else f"fp.{last}" if last in top else package
    for name in public_names(stub):
        yield name, f"{prefix}.{name}"
    for name, module in module_of.items():
        folder = root.joinpath(*module.split("."))
        for inner in (folder / name / "__init__.pyi", folder / f"{name}.pyi"):
            if inner.exists():
                for public in public_names(inner):
                    yield public, f"{prefix}.{name}.{public}"
