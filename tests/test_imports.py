"""The structure of the package: imports never lead in a circle, inside functions neither."""

from __future__ import annotations

from graphlib import TopologicalSorter

import grimp


def test_no_import_leads_in_a_circle() -> None:
    graph = grimp.build_graph("firstpage", exclude_type_checking_imports=True, cache_dir=None)
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    assert len(imports) > 300
    TopologicalSorter(imports).prepare()  # a circle is an error, which names it
