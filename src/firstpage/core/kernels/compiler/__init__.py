"""Compile kernels once per machine, store the object code, and call it without loading Numba."""
