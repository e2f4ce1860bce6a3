"""Known classes of a scene's pixels, and which of them the model may see.

A labels store holds `known` (y, x) int16, an index into the attribute `class_names`, -1 for none, and `role`
(y, x) uint8: 0 unlabelled, 1 train, 2 held out. The attribute `files` names the label files with their SHA-256.
Classes come from polygons (`shapes.py`) or from a raster on the scene's own pixels, whose tags CLASS_<value> name its
values.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gibbsite import mars, raster, store
from gibbsite.errors import InputError, SettingsError
from gibbsite.scene import Grid, grid_of
from gibbsite.settings import Labels

UNLABELLED, TRAIN, HELD_OUT = 0, 1, 2
"""Roles of a pixel."""
NO_CLASS = -1
"""Index of a pixel whose class is not known."""
Files = Sequence[dict[str, Any]]
"""Name, sha256 and bytes of files."""
SAME_PLACE = 0.01
"""Ground points of the same pixel may differ by this much, in degrees; another scene's differ by more."""
SAME_CORNER = 0.1
"""Corners of the same map grid may differ by this much, in pixels."""


@dataclass(frozen=True)
class KnownClasses:
    """The known class of every pixel."""

    class_names: tuple[str, ...]
    """Sorted; all classes the user named, also those without a pixel here."""
    known: NDArray[np.int16]
    """(y, x) index into class_names, -1 none."""
    n_disputed: int = 0
    """Valid pixels left unlabelled because polygons of several classes cover them."""


def settle_names(found: Iterable[str], path: Path) -> dict[str, str]:
    """Name as found -> name as used (blanks trimmed); refuses blank, reserved and twice-named classes."""
    settled: dict[str, str] = {}
    spelling: dict[str, str] = {}
    for name in sorted(set(found)):
        used = " ".join(name.split())
        if not used:
            raise InputError(f"{path}: found an empty class name, expected a name for every class; fill it in")
        first = spelling.setdefault(used.casefold(), name)
        if first != name:
            raise InputError(
                f"{path}: class named twice, as {first!r} and as {name!r}; spell it one way, or rename one"
            )
        if used.startswith("new-") and used[4:].isdecimal():
            raise InputError(f"{path}: class {name!r} has a name kept for discovered classes; give it another")
        settled[name] = used
    return settled


def no_classes(grid: Grid) -> KnownClasses:
    """The known classes of a scene nobody labelled."""
    return KnownClasses((), np.full((grid.height, grid.width), NO_CLASS, np.int16))


def read_class_raster(path: Path, cube: xr.Dataset) -> KnownClasses:
    """The known classes of the cube's valid pixels from a raster on the same pixels."""
    _check_grid(path, cube)
    tags = {value: name for value, name in raster.class_names(path).items() if value > 0}
    if not tags:
        raise InputError(f"{path}: no tag CLASS_<value>; expected one per class, such as CLASS_1=olivine")
    settled = settle_names(_named_once(tags, path), path)
    class_names = tuple(sorted(settled.values()))
    index = np.full(max(tags) + 1, NO_CLASS, np.int16)
    for number, name in tags.items():
        index[number] = class_names.index(settled[name])
    known = np.full(cube["valid"].shape, NO_CLASS, np.int16)
    unnamed: set[int] = set()
    for start, block in raster.row_blocks(path):
        if not np.issubdtype(block.dtype, np.integer):
            raise InputError(
                f"{path}: found {block.dtype} values, expected whole class numbers; save it as uint8 or uint16"
            )
        rows = slice(start, start + len(block))
        value = np.where(cube["valid"][rows].values, block, 0).astype(np.int64)
        unnamed |= set(np.unique(value[value > 0]).tolist()) - set(tags)
        known[rows] = index[np.clip(value, 0, max(tags))]
    if unnamed:
        lowest = min(unnamed)
        raise InputError(f"{path}: value {lowest} has no tag CLASS_{lowest}; add the tag, or set it to 0")
    return KnownClasses(class_names, known)


def check_labelled(classes: KnownClasses, path: Path) -> None:
    """Refuse classes that label no pixel."""
    if not (classes.known != NO_CLASS).any():
        raise InputError(
            f"{path}: no labelled pixel; its classes ({', '.join(classes.class_names)}) cover no valid pixel "
            "of the scene; check that they belong to this scene"
        )


def observed_classes(classes: KnownClasses, wanted: Sequence[str] | None) -> list[bool]:
    """A claim per class: the model is shown pixels of it. `wanted` names the classes it may see; None: all.

    A class that is only named, in a tag or by polygons of another scene, has nothing to show.
    """
    unknown = [name for name in wanted or () if name not in classes.class_names]
    if unknown:
        raise SettingsError(
            f"labels.observed: found {unknown[0]!r}, which is no class of the labels; "
            f"expected some of {', '.join(classes.class_names)}"
        )
    labelled = set(np.unique(classes.known).tolist())
    return [index in labelled and (wanted is None or name in wanted) for index, name in enumerate(classes.class_names)]


def choose_roles(classes: KnownClasses, observed: Sequence[bool], seed: int, settings: Labels) -> NDArray[np.uint8]:
    """Roles (y, x): a seeded share of each observed class trains, all other labelled pixels are held out.

    A class draws under its own name, so its training pixels stay the same when other classes come or go.
    """
    role = np.where(classes.known == NO_CLASS, UNLABELLED, HELD_OUT).astype(np.uint8)
    flat_role, flat_known = role.reshape(-1), classes.known.reshape(-1)
    for index, (name, is_observed) in enumerate(zip(classes.class_names, observed, strict=True)):
        if not is_observed:
            continue
        pixel = np.flatnonzero(flat_known == index)
        n_share = int(np.floor(settings.train_fraction * len(pixel) + 0.5))
        n_train = min(len(pixel), max(n_share, settings.min_train))
        # The raw numbers of Philox never change with the version of numpy; its shuffles may.
        order = np.argsort(np.random.Philox(key=_key(seed, name)).random_raw(len(pixel)), kind="stable")
        flat_role[pixel[order[:n_train]]] = TRAIN
    return role


def write(
    path: Path, scene: str, classes: KnownClasses, observed: Sequence[bool], role: NDArray[np.uint8], files: Files
) -> None:
    """Write the labels store of a scene; `files` are fingerprints of what the labels were read from."""
    facts = {
        "scene": scene,
        "class_names": list(classes.class_names),
        "observed": list(observed),
        "files": list(files),
    }
    with store.create(path, "labels", **facts) as group:
        chunks = store.line_chunks(classes.known.shape)
        store.add_array(group, "known", ("y", "x"), classes.known, fill_value=NO_CLASS, chunks=chunks)
        store.add_array(group, "role", ("y", "x"), role, chunks=chunks)


def _key(seed: int, name: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}/labels/{name}".encode()).digest()[:16], "little")


def _named_once(tags: dict[int, str], path: Path) -> list[str]:
    """The names, refused when two values share one."""
    number_of: dict[str, int] = {}
    for number, name in tags.items():
        if name in number_of:
            raise InputError(
                f"{path}: class named twice, CLASS_{number_of[name]} and CLASS_{number} are both {name!r}; "
                "give each value its own name"
            )
        number_of[name] = number
    return list(number_of)


def _check_grid(path: Path, cube: xr.Dataset) -> None:
    """Refuse a raster that does not lie on the cube's pixels."""
    found, expected = raster.read_grid(path), grid_of(cube)
    if (found.height, found.width) != (expected.height, expected.width):
        raise InputError(
            f"{path}: {found.height} lines × {found.width} samples, expected the scene's {expected.height} × "
            f"{expected.width}; draw the raster on the scene's own pixels, or give polygons"
        )
    if expected.transform is not None:
        _check_map(path, found, expected)
    elif found.transform is not None:
        raise InputError(f"{path}: is on a map grid, but the scene is not projected; give a raster of its own pixels")
    else:
        _check_ground_points(path, found, cube)


def _check_map(path: Path, found: Grid, expected: Grid) -> None:
    if found.transform is None or found.crs is None:
        raise InputError(f"{path}: has no map coordinates, expected those of the scene; save it with georeference")
    assert expected.transform is not None
    pixel = np.hypot(expected.transform[0], expected.transform[3])
    apart = np.linalg.norm(_corners(found, path, expected) - _corners(expected, path, expected), axis=1).max()
    if apart > SAME_CORNER * pixel:
        raise InputError(
            f"{path}: its corners lie up to {apart:.4g} m ({apart / pixel:.3g} pixels) from the scene's; "
            "resample it to the scene's own map grid, or give polygons"
        )


def _corners(grid: Grid, path: Path, scene: Grid) -> NDArray[np.float64]:
    """Places (4, 2) of the grid's corners in the coordinates of the scene."""
    assert grid.transform is not None
    a, b, c, d, e, f = grid.transform
    row, col = np.array([(row, col) for row in (0, grid.height) for col in (0, grid.width)]).T
    x, y = a * col + b * row + c, d * col + e * row + f
    crs = mars.coordinate_system(grid.crs, f"{path}: the raster")
    scene_crs = mars.coordinate_system(scene.crs, "the scene")
    if not crs.equals(scene_crs, ignore_axis_order=True):
        x, y = mars.from_planetocentric(*mars.to_planetocentric(x, y, crs), scene_crs)
    return np.stack([x, y], axis=1)


def _check_ground_points(path: Path, found: Grid, cube: xr.Dataset) -> None:
    if not found.ground_points or "latitude" not in cube.variables:
        return
    row, col, longitude, latitude = np.array(found.ground_points).T
    at = (
        np.clip(np.rint(row).astype(int), 0, found.height - 1),
        np.clip(np.rint(col).astype(int), 0, found.width - 1),
    )
    off_latitude = np.abs(cube["latitude"].values[at] - latitude)
    off_longitude = np.abs((cube["longitude"].values[at] - longitude + 180.0) % 360.0 - 180.0)
    if np.nanmax(np.maximum(off_latitude, off_longitude * np.cos(np.radians(latitude))), initial=0.0) > SAME_PLACE:
        raise InputError(f"{path}: its ground points lie elsewhere than the scene's pixels; give this scene's raster")
