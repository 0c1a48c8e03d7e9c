"""What `make release` runs: it builds a release, checks it, and tries it as a user would.

artifacts     builds wheel and sdist twice, compares the bytes, the names of files and the metadata
environments  installs them in empty environments of every Python here, and runs the package
sizes         measures what the core and each extra install
user          a program of a user, for type checkers
"""
