"""How much memory a worker needs for its tiles: computed before it reads them."""

import math
from dataclasses import dataclass

from gibbsite.errors import GibbsiteError

PROCESS = 400e6
"""Bytes of a worker without tiles: Python, Dask, Zarr, compiled kernels."""
MOST_COMPONENTS = 512
"""Components whose sums there must be room for."""
USABLE = 0.9
"""Share of a worker's memory limit; Dask ends workers that come near to it."""


@dataclass(frozen=True)
class Need:
    """What decides how much memory workers need."""

    n_pixels: int
    """Of all scenes."""
    n_features: int
    tile_pixels: int
    n_threads: int
    """Per worker."""

    @property
    def held(self) -> float:
        """Bytes of a pixel between passes: its features, as a row and in the plane, and its known class."""
        return 4.0 * self.n_features + 2.0

    @property
    def at_hand(self) -> float:
        """Bytes of a pixel more while its tile is read or tallied."""
        return 4.0 * self.n_features + 64.0

    @property
    def sums(self) -> float:
        """Bytes of the answers a worker adds up."""
        return (self.n_threads + 2.0) * MOST_COMPONENTS * 8.0 * self.n_features**2

    def bytes(self, n_held: int) -> float:
        """Of a worker that holds so many pixels."""
        work = self.n_threads * min(self.tile_pixels, n_held) * self.at_hand
        return PROCESS + n_held * self.held + work + self.sums

    def check(self, worker: str, n_held: int, limit: float) -> None:
        """Refuse to start when a worker has too little memory (bytes; 0: no limit), and say what would do."""
        usable = USABLE * limit
        if not limit or self.bytes(n_held) <= usable:
            return
        advice = [f"at least {self.workers(usable)} workers"] if self.workers(usable) else []
        room = usable - PROCESS - self.sums - n_held * self.held
        if room >= 256 * self.n_threads * self.at_hand:
            advice.append(f"tile_pixels ≤ {int(room / self.n_threads / self.at_hand)}")
        advice.append(f"{math.ceil(self.bytes(n_held) / USABLE / 1e8) / 10:.1f} GB per worker")
        raise GibbsiteError(
            f"tiles need {self.bytes(n_held) / 1e9:.1f} GB per worker, and {worker} has {usable / 1e9:.1f} GB of "
            f"{limit / 1e9:.1f} GB to use: take {' or '.join(advice)}"
        )

    def workers(self, usable: float) -> int:
        """The smallest number of workers that hold all pixels in so many bytes each; 0: none does."""
        room = usable - PROCESS - self.sums - self.n_threads * self.tile_pixels * self.at_hand
        # A worker's share is a whole number of tiles.
        n_tiles = math.floor(room / (self.tile_pixels * self.held)) if room > 0 else 0
        return math.ceil(math.ceil(self.n_pixels / self.tile_pixels) / n_tiles) if n_tiles else 0
