"""Coordinates from a factor."""
