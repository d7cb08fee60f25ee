"""Arithmetic on plain arrays: eigensolvers, k-means sweeps, products of one shape."""
