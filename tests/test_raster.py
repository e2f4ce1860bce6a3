"""GeoTIFFs on a scene's grid: what is written is read back, whole or not at all."""

import errno
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyproj
import pytest
import rasterio
from numpy.typing import NDArray
from rasterio.control import GroundControlPoint
from rasterio.crs import CRS

from gibbsite import raster
from gibbsite.errors import InputError, OutputError
from gibbsite.scene import Grid
from handmade_results import MARS_MAP, map_grid, sensor_grid

CLASSES = [
    {"code": 1, "name": "Fe/Mg smectite", "is_known": True, "colour": "#102030"},
    {"code": 2, "name": "Ätna <gips>", "is_known": True, "colour": "#a0b0c0"},
    {"code": 300, "name": "new-1", "is_known": False, "colour": "#ff0088"},
]


def blocks(values: NDArray[Any], rows: int) -> Iterator[tuple[int, NDArray[Any]]]:
    for start in range(0, len(values), rows):
        yield start, values[start : start + rows]


def codes(height: int, width: int) -> NDArray[np.uint16]:
    random = np.random.Generator(np.random.Philox(4))
    return np.array([0, 1, 2, 300], dtype=np.uint16)[random.integers(0, 4, (height, width))]


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("grid", [map_grid(53, 31), sensor_grid(53, 31), Grid(53, 31)], ids=["map", "sensor", "none"])
def test_a_class_map_is_read_back_as_written(tmp_path: Path, grid: Grid) -> None:
    path, values = tmp_path / "S_class.tif", codes(53, 31)
    raster.write_class_map(path, grid, CLASSES, blocks(values, 7))
    np.testing.assert_array_equal(raster.read_band(path), values)
    assert raster.class_names(path) == {1: "Fe/Mg smectite", 2: "Ätna <gips>", 300: "new-1"}
    found = raster.read_grid(path)
    assert (found.height, found.width, found.transform) == (53, 31, grid.transform)
    assert raster.crs_of(found) == raster.crs_of(grid)
    np.testing.assert_allclose(found.ground_points, grid.ground_points, rtol=0, atol=1e-9)
    assert list(tmp_path.iterdir()) == [path], "no side file may be left behind"


def test_a_class_map_opens_in_a_gis_with_mars_nodata_and_colours(tmp_path: Path) -> None:
    path = tmp_path / "S_class.tif"
    raster.write_class_map(path, map_grid(53, 31), CLASSES, [(0, codes(53, 31))])
    with rasterio.open(path) as opened:
        assert opened.crs == CRS.from_wkt(MARS_MAP)
        assert opened.transform[:6] == map_grid(53, 31).transform
        assert (opened.nodata, opened.dtypes, opened.descriptions) == (0, ("uint16",), ("class",))
        palette = opened.colormap(1)
        assert palette[0] == (0, 0, 0, 0)
        assert palette[2] == (0xA0, 0xB0, 0xC0, 255)
        assert palette[300] == (0xFF, 0x00, 0x88, 255)
        assert opened.block_shapes == [(256, 256)]


def test_ground_points_stand_at_pixel_centres(tmp_path: Path) -> None:
    path = tmp_path / "S_class.tif"
    raster.write_class_map(path, sensor_grid(53, 31), CLASSES, [(0, codes(53, 31))])
    with rasterio.open(path) as opened:
        first = opened.gcps[0][0]
        assert (first.row, first.col) == (0.5, 0.5)


def test_ground_points_in_metres_become_degrees(tmp_path: Path) -> None:
    path = tmp_path / "metres.tif"
    points = [GroundControlPoint(row, col, 5e5 + 18 * col, 4e6 - 18 * row) for row in (0, 9) for col in (0, 5)]
    with rasterio.open(
        path, "w", driver="GTiff", count=1, dtype="uint8", height=9, width=5, gcps=points, crs="EPSG:32613"
    ) as opened:
        opened.write(np.zeros((1, 9, 5), np.uint8))
    found = raster.read_grid(path)
    _, _, longitude, latitude = found.ground_points[0]
    assert (longitude, latitude) == pytest.approx((-105.0, 36.1443), abs=1e-3)
    assert pyproj.CRS.from_wkt(found.crs).is_geographic


def test_a_layer_keeps_its_values_and_missing_pixels(tmp_path: Path) -> None:
    path = tmp_path / "S_probability.tif"
    values = np.random.Generator(np.random.Philox(5)).uniform(0, 1, (300, 270)).astype(np.float32)
    values[2, 3:9] = np.nan
    raster.write_layer(path, map_grid(300, 270), blocks(values, 41), "probability of the class")
    np.testing.assert_array_equal(raster.read_band(path), values)
    with rasterio.open(path) as opened:
        assert np.isnan(opened.nodata)
        assert opened.descriptions == ("probability of the class",)


def test_bytes_depend_neither_on_block_height_nor_on_the_cache(tmp_path: Path) -> None:
    values, grid = codes(700, 530), map_grid(700, 530)
    digests = set()
    for rows in (1, 97, 256, 600, 700):
        path = tmp_path / f"{rows}.tif"
        with rasterio.Env(GDAL_CACHEMAX=1 if rows == 97 else 64_000_000):
            raster.write_class_map(path, grid, CLASSES, blocks(values, rows))
        digests.add(digest(path))
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([(0, np.zeros((5, 31)))], "found 5 rows to write, expected the scene's 53"),
        ([(0, np.zeros((53, 30)))], r"found a block \(53, 30\) at row 0, expected \(rows, 31\)"),
        ([(0, np.zeros((20, 31))), (21, np.zeros((32, 31)))], "at row 21, expected .* at row 20"),
        ([(0, np.zeros((60, 31)))], "found 60 rows"),
    ],
)
def test_rows_that_do_not_fill_the_scene_leave_nothing_behind(tmp_path: Path, given: Any, message: str) -> None:
    with pytest.raises(OutputError, match=message):
        raster.write_class_map(tmp_path / "maps" / "S_class.tif", map_grid(53, 31), CLASSES, given)
    assert not (tmp_path / "maps").exists()


def test_a_failing_step_leaves_the_old_map(tmp_path: Path) -> None:
    path = tmp_path / "S_class.tif"
    raster.write_class_map(path, map_grid(53, 31), CLASSES, [(0, codes(53, 31))])
    before = digest(path)

    def broken() -> Iterator[tuple[int, NDArray[Any]]]:
        yield 0, codes(20, 31)
        raise RuntimeError("worker died")

    with pytest.raises(RuntimeError, match="worker died"):
        raster.write_class_map(path, map_grid(53, 31), CLASSES, broken())
    assert digest(path) == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_or_broken_raster_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        raster.read_band(tmp_path / "S_class.tif")
    (tmp_path / "text.tif").write_text("no raster")
    with pytest.raises(InputError, match="not a raster"):
        raster.read_grid(tmp_path / "text.tif")
    path = tmp_path / "cut.tif"
    raster.write_class_map(path, map_grid(700, 530), CLASSES, [(0, codes(700, 530))])
    # The colour table stands first; a file cut in half lacks its last tiles.
    path.write_bytes(path.read_bytes()[: path.stat().st_size - 20_000])
    with pytest.raises(InputError, match="cannot read rows"):
        raster.read_band(path)


def test_a_full_disk_is_one_clear_error_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_half(path: Path, data: Any) -> int:
        with path.open("wb") as file:
            file.write(data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", write_half)
    with pytest.raises(OutputError, match=r"S_class\.tif: cannot write \(No space left on device\)"):
        raster.write_class_map(tmp_path / "S_class.tif", map_grid(53, 31), CLASSES, [(0, codes(53, 31))])
    assert not any(tmp_path.iterdir())
