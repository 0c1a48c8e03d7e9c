"""What every package needs, and nothing of ranking: kernels, engines, HTTP, errors, types, tables.

::

    a function on arrays ──▶ kernels ──▶ machine code, cached per machine, linked without Numba
    a task per shard ──────▶ engine ───▶ threads, or workers of a Dask cluster; results in order
    a socket ──────────────▶ http ─────▶ requests within limits, from pages of this site

A kernel is a plain Python loop over flat arrays and offsets.  It allocates nothing and raises
nothing, and runs as it stands in a debugger.  An engine sends a function to all shards and returns
the results in the order of the shards, so that they do not depend on the number of workers.

To change                                   open
------------------------------------------  -----------------------------------------------------
a loop over documents                       kernels/measures/, kernels/losses/, kernels/voting/
sorting, ties, joins, random words          kernels/sorting.py, kernels/ties.py, kernels/hashing.py
parsing of text files                       kernels/parsing/
how kernels are compiled and cached         kernels/compiler/
threads, the Dask cluster                   engine/threads.py, engine/dask_cluster.py
sockets, body limits, static files          http/server.py, http/connections.py, ..
errors, warnings, and their wording         errors.py
objects by text, as in `sgd(rate=0.01)`     registry.py
tables as text, Markdown, LaTeX, HTML       table.py, tabular.py
SVG charts                                  charts.py
the cache folder, atomic writes             folders.py
the lazy names of faces                     lazy.py
"""

from firstpage.core.lazy import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
