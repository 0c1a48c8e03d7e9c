"""Forms of click logs: a module per form, and the list of all.

::

    files ──form──▶ chunks: columns with one value per impression ──LogCollector──▶ Sessions
                                                  └── what was decided, counted

To change                                       open
----------------------------------------------  -------------------------------------------------
which form a file has                           registry.py
names of columns, what is left out, decisions   collector.py
numbers, times and lists as logs write them     values.py
pages with lists of documents and of clicks     page_rows.py
broken lines                                    lines.py
a form                                          tables.py, json_rows.py, ubi.py, yandex.py, ..
"""
