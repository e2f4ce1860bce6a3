"""What a scene's map is scored against: true classes from a raster, or else the labels held out from the model.

A truth store holds `truth` (y, x) int16, an index into the attribute `class_names`, -1 where nothing is scored. Pixels
the model was trained on are never scored. The attribute `source` says where the classes come from, `files` names the
raster's files with their SHA-256.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
import zarr
from numpy.typing import NDArray

from gibbsite import class_raster, image, labels, store
from gibbsite.errors import InputError

RASTER, HELD_OUT = "truth raster", "held-out labels"
"""Sources of a truth."""
EXPECTED = "a raster of true classes (GeoTIFF with tags CLASS_<value>=<name>, or an ENVI classification image)"


@dataclass(frozen=True, eq=False)
class Truth:
    """The classes a scene's map is scored against."""

    scene: str
    """Name of the scene."""
    source: str
    """RASTER or HELD_OUT."""
    class_names: tuple[str, ...]
    """Sorted; also those without a pixel to score."""
    truth: NDArray[np.int16]
    """(y, x) index into class_names, -1 where nothing is scored."""
    files: tuple[dict[str, Any], ...] = ()
    """Name, sha256 and bytes of the raster's files."""


def from_raster(path: Path, cube: xr.Dataset, labelled: zarr.Group) -> Truth:
    """The true classes of the cube's valid pixels, without those that `labelled`, its labels store, trains on."""
    found, files = class_raster.read(path, cube, EXPECTED)
    classes = labels.settle(found, cube["valid"].values, path)
    truth = np.where(labelled["role"][...] == labels.TRAIN, np.int16(labels.NO_CLASS), classes.known)
    if not (truth != labels.NO_CLASS).any():
        raise InputError(
            f"{path}: no pixel to score; expected valid pixels with a true class that the model is not trained on"
        )
    fingerprints = tuple(image.fingerprint(file) for file in files)
    return Truth(str(cube.attrs["scene"]), RASTER, classes.class_names, truth, fingerprints)


def from_labels(labelled: zarr.Group) -> Truth:
    """The labels the model was not shown, of known classes and of classes held out whole; there may be none."""
    is_held_out = labelled["role"][...] == labels.HELD_OUT
    truth = np.where(is_held_out, labelled["known"][...], np.int16(labels.NO_CLASS))
    return Truth(str(labelled.attrs["scene"]), HELD_OUT, tuple(labelled.attrs["class_names"]), truth)


def write(path: Path, truth: Truth) -> None:
    """Write the truth store of a scene."""
    facts = {
        "scene": truth.scene,
        "source": truth.source,
        "class_names": list(truth.class_names),
        "files": list(truth.files),
    }
    with store.create(path, "truth", **facts) as group:
        chunks = store.line_chunks(truth.truth.shape)
        store.add_array(group, "truth", ("y", "x"), truth.truth, fill_value=labels.NO_CLASS, chunks=chunks)


def read(path: Path) -> Truth:
    """The truth of a scene."""
    group = store.read(path, "truth")
    facts = group.attrs
    names, files = tuple(facts["class_names"]), tuple(facts["files"])
    return Truth(str(facts["scene"]), str(facts["source"]), names, np.asarray(group["truth"][...]), files)
