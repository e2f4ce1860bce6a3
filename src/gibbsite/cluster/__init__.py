"""Where tiles are held and tallied: Dask, and only here.

`holding_tiles` gives the `reduce_tiles` of a sweep: a function of this process, or one that asks the workers of a Dask
cluster. A tile's answer is a pure function of its pixels and of the task, so whoever holds it, the sum is the same.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits

from gibbsite.cluster.connect import connected
from gibbsite.cluster.ownership import tile_ranges
from gibbsite.cluster.pool import Pool
from gibbsite.cluster.resident import ReadTile, TileHolder
from gibbsite.cluster.timing import Reduce
from gibbsite.settings import Cluster
from gibbsite.threads import n_threads

__all__ = ["Reduce", "TileHolder", "holding_tiles", "tile_ranges"]


@contextmanager
def holding_tiles(read: ReadTile, n_pixels: int, settings: Cluster) -> Iterator[Reduce]:
    """A `reduce_tiles` function over all pixels, on the cluster the settings ask for."""
    ranges = tile_ranges(n_pixels, settings.tile_pixels)
    # The client's matrices are small: a threaded product of them is slower, rounds differently on different machines,
    # and its threads spin on after it, on the cores that the tiles need.
    with threadpool_limits(1):
        if settings.kind == "none":
            holder = TileHolder(settings.threads or n_threads())
            holder.hold(read, ranges)
            yield Reduce(holder.tally)
            return
        with connected(settings) as client, Pool(client, read, ranges, settings) as pool:
            yield Reduce(pool.tally)
