"""The basis and the features of a scene on disk.

A features store holds `feature` (pixel, feature) int16 in whole steps and `pixel` (pixel) int64 = y · width
+ x, rising. A basis store holds the arrays of `features.Basis` under their own names.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import zarr
from numpy.typing import NDArray

from gibbsite import store
from gibbsite.features import FIXED_CLIP, FIXED_STEP, Basis, Fences
from gibbsite.scene import Grid

CHUNK_PIXELS = 65536


class FeatureBlock(NamedTuple):
    """Features of some pixels."""

    pixel: NDArray[np.int64]
    """(n_pixels,) rising, beyond those of the block before."""
    feature: NDArray[np.int16]
    """(n_pixels, n_features) in steps."""
    n_clipped: int
    """Values that the fixed-point range cut off."""


def write_basis(path: Path, basis: Basis) -> None:
    """Write the basis store."""
    facts = {"step": FIXED_STEP, "clip": FIXED_CLIP, "n_pixels": basis.n_pixels}
    with store.create(path, "basis", **facts) as group:
        for name in ("mean", "scale", "wavelength"):
            store.add_array(group, name, ("band",), getattr(basis, name))
        store.add_array(group, "low", ("band",), basis.fences.low)
        store.add_array(group, "high", ("band",), basis.fences.high)
        store.add_array(group, "axes", ("feature", "band"), basis.axes)
        store.add_array(group, "variance", ("feature",), basis.variance)


def read_basis(path: Path) -> Basis:
    """The basis of a basis store."""
    group = store.read(path, "basis")
    names = ("mean", "scale", "axes", "low", "high", "wavelength", "variance")
    array = {name: np.asarray(group[name][...]) for name in names}
    return Basis(
        mean=array["mean"],
        scale=array["scale"],
        axes=array["axes"],
        fences=Fences(array["low"], array["high"]),
        wavelength=array["wavelength"],
        variance=array["variance"],
        n_pixels=int(group.attrs["n_pixels"]),
    )


class Written(NamedTuple):
    """What went into a features store."""

    n_pixels: int
    clipped_share: float


def write_features(
    path: Path, blocks: Iterable[FeatureBlock], most_pixels: int, basis: Basis, scene: str, grid: Grid
) -> Written:
    """What was written: a features store filled block by block, of at most `most_pixels` pixels."""
    n_features = len(basis.axes)
    facts = {
        "scene": scene,
        "grid": grid.to_json(),
        "step": FIXED_STEP,
        "clip": FIXED_CLIP,
        "basis": basis.digest(),
    }
    with store.create(path, "features", **facts) as group:
        feature = _growing(group, "feature", ("pixel", "feature"), (most_pixels, n_features), "int16")
        pixel = _growing(group, "pixel", ("pixel",), (most_pixels,), "int64")
        n_pixels = n_clipped = 0
        for block in blocks:
            end = n_pixels + len(block.pixel)
            feature[n_pixels:end] = block.feature
            pixel[n_pixels:end] = block.pixel
            n_pixels, n_clipped = end, n_clipped + block.n_clipped
        feature.resize((n_pixels, n_features))
        pixel.resize((n_pixels,))
        written = Written(n_pixels, n_clipped / max(1, n_pixels * n_features))
        group.attrs["clipped_share"] = written.clipped_share
    return written


def _growing(group: zarr.Group, name: str, dims: tuple[str, ...], shape: tuple[int, ...], dtype: str) -> zarr.Array:
    chunks = (CHUNK_PIXELS, *shape[1:])
    return store.add_array(group, name, dims, shape=shape, dtype=dtype, chunks=chunks, fill_value=0)
