"""What Mercer raises and warns with, beside the built-in ValueError and TypeError."""

from __future__ import annotations


class MercerWarning(UserWarning):
    """The result stands, but something about it should be known.

    Its words are kept in ``report_.warnings`` as well.

    Examples
    --------
    >>> import warnings
    >>> from mercer import KernelKMeans, MercerWarning
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always", MercerWarning)
    ...     model = KernelKMeans(n_clusters=1).fit([[0.0], [1.0]])
    >>> print(caught[0].message)
    n_clusters=1 puts every row into one cluster
    """


class BudgetError(MemoryError, ValueError):
    """The request cannot be met within ``max_memory``; raised before the work begins.

    Both a MemoryError and a ValueError. The message says what would fit.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import BudgetError, KernelKMeans
    >>> try:
    ...     KernelKMeans(2, approximation="exact", max_memory="1MB").fit(np.eye(2000))
    ... except BudgetError:
    ...     print("refused before the work")
    refused before the work
    """


class EngineError(RuntimeError):
    """The processes or the cluster that `mercer.on` named cannot go on.

    Examples
    --------
    >>> from mercer import EngineError
    >>> try:
    ...     raise EngineError("the scheduler is gone")
    ... except EngineError as error:
    ...     print(error)
    the scheduler is gone
    """


class ModelFileError(ValueError):
    """A model file is damaged, foreign, or newer than this version of Mercer.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from mercer import ModelFileError, load
    >>> path = pathlib.Path(tempfile.mkdtemp(), "none.mercer")
    >>> _ = path.write_text("not a model")
    >>> try:
    ...     load(path)
    ... except ModelFileError:
    ...     print("refused")
    refused
    """


class MissingExtraError(ImportError):
    """An optional package is needed and not installed; the message names the extra to install.

    Examples
    --------
    >>> from mercer import MissingExtraError
    >>> issubclass(MissingExtraError, ImportError)
    True
    """
