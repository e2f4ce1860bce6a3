"""The files on the map: corrected I/F of both detectors, where each spectrum came from, the truth."""

from contextlib import ExitStack

import numpy as np

from gibbsite.simulate import formats, headers, labelling
from gibbsite.simulate.detector import FILL
from gibbsite.simulate.fields import Floats, Integers, key, normal
from gibbsite.simulate.instrument import Pixels, Recorder, map_recorder, spoil_map
from gibbsite.simulate.keywords import Image, product
from gibbsite.simulate.task import Task
from gibbsite.simulate.terrain import CLASSES


def write_map(task: Task) -> Integers:
    """The number of map pixels by class code, after writing the map-projected images and the truth."""
    grid = task.grid
    recorder = map_recorder(task.settings, task.seed)
    spectral = Image(product("IF", "J", "MTR3"), grid.height, grid.width, recorder.channels.channel.size)
    source = Image(product("IN", "J", "MTR3"), grid.height, grid.width, len(labelling.IN_BANDS))
    n_pixels = np.zeros(len(CLASSES) + 1, dtype=np.int64)
    with ExitStack() as stack:
        spectra, sources = (
            formats.BandSequentialFile(stack.enter_context(task.open(image)), image) for image in (spectral, source)
        )
        coordinates = headers.coordinate_system(task.geometry)
        truth = stack.enter_context(formats.map_raster(task.folder / "mtr3_truth.tif", grid, coordinates))
        for rows in task.blocks(grid.height, grid.width):
            first, (line, sample, inside) = int(rows[0]), grid.sources(rows)
            blocks = [np.full((image.bands, *line.shape), FILL, dtype=np.float32) for image in (spectral, source)]
            classes = np.zeros(line.shape, dtype=np.uint8)
            ground = task.scenery.pixels(line[inside], sample[inside])
            classes[inside] = ground.code
            blocks[1][:, inside] = _origin(task, ground)
            start = 0
            for row, here in enumerate(inside):
                pixels = ground[start : start + int(here.sum())]
                blocks[0][:, row, here] = _corrected(task, recorder, pixels)
                start += pixels.line.size
            spectra.write(first, blocks[0])
            sources.write(first, blocks[1])
            formats.write_window(truth, first, classes)
            n_pixels += np.bincount(classes.ravel(), minlength=n_pixels.size)
    _write_texts(task, spectral, source)
    return n_pixels


def _write_texts(task: Task, spectral: Image, source: Image) -> None:
    """Write labels and headers of both images."""
    grid = task.grid
    for image, header in (
        (spectral, headers.spectral_header(grid)),
        (source, headers.information_header(grid)),
    ):
        (task.folder / f"{image.name.lower()}.hdr").write_text(header, encoding="ascii")
        task.label(image, labelling.map_label(image, grid))


def _corrected(task: Task, recorder: Recorder, pixels: Pixels) -> Floats:
    """(n_bands, n_pixels) Spectra of these sensor pixels as the archive's map product has them."""
    image = recorder.record(pixels, shaded=False)
    return spoil_map(image, pixels, recorder.channels.wavelength[:, 0], task.seed)


def _origin(task: Task, pixels: Pixels) -> Floats:
    """(9, n_pixels) The bands of the IN product; sensor lines and samples are counted from 0."""
    line, sample = pixels.line, pixels.sample
    residual = [
        size * np.abs(normal(key(task.seed, f"residual {number}"), line, sample))
        for number, size in enumerate((0.004, 0.011, 0.006))
    ]
    offset = 0.3 * task.geometry.pixel * np.abs(normal(key(task.seed, "sampling offset"), line, sample))
    return np.stack([*residual, sample, line, sample, line, offset, np.ones(line.shape)])
