from firstpage.labeling.app.analysis.figures import project_study as project_study
from firstpage.labeling.app.analysis.figures import questions as questions
from firstpage.labeling.app.analysis.figures import skipped_questions as skipped_questions
from firstpage.labeling.app.analysis.machines import project_calibration as project_calibration
from firstpage.labeling.app.analysis.measure import learned_measure as learned_measure
from firstpage.labeling.app.analysis.query_overview import queries as queries
from firstpage.labeling.app.analysis.truth import QueryTruth as QueryTruth
from firstpage.labeling.app.analysis.truth import truths as truths
