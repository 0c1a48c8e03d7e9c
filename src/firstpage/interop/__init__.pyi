from firstpage.interop.read import query_engine as query_engine
from firstpage.interop.read import read_clicks as read_clicks
from firstpage.interop.read import read_feature_log as read_feature_log
from firstpage.interop.read import read_logged_run as read_logged_run
from firstpage.interop.read import read_quepid as read_quepid
from firstpage.interop.read import read_ranklib as read_ranklib

# The names for users; the others are for other packages of Firstpage.
__all__ = [
    "query_engine",
    "read_clicks",
    "read_feature_log",
    "read_logged_run",
    "read_quepid",
    "read_ranklib",
]
