"""Raw image files: found in any letter case, sized before they are trusted, then memory-mapped."""

import hashlib
import mmap
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gibbsite.errors import InputError

_AXES = {"bsq": (1, 2, 0), "bil": (0, 2, 1), "bip": (0, 1, 2)}
"""For each interleave, the file's axes that are (line, sample, band)."""


@dataclass(frozen=True)
class Layout:
    """How the numbers of an image lie in its file."""

    lines: int
    """Lines, n_y."""
    samples: int
    """Samples, n_x."""
    bands: int
    """Bands."""
    dtype: str
    """Number type with byte order, such as `<f4`."""
    interleave: str
    """`bsq`, `bil` or `bip`."""
    offset: int = 0
    """Bytes before the first number."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """(lines, samples, bands)."""
        return self.lines, self.samples, self.bands

    @property
    def end(self) -> int:
        """Byte behind the last number."""
        return self.offset + self.lines * self.samples * self.bands * np.dtype(self.dtype).itemsize


def locate(path: Path) -> Path:
    """The file meant by `path`, in whatever letter case it is stored; an InputError when there is none."""
    found = find(path.parent, path.name)
    if found is None:
        raise InputError(f"{path}: no such file; check the path")
    if found.is_dir():
        raise InputError(f"{path}: is a folder, expected a file; give the .lbl, .hdr or .img of the product")
    return found


def find(folder: Path, name: str) -> Path | None:
    """The entry of `folder` called `name`, letter case ignored; an exact match comes first."""
    if (folder / name).exists():
        return folder / name
    try:
        matches = sorted(entry for entry in folder.iterdir() if entry.name.lower() == name.lower())
    except OSError:
        return None
    return matches[0] if matches else None


def sibling(path: Path, suffix: str) -> Path | None:
    """The file beside `path` with the same stem and this suffix, letter case ignored."""
    return find(path.parent, path.stem + suffix)


def check_size(path: Path, expected: int, source: Path) -> None:
    """Nothing, when `path` has as many bytes as `source` (its label or header) says; else an InputError."""
    found = path.stat().st_size
    if found < expected:
        raise InputError(
            f"{path}: truncated, found {found} bytes but {source.name} describes {expected}; fetch it anew"
        )
    if found > expected:
        raise InputError(
            f"{path}: found {found} bytes but {source.name} describes {expected}; the image and "
            f"{source.name} do not belong together: fetch both anew"
        )


def open_pixels(path: Path, layout: Layout) -> NDArray[Any]:
    """The pixels (line, sample, band), read only, straight from the file: in memory only when used."""
    if min(layout.shape) < 1:
        raise InputError(f"{path}: an image of {layout.shape} lines, samples, bands is empty; fetch it anew")
    axes = _AXES[layout.interleave]
    stored = [0, 0, 0]
    for size, axis in zip(layout.shape, axes, strict=True):
        stored[axis] = size
    try:
        pixels = np.memmap(path, dtype=layout.dtype, mode="r", offset=layout.offset, shape=tuple(stored))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot read the image ({error}); check the file and its permissions") from None
    holder = _mapping(pixels)
    # A file that is read from the disk now then comes in large pages, where the system has such: half a gigabyte in
    # tables of its small ones takes 45 ms to map and to give back.
    if holder is not None and hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):
            holder.madvise(mmap.MADV_HUGEPAGE)
    return pixels.transpose(axes)


def let_go(pixels: object) -> None:
    """Give back the memory of what was read of mapped pixels; they are read again when used again.

    Pages of a mapped file count as the process's own until someone else needs the memory.
    """
    holder = _mapping(pixels)
    if holder is not None:
        holder.madvise(mmap.MADV_DONTNEED)


def _mapping(pixels: object) -> mmap.mmap | None:
    """The mapped file that holds these pixels, if one does."""
    while isinstance(pixels, np.ndarray):
        pixels = pixels.base
    return pixels if isinstance(pixels, mmap.mmap) else None


def fingerprint(path: Path) -> dict[str, Any]:
    """Name, SHA-256 and size of a file, for the provenance of what is made from it."""
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot read ({error.strerror}); check its permissions") from None
    return {"name": path.name, "sha256": digest, "bytes": path.stat().st_size}
