"""Encoders: from texts to vectors of length 1, of queries and of documents.

::

    name ──loading──▶ files, options ──▶ tokenizer ──ids──▶ table or session ──▶ pooled ──┐
                 └──▶ endpoint, function, sentence-transformers ──▶ vectors ──checked──▶ length 1

`load_encoder` reads a name: a model of a package, a folder, an endpoint or a function.  Every
encoder has a digest of all that changes its vectors, which an index and a model record.

To change                                   open
------------------------------------------  -----------------------------------------------------
what an encoder is, checks of its vectors   encoder.py
which names there are                       loading.py, packaged.py
the options of a name                       options.py
files of models, digests, tokenizers        model_files.py
tables of token vectors                     static_table.py
transformers: settings, batches, sessions   transformer.py
the forward pass of BERT                    bert.py, onnx_graph.py
scores of a query and a text together       cross_encoder.py
"""

from firstpage.core import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
