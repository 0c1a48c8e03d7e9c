from firstpage.demo.collection import Collection as Collection
from firstpage.demo.collection import stdlib_collection as stdlib_collection
from firstpage.demo.run import run_demo as run_demo

# The names for users; the others are for other packages of Firstpage.
__all__ = [
    "Collection",
    "run_demo",
    "stdlib_collection",
]
