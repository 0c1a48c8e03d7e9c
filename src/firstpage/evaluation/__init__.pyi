from firstpage.evaluation import aggregation as aggregation
from firstpage.evaluation import dcglearn as dcglearn
from firstpage.evaluation import planning as planning
