from firstpage.labeling.app.imports import bundle as bundle
from firstpage.labeling.app.imports import texts as texts
from firstpage.labeling.app.imports.bundle import File as File
from firstpage.labeling.app.imports.bundle import Sources as Sources
from firstpage.labeling.app.imports.pictures import Pictures as Pictures
from firstpage.labeling.app.imports.pictures import from_folder as from_folder
from firstpage.labeling.app.imports.quepid import import_ratings as import_ratings
from firstpage.labeling.app.imports.texts import ImportCounts as ImportCounts
