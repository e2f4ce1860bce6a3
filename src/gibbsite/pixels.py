"""All usable pixels of all scenes in one row: read from the stores by rank, wherever they are needed.

A pixel's rank counts over the scenes in the order given. Workers read their own tiles through this value; it travels
as a few paths.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import zarr
from numpy.typing import NDArray

from gibbsite import store
from gibbsite.errors import InputError
from gibbsite.labels import TRAIN, check_wanted
from gibbsite.scene import Grid
from gibbsite.start import Pins
from gibbsite.tiles import Tile


@dataclass(frozen=True)
class Pixels:
    """The pixels of some scenes, by rank."""

    features: tuple[Path, ...]
    """Feature stores, one per scene."""
    labels: tuple[Path, ...]
    """Label stores of the same scenes."""
    known: tuple[str, ...]
    """Names of the known classes; their position is the class index."""
    counts: tuple[int, ...]
    """Pixels of each scene."""
    n_features: int
    """Features per pixel."""
    step: float
    """Fixed-point step."""
    basis: str
    """Fingerprint of the basis all features were made with."""

    @property
    def n_pixels(self) -> int:
        """Pixels of all scenes."""
        return sum(self.counts)

    def read(self, start: int, stop: int) -> Tile:
        """The pixels of rank start .. stop − 1."""
        first, parts = 0, []
        for scene, count in enumerate(self.counts):
            low, high = max(start, first) - first, min(stop, first + count) - first
            if low < high:
                parts.append(self._scenes[scene].read(low, high))
            first += count
        return Tile(start, np.concatenate([a for a, _ in parts]), np.concatenate([b for _, b in parts]))

    def labelled(self, block: int) -> Tile:
        """All training pixels; read a block at a time."""
        parts = []
        for start in range(0, self.n_pixels, block):
            tile = self.read(start, min(start + block, self.n_pixels))
            parts.append((tile.feature[tile.known >= 0], tile.known[tile.known >= 0]))
        return Tile(0, np.concatenate([a for a, _ in parts]), np.concatenate([b for _, b in parts]))

    def fingerprint_of_labels(self) -> str:
        """Of which pixels train which class: SHA-256, the first 16 digits."""
        digest = hashlib.sha256()
        for scene in self._scenes:
            for known in scene.training():
                digest.update(known.tobytes())
        return digest.hexdigest()[:16]

    @cached_property
    def _scenes(self) -> "list[_SceneReader]":
        return [_SceneReader(f, n, self.known) for f, n in zip(self.features, self.labels, strict=True)]


class _SceneReader:
    """Open stores of one scene."""

    def __init__(self, features: Path, labels: Path, known: tuple[str, ...]) -> None:
        group, named = store.read(features, "features"), store.read(labels, "labels")
        self._feature: zarr.Array = group["feature"]
        self._pixel: zarr.Array = group["pixel"]
        self._width = Grid.from_json(group.attrs["grid"]).width
        self._class: zarr.Array = named["known"]
        self._role: zarr.Array = named["role"]
        index = {name: i for i, name in enumerate(known)}
        codes = [index.get(name, -1) for name in named.attrs["class_names"]]
        # The last entry serves -1, "no label".
        self._code = np.array([*codes, -1], np.int16)

    def read(self, start: int, stop: int) -> tuple[NDArray[np.int16], NDArray[np.int16]]:
        """Features and known class (training pixels only, else -1) of pixels start .. stop − 1."""
        pixel = self._pixel[start:stop]
        top, bottom = int(pixel[0]) // self._width, int(pixel[-1]) // self._width + 1
        place = pixel - top * self._width
        named = self._class[top:bottom].ravel()[place]
        role = self._role[top:bottom].ravel()[place]
        return self._feature[start:stop], self._training(named, role)

    def training(self) -> Iterator[NDArray[np.int16]]:
        """Known class of the training pixels, -1 of all others, some lines at a time."""
        lines = max(1, store.CHUNK_PIXELS // self._width)
        for top in range(0, self._class.shape[0], lines):
            rows = slice(top, top + lines)
            yield self._training(self._class[rows], self._role[rows])

    def _training(self, named: NDArray[np.int16], role: NDArray[np.uint8]) -> NDArray[np.int16]:
        return np.where(role == TRAIN, self._code[named], np.int16(-1)).astype(np.int16)


def open_pixels(features: list[Path], labels: list[Path]) -> Pixels:
    """The pixels of these scenes, checked to belong together."""
    if len(features) != len(labels):
        raise InputError(
            f"found {len(features)} feature stores and {len(labels)} label stores; give one of each per scene"
        )
    pairs = sorted(zip(features, labels, strict=True), key=lambda pair: pair[0].stem)
    opened = [(store.read(f, "features"), store.read(n, "labels")) for f, n in pairs]
    known: set[str] = set()
    for pair, (group, named) in zip(pairs, opened, strict=True):
        _check_pair(pair, group, named)
        if group.attrs["basis"] != opened[0][0].attrs["basis"]:
            raise InputError(
                f"{pair[0]}: features of another basis than {pairs[0][0]}; make all scenes' features with one basis"
            )
        names = zip(named.attrs["class_names"], named.attrs["observed"], strict=True)
        known |= {name for name, is_observed in names if is_observed}
    for _, named in opened:
        check_wanted(named.attrs["wanted"], {name for _, other in opened for name in other.attrs["class_names"]})
    _check_names([str(group.attrs["scene"]) for group, _ in opened], "scene", "give each scene once")
    _check_names(sorted(known), "class", "spell a class the same in all label files")
    return Pixels(
        # Workers may run in another folder.
        features=tuple(f.absolute() for f, _ in pairs),
        labels=tuple(n.absolute() for _, n in pairs),
        known=tuple(sorted(known)),
        counts=tuple(group["feature"].shape[0] for group, _ in opened),
        n_features=opened[0][0]["feature"].shape[1],
        step=float(opened[0][0].attrs["step"]),
        basis=str(opened[0][0].attrs["basis"]),
    )


def _check_pair(pair: tuple[Path, Path], group: zarr.Group, named: zarr.Group) -> None:
    found, expected = named.attrs["scene"], group.attrs["scene"]
    if found != expected:
        raise InputError(
            f"{pair[1]}: labels of scene {found!r}, but {pair[0]} is of {expected!r}; give both in the same order"
        )
    grid = Grid.from_json(group.attrs["grid"])
    if named["known"].shape != (grid.height, grid.width):
        raise InputError(
            f"{pair[1]}: labels of {named['known'].shape} pixels, but {pair[0]} has ({grid.height}, {grid.width}); "
            "make both from one cube"
        )


def _check_names(names: list[str], what: str, advice: str) -> None:
    """Refuse names that differ only in case."""
    seen: dict[str, str] = {}
    for name in names:
        if seen.setdefault(name.casefold(), name) is not name:
            raise InputError(f"{what} {seen[name.casefold()]!r} and {what} {name!r} are the same; {advice}")


@dataclass(frozen=True)
class PinnedReader:
    """Reads pixels with the outliers among the labelled ones unlabelled; travels to workers."""

    pixels: Pixels
    pins: Pins

    def __call__(self, first: int, stop: int) -> Tile:
        return self.pins.apply(self.pixels.read(first, stop))


def pinned_reader(pixels: Pixels, pins: Pins | None) -> Callable[[int, int], Tile]:
    """How the sampler reads pixels; without pins every labelled pixel pins."""
    return pixels.read if pins is None else PinnedReader(pixels, pins)
