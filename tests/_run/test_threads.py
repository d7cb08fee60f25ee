"""BLAS keeps to one thread inside a fit, whichever thread the fit runs in."""

from __future__ import annotations

import threading

import numpy as np
from threadpoolctl import ThreadpoolController

from mercer._run.threads import single_threaded_blas


def blas_threads() -> set[int]:
    """Of numpy's and scipy's BLAS; others (faiss has one) do no work for fits."""
    np.linalg.inv(np.eye(2))
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    ours = [library for library in libraries if "faiss" not in str(library.filepath)]
    return {library.num_threads for library in ours}


def test_any_thread_can_limit_blas_and_gives_it_back():
    before, inside = blas_threads(), []

    def work():
        with single_threaded_blas():
            inside.append(blas_threads())

    work()
    for _ in range(2):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert inside == [{1}] * 3
    assert blas_threads() == before
