from firstpage.labeling.app.api.reference import HEAD as HEAD
from firstpage.labeling.app.api.reference import description as description
from firstpage.labeling.app.api.reference import rows as rows
