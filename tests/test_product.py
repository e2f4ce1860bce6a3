"""Any file as a product: every real file, and every trap that the archive and its libraries hold."""

from pathlib import Path

import numpy as np
import pytest
import rasterio
from pyproj import CRS

from archive_files import FILL, S_ROWS, trr3_pixels, write_ddr, write_envi, write_mtr3, write_trr3
from gibbsite import scene
from gibbsite.errors import InputError
from gibbsite.ingest import write_cube
from gibbsite.observation import open_observation
from gibbsite.product import open_product
from gibbsite.settings import Settings

REAL = [
    ("trr3/frt0001458f_01_if156l_trr3.lbl", (15, 64, 438), "I/F"),
    ("trr3/FRT0001458F_01_IF156S_TRR3.IMG", (15, 64, 107), "I/F"),
    ("ddr/frt00003e25_01_de156l_ddr1.img", (15, 64, 14), ""),
    ("cdr/adr10000000000_061c4_vs00l_8.lbl", (3, 640, 438), ""),
    ("cdr/CDR410000000000_AT0300020L_2.IMG", (1, 64, 70), ""),
    ("cdr/CDR410803692813_WA0000000L_3.HDR", (1, 640, 438), ""),
    ("cdr/CDR410803692813_WA0300000S_2.LBL", (1, 64, 107), ""),
    ("mtrdr/frt0000932c_07_if164j_mtr3_subsampled.tif", (20, 20, 489), "I/F"),
]


@pytest.mark.parametrize(("name", "shape", "quantity"), REAL)
def test_every_real_file_with_an_image_is_read_with_its_shape(
    shared_data: Path, name: str, shape: tuple[int, int, int], quantity: str
) -> None:
    product = open_product(shared_data / "crism" / name)
    assert (product.shape, product.kind.quantity) == (shape, quantity)
    assert product.pixels[0:1].shape == (1, *shape[1:])
    assert product.kind.is_crism


@pytest.mark.parametrize(
    ("name", "n_bands"), [("if164j_mtr3", 489), ("in164j_mtr3", 9), ("sr164j_mtr3", 60), ("de164l_mtr1", 14)]
)
def test_real_headers_without_an_image_tell_shape_sphere_and_place(shared_data: Path, name: str, n_bands: int) -> None:
    path = shared_data / f"crism/mtrdr_headers/frt00016438_07_{name}.hdr"
    doubts: list[str] = []
    product = open_product(path, doubts)
    assert product.shape == (675, 736, n_bands)
    assert CRS.from_wkt(product.grid.crs).ellipsoid.semi_major_metre == pytest.approx(3393833.260758386, abs=1e-6)
    assert product.grid.transform == (18.0, 0.0, 1517858.4, 0.0, -18.0, -1373870.9)
    assert product.pixels is None
    assert "no image beside it" in doubts[0]
    with pytest.raises(InputError, match="no image beside it"):
        open_product(path)


def test_the_real_map_crop_keeps_its_own_sphere_and_becomes_a_cube_with_a_list_of_wavelengths(
    shared_data: Path, tmp_path: Path
) -> None:
    crop = shared_data / "crism/mtrdr/frt0000932c_07_if164j_mtr3_subsampled.tif"
    with pytest.raises(InputError, match="no wavelengths in its header or tags"):
        open_observation(crop, None, None)
    header = open_product(shared_data / "crism/mtrdr_headers/frt00016438_07_if164j_mtr3.hdr", [])
    (tmp_path / "bands.txt").write_text("\n".join(f"{1000 * value:.2f}" for value in header.wavelength))
    product = open_observation(crop, None, tmp_path / "bands.txt")
    write_cube(product, tmp_path / "crop.zarr", Settings().ingest)
    cube = scene.open_cube(tmp_path / "crop.zarr")
    grid = scene.grid_of(cube)
    with rasterio.open(crop) as source:
        assert grid.transform == tuple(source.transform)[:6]
    assert CRS.from_wkt(grid.crs).ellipsoid.semi_major_metre == pytest.approx(3391159.22840344, abs=1e-6)
    assert cube["wavelength"].values[[0, -1]] == pytest.approx([0.43613, 3.89676])
    values = cube["reflectance"].values
    assert np.nanmin(values) >= -0.05
    assert np.nanmax(values) <= 1.5


def test_the_real_all_fill_crop_is_refused_as_truncated_and_when_mended_as_fill(
    shared_data: Path, tmp_path: Path
) -> None:
    real = shared_data / "crism/trr3/frt0001e5c3_07_if124s_trr3_cropped.lbl"
    with pytest.raises(InputError, match="truncated"):
        open_product(real)
    doubts: list[str] = []
    product = open_product(real, doubts)
    assert (product.pixels[:] == FILL).all()
    (tmp_path / real.name).write_bytes(real.read_bytes())
    table = np.array(S_ROWS, ">u2").tobytes().ljust(2560, b"\0")
    (tmp_path / f"{real.stem}.img").write_bytes(real.with_suffix(".img").read_bytes() + table)
    mended = open_observation(tmp_path / real.name, None, None)
    with pytest.raises(InputError, match="every pixel is fill"):
        write_cube(mended, tmp_path / "demo.zarr", Settings().ingest)


def test_a_missing_constant_in_the_label_counts_beside_the_one_it_never_names(tmp_path: Path) -> None:
    pixels = trr3_pixels()
    pixels[3, 5, 100] = -9999.0
    label = write_trr3(tmp_path, pixels=pixels)
    assert open_product(label).fill == (FILL,)
    text = label.read_bytes().decode()
    label.write_bytes(text.replace("    BANDS = 438", "    MISSING_CONSTANT = -9999.0\r\n    BANDS = 438").encode())
    assert open_product(label).fill == (FILL, -9999.0)


def test_with_label_and_header_the_label_rules_in_sensor_space_and_the_header_on_the_map(tmp_path: Path) -> None:
    label = write_trr3(tmp_path)
    wrong = write_envi(tmp_path, "other", np.ones((2, 3, 4)))
    wrong.rename(tmp_path / "frt0000ace5_07_if166l_trr3.hdr")
    (tmp_path / "other.img").unlink()
    for given in ("frt0000ace5_07_if166l_trr3.hdr", "frt0000ace5_07_if166l_trr3.img", label.name):
        assert open_product(tmp_path / given).shape == (7, 12, 438)
    header = write_mtr3(tmp_path)
    assert open_product(header).path.suffix == ".hdr"


def test_labels_of_other_missions_beside_an_envi_cube_do_not_stand_in_its_way(tmp_path: Path) -> None:
    write_envi(tmp_path, "m3g20090204_v01_rfl", np.full((3, 4, 2), 0.2), wavelength="{540.84, 580.76}")
    (tmp_path / "m3g20090204_v01_rfl.lbl").write_text("PDS_VERSION_ID = PDS3\r\n^RFL_IMAGE = x\r\nEND\r\n")
    product = open_product(tmp_path / "m3g20090204_v01_rfl.img")
    assert product.wavelength == pytest.approx([0.54084, 0.58076])
    assert product.label is None


@pytest.mark.parametrize("code", ["IAU_2015:49911", "IAU_2015:49936", "IAU_2015:30110", "EPSG:32611"])
def test_a_crism_map_that_counts_west_or_is_not_on_mars_is_refused(tmp_path: Path, code: str) -> None:
    # In WKT 2, which keeps the direction of the axes.
    wkt = CRS.from_user_input(code).to_wkt()
    path = tmp_path / "frt0000ace5_07_if166j_mtr3.tif"
    place = {"crs": rasterio.CRS.from_wkt(wkt), "transform": rasterio.Affine(18.0, 0, 1e5, 0, -18.0, 2e5)}
    with rasterio.open(path, "w", driver="GTiff", height=4, width=5, count=2, dtype="float32", **place) as raster:
        raster.write(np.full((2, 4, 5), 0.2, np.float32))
        raster.update_tags(wavelength="{1000, 1100}")
    with pytest.raises(InputError, match=r"expected Mars|flattened|east and north"):
        open_product(path)


def test_earth_is_fine_for_a_cube_that_is_not_crism_s(tmp_path: Path) -> None:
    wkt = "{" + rasterio.CRS.from_epsg(32611).to_wkt() + "}"
    fields = {"map_info": "{UTM, 1, 1, 5e5, 4e6, 17, 17, 11, North, WGS-84}", "coordinate_system_string": wkt}
    path = write_envi(tmp_path, "aviris", np.full((3, 4, 2), 0.2), wavelength="{1000, 1100}", **fields)
    product = open_product(path)
    assert product.grid.transform == (17.0, 0.0, 5e5, 0.0, -17.0, 4e6)


def test_a_ter3_cube_takes_its_places_from_the_ddr_but_not_its_light(tmp_path: Path) -> None:
    fields = {"wavelength": "{" + ", ".join(str(1000 + 60 * band) for band in range(11)) + "}"}
    header = write_envi(tmp_path, "frt0000ace5_07_if166j_ter3", np.full((7, 12, 11), 0.2), **fields)
    product = open_observation(header, write_ddr(tmp_path), None)
    write_cube(product, tmp_path / "demo.zarr", Settings().ingest)
    cube = scene.open_cube(tmp_path / "demo.zarr")
    assert "incidence" not in cube.variables, "TER3 is already divided by cos(incidence)"
    assert cube["latitude"].values[5, 2] == pytest.approx(-21.048, abs=1e-5)
    assert (cube["detector_column"].values == np.arange(12)).all()
    assert scene.grid_of(cube).ground_points
