from firstpage.interop.export.hybrid import FUSION_ENGINES as FUSION_ENGINES
from firstpage.interop.export.hybrid import export_fusion as export_fusion
from firstpage.interop.export.hybrid import exportable_fusions as exportable_fusions
from firstpage.interop.export.targets import TARGETS as TARGETS
from firstpage.interop.export.targets import Export as Export
from firstpage.interop.export.targets import export as export
