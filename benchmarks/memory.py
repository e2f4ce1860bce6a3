"""Peak memory of every step on a scene larger than it: a simulated ENVI cube, written and read in blocks.

The scene lies on a map of Mars: patches of some minerals, multiplicative noise, a raster of labels (three of the
minerals, 1 % of the pixels) and one of the truth. Each step is a process of its own; what is told is the largest
resident memory that the operating system saw (`ru_maxrss`), of the step or of a worker it waited for.
Usage: python benchmarks/memory.py FOLDER [--pixels 20000000] [--bands 64] [--sweeps 4]
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from numpy.typing import NDArray
from rasterio.windows import Window

from gibbsite.simulate.fields import Field, key
from gibbsite.simulate.minerals import MINERALS

WIDTH = 4000
"""Samples of a line; fewer in scenes of less than a million pixels."""
ROWS = 64
"""Lines that are made at once."""
PIXEL = 18.0
"""Metres."""
MARS = (
    'PROJCS["Equirectangular Mars",GEOGCS["GCS_Mars",DATUM["D_Mars",SPHEROID["Mars_sphere",3396190.0,0.0]],'
    'PRIMEM["Reference_Meridian",0.0],UNIT["Degree",0.0174532925199433]],PROJECTION["Equirectangular"],'
    'PARAMETER["standard_parallel_1",0.0],PARAMETER["central_meridian",0.0],PARAMETER["false_easting",0.0],'
    'PARAMETER["false_northing",0.0],UNIT["Meter",1.0]]'
)
SPREAD_NOISE, BAND_NOISE = 0.08, 0.004
"""Of the albedo from pixel to pixel, and of each value."""
PRESENT = MINERALS[:6]
"""Minerals of the scene."""
N_LABELLED = 3
"""Minerals that are labelled; the others are to be discovered."""


@dataclass(frozen=True)
class Scene:
    """What is written."""

    folder: Path
    n_pixels: int
    n_bands: int
    seed: int = 1

    @property
    def shape(self) -> tuple[int, int]:
        """Lines and samples, of about as many pixels as asked for."""
        width = min(WIDTH, max(64, int(self.n_pixels**0.5)))
        return round(self.n_pixels / width), width

    @property
    def wavelength(self) -> NDArray[np.float64]:
        """µm."""
        return np.linspace(1.0, 2.6, self.n_bands).round(5)

    @property
    def cube(self) -> Path:
        """The cube's header."""
        return self.folder / "large.hdr"


def write_scene(scene: Scene) -> None:
    """Write cube, labels and truth, some lines at a time."""
    scene.folder.mkdir(parents=True, exist_ok=True)
    height, width = scene.shape
    spectra = np.stack([mineral.reflectance(scene.wavelength) for mineral in PRESENT]).astype(np.float32)
    place = {"crs": MARS, "transform": rasterio.Affine(PIXEL, 0, 0, 0, -PIXEL, 0)}
    layout = {"driver": "GTiff", "count": 1, "dtype": "uint8", "nodata": 0, "compress": "deflate"} | place
    names = {f"CLASS_{code}": mineral.name for code, mineral in enumerate(PRESENT, 1)}
    rasters = [scene.folder / f"{name}.tif" for name in ("truth", "labels")]
    with (
        scene.cube.with_suffix(".img").open("wb") as image,
        rasterio.open(rasters[0], "w", height=height, width=width, **layout) as truth,
        rasterio.open(rasters[1], "w", height=height, width=width, **layout) as labels,
    ):
        truth.update_tags(**names)
        labels.update_tags(**{f"CLASS_{code}": names[f"CLASS_{code}"] for code in range(1, N_LABELLED + 1)})
        for first, code, generator in _blocks(scene):
            # Noise of one block, laid over all of them from another place: fresh noise would take minutes.
            light = 1 + SPREAD_NOISE * generator.standard_normal((*code.shape, 1), dtype=np.float32)
            noise = BAND_NOISE * generator.standard_normal((len(code), 64, scene.n_bands), dtype=np.float32)
            noise = np.resize(noise.transpose(1, 0, 2), (width, len(code), scene.n_bands)).transpose(1, 0, 2)
            # Line-interleaved: (line, band, sample).
            image.write(np.ascontiguousarray((spectra[code] * light + noise).transpose(0, 2, 1), "<f4").tobytes())
            window = Window(0, first, width, len(code))
            truth.write(code + np.uint8(1), 1, window=window)
            is_labelled = (code < N_LABELLED) & (generator.random(code.shape, np.float32) < 0.01)
            labels.write(np.where(is_labelled, code + np.uint8(1), np.uint8(0)), 1, window=window)
    scene.cube.write_text(_header(scene), encoding="ascii")


def _blocks(scene: Scene) -> Iterator[tuple[int, NDArray[np.uint8], np.random.Generator]]:
    """First line, mineral (lines, samples) and a generator of its own, of some lines at a time."""
    height, width = scene.shape
    field = Field(key(scene.seed, "patches"), scale=max(24.0, width / 12), octaves=2)
    for first in range(0, height, ROWS):
        row, col = np.mgrid[first : min(first + ROWS, height), 0:width].astype(np.float64)
        level = np.array([-0.6, 0.0, 0.6, 1.2, 1.7])
        code = np.searchsorted(level, field(col, row)).astype(np.uint8)
        yield first, code, np.random.default_rng([scene.seed, first])


def _header(scene: Scene) -> str:
    height, width = scene.shape
    wavelength = ", ".join(f"{value:.5f}" for value in scene.wavelength)
    return (
        f"ENVI\nsamples = {width}\nlines = {height}\nbands = {scene.n_bands}\nheader offset = 0\ndata type = 4\n"
        f"interleave = bil\nbyte order = 0\nwavelength units = Micrometers\nwavelength = {{{wavelength}}}\n"
        f"map info = {{Equirectangular Mars, 1, 1, 0.0, 0.0, {PIXEL}, {PIXEL}, units=Meters}}\n"
        f"coordinate system string = {{{MARS}}}\n"
    )


def steps(scene: Scene, out: Path) -> dict[str, list[object]]:
    """The words of every step, in the order of the pipeline."""
    cube, basis, features, labels = (out / f"{name}.zarr" for name in ("large", "basis", "features", "labels"))
    truth, chain, model, maps = out / "truth.zarr", out / "1.zarr", out / "model.zarr", out / "maps"
    fitted = ["--features", features, "--labels", labels]
    mapped = ["--maps", maps / "large_class.tif", "--model", model]
    return {
        "ingest": [scene.cube, "--out", cube],
        "basis": [cube, "--out", basis],
        "features": [cube, "--basis", basis, "--out", features],
        "labels": ["--cube", cube, "--shapes", scene.folder / "labels.tif", "--out", labels],
        "truth": ["--cube", cube, "--labels", labels, "--raster", scene.folder / "truth.tif", "--out", truth],
        "fit": [*fitted, "--chain", 1, "--out", chain],
        "select": ["--chains", chain, *fitted, "--out", model],
        "map": ["--features", features, "--model", model, "--out-dir", maps],
        "spectra": ["--cubes", cube, *mapped, "--out-dir", out / "spectra"],
        "interpret": [
            "--cubes", cube, *mapped, "--spectra", out / "spectra/spectra.csv", "--features", features,
            "--out", out / "interpretation.json",
        ],
        "products": [
            "--class-map", maps / "large_class.tif", "--cube", cube, "--model", model,
            "--out-dir", out / "products",
        ],
        "catalogue": ["--items", out / "products" / "large_item.json", "--out-dir", out / "products"],
        "evaluate": [*mapped, "--truths", truth, "--out", out / "evaluation.json"],
        "report": [
            *mapped, "--chains", chain, "--cubes", cube, "--labels", labels, "--spectra", out / "spectra/spectra.csv",
            "--evaluation", out / "evaluation.json", "--out", out / "report.html",
        ],
    }  # fmt: skip


MEASURE = """
import os, sys
_, status, usage = os.wait4(os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:]), 0)
print(usage.ru_maxrss)
sys.exit(status != 0)
"""
"""A small process between: a child's peak begins at the memory of the one that started it."""


def run(step: str, words: list[object], settings: dict[str, Any]) -> tuple[float, float]:
    """Peak resident megabytes (10⁶) and seconds of `gibbsite STEP WORDS`, run as a process of its own."""
    command = [sys.executable, "-m", "gibbsite.cli", step, *map(str, words), "--settings", json.dumps(settings)]
    began = time.monotonic()
    found = subprocess.run([sys.executable, "-c", MEASURE, *command], stdout=subprocess.PIPE, check=False)
    if found.returncode:
        raise SystemExit(f"gibbsite {step} failed; what it said stands above")
    return int(found.stdout.split()[-1]) * 1024 / 1e6, time.monotonic() - began


def main() -> None:
    """Write the scene, run the steps, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="takes the scene and all results: about twice its size")
    parser.add_argument("--pixels", type=int, default=20_000_000)
    parser.add_argument("--bands", type=int, default=64)
    parser.add_argument("--sweeps", type=int, default=4)
    args = parser.parse_args()
    scene = Scene(args.folder, args.pixels, args.bands)
    began = time.monotonic()
    if not scene.cube.exists():
        write_scene(scene)
    size = scene.cube.with_suffix(".img").stat().st_size
    print(f"{scene.shape[0]} × {scene.shape[1]} × {args.bands}: {size / 1e6:.0f} MB, {time.monotonic() - began:.0f} s")
    settings = {"fit": {"sweeps": args.sweeps, "chains": 1}, "select": {"polish_sweeps": args.sweeps}}
    print("| step | peak MB | seconds |\n|---|---|---|", flush=True)
    for step, words in steps(scene, args.folder / "results").items():
        peak, seconds = run(step, words, settings)
        print(f"| {step} | {peak:.0f} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
