"""`python -m firstpage`."""

from firstpage.cli import main

main()
