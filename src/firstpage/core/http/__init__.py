"""What all HTTP servers share: sockets, limits on connections and bodies, checks, pages.

`endpoint_client` is the other side: requests to the endpoints of models.
"""

from firstpage.core.lazy import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
