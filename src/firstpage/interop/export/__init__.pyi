from firstpage.interop.export.targets import TARGETS as TARGETS
from firstpage.interop.export.targets import Export as Export
from firstpage.interop.export.targets import export as export
