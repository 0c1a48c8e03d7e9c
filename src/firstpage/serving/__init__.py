"""An HTTP server that ranks candidates with a model.

A request passes through `app` (routes), `limits` (body, slot) and `ranking`: `json_messages` or
`binary_formats` decodes it into a `rank_request`, `served_model` scores it, and the answer is
encoded.
`watched_model` replaces the model when its file changes; `process` runs all of it.
"""

from firstpage.core import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
