"""Randomness: one Generator per fit."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from mercer._run.checkpoint import current_store
from mercer._run.types import RandomState


def as_generator(random_state: RandomState) -> np.random.Generator:
    """A Generator from anything scikit-learn users pass as `random_state`, or a Generator itself.

    An int gives the same stream each time; a RandomState or Generator is advanced, as its owner
    expects; None is fresh entropy, or the seed of the current checkpoint.
    """
    if random_state is None:
        store = current_store()
        return np.random.default_rng(None if store is None else store.seed())
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**31 - 1, size=4))
    if isinstance(random_state, Integral) and not isinstance(random_state, bool):
        if random_state < 0:
            raise ValueError(f"random_state={random_state} is negative; pass a seed of 0 or more")
        return np.random.default_rng(int(random_state))
    raise ValueError(
        f"random_state={random_state!r} is not understood; pass None, an int, "
        "a numpy RandomState or a numpy Generator"
    )
