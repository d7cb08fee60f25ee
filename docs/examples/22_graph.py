"""
Clusters of a graph
===================

Which modules of scikit-learn belong together? Modules that import each other are connected. The
graph is given as a sparse matrix of affinities: ``kernel="precomputed"``.
"""

# %%
# The graph
# ---------

import ast
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
import sklearn

from mercer import SpectralClustering

root = Path(sklearn.__file__).parent
paths = [
    path
    for path in sorted(root.rglob("*.py"))
    if "tests" not in path.parts and "externals" not in path.parts and path.stem != "__init__"
]
names = [".".join(path.relative_to(root).with_suffix("").parts) for path in paths]
index = {name: number for number, name in enumerate(names)}


def imported(path):
    """Modules of scikit-learn that a module imports from."""
    package = path.relative_to(root).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level:
                base = package[: len(package) - node.level + 1]
                module = ".".join([*base, *filter(None, [module])])
            elif module.startswith("sklearn."):
                module = module.removeprefix("sklearn.")
            for name in (module, *(f"{module}.{alias.name}" for alias in node.names)):
                if name in index:
                    yield index[name]


edges = {(number, other) for number, path in enumerate(paths) for other in imported(path)}
rows, columns = np.array(sorted(edges)).T
n = len(names)
links = sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(n, n))
graph = links.maximum(links.T)
common = np.asarray(graph.sum(axis=0)).ravel()
kept = np.flatnonzero((common > 0) & (common < 40))  # without what everything imports
graph = sp.csr_array(graph[kept][:, kept])
connected = np.asarray(graph.sum(axis=0)).ravel() > 0
graph, kept = sp.csr_array(graph[connected][:, connected]), kept[connected]
print(f"{graph.shape[0]} modules, {graph.nnz // 2} edges")

# %%
# Clusters
# --------

model = SpectralClustering(8, kernel="precomputed", random_state=0).fit(graph)
for cluster in range(8):
    members = kept[model.labels_ == cluster]
    packages, counts = np.unique(
        [names[row].partition(".")[0] for row in members], return_counts=True
    )
    order = np.argsort(-counts)[:3]
    words = ", ".join(f"{packages[i]} ({counts[i]})" for i in order)
    print(f"cluster {cluster}: {len(members):3} modules: {words}")

# %%
# The matrix, with rows in the order of their clusters:

order = np.argsort(model.labels_, kind="stable")
figure, panels = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
panels[0].spy(graph, markersize=1)
panels[0].set_title("as given")
panels[1].spy(graph[order][:, order], markersize=1)
panels[1].set_title("sorted by cluster")
for panel in panels:
    panel.set(xticks=[], yticks=[])
plt.show()
