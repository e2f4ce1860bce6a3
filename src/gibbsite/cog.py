"""Cloud-Optimized GeoTIFFs: a map's pixels, colours and names, with overviews and where it comes from.

GDAL's own driver does it, since a detour over a warped view would lay sensor-space scenes on a map. Packed in
memory, like the maps, because GDAL tells of a full disk on stderr.
"""

import warnings
from collections.abc import Mapping
from pathlib import Path

import rasterio
import rasterio.shutil
from rasterio.crs import CRS
from rasterio.errors import NotGeoreferencedWarning
from rasterio.io import MemoryFile

from gibbsite import ground, store
from gibbsite.raster import TILE, control_points, open_raster, read_grid

CACHE_BYTES = 64 * 2**20
"""Of GDAL: by default it would take a share of the machine's memory."""


def write(source: Path, path: Path, overviews: str, tags: Mapping[str, str]) -> None:
    """Write the map at `source` as a COG with these tags more; overviews by "MODE" (codes) or "AVERAGE" (numbers)."""
    with open_raster(source):
        pass  # A file that is missing or none of ours is told here, in one line.
    options = {"driver": "COG", "compress": "DEFLATE", "blocksize": TILE, "overview_resampling": overviews}
    if overviews == "AVERAGE":
        options["predictor"] = "FLOATING_POINT"
    with rasterio.Env(GDAL_CACHEMAX=CACHE_BYTES), warnings.catch_warnings(), MemoryFile(ext=".tif") as packed:
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        # A virtual copy takes the tags: the map itself stays as it is, and its pixels are read once.
        with MemoryFile(ext=".vrt") as tagged:
            rasterio.shutil.copy(source.resolve(), tagged.name, driver="VRT")
            with rasterio.open(source) as drawn, rasterio.open(tagged.name, "r+") as view:
                view.update_tags(**tags)
                if drawn.gcps[0]:
                    grid = read_grid(source)
                    # Set anew in any case: as text in the virtual copy they were rounded.
                    view.gcps = control_points(ground.control_points(grid)), CRS.from_wkt(ground.coordinates(grid)[1])
                rasterio.shutil.copy(view, packed.name, **options)
        with store.writing(path) as part:
            part.write_bytes(packed.getbuffer())
