"""
Text and numbers together
=========================

Documents become sparse rows of word weights, which are compared by the cosine kernel. Numeric
fields of a document, such as its length or year, are a second block of columns with a kernel of its
own. Kernels can be added and multiplied.
"""

# %%
# Documents of four themes
# ------------------------
#
# Generated here, so that nothing has to be downloaded: each document draws words from its theme and
# from common words. With your own texts, start at the vectorizer.

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

N_ROWS = 4000

rng = np.random.default_rng(0)
themes = [
    "butter flour oven garlic onion simmer pan recipe sugar salt bake stir",
    "soil seed prune rose compost bloom root weed lawn spade petal frost",
    "rocket comet thrust lunar probe launch planet gravity dock crater star crew",
    "judge appeal verdict clause plea witness statute tort jury bail lawyer oath",
]
common = "the a of to and in is it for on with was as by at from this that day new"
y = rng.integers(len(themes), size=N_ROWS)
documents = [
    " ".join(
        [*rng.choice(themes[topic].split(), rng.integers(4, 9)), *rng.choice(common.split(), 12)]
    )
    for topic in y
]
print(documents[0])

# %%
# Clusters of directions
# ----------------------
#
# Documents are compared by angle, so their length does not matter.

from mercer import SpectralClustering
from mercer.metrics import adjusted_rand

vectorizer = TfidfVectorizer(max_df=0.5)
text = vectorizer.fit_transform(documents)  # sparse, and stays so
model = SpectralClustering(4, kernel="cosine", random_state=0).fit(text)
print(f"{text.shape[0]:,} × {text.shape[1]} sparse, ARI {adjusted_rand(y, model.labels_):.3f}")

# %%
# The words that are most over-represented describe a cluster:

import matplotlib.pyplot as plt

terms = vectorizer.get_feature_names_out()
overall = np.asarray(text.mean(axis=0)).ravel()
figure, panels = plt.subplots(1, 4, figsize=(9, 2.6), layout="constrained", sharex=True)
for cluster, panel in enumerate(panels):
    lift = np.asarray(text[model.labels_ == cluster].mean(axis=0)).ravel() - overall
    top = np.argsort(-lift)[:6]
    panel.barh(terms[top][::-1], lift[top][::-1], color=f"C{cluster}")
    panel.set_title(f"cluster {cluster}")

# %%
# Words and numbers
# -----------------
#
# Suppose that kitchen and garden articles come from two magazines each, which differ in length and
# year but not in words: six groups. Neither block alone separates them. A sum of kernels calls two
# documents similar if their words *or* their numbers are similar, a product only if both are. The
# product needs no weights; the result of the sum depends on them.

from mercer import RBF, Cosine

magazine = np.where(y < 2, rng.integers(2, size=N_ROWS), 0)
numbers = np.column_stack([5.0 * magazine, 3.0 * magazine]) + rng.normal(size=(N_ROWS, 2))
groups = y + 4 * magazine
blocks = {"text": text, "numbers": numbers}
words, figures = Cosine(columns="text"), RBF(0.1, columns="numbers")
kernels = {
    "words alone": words,
    "numbers alone": figures,
    "sum": 0.8 * words + 0.2 * figures,
    "product": words * figures,
}
for name, kernel in kernels.items():
    found = SpectralClustering(
        6, kernel=kernel, approximation="cholesky", rank=256, random_state=0
    ).fit_predict(blocks)
    print(f"{name:14} ARI {adjusted_rand(groups, found):.3f}")
plt.show()
