"""
Comparison of clustering algorithms
===================================

scikit-learn's well-known grid of toy datasets, with Mercer's estimators beside their peers. Each
panel shows the clusters, CPU seconds on one thread (bottom right) and the adjusted Rand index with
the classes that generated the data (bottom left; 1 is perfect, 0 is chance). The last row has no
clusters, so there is no index to show.

All methods know the number of clusters, except DBSCAN and HDBSCAN, which cannot use it. Every
dataset is standardised. Parameters of scikit-learn's methods follow its own comparison; Mercer's
estimators have the same settings on every dataset: only the number of clusters. The first fit of
each of Mercer's methods compiles its loops, and is not timed.

Below the picture are the mean adjusted Rand index over the five datasets that have clusters and the
total time of each method, and the grades that Mercer gives to its own results without knowing the
classes (:doc:`/trust`). The grade is an estimate; on the last dataset, which has no clusters, it
should be low.

Toy data favour methods whose parameters were set for each of them, and the times of a few hundred
rows are mostly overhead. :doc:`/which-method` compares methods on larger real data, and
:doc:`/results/suite` on many more sets.
"""

import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn import cluster, datasets
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import kneighbors_graph
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import mercer
from mercer.metrics import adjusted_rand

N_ROWS = 500

rng = np.random.default_rng(170)
skewed = datasets.make_blobs(N_ROWS, random_state=170)
varied = datasets.make_blobs(N_ROWS, cluster_std=[1.0, 2.5, 0.5], random_state=170)
sets = {  # rows, classes, number of clusters, and scikit-learn's radius for DBSCAN
    "circles": (*datasets.make_circles(N_ROWS, factor=0.5, noise=0.05, random_state=170), 2, 0.3),
    "moons": (*datasets.make_moons(N_ROWS, noise=0.05, random_state=170), 2, 0.3),
    "varied": (*varied, 3, 0.18),
    "skewed": (skewed[0] @ [[0.6, -0.6], [-0.4, 0.8]], skewed[1], 3, 0.15),
    "blobs": (*datasets.make_blobs(N_ROWS, random_state=170), 3, 0.3),
    "none": (rng.random((N_ROWS, 2)), None, 3, 0.3),
}


def ward(X, k):
    """Ward's method on a neighbour graph, as in scikit-learn's comparison."""
    graph = kneighbors_graph(X, 3, include_self=False)
    return cluster.AgglomerativeClustering(k, connectivity=0.5 * (graph + graph.T))


methods = {
    "Mercer\nSpectral": lambda X, k, eps: mercer.SpectralClustering(k, random_state=0),
    "Mercer\nensemble": lambda X, k, eps: mercer.SpectralClustering(k, ensemble=20, random_state=0),
    "Mercer\nKernelSpectral": lambda X, k, eps: mercer.KernelSpectralClustering(k, random_state=0),
    "Mercer\nKernelKMeans": lambda X, k, eps: mercer.KernelKMeans(k, random_state=0),
    "MiniBatch\nKMeans": lambda X, k, eps: cluster.MiniBatchKMeans(k, random_state=0),
    "Spectral\n(scikit-learn)": lambda X, k, eps: cluster.SpectralClustering(
        k, affinity="nearest_neighbors", eigen_solver="arpack", random_state=0
    ),
    "Ward": lambda X, k, eps: ward(X, k),
    "DBSCAN": lambda X, k, eps: cluster.DBSCAN(eps=eps),
    "HDBSCAN": lambda X, k, eps: cluster.HDBSCAN(
        min_samples=3, min_cluster_size=15, allow_single_cluster=True, copy=True
    ),
    "Birch": lambda X, k, eps: cluster.Birch(n_clusters=k),
    "Gaussian\nmixture": lambda X, k, eps: GaussianMixture(k, random_state=0),
}


def labels_and_seconds(make, X, k, eps):
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        start = time.process_time()
        labels = make(X, k, eps).fit_predict(X)
        return labels, time.process_time() - start


results = {name: {} for name in sets}
for name, (X, _, k, eps) in sets.items():
    X = StandardScaler().fit_transform(X)
    for method, make in methods.items():
        if name == "circles":
            labels_and_seconds(make, X, k, eps)  # compile
        results[name][method] = labels_and_seconds(make, X, k, eps)

colors = np.array(
    ["#377eb8", "#ff7f00", "#4daf4a", "#f781bf", "#a65628", "#984ea3", "#999999", "#e41a1c"]
)
figure, panels = plt.subplots(
    len(sets), len(methods), figsize=(1.45 * len(methods), 1.45 * len(sets)), layout="constrained"
)
for row, (name, (X, y, _, _)) in enumerate(sets.items()):
    X = StandardScaler().fit_transform(X)
    for panel, method in zip(panels[row], methods, strict=True):
        labels, seconds = results[name][method]
        shown = np.where(labels < 0, "#000000", colors[labels % len(colors)])
        panel.scatter(*X.T, s=3, c=shown, linewidths=0)
        panel.set(xticks=[], yticks=[], xlim=(-2.6, 2.6), ylim=(-2.6, 2.6))
        panel.text(0.96, 0.05, f"{seconds:.2f} s", size=7, ha="right", transform=panel.transAxes)
        if y is not None:
            index = adjusted_rand(y, labels)
            where = panel.transAxes
            panel.text(0.04, 0.05, f"{max(index, 0):.2f}", size=8, weight="bold", transform=where)
        if row == 0:
            panel.set_title(method, size=9)

print(f"{'':24} mean ARI, CPU time")
for method in methods:
    found = [
        adjusted_rand(y, results[name][method][0])
        for name, (_, y, _, _) in sets.items()
        if y is not None
    ]
    seconds = sum(results[name][method][1] for name in sets)
    print(f"{' '.join(method.split()):24} {np.mean(found):.2f}  {seconds:5.2f} s")

for name, (X, _, k, _) in sets.items():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mercer.SpectralClustering(k, random_state=0)
        labels = model.fit_predict(StandardScaler().fit_transform(X))
    trust = model.report_.trust
    print(f"{name:8} {trust.grade:5} probability of being right: {trust.score:.2f}")

plt.show()
