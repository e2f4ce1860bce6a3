"""What is being simulated and where it goes: the value that all writers share."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from gibbsite.settings import Simulate
from gibbsite.simulate import formats
from gibbsite.simulate.detector import L, S
from gibbsite.simulate.fields import Integers
from gibbsite.simulate.geometry import Geometry, MapGrid
from gibbsite.simulate.instrument import Scenery
from gibbsite.simulate.keywords import Image

SENSORS = (L, S)


@dataclass(frozen=True)
class Task:
    """One observation in the making."""

    settings: Simulate
    """Size, place and noise."""
    seed: int
    """Same seed, same bytes."""
    scenery: Scenery
    """The ground and the air."""
    folder: Path
    """Where the files are made."""
    block_lines: int
    """Lines of the sensor's image held in memory at once; the files do not depend on it."""

    @property
    def geometry(self) -> Geometry:
        """The swath."""
        return self.scenery.terrain.geometry

    @property
    def grid(self) -> MapGrid:
        """The map."""
        return MapGrid.around(self.geometry)

    def blocks(self, n_lines: int, n_samples: int) -> Iterator[Integers]:
        """The line numbers of each block; the longer the lines (a slanted map), the fewer at once."""
        step = max(1, self.block_lines * self.geometry.samples // n_samples)
        for start in range(0, n_lines, step):
            yield np.arange(start, min(start + step, n_lines))

    def open(self, image: Image) -> BinaryIO:
        """The image's file, open for writing."""
        return cast(BinaryIO, (self.folder / f"{image.name.lower()}.img").open("wb"))

    def label(self, image: Image, text: str) -> None:
        """Write the image's label."""
        formats.write_label(self.folder / f"{image.name.lower()}.lbl", text)
