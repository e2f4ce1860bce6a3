"""Results on disk: whole or not at all.

Everything a step writes is made under a temporary name beside its place and moved there when it is complete, so a
failed or killed step leaves the old result, or none.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.codecs import BloscCodec

from gibbsite.errors import InputError, OutputError

CONTRACT = 4
"""Version of the layout of all stores; a reader refuses others."""

CHUNK_PIXELS = 2**20
"""Of arrays with one value per pixel of the grid: who wants a few lines need not read them all."""

COMPRESSOR, LEVEL = "lz4", 5
"""Of all chunks; their bytes are shuffled before."""


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """A temporary path (file or folder) that takes the place of `path` when the block ends without an error."""
    part, retired = (path.with_name(f".{path.name}.{os.getpid()}.{state}") for state in ("part", "old"))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove(part)
        yield part
        if path.is_dir() and not path.is_symlink():
            # A folder cannot be replaced in one move; removed first, it would be lost to a kill in between.
            os.replace(path, retired)
        os.replace(part, path)
    except OSError as error:
        raise _cannot_write(path, error) from error
    finally:
        if retired.exists() and not path.exists():
            with suppress(OSError):
                os.replace(retired, path)
        else:
            _remove(retired)
        _remove(part)


def recover(path: Path) -> None:
    """Bring back what stood at `path` if a kill came between its two moves; clear away what killed writers left there.

    Only for paths with one writer at a time, which is this process.
    """
    for retired in path.parent.glob(f".{path.name}.*.old"):
        if not path.exists():
            os.replace(retired, path)
    for left in [*path.parent.glob(f".{path.name}.*.old"), *path.parent.glob(f".{path.name}.*.part")]:
        _remove(left)


def remove(path: Path) -> None:
    """Remove what is at `path`, and what killed writers left beside it."""
    recover(path)
    _remove(path)


@contextmanager
def writing_together(folder: Path) -> Iterator[Path]:
    """A temporary folder whose files and folders go to `folder`, all of them, when the block ends without an error."""
    part = folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Jobs of other hosts, which may have the same process id, write into the same folder.
        with tempfile.TemporaryDirectory(prefix=".", suffix=f".{os.getpid()}.part", dir=folder) as name:
            part = Path(name)
            yield part
            for made in sorted(part.iterdir()):
                with writing(folder / made.name) as place:
                    os.replace(made, place)
    except OutputError as error:
        # The user knows the folder, not the temporary one inside.
        raise OutputError(str(error).replace(str(part), str(folder))) from error
    except OSError as error:
        raise _cannot_write(folder, error) from error


@contextmanager
def create(path: Path, kind: str, **facts: Any) -> Iterator[zarr.Group]:
    """A new Zarr group of this kind, with `facts` (JSON-able) as attributes; appears at `path` when complete."""
    with writing(path) as part:
        yield make_group(part, kind, **facts)


def make_group(folder: Path, kind: str, **facts: Any) -> zarr.Group:
    """A Zarr group of this kind in the folder, around the arrays that it may hold already."""
    return zarr.create_group(store=folder, attributes={"kind": kind, "contract": CONTRACT, **facts})


def read(path: Path, kind: str) -> zarr.Group:
    """The group at `path`, refused unless it is a store of this kind."""
    if not path.exists():
        raise InputError(f"{path}: no such {kind} store; run the step that makes it")
    try:
        group = zarr.open_group(store=path, mode="r")
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{path}: not a readable Zarr store ({error}); expected a {kind} store") from None
    found = group.attrs.get("kind"), group.attrs.get("contract")
    if found != (kind, CONTRACT):
        raise InputError(
            f"{path}: found a store of kind {found[0]!r} (layout {found[1]}), expected {kind!r} (layout {CONTRACT}); "
            "make it anew with this version"
        )
    return group


def add_array(
    group: zarr.Group,
    name: str,
    dims: tuple[str, ...],
    data: NDArray[Any] | None = None,
    **layout: Any,
) -> zarr.Array:
    """A compressed array with named dimensions: filled with `data`, or empty with `shape`, `dtype`, `chunks`.

    Keyword `fill_value` sets what unwritten chunks read as, `attributes` the array's own facts.
    """
    codec = BloscCodec(cname=COMPRESSOR, clevel=LEVEL, shuffle="shuffle")
    if data is None:
        return group.create_array(name, dimension_names=dims, compressors=codec, **layout)
    data = np.ascontiguousarray(data)
    chunks = layout.pop("chunks", tuple(max(1, n) for n in data.shape) or "auto")
    array = group.create_array(
        name,
        shape=data.shape,
        dtype=data.dtype,
        chunks=chunks,
        dimension_names=dims,
        compressors=codec,
        **layout,
    )
    if data.size:
        array[...] = data
    return array


def line_chunks(shape: tuple[int, int]) -> tuple[int, int]:
    """Chunks of whole lines (y, x), of about CHUNK_PIXELS."""
    height, width = shape
    return min(height, max(1, CHUNK_PIXELS // width)), width


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    with writing(path) as part:
        part.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file whole or not at all, with sorted keys."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def _cannot_write(path: Path, error: OSError) -> OutputError:
    why = error.strerror or error
    return OutputError(f"{path}: cannot write ({why}); check the folder's permissions and free space")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        # Clearing away must not hide the error that made it necessary (a parent that is a file, say).
        with suppress(OSError):
            path.unlink(missing_ok=True)
