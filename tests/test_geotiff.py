"""GeoTIFF cubes: wavelengths however they are written down, scale, bad bands, and broken files."""

from pathlib import Path

import numpy as np
import pytest
import rasterio
import rasterio.shutil

from archive_files import write_envi
from gibbsite import geotiff, raster, scene
from gibbsite.errors import InputError
from gibbsite.ingest import write_cube
from gibbsite.observation import open_observation
from gibbsite.product import open_product
from gibbsite.settings import Settings

PLACE = {"crs": "EPSG:32611", "transform": rasterio.Affine(17.0, 0.0, 5e5, 0.0, -17.0, 4e6)}


def write_tiff(folder: Path, values: np.ndarray, **profile: object) -> Path:
    """A GeoTIFF of `values` (band, line, sample) in UTM."""
    path = folder / "cube.tif"
    layout = {"count": values.shape[0], "height": values.shape[1], "width": values.shape[2], "dtype": values.dtype.name}
    with rasterio.open(path, "w", driver="GTiff", **layout, **PLACE, **profile) as opened:
        opened.write(values)
    return path


VALUES = np.arange(3 * 4 * 5, dtype=np.float32).reshape(3, 4, 5) / 100


def tagged(
    folder: Path, *, band: list[dict[str, str]] | None = None, names: list[str] | None = None, **tags: str
) -> Path:
    path = write_tiff(folder, VALUES)
    with rasterio.open(path, "r+") as opened:
        opened.update_tags(**tags)
        for number in range(3):
            if band is not None:
                opened.update_tags(number + 1, **band[number])
            if names is not None:
                opened.set_band_description(number + 1, names[number])
    return path


@pytest.mark.parametrize(
    ("given", "source"),
    [
        (
            {"band": [{"wavelength": value, "wavelength_units": "Nanometers"} for value in ("500.25", "600", "700")]},
            "band tags",
        ),
        ({"wavelength": "{500.25, 600, 700}", "wavelength_units": "nm"}, "file tags"),
        ({"wavelength": "0.50025 0.6 0.7"}, "file tags"),
        ({"names": ["first (500.25 Nanometers)", "second (600 Nanometers)", "third (700.0 nm)"]}, "band descriptions"),
        ({"names": ["500.25", "600", "700"]}, "band descriptions"),
        ({"names": ["band 1: 0.50025 µm", "band 2: 0.6 um", "band 3: 0.7 micrometers"]}, "band descriptions"),
    ],
)
def test_wavelengths_are_found_wherever_they_are_written_down(tmp_path: Path, given: dict, source: str) -> None:
    found = geotiff.read_tiff(tagged(tmp_path, **given))
    assert found.wavelength == pytest.approx([0.50025, 0.6, 0.7], rel=1e-9)
    assert found.source == source


def test_band_numbers_are_not_taken_for_wavelengths(tmp_path: Path) -> None:
    assert geotiff.read_tiff(tagged(tmp_path, names=["Band 1", "Band 2", "Band 3"])).wavelength is None
    assert geotiff.read_tiff(tagged(tmp_path, names=["1", "2", "3"])).wavelength is None


def test_a_map_on_no_planet_is_refused_before_anything_is_made_of_it(tmp_path: Path) -> None:
    path = write_tiff(tmp_path, VALUES)
    with rasterio.open(path, "r+") as opened:
        opened.crs = rasterio.CRS.from_wkt('LOCAL_CS["MRO Mars Equirect",UNIT["metre",1]]')
    with pytest.raises(InputError, match="lies on no planet"):
        open_product(path)


def test_an_envi_cube_that_gdal_translated_keeps_its_wavelengths(tmp_path: Path) -> None:
    write_envi(tmp_path, "field", np.ones((3, 4, 2)), wavelength="{500.25, 600.5}", wavelength_units="Nanometers")
    with raster.open_raster(tmp_path / "field.img") as source:
        rasterio.shutil.copy(source, tmp_path / "field.tif", driver="GTiff")
    assert geotiff.read_tiff(tmp_path / "field.tif").wavelength == pytest.approx([0.50025, 0.6005])


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        ({"wavelength": "500, 600"}, "2 numbers in the tag 'wavelength' for 3"),
        ({"wavelength": "500, six, 700"}, "not a number"),
        ({"wavelength": "1, 2, 3", "wavelength_units": "Wavenumber"}, "wavenumber"),
        ({"wavelength": "0, 600, 700"}, "expected 0.1 to 100"),
        ({"bbl": "1, 0"}, "2 numbers in the tag 'bbl' for 3"),
        ({"reflectance_scale_factor": "0"}, "above 0"),
    ],
)
def test_broken_tags_give_one_clear_line(tmp_path: Path, tags: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        geotiff.read_tiff(tagged(tmp_path, **tags))
    assert "\n" not in str(caught.value)


def test_a_scaled_cube_with_bad_bands_becomes_a_cube_store(tmp_path: Path) -> None:
    stored = np.random.default_rng(2).integers(500, 9000, (4, 6, 5)).astype(np.int16)
    stored[:, 2, 3] = -9999
    path = write_tiff(tmp_path, stored, nodata=-9999)
    with rasterio.open(path, "r+") as opened:
        opened.update_tags(wavelength="{900, 700, 800, 1000}", bbl="{1, 1, 0, 1}", reflectance_scale_factor="10000")
    write_cube(open_observation(path, None, None), tmp_path / "demo.zarr", Settings().ingest)
    cube = scene.open_cube(tmp_path / "demo.zarr")
    assert cube["wavelength"].values == pytest.approx([0.7, 0.8, 0.9, 1.0])
    assert cube["good_band"].values.tolist() == [True, False, True, True]
    assert np.argwhere(~cube["valid"].values).tolist() == [[2, 3]]
    expected = np.moveaxis(stored / 10000, 0, 2)[:, :, [1, 2, 0, 3]]
    valid = cube["valid"].values
    np.testing.assert_allclose(cube["reflectance"].values[valid], expected[valid], rtol=1e-5)
    assert scene.grid_of(cube).transform == (17.0, 0.0, 5e5, 0.0, -17.0, 4e6)


def test_gdal_s_own_scale_and_offset_are_applied(tmp_path: Path) -> None:
    path = write_tiff(tmp_path, np.full((3, 4, 5), 20, np.int16))
    with rasterio.open(path, "r+") as opened:
        opened.scales, opened.offsets = (0.01, 0.02, 0.01), (0.0, 0.0, 0.1)
    values = geotiff.read_tiff(path).pixels[1:3]
    assert values.shape == (2, 5, 3)
    assert values[0, 0] == pytest.approx([0.2, 0.4, 0.3])


def test_a_scale_that_is_told_twice_is_applied_once(tmp_path: Path) -> None:
    path = write_tiff(tmp_path, np.full((3, 4, 5), 2000, np.int16))
    with rasterio.open(path, "r+") as opened:
        opened.scales = (1e-4,) * 3
        opened.update_tags(reflectance_scale_factor="10000")
    found = geotiff.read_tiff(path)
    assert found.pixels[0:1][0, 0] / found.scale == pytest.approx([0.2, 0.2, 0.2])


def test_a_truncated_cube_is_refused_when_its_lines_are_read(tmp_path: Path) -> None:
    path = write_tiff(tmp_path, np.random.default_rng(1).random((3, 400, 50)).astype(np.float32))
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match=r"truncated or broken|not a raster"):
        geotiff.read_tiff(path).pixels[0:400]
    (tmp_path / "text.tif").write_text("no raster")
    with pytest.raises(InputError, match="not a raster"):
        geotiff.read_tiff(tmp_path / "text.tif")
