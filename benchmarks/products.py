"""Peak memory of the steps after the map on a large scene, whose cube, map, model and chain are made here directly.

    python benchmarks/products.py FOLDER [--pixels 20000000] [--bands 64] [--steps products ...]

The map has 12 classes in smooth patches, with a share of pixels (`--noise`, 2 %) of any class at random; probabilities
are noise, which compresses worst. Each step is a process of its own, measured as by memory.py. Without `--bands` there
is no cube, and only `products` and `catalogue` run.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from memory import run
from numpy.typing import NDArray

from gibbsite import raster, store
from gibbsite.model import Model, named_components, write_model
from gibbsite.palette import class_colours
from gibbsite.scene import Grid
from gibbsite.simulate.minerals import MINERALS

N_KNOWN, N_NEW, ROWS, WIDTH = 8, 4, 16, 4000
N_CLASSES = N_KNOWN + N_NEW
MARS = (
    'PROJCS["Mars equirectangular",GEOGCS["Mars",DATUM["Mars sphere",SPHEROID["Mars sphere",3394839.8133,0]],'
    'PRIMEM["Reference meridian",0],UNIT["degree",0.0174532925199433]],PROJECTION["Equirectangular"],'
    'PARAMETER["standard_parallel_1",20],PARAMETER["central_meridian",74.7],PARAMETER["false_easting",0],'
    'PARAMETER["false_northing",0],UNIT["metre",1]]'
)
STEPS = ("spectra", "interpret", "products", "catalogue", "report")


@dataclass(frozen=True)
class Scene:
    """A scene `s` whose files are made in a folder."""

    folder: Path
    n_pixels: int
    n_bands: int = 0
    noise: float = 0.02
    """Share of pixels of any class."""

    @property
    def grid(self) -> Grid:
        """Of about as many pixels as asked for."""
        width = min(WIDTH, max(64, int(self.n_pixels**0.5)))
        return Grid(max(1, round(self.n_pixels / width)), width, MARS, (18.0, 0.0, 0.0, 0.0, -18.0, 0.0))

    def codes(self) -> Iterator[tuple[int, NDArray[np.uint16]]]:
        """Blocks of the class map."""
        height, width = self.grid.height, self.grid.width
        for start in range(0, height, ROWS):
            random = np.random.Generator(np.random.Philox(key=start))
            y, x = np.mgrid[start : min(start + ROWS, height), 0:width].astype(np.float32)
            wave = np.sin(x / 37) + np.sin(y / 41) + np.sin((x + y) / 67) + np.sin((x - 2 * y) / 113)
            code = np.clip((wave + 4) / 8 * N_CLASSES, 0, N_CLASSES - 1).astype(np.uint16) + 1
            noisy = random.random(code.shape) < self.noise
            code[noisy] = random.integers(1, N_CLASSES + 1, int(noisy.sum()))
            code[x < 0.05 * width] = 0
            yield start, code

    def numbers(self) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Blocks of a layer of numbers."""
        for start, code in self.codes():
            random = np.random.Generator(np.random.Philox(key=start + 1))
            yield start, np.where(code > 0, random.random(code.shape), np.nan).astype(np.float32)


def write_scene(scene: Scene) -> None:
    """Write model, chain, maps, features without features, and the cube."""
    colours, folder, grid = class_colours(N_KNOWN, N_NEW), scene.folder, scene.grid
    facts = {"n_pixels": 1, "n_classified": 1, "n_new_component": 0, "n_components": 1}
    classes = [
        {"code": k, "name": f"class {k}", "is_known": k <= N_KNOWN, "colour": colours[k - 1]} | facts
        for k in range(1, N_CLASSES + 1)
    ]
    n = N_CLASSES
    arrays = [np.arange(n), np.zeros((1, n)), np.zeros((1, n, 1)), np.zeros((1, n, 1)), np.ones((1, n, 1, 1))]
    traces = {name: {"r_hat": None, "bulk_size": None} for name in ("log_joint", "n_classes", "n_components")}
    untold = {"n_draws": 1, "traces": traces, "moves": {}, "n_sampled_pixels": 0, "pairs": [], "concerns": []}
    model = Model(*arrays, step=1.0, basis="", classes=classes)
    write_model(folder / "model.zarr", model, seed=1, diagnostics=untold)
    with store.create(folder / "chain.zarr", "chain", chain=1, settings={}) as group:
        for name in traces:
            store.add_array(group, f"trace_{name}", ("sweep",), np.arange(9.0))
    raster.write_class_map(folder / "s_class.tif", grid, classes, scene.codes())
    named = named_components(classes, np.arange(n))
    raster.write_class_map(folder / "s_component.tif", grid, named, scene.codes(), "component")
    for layer in ("probability", "entropy", "unknown"):
        raster.write_layer(folder / f"s_{layer}.tif", grid, scene.numbers(), layer)
    _write_cube(scene)
    _write_features(scene)


def _write_cube(scene: Scene) -> None:
    """The cube: a mineral for each class, with noise; only its facts when it has no bands."""
    grid, n_bands = scene.grid, scene.n_bands
    provenance = {"product": "S", "sensor": "L", "files": [], "facts": {}}
    with store.create(
        scene.folder / "cube.zarr", "cube", scene="s", grid=grid.to_json(), provenance=provenance
    ) as group:
        if not n_bands:
            return
        shape = grid.height, grid.width
        wavelength = np.linspace(1.0, 2.6, n_bands).round(5)
        spectra = np.stack([MINERALS[k % len(MINERALS)].reflectance(wavelength) for k in range(N_CLASSES + 1)])
        store.add_array(group, "wavelength", ("band",), wavelength)
        store.add_array(group, "good_band", ("band",), np.ones(n_bands, bool))
        lines = {"chunks": (min(ROWS, shape[0]), shape[1]), "shape": shape}
        valid = store.add_array(group, "valid", ("y", "x"), dtype="bool", **lines)
        column = store.add_array(group, "detector_column", ("y", "x"), dtype="int16", **lines)
        cube = store.add_array(
            group, "reflectance", ("y", "x", "band"), shape=(*shape, n_bands), dtype="float32",
            chunks=(min(ROWS, shape[0]), shape[1], n_bands),
        )  # fmt: skip
        noise = np.random.default_rng(1).normal(0.0, 0.004, (ROWS, grid.width, n_bands)).astype(np.float32)
        for start, code in scene.codes():
            rows = slice(start, start + len(code))
            valid[rows], column[rows] = code > 0, np.broadcast_to(np.arange(grid.width) % 640, code.shape)
            cube[rows] = spectra.astype(np.float32)[code] + noise[: len(code)]


def _write_features(scene: Scene) -> None:
    """A features store that tells of despiked values alone."""
    pixel = np.concatenate([start * scene.grid.width + np.flatnonzero(code) for start, code in scene.codes()])
    with store.create(scene.folder / "features.zarr", "features") as group:
        chunks = {"chunks": (min(len(pixel), 2**16),)}
        store.add_array(group, "pixel", ("pixel",), pixel, **chunks)
        store.add_array(group, "n_despiked", ("pixel",), (pixel % 7 == 0).astype(np.uint16), **chunks)


def words_of(folder: Path) -> dict[str, list[object]]:
    """The words of every step, in the order of the pipeline."""
    out, model, cube = folder / "out", ["--model", folder / "model.zarr"], folder / "cube.zarr"
    mapped = ["--cubes", cube, "--maps", folder / "s_class.tif", *model]
    spectra, meaning = ["--spectra", out / "spectra" / "spectra.csv"], out / "interpretation.json"
    return {
        "spectra": [*mapped, "--out-dir", out / "spectra"],
        "interpret": [*mapped, *spectra, "--features", folder / "features.zarr", "--out", meaning],
        "products": ["--class-map", folder / "s_class.tif", "--cube", cube, *model, "--out-dir", out / "products"],
        "catalogue": ["--items", out / "products" / "s_item.json", "--out-dir", out / "products"],
        "report": [
            *mapped, *spectra, "--chains", folder / "chain.zarr", "--interpretation", meaning,
            "--out", out / "report.html",
        ],
    }  # fmt: skip


def main() -> None:
    """Make the scene, run the steps, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="takes the scene and all results; what is there is used again")
    parser.add_argument("--pixels", type=int, default=20_000_000)
    parser.add_argument("--bands", type=int, default=0)
    parser.add_argument("--noise", type=float, default=0.02)
    parser.add_argument("--steps", nargs="+", choices=STEPS)
    args = parser.parse_args()
    scene = Scene(args.folder, args.pixels, args.bands, args.noise)
    if not (scene.folder / "features.zarr").exists():
        write_scene(scene)
    print(f"{scene.grid.height} × {scene.grid.width} × {scene.n_bands}, noise {scene.noise}", flush=True)
    print("| step | peak MB | seconds |\n|---|---|---|", flush=True)
    for step in args.steps or (STEPS if scene.n_bands else ("products", "catalogue")):
        peak, seconds = run(step, words_of(scene.folder)[step], {})
        print(f"| {step} | {peak:.0f} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
