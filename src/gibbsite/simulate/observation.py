"""A whole simulated observation: what was measured, the labels a geologist would give, and the truth."""

import json
from pathlib import Path

import numpy as np
from rasterio.features import rasterize

from gibbsite import store
from gibbsite.settings import Simulate
from gibbsite.simulate import formats, headers, training, truth
from gibbsite.simulate.fields import Integers
from gibbsite.simulate.instrument import Scenery
from gibbsite.simulate.keywords import product, transmission_product, wavelength_product
from gibbsite.simulate.mapped import write_map
from gibbsite.simulate.swath import write_backplanes, write_swath, write_wavelengths
from gibbsite.simulate.task import SENSORS, Task
from gibbsite.simulate.terrain import CLASSES
from gibbsite.simulate.training import Outline
from gibbsite.simulate.volcano import write_transmission


def files(settings: Simulate) -> list[str]:
    """The names of all files that an observation with these settings consists of."""
    images = [
        *(product("IF", detector.sensor, "TRR3") for detector in SENSORS),
        product("DE", "L", "DDR1"),
        *(wavelength_product(detector, settings.binning) for detector in SENSORS),
        transmission_product(settings.binning),
    ]
    maps = [product(kind, "J", "MTR3") for kind in ("IF", "IN")]
    names = [f"{name}.{ending}" for name in images for ending in ("img", "lbl")]
    names += [f"{name}.{ending}" for name in maps for ending in ("img", "hdr", "lbl")]
    rasters = [f"{grid}_{kind}.tif" for grid in ("trr3", "mtr3") for kind in ("labels", "truth")]
    return [*(name.lower() for name in names), "labels.gpkg", *rasters, "truth.json", "truth_spectra.csv"]


def write_observation(settings: Simulate, seed: int, out: Path, block_lines: int = 32) -> None:
    """Write the files of an observation into a folder that may hold others; none of them on failure."""
    with store.writing_together(out) as folder:
        task = Task(settings, seed, Scenery.of(settings, seed), folder, block_lines)
        write_wavelengths(task)
        write_transmission(task)
        write_backplanes(task)
        tally = write_swath(task)
        n_map_pixels = write_map(task)
        outlines = list(training.draw_outlines(task.scenery.terrain, seed))
        formats.write_polygons(folder / "labels.gpkg", outlines, task.geometry)
        n_labelled = _write_sensor_labels(task, outlines)
        _write_map_labels(task, outlines)
        answer = truth.summary(tally, n_map_pixels, n_labelled)
        (folder / "truth.json").write_text(json.dumps(answer, indent=2) + "\n", encoding="utf-8")
        (folder / "truth_spectra.csv").write_text(truth.spectra(tally), encoding="utf-8")


def _write_sensor_labels(task: Task, outlines: list[Outline]) -> Integers:
    """The number of labelled pixels by class code, after writing the raster on the sensor's grid."""
    geometry = task.geometry
    n_pixels = np.zeros(len(CLASSES) + 1, dtype=np.int64)
    with formats.sensor_raster(task.folder / "trr3_labels.tif", geometry) as raster:
        for lines in task.blocks(geometry.lines, geometry.samples):
            block = training.burn(outlines, int(lines[0]), lines.size, geometry.samples)
            formats.write_window(raster, int(lines[0]), block)
            n_pixels += np.bincount(block.ravel(), minlength=n_pixels.size)
    return n_pixels


def _write_map_labels(task: Task, outlines: list[Outline]) -> None:
    """Write the polygons as a class raster on the map."""
    geometry, grid = task.geometry, task.grid
    shapes = []
    for outline in outlines:
        x, y = geometry.project(*formats.corners(outline, geometry))
        ring = list(zip(x.tolist(), y.tolist(), strict=True))
        shapes.append(({"type": "Polygon", "coordinates": [[*ring, ring[0]]]}, outline.code))
    with formats.map_raster(task.folder / "mtr3_labels.tif", grid, headers.coordinate_system(geometry)) as raster:
        for rows in task.blocks(grid.height, grid.width):
            transform = formats.grid_transform(grid, int(rows[0]))
            block = rasterize(shapes, (rows.size, grid.width), transform=transform, dtype="uint8")
            block[~grid.sources(rows)[2]] = 0
            formats.write_window(raster, int(rows[0]), block)
