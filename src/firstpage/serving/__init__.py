"""An HTTP server that ranks candidates with a model, and searches an index.

::

    POST /rank ──app──▶ limits (body, slot) ──▶ ranking: decode, score, explain, encode ──▶ answer
    GET /search ─app──▶ searching: first stage, features, scores ──▶ pages, two first pages
                                    ▲ watched_model: replaced when its file changes, after a test

A request that exceeds a limit is refused with a status and one line.  A model is tried on documents
before it serves; one that fails leaves the previous model in service.

To change                                   open
------------------------------------------  -----------------------------------------------------
a route                                     app.py, openapi.py
formats of requests and answers             json_messages.py, binary_formats.py, rank_request.py
limits                                      limits.py
reading and replacing models                served_model.py, watched_model.py, forests.py
search: results, snippets, the last stage   searching.py, snippets.py, last_stage.py
pages                                       page_contents.py, about_page.py, pages.py, templates/
feedback of people who search               feedback.py, feedback_requests.py
log of queries and events                   event_log.py, event_rows.py
experiments                                 experiments.py
metrics, drift, access log                  metrics.py, drift.py, access_log.py
process, several workers                    process.py, workers.py
"""

from firstpage.core import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
