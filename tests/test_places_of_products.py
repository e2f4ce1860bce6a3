"""Where published maps lie, from archive file through cube and map to products: TRR3 by its DDR, MTR3 as it came."""

import argparse
import json
from pathlib import Path

import numpy as np
import pytest
import rasterio
from pyproj import CRS

from gibbsite import raster, scene
from gibbsite.ingest import write_cube
from gibbsite.model import Model, named_components, write_model
from gibbsite.observation import open_observation
from gibbsite.settings import Products, Settings, Simulate
from gibbsite.simulate.observation import write_observation
from gibbsite.steps import products as step

RADIUS = 3396190.0
NAME = "frt0000ace5_07"
LINES, SAMPLES = 40, 128


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archive")
    write_observation(Simulate(lines=LINES, binning=5), 8, folder)
    return folder


def published(cube: Path, folder: Path, chosen: Products) -> Path:
    """The products of a map whose layer of probabilities tells, in millionths, which pixel of the scene is where."""
    grid = scene.grid_of(scene.open_cube(cube))
    number = 1e-6 * np.arange(grid.height * grid.width).reshape(grid.height, grid.width)
    code = np.ones(number.shape, np.uint16)
    facts = {"n_pixels": 1, "n_classified": 1, "n_new_component": 0, "n_components": 1}
    classes = [{"code": 1, "name": "clay", "is_known": True, "colour": "#336699"} | facts]
    arrays = [np.zeros(1, int), np.zeros((1, 1)), np.zeros((1, 1, 1)), np.zeros((1, 1, 1)), np.ones((1, 1, 1, 1))]
    write_model(folder / "model.zarr", Model(*arrays, step=1.0, basis="", classes=classes))
    for layer in ("probability", "entropy", "unknown"):
        raster.write_layer(folder / f"s_{layer}.tif", grid, [(0, number.astype(np.float32))], layer)
    raster.write_class_map(folder / "s_class.tif", grid, classes, [(0, code)])
    raster.write_class_map(folder / "s_component.tif", grid, named_components(classes, np.zeros(1, int)), [(0, code)])
    given = {"class_map": folder / "s_class.tif", "model": folder / "model.zarr", "cube": cube}
    given |= {"class_probabilities": None, "interpretation": None, "out_dir": folder / "out"}
    step.run(argparse.Namespace(**given), Settings(products=chosen))
    return folder / "out"


def ddr_places(archive: Path) -> tuple[np.ndarray, np.ndarray]:
    """Equirectangular x and y (line, sample), in metres, read from the DDR's planes without any of our readers."""
    planes = np.fromfile(archive / f"{NAME}_de166l_ddr1.img", "<f4").reshape(14, LINES, SAMPLES).astype(np.float64)
    latitude, longitude = (np.where(plane == 65535, np.nan, plane) for plane in planes[3:5])
    return RADIUS * np.radians(longitude), RADIUS * np.radians(latitude)


def test_corners_and_centre_of_a_projected_trr3_are_within_half_a_pixel_of_the_ddr(
    archive: Path, tmp_path: Path
) -> None:
    product = open_observation(archive / f"{NAME}_if166l_trr3.lbl", archive / f"{NAME}_de166l_ddr1.lbl", None)
    write_cube(product, tmp_path / "s.zarr", Settings().ingest)
    out = published(tmp_path / "s.zarr", tmp_path, Products(crs="equirectangular", resolution=20.0))
    with rasterio.open(out / "s_probability.tif") as found:
        assert found.crs == rasterio.CRS.from_user_input("IAU_2015:49910")
        value, transform = found.read(1), found.transform
    x, y = ddr_places(archive)
    known = np.flatnonzero(np.isfinite(x[LINES // 2]))
    first, last = int(known[0]), int(known[-1])
    of_x, of_y = (np.stack(np.gradient(plane), axis=-1) for plane in (x, y))
    corners = [(0, first), (0, last), (LINES - 1, first), (LINES - 1, last), (LINES // 2, (first + last) // 2)]
    for line, sample in corners:
        row, col = np.nonzero(np.rint(1e6 * value) == line * SAMPLES + sample)
        assert row.size > 10, "a pixel of the scene covers many of the map's"
        at_x, at_y = transform @ (col.mean() + 0.5, row.mean() + 0.5)
        # In pixels of the scene: lines and samples from where the DDR has it.
        steps = np.array([of_x[line, sample], of_y[line, sample]])
        off = np.linalg.solve(steps, [at_x - x[line, sample], at_y - y[line, sample]])
        assert np.abs(off).max() < 0.5
    pixel = [np.nanmean(np.abs(part), axis=(0, 1)).sum() for part in (of_x, of_y)]
    item = json.loads((out / "s_item.json").read_text(encoding="utf-8"))
    west, south, east, north = RADIUS * np.radians(item["bbox"])
    assert west == pytest.approx(np.nanmin(x), abs=pixel[0])
    assert east == pytest.approx(np.nanmax(x), abs=pixel[0])
    assert (south, north) == (pytest.approx(np.nanmin(y), abs=pixel[1]), pytest.approx(np.nanmax(y), abs=pixel[1]))


def test_products_of_an_mtr3_have_its_georeference_to_the_last_digit(archive: Path, tmp_path: Path) -> None:
    header = archive / f"{NAME}_if166j_mtr3.hdr"
    write_cube(open_observation(header, None, None), tmp_path / "s.zarr", Settings().ingest)
    out = published(tmp_path / "s.zarr", tmp_path, Products())
    told = header.read_text(encoding="ascii")
    corner = [float(part) for part in told.split("map info = {", 1)[1].split("}", 1)[0].split(",")[1:7]]
    own = CRS.from_wkt(told.split("coordinate system string = {", 1)[1].split("}", 1)[0])
    for layer in ("class", "component", "probability", "entropy", "unknown"):
        with rasterio.open(out / f"s_{layer}.tif") as found, rasterio.open(header.with_suffix(".img")) as given:
            assert found.shape == given.shape
            assert found.transform == given.transform
            assert (found.transform.a, found.transform.e) == (corner[4], -corner[5])
            assert (found.transform.c, found.transform.f) == (corner[2], corner[3])
            mine = CRS.from_wkt(found.crs.to_wkt())
    assert (corner[0], corner[1]) == (1, 1)
    assert mine.ellipsoid.semi_major_metre == pytest.approx(own.ellipsoid.semi_major_metre, rel=1e-14)
    told_by = [[(part.name, part.value) for part in crs.coordinate_operation.params] for crs in (mine, own)]
    assert told_by[0] == told_by[1]
