"""The basis and the features of a scene on disk.

A features store holds `feature` (pixel, feature) int16 in whole steps and `pixel` (pixel) int64 = y · width
+ x, rising; `error` (pixel) float32, what the features leave of each spectrum; `n_despiked` (pixel) uint16, values
that were replaced in it. A basis store holds the arrays of `features.Basis` under their own names.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gibbsite import store
from gibbsite.differences import differences
from gibbsite.errors import InputError
from gibbsite.features import FIXED_CLIP, FIXED_STEP, Basis
from gibbsite.fences import Fences
from gibbsite.growing import Growing
from gibbsite.scene import Grid
from gibbsite.settings import Clean

CHUNK_PIXELS = 65536

_DETAILS = {
    "atmosphere": ("volcano_scan",),
    "despike": ("despike_windows",),
    "ratio": ("ratio_lines", "ratio_pixels"),
    "smooth": ("smooth_order",),
}
"""Settings of `clean` that say nothing while another is off."""


class FeatureBlock(NamedTuple):
    """Features of some pixels."""

    pixel: NDArray[np.int64]
    """(n_pixels,) rising, beyond those of the block before."""
    feature: NDArray[np.int16]
    """(n_pixels, n_features) in steps."""
    error: NDArray[np.float32]
    """(n_pixels,) reconstruction error, standard deviations of a band."""
    n_despiked: NDArray[np.uint16]
    """(n_pixels,) values that cleaning took for spikes and replaced."""
    n_clipped: int
    """Values that the fixed-point range cut off."""


def write_basis(path: Path, basis: Basis, clean: Clean) -> None:
    """Write the basis store of spectra that were cleaned so."""
    facts = {"step": FIXED_STEP, "clip": FIXED_CLIP, "n_pixels": basis.n_pixels, "method": basis.method}
    with store.create(path, "basis", **facts, clean=_facts_of(clean)) as group:
        for name in ("mean", "scale", "wavelength"):
            store.add_array(group, name, ("band",), getattr(basis, name))
        store.add_array(group, "low", ("band",), basis.fences.low)
        store.add_array(group, "high", ("band",), basis.fences.high)
        store.add_array(group, "axes", ("feature", "band"), basis.axes)
        store.add_array(group, "variance", ("feature",), basis.variance)
        store.add_array(group, "noise_share", ("feature",), basis.noise_share)


def read_basis(path: Path) -> Basis:
    """The basis of a basis store."""
    group = store.read(path, "basis")
    names = ("mean", "scale", "axes", "low", "high", "wavelength", "variance", "noise_share")
    array = {name: np.asarray(group[name][...]) for name in names}
    return Basis(
        mean=array["mean"],
        scale=array["scale"],
        axes=array["axes"],
        fences=Fences(array["low"], array["high"]),
        wavelength=array["wavelength"],
        variance=array["variance"],
        noise_share=array["noise_share"],
        method=str(group.attrs["method"]),
        n_pixels=int(group.attrs["n_pixels"]),
    )


def check_cleaning(path: Path, clean: Clean) -> None:
    """Refuse a basis store of spectra that were cleaned otherwise."""
    changed = list(differences(store.read(path, "basis").attrs["clean"], _facts_of(clean), "clean"))
    if changed:
        raise InputError(
            f"{path}: a basis of spectra that were cleaned otherwise: {'; '.join(changed)}. Set these back, or "
            "learn the basis anew with `gibbsite basis`"
        )


def _facts_of(clean: Clean) -> dict[str, Any]:
    """The corrections that are on, as JSON can hold them."""
    facts = clean.model_dump(mode="json")
    for switch, details in _DETAILS.items():
        facts |= {} if facts[switch] else dict.fromkeys(details)
    # Where the scan lies, and whether its label or its image was named, does not matter.
    scan = facts["volcano_scan"]
    return {**facts, "volcano_scan": scan and Path(scan).stem.lower()}


class Written(NamedTuple):
    """What went into a features store."""

    n_pixels: int
    clipped_share: float
    n_despiked: int


def write_features(path: Path, blocks: Iterable[FeatureBlock], basis: Basis, scene: str, grid: Grid) -> Written:
    """What was written: a features store filled block by block."""
    n_features = len(basis.axes)
    facts = {
        "scene": scene,
        "grid": grid.to_json(),
        "step": FIXED_STEP,
        "clip": FIXED_CLIP,
        "basis": basis.digest(),
    }
    layouts = {
        "feature": (("pixel", "feature"), (CHUNK_PIXELS, n_features), "int16"),
        "pixel": (("pixel",), (CHUNK_PIXELS,), "int64"),
        "error": (("pixel",), (CHUNK_PIXELS,), "float32"),
        "n_despiked": (("pixel",), (CHUNK_PIXELS,), "uint16"),
    }
    with store.writing(path) as part, ThreadPoolExecutor(len(layouts)) as pool:
        arrays = {name: Growing(part / name, *layout) for name, layout in layouts.items()}
        n_pixels = n_clipped = n_despiked = 0
        for block in _written(_whole_chunks(blocks), arrays, pool):
            n_pixels, n_clipped = n_pixels + len(block.pixel), n_clipped + block.n_clipped
            n_despiked += int(block.n_despiked.sum())
        for array in arrays.values():
            array.finish(n_pixels)
        written = Written(n_pixels, n_clipped / max(1, n_pixels * n_features), n_despiked)
        store.make_group(part, "features", **facts, clipped_share=written.clipped_share)
    return written


def _written(
    blocks: Iterable[FeatureBlock], arrays: dict[str, Growing], pool: ThreadPoolExecutor
) -> Iterator[FeatureBlock]:
    """The blocks, each put into the arrays behind the one before, in threads while the next is made."""
    first, puts = 0, deque[Future[None]]()
    for block in blocks:
        puts += [pool.submit(_put, array, first, getattr(block, name)) for name, array in arrays.items()]
        first += -(-len(block.pixel) // CHUNK_PIXELS)
        # Two blocks may wait to be written; more would pile up in memory.
        while len(puts) > 2 * len(arrays):
            puts.popleft().result()
        yield block
    for put in puts:
        put.result()


def _put(array: Growing, first: int, values: NDArray[np.generic]) -> None:
    """Put values into the array from chunk `first` on."""
    for number, start in enumerate(range(0, len(values), CHUNK_PIXELS), first):
        array.put(number, values[start : start + CHUNK_PIXELS])


def _whole_chunks(blocks: Iterable[FeatureBlock]) -> Iterator[FeatureBlock]:
    """The blocks in pieces of whole chunks of the store, so that each chunk is compressed once."""
    held: list[FeatureBlock] = []
    for block in blocks:
        held.append(block)
        if sum(len(some.pixel) for some in held) >= CHUNK_PIXELS:
            joined = _join(held)
            whole = len(joined.pixel) // CHUNK_PIXELS * CHUNK_PIXELS
            yield _cut(joined, slice(0, whole))
            held = [_cut(joined, slice(whole, None))._replace(n_clipped=0)]
    if held:
        yield _join(held)


def _join(blocks: list[FeatureBlock]) -> FeatureBlock:
    return FeatureBlock(
        pixel=np.concatenate([block.pixel for block in blocks]),
        feature=np.concatenate([block.feature for block in blocks]),
        error=np.concatenate([block.error for block in blocks]),
        n_despiked=np.concatenate([block.n_despiked for block in blocks]),
        n_clipped=sum(block.n_clipped for block in blocks),
    )


def _cut(block: FeatureBlock, some: slice) -> FeatureBlock:
    return FeatureBlock(
        block.pixel[some], block.feature[some], block.error[some], block.n_despiked[some], block.n_clipped
    )
