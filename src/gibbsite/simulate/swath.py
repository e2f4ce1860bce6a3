"""The files in sensor space: I/F of both detectors, their wavelengths, the backplanes, the truth."""

from contextlib import ExitStack
from functools import reduce
from operator import add

import numpy as np

from gibbsite.simulate import formats, labelling
from gibbsite.simulate.detector import FILL, Detector, L
from gibbsite.simulate.fields import Floats
from gibbsite.simulate.instrument import Pixels, Recorder, sensor_recorder, spoil_infrared, spoil_visible
from gibbsite.simulate.keywords import Image, product, wavelength_product
from gibbsite.simulate.task import SENSORS, Task
from gibbsite.simulate.truth import Tally, count


def write_wavelengths(task: Task) -> None:
    """Write the wavelength of every detector pixel, fill where it sees no scene."""
    binning = task.settings.binning
    for detector in SENSORS:
        image = Image(wavelength_product(detector, binning), 1, task.geometry.samples, detector.n_bands, rows=True)
        table = np.where(detector.scene_columns(binning), detector.wavelength(binning), FILL)
        if detector.sensor == "L":
            table[0] = FILL
        with task.open(image) as file:
            formats.write_lines(file, table)
            formats.write_rows(file, image, detector, b" ")
        task.label(image, labelling.wavelength_label(image, detector, binning))


def write_swath(task: Task) -> Tally:
    """The sums over the pixels of each class, after writing I/F and truth."""
    geometry = task.geometry
    images = [
        Image(product("IF", item.sensor, "TRR3"), geometry.lines, geometry.samples, item.n_bands, rows=True)
        for item in SENSORS
    ]
    recorders = [sensor_recorder(detector, task.settings, task.seed) for detector in SENSORS]
    seen = L.scene_columns(task.settings.binning)
    tallies = []
    with ExitStack() as stack:
        outputs = [stack.enter_context(task.open(image)) for image in images]
        truth = stack.enter_context(formats.sensor_raster(task.folder / "trr3_truth.tif", geometry))
        for lines in task.blocks(geometry.lines, geometry.samples):
            rows, columns = np.meshgrid(lines, np.arange(geometry.samples), indexing="ij")
            ground = task.scenery.pixels(rows.ravel(), columns.ravel())
            block = np.where(seen, ground.code.reshape(rows.shape), 0).astype(np.uint8)
            for row, codes in enumerate(block):
                pixels = ground[row * geometry.samples : (row + 1) * geometry.samples]
                tallies.append(count(codes, pixels))
                for detector, recorder, output in zip(SENSORS, recorders, outputs, strict=True):
                    formats.write_lines(output, _recorded(task, detector, recorder, pixels))
            formats.write_window(truth, int(lines[0]), block)
            tallies = [reduce(add, tallies, Tally.none())]
        for detector, image, output in zip(SENSORS, images, outputs, strict=True):
            formats.write_rows(output, image, detector, b"\0")
    for detector, image in zip(SENSORS, images, strict=True):
        task.label(image, labelling.sensor_label(image, detector, task.settings.binning))
    return tallies[0]


def write_backplanes(task: Task) -> None:
    """Write the geometry of every pixel of the L image."""
    geometry = task.geometry
    image = Image(product("DE", "L", "DDR1"), geometry.lines, geometry.samples, len(labelling.DDR_BANDS))
    with task.open(image) as file:
        planes = formats.BandSequentialFile(file, image)
        for lines in task.blocks(geometry.lines, geometry.samples):
            rows, columns = np.meshgrid(lines, np.arange(geometry.samples), indexing="ij")
            planes.write(int(lines[0]), task.scenery.relief.backplanes(rows, columns).astype(np.float32))
    task.label(image, labelling.backplane_label(image, task.settings.binning))


def _recorded(task: Task, detector: Detector, recorder: Recorder, pixels: Pixels) -> Floats:
    """(n_bands, n_samples) One line of I/F as it stands in the file."""
    image = recorder.record(pixels, shaded=True)
    if detector.sensor == "L":
        image = spoil_infrared(image, pixels.line, task.seed)
    else:
        image = spoil_visible(image, recorder.channels.wavelength)
    return np.where(detector.scene_columns(task.settings.binning), image, FILL)
