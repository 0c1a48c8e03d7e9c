from firstpage.serving.event_log import erase as erase
from firstpage.serving.event_log import prune as prune
from firstpage.serving.last_stage import LastStage as LastStage
from firstpage.serving.limits import Limits as Limits
from firstpage.serving.process import ServerSettings as ServerSettings
from firstpage.serving.process import serve as serve
from firstpage.serving.served_index import IndexSource as IndexSource
from firstpage.serving.served_model import load as load
