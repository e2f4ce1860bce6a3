"""Simulated files against real ones: labels, byte layout, wavelengths, fill and garbage, map coordinates."""

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
from numpy.typing import NDArray

from gibbsite.settings import Simulate
from gibbsite.simulate import detector, observation
from gibbsite.simulate.geometry import Geometry
from gibbsite.simulate.minerals import MINERALS

with warnings.catch_warnings():
    # pvl warns on import of an optional package that it can do without.
    warnings.simplefilter("ignore")
    import pvl

SCENE = Simulate(lines=37, binning=10, latitude=-21.3, longitude=74.7)
TRR3_L, TRR3_S = "frt0000ace5_07_if166l_trr3", "frt0000ace5_07_if166s_trr3"
DDR, MTR3, INFO = "frt0000ace5_07_de166l_ddr1", "frt0000ace5_07_if166j_mtr3", "frt0000ace5_07_in166j_mtr3"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An observation with the binning of the real files."""
    place = tmp_path_factory.mktemp("scene")
    observation.write_observation(SCENE, 11, place)
    return place


def parts(path: Path) -> list[Any]:
    """The FILE objects of a label."""
    return list(pvl.load(path).getall("FILE"))


def keys(mapping: Any) -> set[str]:
    """All keywords of a label, with those of its objects."""
    found = set()
    for key, value in mapping.items():
        found.add(key)
        if hasattr(value, "items"):
            found |= keys(value)
    return found


def cube(folder: Path, name: str, n_bands: int) -> NDArray[np.float32]:
    image = np.fromfile(folder / f"{name}.img", "<f4", count=37 * n_bands * 64)
    return image.reshape(37, n_bands, 64)


@pytest.mark.parametrize(("name", "bands"), [(TRR3_L, 438), (TRR3_S, 107), (DDR, 14), (MTR3, 489), (INFO, 9)])
def test_label_and_image_agree_on_every_byte(folder: Path, name: str, bands: int) -> None:
    text = (folder / f"{name}.lbl").read_bytes()
    assert text.count(b"\n") == text.count(b"\r\n")
    part = parts(folder / f"{name}.lbl")[0]
    image = part["IMAGE"]
    assert image["BANDS"] == bands
    assert part["RECORD_BYTES"] == 4 * image["LINE_SAMPLES"]
    assert part["RECORD_BYTES"] * part["FILE_RECORDS"] == (folder / f"{name}.img").stat().st_size
    assert part["^IMAGE"] == f"{name.upper()}.IMG"


@pytest.mark.parametrize(
    ("ours", "real"),
    [
        (TRR3_L, "trr3/frt0001458f_01_if156l_trr3.lbl"),
        (TRR3_S, "trr3/frt0001458f_01_if156s_trr3.lbl"),
        (DDR, "ddr/frt00003e25_01_de156l_ddr1.lbl"),
        ("cdr410803692813_wa0300000l_3", "cdr/CDR410803692813_WA0300000L_3.LBL"),
    ],
)
def test_labels_have_the_structure_of_real_labels(folder: Path, shared_data: Path, ours: str, real: str) -> None:
    found, wanted = folder / f"{ours}.lbl", shared_data / "crism" / real
    assert len(parts(found)) == len(parts(wanted))
    for mine, theirs in zip(parts(found), parts(wanted), strict=True):
        # BAND_NAME = NULL and DESCRIPTION say nothing in a wavelength file.
        assert keys(theirs) - keys(mine) <= {"BAND_NAME", "DESCRIPTION"}
        for key in ("RECORD_TYPE", "RECORD_BYTES"):
            assert mine[key] == theirs[key]
        if "IMAGE" in theirs:
            for key in ("LINE_SAMPLES", "SAMPLE_TYPE", "SAMPLE_BITS", "BANDS", "BAND_STORAGE_TYPE"):
                assert mine["IMAGE"][key] == theirs["IMAGE"][key], key


@pytest.mark.parametrize(
    ("ours", "real", "n_bands"),
    [
        (TRR3_L, "trr3/frt0001458f_01_if156l_trr3.img", 438),
        (TRR3_S, "trr3/frt0001458f_01_if156s_trr3.img", 107),
        ("cdr410803692813_wa0300000l_3", "cdr/CDR410803692813_WA0300000L_3.IMG", 438),
        ("cdr410803692813_wa0300000s_2", "cdr/CDR410803692813_WA0300000S_2.IMG", 107),
    ],
)
def test_row_tables_and_their_padding_are_those_of_real_files(
    folder: Path, shared_data: Path, ours: str, real: str, n_bands: int
) -> None:
    n_tail = -(-2 * n_bands // 256) * 256
    mine = (folder / f"{ours}.img").read_bytes()[-n_tail:]
    assert mine == (shared_data / "crism" / real).read_bytes()[-n_tail:]


@pytest.mark.parametrize(("item", "name"), [(detector.L, "L_3"), (detector.S, "S_2")])
def test_wavelength_files_are_within_a_hundredth_of_a_nanometre_of_real_ones(
    folder: Path, shared_data: Path, item: detector.Detector, name: str
) -> None:
    real = np.fromfile(shared_data / f"crism/cdr/CDR410803692813_WA0300000{name}.IMG", "<f4", item.n_bands * 64)
    mine = np.fromfile(folder / f"cdr410803692813_wa0300000{name.lower()}.img", "<f4", item.n_bands * 64)
    np.testing.assert_array_equal(mine == 65535, real == 65535)
    np.testing.assert_allclose(mine, real, atol=0.01)


@pytest.mark.parametrize(("binning", "digit"), [(1, 0), (2, 1), (5, 2), (10, 3)])
def test_the_name_of_the_wavelength_file_tells_the_binning(binning: int, digit: int) -> None:
    names = observation.files(SCENE.model_copy(update={"binning": binning}))
    assert f"cdr410803692813_wa0{digit}00000l_3.img" in names
    assert f"cdr410803692813_wa0{digit}00000s_2.img" in names


def test_the_sensor_label_names_the_wavelength_file_that_was_written(folder: Path) -> None:
    for name in (TRR3_L, TRR3_S):
        label = pvl.load(folder / f"{name}.lbl")
        assert (folder / label["MRO:WAVELENGTH_FILE_NAME"].lower()).exists()
        assert label["PIXEL_AVERAGING_WIDTH"] == 10


def test_fill_columns_fill_band_and_garbage_are_those_of_real_files(folder: Path, shared_data: Path) -> None:
    for name, n_bands in ((TRR3_L, 438), (TRR3_S, 107)):
        stem = f"crism/trr3/frt0001458f_01_if156{name[20]}_trr3.img"
        real = np.fromfile(shared_data / stem, "<f4", 15 * n_bands * 64).reshape(15, n_bands, 64)
        mine = cube(folder, name, n_bands)
        np.testing.assert_array_equal((mine == 65535).all(axis=(0, 1)), (real == 65535).all(axis=(0, 1)))
        np.testing.assert_array_equal((mine == 65535).all(axis=(0, 2)), (real == 65535).all(axis=(0, 2)))
    infrared = cube(folder, TRR3_L, 438)[:, :, 3:63]
    garbage = infrared[:, 1][infrared[:, 1] != 65535]
    assert garbage.min() < -20000
    assert garbage.max() > 20000
    assert 0.02 < (infrared[:, 1] == 65535).mean() < 0.25
    assert np.abs(infrared[:, 4:]).max() < 1.5
    assert (cube(folder, TRR3_S, 107)[:, 0, 3:62] < 0).all()


def test_the_map_header_has_the_keys_and_wavelengths_of_a_real_one(folder: Path, shared_data: Path) -> None:
    headers = shared_data / "crism/mtrdr_headers"
    for ours, real in ((MTR3, "frt00016438_07_if164j_mtr3.hdr"), (INFO, "frt00016438_07_in164j_mtr3.hdr")):
        texts = [path.read_text() for path in (folder / f"{ours}.hdr", headers / real)]
        mine, theirs = (dict(re.findall(r"^([a-z ]+?)\s*= *(\{.*?\}|[^\n]*)$", text, re.M | re.S)) for text in texts)
        # Sun and clouds are -1, "unknown", in every real header.
        assert set(theirs) - set(mine) <= {"sun azimuth", "sun elevation", "cloud cover"}
        for key in (
            "bands",
            "interleave",
            "data type",
            "byte order",
            "data ignore value",
            "wavelength units",
        ):
            assert mine[key] == theirs[key], key
        for key in ("wavelength", "fwhm"):
            if key in theirs:
                values = [np.array(re.findall(r"[\d.]+", item[key]), dtype=float) for item in (mine, theirs)]
                np.testing.assert_allclose(values[0], values[1], atol=0.011)


def test_the_map_has_its_own_sphere_and_agrees_with_the_backplanes(folder: Path) -> None:
    with rasterio.open(folder / f"{MTR3}.img", driver="ENVI") as image:
        crs, transform, nodata = image.crs, image.transform, image.nodata
        first = image.read(200)
    # Radius of the ellipsoid at 20 degrees, as in the real header of another scene of that belt.
    assert crs.to_dict()["R"] == pytest.approx(3393833.260758386, abs=1e-3)
    assert crs.to_dict()["lat_ts"] == -20
    assert nodata == 65535
    with rasterio.open(folder / f"{INFO}.img", driver="ENVI") as image:
        assert image.descriptions[5:7] == ("IR Sample", "IR Line")
        sample, line = image.read(6), image.read(7)
    seen = line != 65535
    np.testing.assert_array_equal(seen, first != 65535)
    plane = np.fromfile(folder / f"{DDR}.img", "<f4").reshape(14, 37, 64)
    row, column = np.nonzero(seen)
    where = line[seen].astype(int), sample[seen].astype(int)
    x, y = transform.c + (column + 0.5) * transform.a, transform.f + (row + 0.5) * transform.e
    radius = crs.to_dict()["R"]
    latitude, longitude = np.degrees(y / radius), np.degrees(x / (radius * np.cos(np.radians(20.0))))
    pixel = np.degrees(180.0 / radius)
    assert np.abs(latitude - plane[3][where]).max() < pixel
    assert np.abs(longitude - plane[4][where]).max() < pixel / np.cos(np.radians(21.3))
    assert 0.3 < seen.mean() < 0.8
    assert not seen[0].any()


def test_map_rasters_share_the_grid_of_the_map_image(folder: Path) -> None:
    with rasterio.open(folder / f"{MTR3}.img", driver="ENVI") as image:
        for name in ("mtr3_truth", "mtr3_labels"):
            with rasterio.open(folder / f"{name}.tif") as raster:
                assert (raster.crs, raster.transform, raster.shape) == (
                    image.crs,
                    image.transform,
                    image.shape,
                )
                assert raster.tags()["CLASS_7"] == "jarosite"
    with rasterio.open(folder / "trr3_truth.tif") as raster:
        points, crs = raster.gcps
        assert raster.shape == (37, 64)
        assert len(points) == 25
        assert crs.to_dict()["R"] == 3396190


def test_the_truth_on_the_map_is_the_truth_of_the_source_pixel(folder: Path) -> None:
    with rasterio.open(folder / "trr3_truth.tif") as raster:
        sensor = raster.read(1)
    with rasterio.open(folder / "mtr3_truth.tif") as raster:
        mapped = raster.read(1)
    source = np.fromfile(folder / f"{INFO}.img", "<f4").reshape(9, *mapped.shape)
    seen = source[6] != 65535
    np.testing.assert_array_equal(mapped[seen], sensor[source[6][seen].astype(int), source[5][seen].astype(int)])
    assert not mapped[~seen].any()


@pytest.mark.parametrize(("latitude", "parallel"), [(18.4, 15.0), (-23.3, -20.0), (4.9, 0.0), (-33.2, -30.0)])
def test_the_standard_parallel_is_the_step_towards_the_equator_as_in_real_maps(
    latitude: float, parallel: float
) -> None:
    assert Geometry.of(SCENE.model_copy(update={"latitude": latitude})).parallel == parallel


@pytest.mark.parametrize(
    ("mineral", "library", "window"),
    [
        ("nontronite", "fe_smectite", (2.25, 2.33)),
        ("saponite", "mg_smectite", (2.27, 2.35)),
        ("magnesium carbonate", "mg_carbonate", (2.46, 2.56)),
        ("montmorillonite", "al_smectite", (2.16, 2.25)),
        ("polyhydrated sulfate", "poly_hyd_sulf", (1.88, 1.98)),
        ("jarosite", "jarosite", (2.22, 2.31)),
        ("alunite", "alunite", (2.12, 2.21)),
    ],
)
def test_strongest_bands_are_where_real_type_spectra_have_them(
    shared_data: Path, mineral: str, library: str, window: tuple[float, float]
) -> None:
    table = np.loadtxt(shared_data / f"crism/mica/crism_typespec_{library}.tab", delimiter=",")
    inside = (table[:, 0] > window[0]) & (table[:, 0] < window[1]) & (table[:, 1] < 60000)
    wavelength, ratio = table[inside, 0], table[inside, 1]
    smooth = np.convolve(np.pad(ratio, 1, mode="edge"), np.full(3, 1 / 3), mode="valid")
    pure = next(item for item in MINERALS if item.name == mineral).reflectance(wavelength)
    assert abs(wavelength[pure.argmin()] - wavelength[smooth.argmin()]) < 0.025


def test_every_mineral_names_its_source_and_there_are_more_than_ten() -> None:
    assert len(MINERALS) >= 10
    assert all(re.search(r"\d{4}", mineral.source) for mineral in MINERALS)
