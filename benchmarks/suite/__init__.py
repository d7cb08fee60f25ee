"""Mercer and its peers on many sets, the number of clusters given: `python -m benchmarks.suite`."""
