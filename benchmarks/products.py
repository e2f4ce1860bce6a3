"""Peak memory of `gibbsite products` on a large scene: maps are drawn here, then the step runs as its own process.

    python benchmarks/products.py [lines] [samples] [folder]

The map is of 12 classes in smooth patches with 2 % single-pixel noise; probabilities are noise, which compresses worst.
Prints pixels, the step's peak memory (RSS), and that of an empty scene, so that the difference is what pixels cost.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gibbsite import raster, store
from gibbsite.model import Model, named_components, write_model
from gibbsite.palette import class_colours
from gibbsite.scene import Grid

N_KNOWN, N_NEW, BLOCK = 8, 4, 256
MARS = (
    'PROJCS["Mars equirectangular",GEOGCS["Mars",DATUM["Mars sphere",SPHEROID["Mars sphere",3394839.8133,0]],'
    'PRIMEM["Reference meridian",0],UNIT["degree",0.0174532925199433]],PROJECTION["Equirectangular"],'
    'PARAMETER["standard_parallel_1",20],PARAMETER["central_meridian",74.7],PARAMETER["false_easting",0],'
    'PARAMETER["false_northing",0],UNIT["metre",1]]'
)


def codes(height: int, width: int) -> Iterator[tuple[int, NDArray[np.uint16]]]:
    """Blocks of the class map."""
    n_classes = N_KNOWN + N_NEW
    for start in range(0, height, BLOCK):
        random = np.random.Generator(np.random.Philox(key=start))
        y, x = np.mgrid[start : min(start + BLOCK, height), 0:width].astype(np.float32)
        wave = np.sin(x / 37) + np.sin(y / 41) + np.sin((x + y) / 67) + np.sin((x - 2 * y) / 113)
        code = np.clip((wave + 4) / 8 * n_classes, 0, n_classes - 1).astype(np.uint16) + 1
        noisy = random.random(code.shape) < 0.02
        code[noisy] = random.integers(1, n_classes + 1, int(noisy.sum()))
        code[x < 0.05 * width] = 0
        yield start, code


def numbers(height: int, width: int) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Blocks of a layer of numbers."""
    for start, code in codes(height, width):
        random = np.random.Generator(np.random.Philox(key=start + 1))
        yield start, np.where(code > 0, random.random(code.shape), np.nan).astype(np.float32)


def make_maps(folder: Path, height: int, width: int) -> None:
    """Model, cube facts and maps of a scene `s`."""
    n = N_KNOWN + N_NEW
    colours = class_colours(N_KNOWN, N_NEW)
    facts = {"n_pixels": 1, "n_classified": 1, "n_new_component": 0, "n_components": 1}
    classes = [
        {"code": k, "name": f"class {k}", "is_known": k <= N_KNOWN, "colour": colours[k - 1]} | facts
        for k in range(1, n + 1)
    ]
    arrays = [np.arange(n), np.zeros((1, n)), np.zeros((1, n, 1)), np.zeros((1, n, 1)), np.ones((1, n, 1, 1))]
    write_model(folder / "model.zarr", Model(*arrays, step=1.0, basis="", classes=classes), seed=1)
    grid = Grid(height, width, MARS, (18.0, 0.0, 0.0, 0.0, -18.0, 0.0))
    raster.write_class_map(folder / "s_class.tif", grid, classes, codes(height, width))
    named = named_components(classes, np.arange(n))
    raster.write_class_map(folder / "s_component.tif", grid, named, codes(height, width), "component")
    for layer in ("probability", "entropy", "unknown"):
        raster.write_layer(folder / f"s_{layer}.tif", grid, numbers(height, width), layer)
    provenance = {"product": "S", "sensor": "L", "files": [], "facts": {}}
    with store.create(folder / "cube.zarr", "cube", scene="s", grid=grid.to_json(), provenance=provenance):
        pass


RUN = """
import resource, sys
from gibbsite.cli import main
code = main(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
sys.exit(code)
"""


def peak_megabytes(folder: Path, height: int, width: int) -> int:
    """Peak memory of the products step on a scene of this size, MB."""
    make_maps(folder, height, width)
    words = ["products", "--class-map", folder / "s_class.tif", "--model", folder / "model.zarr"]
    words += ["--cube", folder / "cube.zarr", "--out-dir", folder / "out"]
    answer = subprocess.run(
        [sys.executable, "-c", RUN, *map(str, words)], check=True, stdout=subprocess.PIPE, text=True
    )
    return int(answer.stdout)


def main() -> None:
    """Print the table's row."""
    height, width = (int(word) for word in sys.argv[1:3] or ("4000", "5000"))
    place = Path(sys.argv[3]) if len(sys.argv) > 3 else None
    for lines, samples in ((64, 64), (height, width)):
        folder = Path(tempfile.mkdtemp(dir=place))
        try:
            peak = peak_megabytes(folder, lines, samples)
            print(f"{lines * samples:>12,} pixels: products peak at {peak} MB", flush=True)
        finally:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
