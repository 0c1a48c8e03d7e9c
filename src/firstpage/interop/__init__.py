"""Exchange with other programs: exports of models, readers of foreign files, reports.

::

    a model ────────▶ export ──▶ files of Solr, Elasticsearch, Vespa, ONNX, NumPy, .. (checked)
    foreign files ──▶ read ────▶ models, judgments, Datasets
    results ────────▶ report ──▶ text, Markdown, LaTeX, CSV, JSON, or a page without scripts

An export is compared with `predict` on documents before it is written.  Where a target computes in
float32, thresholds are converted so that no decision changes.

To change                                   open
------------------------------------------  -----------------------------------------------------
an export target, and what it supports      export/targets.py, export/export_model.py
a search engine's format                    export/solr.py, export/elastic.py, export/vespa.py
ONNX, NumPy, LightGBM, XGBoost files        export/runtimes.py, export/onnx_network.py
conversion to float32                       export/float32.py
readers of RankLib, Quepid, feature logs    read/
tables of results in all formats            report/results.py
pages of reports                            report/html_page.py
"""

from firstpage.core import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
