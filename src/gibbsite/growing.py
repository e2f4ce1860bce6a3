"""An array of a store that grows chunk by chunk: the files that zarr would write.

Zarr takes a millisecond to make an array and as long to put a chunk, mostly with the interpreter's lock in its hands:
all threads that clean spectra would wait for it. Here what describes the array is written last, when its length is
known.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numcodecs import Blosc
from numpy.typing import NDArray

from gibbsite.store import COMPRESSOR, LEVEL


@dataclass(frozen=True)
class Growing:
    """An array of numbers of two bytes or more, 0 where nothing was put; readers find it when it is `finish`ed."""

    place: Path
    """Its folder in the store."""
    dims: tuple[str, ...]
    """Names of its axes."""
    chunk: tuple[int, ...]
    """Shape of a chunk, which holds all of every axis but the first."""
    dtype: str
    """Number type, such as `int16`."""

    def put(self, number: int, values: NDArray[Any]) -> None:
        """Put values into a chunk, by its number along the first axis; only the last one may be short."""
        whole = np.empty(self.chunk, np.dtype(self.dtype).newbyteorder("<"))
        whole[: len(values)], whole[len(values) :] = values, 0
        # Zarr leaves out what holds nothing.
        if whole.view(np.uint8).any():
            file = self.place.joinpath("c", str(number), *["0"] * (len(self.chunk) - 1))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(Blosc(COMPRESSOR, LEVEL, Blosc.SHUFFLE).encode(whole))

    def finish(self, length: int) -> None:
        """Describe the array, which is so long, as the third version of the Zarr format does."""
        dtype = np.dtype(self.dtype)
        blosc = {"typesize": dtype.itemsize, "cname": COMPRESSOR, "clevel": LEVEL, "shuffle": "shuffle", "blocksize": 0}
        description = {
            "shape": [length, *self.chunk[1:]],
            "data_type": dtype.name,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": self.chunk}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": dtype.type(0).item(),
            "codecs": [
                {"name": "bytes", "configuration": {"endian": "little"}},
                {"name": "blosc", "configuration": blosc},
            ],
            "attributes": {},
            "dimension_names": self.dims,
            "zarr_format": 3,
            "node_type": "array",
            "storage_transformers": [],
        }
        self.place.mkdir(parents=True, exist_ok=True)
        (self.place / "zarr.json").write_text(json.dumps(description, indent=2))
