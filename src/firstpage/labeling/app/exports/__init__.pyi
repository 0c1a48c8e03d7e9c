from firstpage.labeling.app.exports.data import dataset as dataset
from firstpage.labeling.app.exports.data import feature_source as feature_source
from firstpage.labeling.app.exports.export_notes import notes as notes
from firstpage.labeling.app.exports.make import export as export
from firstpage.labeling.app.exports.make import qrels_of as qrels_of
