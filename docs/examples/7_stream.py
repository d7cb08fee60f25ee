"""
A stream that does not end
==========================

Rows arrive in batches and are gone. :class:`~mercer.StreamingKernelKMeans` keeps a bounded buffer
of the rows that matter most and a model of all it has seen; it labels new rows at any time.
"""

# %%
# Batches
# -------

import numpy as np

from mercer import StreamingKernelKMeans
from mercer.metrics import normalized_mutual_info

N_ROWS = 20_000

rng = np.random.default_rng(0)
centres = 8.0 * rng.normal(size=(20, 8))


def batch(size):
    """Rows of twenty clusters, some of them rare."""
    y = np.minimum(rng.geometric(0.15, size) - 1, 19)
    return centres[y] + rng.normal(size=(size, 8)), y


model = StreamingKernelKMeans(20, initial_size=1000, max_size=2500, random_state=0)
for _ in range(N_ROWS // 1000):
    X, _ = batch(1000)
    model.partial_fit(X)

# %%
# Labels, at any time
# -------------------

X_new, y_new = batch(2000)
print(f"NMI on rows to come: {normalized_mutual_info(y_new, model.predict(X_new)):.3f}")
print(model.report_)
