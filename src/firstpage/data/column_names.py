"""Names of the columns of ids, labels, scores and texts, in files of all formats and in frames.

Names are in lower case.  Of several columns, the one whose name comes first here is read.
"""

from __future__ import annotations

# PyTerrier's frames have `qid` beside the text `query`, and `docno` beside an internal `docid`.
QUERY_IDS = ("qid", "query_id", "q_id", "queryid")
QUERY_NAMES = (*QUERY_IDS, "query", "topic")  # the last two may be the text instead
# Beside another id, `document` is more often the text.
DOCUMENT_IDS = ("docno", "docid", "doc_id", "document_id", "document")
DOCUMENT_NAMES = (*DOCUMENT_IDS, "doc", "pid")  # where no column is a feature or a text
ROW_IDS = ("id", "_id")  # where each row is a query, or each row a document
LABEL_NAMES = ("label", "relevance", "grade", "target", "y")
GRADE_NAMES = (*LABEL_NAMES, "rel", "relevant", "judgment")  # where no column is a feature
SCORE_NAMES = ("score", "scores", "sim", "similarity")
TEXT_NAMES = ("text", "body", "content", "contents")
