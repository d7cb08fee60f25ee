"""Randomness: one Generator per fit, and streams that belong to a row's number."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from mercer._types import FloatArray, RandomState

__all__ = ["as_generator", "row_uniforms"]


def as_generator(random_state: RandomState) -> np.random.Generator:
    """A Generator from anything scikit-learn users pass as `random_state`, or a Generator itself.

    An int gives the same stream each time; a RandomState or Generator moves on, as its owner
    expects; None is fresh entropy.
    """
    if random_state is None:
        return np.random.default_rng()
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


def row_uniforms(key: int, start: int, stop: int) -> FloatArray:
    """One uniform number per row, fixed by the key and the row's number alone.

    Any split of the rows into spans gives the same numbers: Philox makes four 64-bit words per
    counter step, so the stream is entered at ``start // 4``.
    """
    first_step = start // 4
    bits = np.random.Philox(key=key).advance(first_step)
    words = bits.random_raw(4 * (-(-stop // 4) - first_step))[start - 4 * first_step :]
    return (words[: stop - start] >> np.uint64(11)) * 2.0**-53
