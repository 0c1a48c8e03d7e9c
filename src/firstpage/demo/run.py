"""The public function of the demo, which checks that its packages are installed."""

from __future__ import annotations

from pathlib import Path

from firstpage.core import require_extras
from firstpage.demo.output import ProgressBar, no_progress


def run_demo(
    path: Path,
    *,
    judge: bool = False,
    serve: bool = False,
    port: int = 0,
    progress: ProgressBar = no_progress,
) -> Path:
    """Run the whole loop on Python's documentation and write a report.

    The loop indexes the documentation, labels candidates of 263 questions with simulated
    assessors, trains four rankers, compares them with tuned BM25, learns a measure from simulated
    editors, and aggregates the four rankings. It takes about a minute and needs the extras web and
    search, with `serve` also the extra serve (``firstpage[web,search,serve]``).

    Parameters
    ----------
    path : path
        Folder for the report and the data. It is created; the folder of an earlier demo is
        reused.
    judge : bool, default False
        Whether you judge two questions in your browser first.
    serve : bool, default False
        Whether the search page and the labeling application keep running afterwards, until Ctrl-C.
    port : int, default 0
        Port of the labeling application; the search page has this port plus 10. 0 takes any free
        ports.
    progress : callable, optional
        Function of a title that returns a context manager whose value is a progress callback
        ``(done, total)`` or None. By default there are no progress bars.

    Returns
    -------
    Path
        The report, an HTML file.

    Raises
    ------
    MissingDependency
        If an extra is not installed.
    DataError
        If the folder contains files that are not the demo's or judgments of yours, a server uses
        its database, a port is in use, or Python has no docstrings.

    Examples
    --------
    >>> from pathlib import Path
    >>> import firstpage as fp
    >>> fp.demo.run_demo(Path("firstpage-demo"))  # doctest: +SKIP
    PosixPath('firstpage-demo/report.html')
    """
    require_extras("The demo", "web", "search", *(["serve"] if serve else []))
    from firstpage.demo.loop import run_loop

    return run_loop(path, judge, serve, port, progress)
