"""ENVI headers and images: real headers of an MTR3 observation, small hand-made files, and broken ones."""

from pathlib import Path

import numpy as np
import pytest
from rasterio.crs import CRS
from rasterio.transform import Affine

from archive_files import map_fields, write_envi, write_in, write_mtr3
from gibbsite import envi, image, inspection, raster
from gibbsite.errors import InputError
from gibbsite.product import open_product
from gibbsite.settings import Ingest

LOPSIDED = np.arange(3 * 5 * 4, dtype=np.float64).reshape(3, 5, 4)


@pytest.mark.parametrize("interleave", ["bsq", "bil", "bip"])
@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<i2", ">u2", "<f8", "<u1"])
def test_every_interleave_and_number_type_gives_the_same_pixels(tmp_path: Path, interleave: str, dtype: str) -> None:
    header = envi.read_header(write_envi(tmp_path, "cube", LOPSIDED, interleave=interleave, dtype=dtype))
    pixels = image.open_pixels(envi.image_file(header), header.layout)
    assert np.array_equal(pixels, LOPSIDED)


def test_a_header_named_after_the_whole_image_name_is_found(tmp_path: Path) -> None:
    write_envi(tmp_path, "cube", LOPSIDED).rename(tmp_path / "cube.img.hdr")
    found = envi.header_beside(tmp_path / "cube.img")
    assert found == tmp_path / "cube.img.hdr"
    assert envi.image_file(envi.read_header(found)) == tmp_path / "cube.img"


def test_of_two_images_in_a_folder_the_one_that_is_given_is_read(tmp_path: Path) -> None:
    write_envi(tmp_path, "two", LOPSIDED)
    write_envi(tmp_path, "other", LOPSIDED + 7).rename(tmp_path / "two.dat.hdr")
    (tmp_path / "other.img").rename(tmp_path / "two.dat")
    assert open_product(tmp_path / "two.dat").pixels[0, 0, 0] == 7
    assert open_product(tmp_path / "two.img").pixels[0, 0, 0] == 0
    assert open_product(tmp_path / "two.hdr").pixels[0, 0, 0] == 0
    # One header for two images, or an image of whatever ending.
    (tmp_path / "two.bsq").write_bytes((LOPSIDED + 3).transpose(2, 0, 1).astype("<f4").tobytes())
    (tmp_path / "two.rfl").write_bytes((LOPSIDED + 5).transpose(2, 0, 1).astype("<f4").tobytes())
    assert open_product(tmp_path / "two.bsq").pixels[0, 0, 0] == 3
    assert open_product(tmp_path / "two.rfl").pixels[0, 0, 0] == 5


@pytest.mark.parametrize("before", ["security tag =", "sensor type = ", "; bbl = {1,", "description = {\n ; = }"])
def test_a_field_stands_for_itself_whatever_line_is_before_it(tmp_path: Path, before: str) -> None:
    path = write_envi(tmp_path, "cube", LOPSIDED, bbl="{1, 0, 1, 1}", data_ignore_value="-9")
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("bbl", f"{before}\nbbl").replace("data ignore", f"{before}\ndata ignore"))
    header = envi.read_header(path)
    assert envi.listed_good(header).tolist() == [True, False, True, True]
    assert envi.fill_value(header) == -9


def test_a_header_saved_by_an_editor_that_marks_utf_8_is_read(tmp_path: Path) -> None:
    path = write_envi(tmp_path, "cube", LOPSIDED)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert envi.read_header(path).layout.shape == LOPSIDED.shape


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"wavelength": "{400, 500, 600, 700}", "wavelength_units": "Nanometers"}, 0.5),
        ({"wavelength": "{0.4, 0.5, 0.6, 0.7}", "wavelength_units": "Micrometers"}, 0.5),
        ({"wavelength": "{400, 500, 600, 700}"}, 0.5),
        ({"wavelength": "{0.4,\n 0.5, 0.6, 0.7}", "wavelength_units": "Unknown"}, 0.5),
        ({"wavelength": "{0.4, 0.5, 0.6, 0.7}", "wavelength_units": "µm"}, 0.5),
    ],
)
def test_wavelengths_are_micrometres_whatever_the_unit(tmp_path: Path, fields: dict[str, str], expected: float) -> None:
    header = envi.read_header(write_envi(tmp_path, "cube", LOPSIDED, **fields))
    assert envi.wavelengths(header)[1] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"wavelength": "{400, 500, 600}"}, "3 numbers in 'wavelength' for 4"),
        ({"wavelength": "{400, 500, six, 700}"}, "not a number"),
        ({"wavelength": "{1, 2, 3, 4}", "wavelength_units": "Wavenumber"}, "wavenumber"),
        ({"wavelength": "{400, 500, 600, 700"}, "brace"),
    ],
)
def test_unusable_wavelengths_are_refused(tmp_path: Path, fields: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        envi.wavelengths(envi.read_header(write_envi(tmp_path, "cube", LOPSIDED, **fields)))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("ENVI\r", "ENWI\r", "not an ENVI header"),
        ("samples = 5\r\n", "", "lacks 'samples'"),
        ("samples = 5", "samples = five", "found samples = five"),
        ("samples = 5", "samples = 4", "do not belong together"),
        ("bands   = 4", "bands   = 5", "truncated"),
        ("data type = 4", "data type = 6", "data type 6"),
        ("interleave = bsq", "interleave = odd", "interleave 'odd'"),
    ],
)
def test_a_broken_header_gives_one_clear_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = write_envi(tmp_path, "cube", LOPSIDED)
    path.write_bytes(path.read_bytes().decode().replace(old, new, 1).encode())
    with pytest.raises(InputError, match=message) as caught:
        envi.image_file(envi.read_header(path))
    assert "\n" not in str(caught.value)


def test_bands_are_found_by_name(tmp_path: Path) -> None:
    header = envi.read_header(write_in(tmp_path))
    assert envi.band_named(header, "IR Sample") == 3
    with pytest.raises(InputError, match="no band named 'Elevation'"):
        envi.band_named(header, "Elevation")


def test_the_grid_is_that_of_the_header_on_its_own_mars_sphere(tmp_path: Path) -> None:
    wkt, transform = envi.map_grid(envi.read_header(write_mtr3(tmp_path)))
    assert transform == (18.0, 0.0, 1517858.4, 0.0, -18.0, -1373870.9)
    assert "3393833.260758" in wkt
    assert CRS.from_wkt(wkt).to_dict()["lat_ts"] == -20


def test_the_tie_point_need_not_be_the_first_pixel(tmp_path: Path) -> None:
    info = "{Mars, 3.5, 2.0, 1000.0, 5000.0, 10.0, 20.0}"
    _, transform = envi.map_grid(envi.read_header(write_mtr3(tmp_path, map_info=info)))
    # The point 2.5 pixels right of and 1 below the corner lies at (1000, 5000).
    a, _, c, _, e, f = transform
    assert (a * 2.5 + c, e * 1.0 + f) == (1000.0, 5000.0)


@pytest.mark.parametrize("wkt", ['{LOCAL_CS["Unnamed",UNIT["Meter",1.0]]}', "{}", "{nonsense}"])
def test_a_map_without_a_real_coordinate_system_is_refused(tmp_path: Path, wkt: str) -> None:
    header = envi.read_header(write_mtr3(tmp_path, coordinate_system_string=wkt))
    with pytest.raises(InputError, match="cannot make a coordinate system"):
        envi.map_grid(header)


@pytest.mark.parametrize("degrees", [12.5, -30.0, 90.0])
def test_a_rotated_map_is_turned_about_its_tie_point(tmp_path: Path, degrees: float) -> None:
    info = f"{{UTM, 3, 2, 594012.0, 4084640.0, 2.5, 2.5, 11, North, WGS-84, units=Meters, rotation={degrees}}}"
    header = write_envi(tmp_path, "ortho", LOPSIDED, map_info=info)
    placed = envi.map_grid(envi.read_header(header))
    assert placed is not None
    transform = Affine(*placed[1])
    assert transform @ (2, 1) == pytest.approx((594012.0, 4084640.0))
    assert np.degrees(np.arctan2(transform.d, transform.a)) == pytest.approx(degrees)
    assert degrees != 90.0 or transform.a == transform.e == 0.0
    assert transform.determinant == pytest.approx(-6.25)
    # GDAL turns the same way, but moves the tie point to the first pixel as if nothing were turned.
    with raster.open_raster(header.with_suffix(".img")) as opened:
        assert tuple(opened.transform)[:2] == pytest.approx(tuple(transform)[:2])
        assert (opened.transform.d, opened.transform.e) == pytest.approx((transform.d, transform.e))


def test_an_arbitrary_map_has_no_grid(tmp_path: Path) -> None:
    plain = "{Arbitrary, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0}"
    assert envi.map_grid(envi.read_header(write_mtr3(tmp_path, map_info=plain))) is None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("units=Meters", "rotation", "its rotation .* is not one"),
        ("units=Meters", "rotation=inf", "its rotation .* is not one"),
        ("units=Meters", "rotation=nan", "its rotation .* is not one"),
        ("units=Meters", "rotation=0, rotation=30", "its rotation .* is not one"),
        ("units=Meters", "rotation=180", "rotation of 180, which some programs write"),
        ("units=Meters", "rotation=-180.0", "rotation of -180, which"),
        ("1.8e1, 1.8e1", "1.8e1, 0.0", "pixels of 18 × 0"),
    ],
)
def test_a_map_without_pixel_size_or_with_half_a_rotation_is_refused(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    info = map_fields()["map_info"]
    assert old in info
    with pytest.raises(InputError, match=message):
        envi.map_grid(envi.read_header(write_mtr3(tmp_path, map_info=info.replace(old, new))))


def test_a_header_in_latin_1_is_read_too(tmp_path: Path) -> None:
    path = write_envi(tmp_path, "cube", LOPSIDED, wavelength="{0.4, 0.5, 0.6, 0.7}", wavelength_units="µm")
    path.write_bytes(path.read_text(encoding="utf-8").encode("latin-1"))
    assert envi.wavelengths(envi.read_header(path)) == pytest.approx([0.4, 0.5, 0.6, 0.7])


@pytest.mark.parametrize(
    ("text", "expected"),
    [("-3.40282e+38", -float(np.finfo(np.float32).max)), ("-1.79769e+308", -float(np.finfo(np.float64).max))],
)
def test_the_least_number_is_fill_though_it_is_written_with_few_digits(
    tmp_path: Path, text: str, expected: float
) -> None:
    assert envi.fill_value(envi.read_header(write_envi(tmp_path, "a", LOPSIDED, data_ignore_value=text))) == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"data_gain_values": "{0.001, 0.001, 0.001, 0.001}", "data_offset_values": "{0, 0, 0, 0}"}, 1000.0),
        ({"data_gain_values": "{0.001, 0.001, 0.001, 0.001}", "reflectance_scale_factor": "1000"}, 1000.0),
        ({"data_gain_values": "{1, 1, 1, 1}", "reflectance_scale_factor": "50"}, 50.0),
    ],
)
def test_one_gain_for_all_bands_is_a_scale(tmp_path: Path, fields: dict[str, str], expected: float) -> None:
    found = envi.scale_factor(envi.read_header(write_envi(tmp_path, "cube", LOPSIDED, **fields)))
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(
    "fields",
    [
        {"data_gain_values": "{0.001, 0.002, 0.001, 0.001}"},
        {"data_offset_values": "{0, 0, 0, 0.1}"},
        {"data_gain_values": "{0.001, 0.001, 0.001, 0.001}", "reflectance_scale_factor": "10000"},
    ],
)
def test_gains_and_offsets_of_single_bands_are_refused_not_forgotten(tmp_path: Path, fields: dict[str, str]) -> None:
    path = write_envi(tmp_path, "cube", LOPSIDED, wavelength="{0.4, 0.5, 0.6, 0.7}", **fields)
    with pytest.raises(InputError, match="apply them"):
        open_product(path)
    found = inspection.describe(inspection.inspect(path, Ingest()))
    assert "apply them" in found
    assert "ingest refuses it" in found


def test_the_real_mtr3_header_gives_bands_grid_and_sphere(shared_data: Path) -> None:
    folder = shared_data / "crism/mtrdr_headers"
    header = envi.read_header(folder / "frt00016438_07_if164j_mtr3.hdr")
    bands = envi.wavelengths(header)
    wkt, transform = envi.map_grid(header)
    assert header.layout.shape == (675, 736, 489)
    assert bands[[0, -1]] == pytest.approx([0.43613, 3.89676])
    assert (np.diff(bands) > 0).all()
    assert envi.fill_value(header) == 65535
    assert transform == (18.0, 0.0, 1517858.4, 0.0, -18.0, -1373870.9)
    assert CRS.from_wkt(wkt).to_dict()["R"] == pytest.approx(3393833.260758386, abs=1e-6)
    inside = envi.read_header(folder / "frt00016438_07_in164j_mtr3.hdr")
    assert envi.band_named(inside, "IR Sample") == 5
    with pytest.raises(InputError, match="no image beside it"):
        envi.image_file(header)


@pytest.mark.parametrize(("zone", "side", "code"), [("11", "North", 32611), ("33", "South", 32733)])
def test_utm_without_a_coordinate_system_string_is_taken_from_the_map_info(
    tmp_path: Path, zone: str, side: str, code: int
) -> None:
    info = f"{{UTM, 1, 1, 500000, 4000000, 17, 17, {zone}, {side}, WGS-84, units=Meters}}"
    wkt, transform = envi.map_grid(envi.read_header(write_envi(tmp_path, "aviris", LOPSIDED, map_info=info)))
    assert CRS.from_wkt(wkt) == CRS.from_epsg(code)
    assert transform == (17.0, 0.0, 5e5, 0.0, -17.0, 4e6)
    other = info.replace("WGS-84", "North America 1927")
    with pytest.raises(InputError, match="cannot make a coordinate system"):
        envi.map_grid(envi.read_header(write_envi(tmp_path, "aviris", LOPSIDED, map_info=other)))


def test_degrees_on_wgs_84_are_taken_from_the_map_info(tmp_path: Path) -> None:
    info = "{Geographic Lat/Lon, 1, 1, 14, 45, 0.25, 0.5, WGS-84, units=Degrees}"
    wkt, transform = envi.map_grid(envi.read_header(write_envi(tmp_path, "field", LOPSIDED, map_info=info)))
    assert CRS.from_wkt(wkt) == CRS.from_epsg(4326)
    assert transform == (0.25, 0.0, 14.0, 0.0, -0.5, 45.0)
