"""Products on a common map of Mars, from the layers of a scene's map."""

from pathlib import Path

import numpy as np
import pytest
import rasterio
from pyproj import CRS

from archive_files import MARS_WKT, write_ddr, write_trr3
from gibbsite import observation, projected, raster, scene, settings
from gibbsite.errors import InputError
from gibbsite.ingest import write_cube
from gibbsite.scene import Grid
from gibbsite.settings import Products, Settings

METRES = 3396190.0 * np.pi / 180
CLASSES = [
    {"code": 1, "name": "clay", "colour": "#112233"},
    {"code": 2, "name": "new-1", "colour": "#aa5500"},
]


def write_layers(folder: Path, grid: Grid, name: str = "demo") -> np.ndarray:
    """Class codes of a scene's map, after writing it and two layers of numbers; one belongs to another scene."""
    code = np.random.default_rng(3).integers(0, 3, (grid.height, grid.width)).astype(np.uint16)
    raster.write_class_map(folder / f"{name}_class.tif", grid, CLASSES, [(0, code)])
    chance = np.where(code > 0, 0.25 * code, np.nan).astype(np.float32)
    raster.write_layer(folder / f"{name}_probability.tif", grid, [(0, chance)], "probability of the class")
    raster.write_layer(folder / f"{name}_2_probability.tif", Grid(3, 4), [(0, np.ones((3, 4), "f4"))], "another's")
    return code


def scanned_scene(folder: Path) -> tuple[Path, Grid]:
    """The cube of a scene in sensor space, across the prime meridian, and its grid."""
    product = observation.open_observation(write_trr3(folder), write_ddr(folder), None)
    write_cube(product, folder / "demo.zarr", Settings().ingest)
    return folder / "demo.zarr", scene.grid_of(scene.open_cube(folder / "demo.zarr"))


def test_layers_in_sensor_space_come_out_on_the_common_map_with_colours_and_names(tmp_path: Path) -> None:
    cube, grid = scanned_scene(tmp_path)
    code = write_layers(tmp_path, grid)
    wanted = Products(crs="equirectangular", resolution=200.0)
    with projected.on_common_map(tmp_path / "demo_class.tif", cube, wanted, tmp_path / "out") as class_map:
        beside = sorted(path.name for path in class_map.parent.iterdir())
        with rasterio.open(class_map) as found, rasterio.open(tmp_path / "demo_class.tif") as own:
            assert found.crs == rasterio.CRS.from_user_input("IAU_2015:49910")
            assert found.colormap(1)[2] == own.colormap(1)[2]
            assert found.tags()["CLASS_2"] == "new-1"
            assert (found.nodata, found.descriptions) == (0, ("class",))
            mapped, transform = found.read(1), found.transform
        with rasterio.open(class_map.with_name("demo_probability.tif")) as found:
            chance = found.read(1)
    assert beside == ["demo_class.tif", "demo_probability.tif"]
    assert not list((tmp_path / "out").iterdir()), "the folder of the projected layers must be gone"
    places = scene.open_cube(cube)
    for line, sample in ((0, 11), (6, 0), (6, 11), (3, 6)):
        longitude, latitude = (float(places[name].values[line, sample]) for name in ("longitude", "latitude"))
        turn = 360.0 * np.round(np.nanmedian(places["longitude"].values) / 360.0)
        col, row = ~transform @ ((longitude - turn) * METRES, latitude * METRES)
        assert mapped[int(row), int(col)] == code[line, sample]
    assert np.array_equal(np.isnan(chance), mapped == 0)
    np.testing.assert_allclose(chance[mapped > 0], 0.25 * mapped[mapped > 0])


def test_on_the_scenes_own_grid_nothing_is_touched(tmp_path: Path) -> None:
    own = Grid(6, 9, MARS_WKT, (18.0, 0.0, 1517858.4, 0.0, -18.0, -1373870.9))
    write_layers(tmp_path, own)
    before = (tmp_path / "demo_class.tif").read_bytes()
    with projected.on_common_map(
        tmp_path / "demo_class.tif", tmp_path / "none.zarr", Products(), tmp_path
    ) as class_map:
        assert class_map == tmp_path / "demo_class.tif"
    assert class_map.read_bytes() == before
    with rasterio.open(class_map) as found:
        assert tuple(found.transform)[:6] == own.transform, "georeference of an MTR3 map to the last digit"
        assert CRS.from_wkt(found.crs.to_wkt()).ellipsoid.semi_major_metre == pytest.approx(3393833.260758386, abs=1e-6)


def test_a_scene_on_its_own_map_is_moved_without_a_cube(tmp_path: Path) -> None:
    own = Grid(6, 9, MARS_WKT, (18.0, 0.0, 1517858.4, 0.0, -18.0, -1373870.9))
    code = write_layers(tmp_path, own)
    wanted = Products(crs="equirectangular", resolution=3.0)
    absent = tmp_path / "none.zarr"
    with (
        projected.on_common_map(tmp_path / "demo_class.tif", absent, wanted, tmp_path) as class_map,
        rasterio.open(class_map) as found,
    ):
        mapped, transform = found.read(1), found.transform
    radius = 3393833.260758386
    for line, sample in ((0, 0), (5, 8), (2, 4)):
        longitude = (1517858.4 + 18 * (sample + 0.5)) / (radius * np.cos(np.radians(20.0)))
        latitude = (-1373870.9 - 18 * (line + 0.5)) / radius
        col, row = ~transform @ (longitude * 3396190.0, latitude * 3396190.0)
        assert mapped[int(row), int(col)] == code[line, sample]


def test_scenes_without_a_place_are_refused(tmp_path: Path) -> None:
    product = observation.open_observation(write_trr3(tmp_path), None, None)
    write_cube(product, tmp_path / "demo.zarr", Settings().ingest)
    write_layers(tmp_path, Grid(7, 12))
    wanted = Products(crs="polar")
    with pytest.raises(InputError, match=r"ingest the scene with its DDR, or set products\.crs: scene"):
        projected.project(Grid(7, 12), tmp_path / "demo.zarr", wanted)
    cube, _ = scanned_scene(tmp_path)
    with pytest.raises(InputError, match="give its own cube"):
        projected.project(Grid(5, 12), cube, wanted)


def test_a_broken_off_publication_leaves_no_projected_layers(tmp_path: Path) -> None:
    cube, grid = scanned_scene(tmp_path)
    write_layers(tmp_path, grid)
    raster.write_layer(tmp_path / "demo_entropy.tif", Grid(3, 4), [(0, np.ones((3, 4), "f4"))], "of another size")
    wanted = Products(crs="equirectangular", resolution=200.0)
    with (
        pytest.raises(InputError, match=r"demo_entropy\.tif: found 3 × 4 pixels, demo_class\.tif has 7 × 12"),
        projected.on_common_map(tmp_path / "demo_class.tif", cube, wanted, tmp_path / "out"),
    ):
        pass
    assert not list((tmp_path / "out").iterdir())


def test_settings_name_the_maps_there_are() -> None:
    assert settings.validate({"products": {"crs": "polar", "resolution": 18}}, "test").products.resolution == 18
    with pytest.raises(settings.SettingsError, match=r"products\.crs"):
        settings.validate({"products": {"crs": "EPSG:4326"}}, "test")
