"""
Topics of real text
===================

Which topics does SciPy cover? The documentation of its public functions is a text collection that
is already on your disk: several hundred documents, with the subpackage of each as a class to
compare with. Words become TF-IDF weights, these become embeddings of 50 dimensions by a truncated
SVD (latent semantic analysis), and documents are compared by angle.
"""

# %%
# Collect the documents
# ---------------------

import importlib
import inspect

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from mercer import SpectralClustering
from mercer.metrics import normalized_mutual_info

packages = ["linalg", "signal", "optimize", "interpolate", "ndimage", "sparse", "spatial"]
documents, names = [], []
for package in packages:
    module = importlib.import_module(f"scipy.{package}")
    for name in module.__all__:
        text = inspect.getdoc(getattr(module, name)) or ""
        if len(text) > 400 and not inspect.ismodule(getattr(module, name)):
            documents.append(text.partition("Examples\n---")[0])
            names.append(f"{package}.{name}")
y = np.array([packages.index(name.partition(".")[0]) for name in names])
print(f"{len(documents)} documents, such as {names[0]}")

# %%
# Cluster by angle
# ----------------

vectorizer = TfidfVectorizer(
    token_pattern=r"[a-z]{3,}", stop_words="english", max_df=0.3, min_df=4, sublinear_tf=True
)
words = vectorizer.fit_transform(documents)
svd = TruncatedSVD(50, random_state=0)
embeddings = svd.fit_transform(words)  # or those of a sentence encoder
model = SpectralClustering(len(packages), kernel="cosine", ensemble=20, random_state=0).fit(
    embeddings
)
print(
    f"{words.shape[1]} terms; NMI with subpackages {normalized_mutual_info(y, model.labels_):.2f}"
)
print(model.report_.trust)

# %%
# Name the topics
# ---------------
#
# The terms that are most over-represented in a cluster, and its most typical documents:

terms = vectorizer.get_feature_names_out()
overall = np.asarray(words.mean(axis=0)).ravel()
figure, panels = plt.subplots(2, 4, figsize=(10, 4.5), layout="constrained", sharex=True)
panels[1, 3].remove()
for cluster, panel in enumerate(panels.flat[: len(packages)]):
    lift = np.asarray(words[model.labels_ == cluster].mean(axis=0)).ravel() - overall
    top = np.argsort(-lift)[:6][::-1]
    panel.barh(terms[top], lift[top], color=f"C{cluster}")
    panel.set_title(f"cluster {cluster}: {(model.labels_ == cluster).sum()} documents", size=9)
    panel.tick_params(labelsize=8)
for cluster, rows in enumerate(model.exemplars_):
    print(cluster, [names[row] for row in rows if row >= 0])

# %%
# Label a new document
# --------------------

question = "find the minimum of a function subject to constraints"
print(model.predict(svd.transform(vectorizer.transform([question]))), "for:", question)
plt.show()
