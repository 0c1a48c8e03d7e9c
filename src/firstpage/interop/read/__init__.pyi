from firstpage.interop.read.engine import query_engine as query_engine
from firstpage.interop.read.feature_log import logged_documents as logged_documents
from firstpage.interop.read.feature_log import read_feature_log as read_feature_log
from firstpage.interop.read.feature_log import read_logged_run as read_logged_run
from firstpage.interop.read.feature_log import warn_unlabeled as warn_unlabeled
from firstpage.interop.read.judgments import read_clicks as read_clicks
from firstpage.interop.read.judgments import read_quepid as read_quepid
from firstpage.interop.read.ranklib import read_ranklib as read_ranklib
