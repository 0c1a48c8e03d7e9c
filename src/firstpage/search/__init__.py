"""From texts to features: documents, an index, candidates, features of query and document.

::

    documents ──analyzer──▶ engine (which documents match) ──BM25──┐
              ├─encoder───▶ vectors ─────────────────────cosine────┴─▶ first stage ─▶ candidates
              └─analyzer──▶ forward index (terms in order) ──▶ features ──model──▶ results

Both indexes hold the same terms.  `families` are functions of a query's candidates that return
named columns.  A Dataset carries the recipe of its features into files and models, so that
`Searcher` computes the same columns for a typed query, or refuses.

To change                                   open
------------------------------------------  -----------------------------------------------------
what is read as documents or queries        documents.py, queries.py, sources.py
HTML, Markdown, TREC, SMART and NPL files   html_pages.py, markdown_pages.py, trec_text.py, ..
terms: stemming, stop words, languages      analyzer.py
fields of an index                          schema.py
writing, merging, deleting                  writer.py, storage.py, manifest.py
which documents are candidates              first_stage.py: engine.py, retrieval.py, vectors.py
tuning of the first stage                   tuning.py (BM25), stage_tuning.py
a family of features                        families.py, latent.py
models that turn texts into vectors         encoders/
vectors in an index, and searching them     vectors.py, vector_writer.py, precomputed.py
the encoder of an index, typed texts        dense_stage.py
which features are computed and chosen      features.py, feature_choice.py
results for a typed query                   searcher.py
"""

from firstpage.core import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
