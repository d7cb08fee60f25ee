"""Segmentation: pixels become features, features clusters, clusters regions of an image."""

from __future__ import annotations

from mercer.image.display import SegmentationDisplay
from mercer.image.files import read_image, write_image, write_labels_image
from mercer.image.overlays import draw_overlay
from mercer.image.regions import connected_regions, merge_small_regions
from mercer.image.samples import landscape
from mercer.image.segment_view import gather_segments
from mercer.image.segmentation import segment, segment_batch
from mercer.image.segmenter import Segmenter
from mercer.image.tree import RegionTree

__all__ = [
    "RegionTree",
    "SegmentationDisplay",
    "Segmenter",
    "connected_regions",
    "draw_overlay",
    "gather_segments",
    "landscape",
    "merge_small_regions",
    "read_image",
    "segment",
    "segment_batch",
    "write_image",
    "write_labels_image",
]
