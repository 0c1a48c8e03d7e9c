"""A server keeps the memory that its requests free."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

REQUESTS = """
import resource
import numpy as np
from firstpage.serving.process import _keep_freed_memory

_keep_freed_memory()
def request():
    return [np.ones(1 << 17) for _ in range(20)]  # 20 MB
for _ in range(3):
    request()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    request()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another allocator")
def test_requests_use_the_memory_of_those_before() -> None:
    page_faults = int(subprocess.check_output([sys.executable, "-c", REQUESTS], text=True))
    assert page_faults < 500  # 5,120 per request if each page is new
