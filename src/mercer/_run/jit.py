"""The only use of numba: every compiled loop of Mercer is made by `jit`."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Callable
from functools import cache, wraps
from typing import Any, TypeVar

import numba
import numpy as np
from numba.core import caching
from numba.core.runtime import rtsys

from mercer._run import private_folder

Function = TypeVar("Function", bound=Callable[..., Any])

log = logging.getLogger(__name__)

TRIED = {(0, 68)}  # numba's versions whose loops were run without its compiler: .2 s sooner
OPTIONS: dict[str, Any] = {
    "nogil": True,
    "fastmath": {"contract"},
    "error_model": "numpy",
    "no_cfunc_wrapper": True,  # C callbacks: none takes our loops, and each costs a sixth more
}


def jit(function: Function) -> Function:
    """Compile on first call, keep on disk, release the GIL.

    Products may be contracted to fused multiply-adds; nothing else about the order of a sum or
    the meaning of NaN and infinity is given up. With NUMBA_DISABLE_JIT=1 the loops run as plain
    Python, as silent as compiled ones about numbers that wrap around or divide by zero.

    Loops are kept where numba keeps them (NUMBA_CACHE_DIR, beside the package, or in the user's
    cache directory), else in a private directory of the temporary ones, else nowhere.
    """
    if numba.config.DISABLE_JIT:
        return np.errstate(all="ignore")(function)
    compiled = numba.njit(**OPTIONS)(function)
    compiled.compile = _undisturbed(compiled.compile)
    try:
        compiled._cache = LoopCache(function)
    except (RuntimeError, OSError):  # numba's "no locator available"; a source without a file
        _say_once("compiled loops are not kept: every process compiles them again")
    return compiled


def _undisturbed(compile_for: Callable[..., Any]) -> Callable[..., Any]:
    """Without the garbage collector, which finds nothing and takes a sixth of the time."""

    @wraps(compile_for)
    def compile_undisturbed(*args: Any, **options: Any) -> Any:
        was_on = gc.isenabled()
        gc.disable()
        try:
            return compile_for(*args, **options)
        finally:
            if was_on:
                gc.enable()

    return compile_undisturbed


def inlined(function: Function) -> Function:
    """A part of the loops of its file: copied into each that calls it, not compiled by itself.

    That saves an optimisation and an entry on disk for each; a long one with many callers is
    better compiled once, by `jit`.
    """
    if numba.config.DISABLE_JIT:
        return np.errstate(all="ignore")(function)
    return numba.njit(**OPTIONS, inline="always")(function)


class PrivateLocator(caching._SourceFileBackedLocatorMixin, caching._CacheLocator):
    """Where compiled loops go if numba finds no place: a directory that is ours alone."""

    def __init__(self, py_func: Any, py_file: str) -> None:
        self._py_file, self._lineno = py_file, py_func.__code__.co_firstlineno
        self._root = private_folder.path("mercer-numba")
        self._path = os.path.join(self._root, self.get_suitable_cache_subpath(py_file))

    def get_cache_path(self) -> str:
        return self._path

    def ensure_cache_path(self) -> None:
        self.check()
        super().ensure_cache_path()

    def check(self) -> None:
        """Before every use: what cleans temporary directories may have made room for another's."""
        private_folder.make(self._root)

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        try:
            locator = cls(py_func, py_file)
            locator.ensure_cache_path()
        except OSError as error:
            _say_once(f"compiled loops cannot be kept in a temporary directory: {error}")
            return None
        _say_once(
            f"compiled loops are kept in {locator._root}; NUMBA_CACHE_DIR can name another place"
        )
        return locator


class LoopCacheImpl(caching.CompileResultCacheImpl):
    """Numba's places, then ours."""

    @property
    def _locator_classes(self) -> list[Any]:
        theirs = caching.CacheImpl._locator_classes
        if not os.path.isabs(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~"))):
            # a user without a home: numba would take a relative path, wherever we happen to be
            theirs = [place for place in theirs if "UserWide" not in place.__name__]
        return [*theirs, PrivateLocator]


class LoopCache(caching.FunctionCache):
    """Numba's cache on disk; its errors cost time and never a fit."""

    _impl_class = LoopCacheImpl

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What is on disk. Numba prepares its compiler first, which a loaded loop never needs."""
        try:
            getattr(self._impl.locator, "check", _no_check)()
            if numba.version_info[:2] not in TRIED:
                return super().load_overload(sig, target_context)
            rtsys.initialize(target_context)
            with self._guard_against_spurious_io_errors():
                return self._load_overload(sig, target_context)
        except Exception as error:  # whatever a damaged file makes of being unpickled
            log.debug("%s cannot be read from %s: %s", self._name, self._cache_path, error)
            self._reset()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception as error:  # a full disk, a directory that is gone, a damaged index
            log.debug("%s cannot be kept in %s: %s", self._name, self._cache_path, error)

    def _reset(self) -> None:
        """Forget what cannot be read, so that the next process finds what this one compiles."""
        try:
            self._impl.locator.ensure_cache_path()
            self.flush()
        except Exception as error:
            log.debug("%s cannot be emptied: %s", self._cache_path, error)


def _no_check() -> None:
    """Numba's own places are not checked."""


@cache
def _say_once(text: str) -> None:
    log.debug(text)
