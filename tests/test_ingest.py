"""From archive files to cube stores: hand-made products, real ones, and everything that must be refused."""

import argparse
import hashlib
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import rasterio
import rasterio.shutil
import xarray as xr
import zarr
from rasterio.crs import CRS

from archive_files import (
    FILL,
    L_ROWS,
    trr3_pixels,
    write_ddr,
    write_envi,
    write_in,
    write_mtr3,
    write_pds,
    write_trr3,
    write_wa,
)
from command_line import gibbsite
from gibbsite import ingest as ingesting
from gibbsite import inspection, scene
from gibbsite.errors import InputError
from gibbsite.observation import open_observation
from gibbsite.settings import Ingest, Settings, validate
from gibbsite.steps import ingest


def ingest_cube(cube: Path, ddr: Path | None = None, wavelengths: Path | None = None, **keys: object) -> xr.Dataset:
    """The opened cube of `gibbsite ingest`, written beside the input (or in keys["out"])."""
    out = Path(str(keys.pop("out", cube.parent / "cubes" / "demo.zarr")))
    settings = validate({"ingest": keys}, "test") if keys else Settings()
    ingest.run(argparse.Namespace(cube=cube, ddr=ddr, wavelengths=wavelengths, out=out), settings)
    return scene.open_cube(out)


def test_a_trr3_cube_keeps_every_value_in_its_place(tmp_path: Path) -> None:
    cube = ingest_cube(write_trr3(tmp_path), write_ddr(tmp_path), write_wa(tmp_path))
    reflectance, stored = cube["reflectance"].values, trr3_pixels()
    assert (np.diff(cube["wavelength"].values) > 0).all()
    # Band 437 of the file has the shortest wavelength, so it comes first.
    np.testing.assert_array_equal(reflectance[:, 1:-1, :-2], stored[:, 1:-1, :1:-1])
    assert np.isnan(reflectance[:, :, -2:]).all(), "fill and garbage must be NaN"
    assert np.isnan(reflectance[:, [0, -1]]).all()
    assert cube["valid"].values[:, 1:-1].all()
    assert not cube["valid"].values[:, [0, -1]].any()
    assert (cube["detector_column"].values == np.arange(12)).all()
    assert cube["incidence"].values[4, 5] == np.float32(54.5)
    assert cube["latitude"].values[5, 2] == pytest.approx(-21.048, abs=1e-5)
    grid = scene.grid_of(cube)
    assert CRS.from_wkt(grid.crs) == CRS.from_user_input("IAU_2015:49900")
    assert len(grid.ground_points) == 69
    assert cube.attrs["scene"] == "demo"


def test_good_bands_leave_out_the_list_the_fill_and_the_garbage(tmp_path: Path) -> None:
    pixels = trr3_pixels()
    pixels[:, 3, 50] = 9.0  # one column of ten is more than 5 % garbage
    cube = ingest_cube(write_trr3(tmp_path, pixels=pixels))
    nm = cube["wavelength"].values * 1000
    listed = (nm < 1021) | ((nm > 2692) & (nm < 2703)) | (nm > 3926)
    garbage = np.isin(nm, np.sort(nm)[::-1][[50]])
    assert np.array_equal(~cube["good_band"].values, listed | garbage)
    assert cube["valid"].values[:, 3].all()


def test_pixels_with_too_many_gaps_are_not_valid(tmp_path: Path) -> None:
    pixels = trr3_pixels(lines=30)
    pixels[2, 4, 100:121] = np.nan  # 21 of 428 good bands: just under 5 %
    pixels[2, 5, 100:122] = np.inf  # 22: above
    valid = ingest_cube(write_trr3(tmp_path, pixels=pixels))["valid"].values
    assert valid[2, 4]
    assert not valid[2, 5]
    assert np.count_nonzero(valid) == 299
    strict = ingest_cube(tmp_path / "frt0000ace5_07_if166l_trr3.img", max_bad_bands=0.0)["valid"].values
    assert np.count_nonzero(strict) == 298


def test_the_share_of_gaps_is_of_the_good_bands_only(tmp_path: Path) -> None:
    pixels = trr3_pixels(lines=30)
    pixels[2, 5, 200:417] = np.nan  # 217 bands: above half of the 428 good ones, below half of all 438
    valid = ingest_cube(write_trr3(tmp_path, pixels=pixels), max_bad_bands=0.5)["valid"].values
    assert np.argwhere(~valid[:, 1:-1]).tolist() == [[2, 4]]


def test_fill_is_no_data_even_when_it_lies_in_the_valid_range(tmp_path: Path) -> None:
    stored = np.full((4, 6, 3), 0.25, np.float32)
    stored[1, 2], stored[3, 5, 1] = 0.0, 0.0
    fields = {"wavelength": "{900, 950, 1000}", "data_ignore_value": "0"}
    cube = ingest_cube(write_envi(tmp_path, "zero", stored, **fields))
    assert np.array_equal(np.isnan(cube["reflectance"].values), stored == 0)
    assert np.argwhere(~cube["valid"].values).tolist() == [[1, 2], [3, 5]]


def test_the_valid_range_comes_from_the_settings(tmp_path: Path) -> None:
    cube = ingest_cube(write_trr3(tmp_path), valid_range=(0.0, 0.3), max_bad_bands=1.0)
    values = cube["reflectance"].values
    assert np.nanmax(values) <= np.float32(0.3)
    assert np.isfinite(values).any()


def test_a_visible_cube_has_the_bad_bands_of_its_sensor(tmp_path: Path) -> None:
    rows = list(range(185, 292))
    label = write_pds(tmp_path, "frt0000ace5_07_if166s_trr3", trr3_pixels(bands=109)[:, :, 2:], rows=rows)
    cube = ingest_cube(label)
    nm = cube["wavelength"].values * 1000
    assert nm[[0, -1]] == pytest.approx([364.6, 1056.11], abs=0.01)
    assert np.array_equal(cube["good_band"].values, (nm > 407) & ((nm < 641) | (nm > 686)) & (nm < 1025))
    assert cube["reflectance"].values[3, 4, 10] == trr3_pixels(bands=109)[3, 4, 12]


@pytest.mark.parametrize("given", ["{}.LBL", "{}.IMG", "{}.img", "{}.Lbl"])
def test_any_file_of_the_product_in_any_letter_case_gives_the_same_cube(tmp_path: Path, given: str) -> None:
    write_trr3(tmp_path)
    cube = ingest_cube(tmp_path / given.format("FRT0000ACE5_07_if166l_TRR3"))
    assert cube.attrs["provenance"]["product"] == "FRT0000ACE5_07_IF166L_TRR3"
    assert cube["reflectance"].shape == (7, 12, 438)


def test_upper_case_files_are_found_from_lower_case_names(tmp_path: Path) -> None:
    for path in (write_mtr3(tmp_path), write_in(tmp_path)):
        path.with_suffix(".img").rename(tmp_path / (path.stem.upper() + ".IMG"))
        path.rename(tmp_path / (path.stem.upper() + ".HDR"))
    cube = ingest_cube(tmp_path / "frt0000ace5_07_if166j_mtr3.img")
    assert cube["detector_column"].values.max() == 75


def test_a_map_projected_cube_keeps_grid_sphere_and_detector_columns(tmp_path: Path) -> None:
    write_in(tmp_path)
    cube = ingest_cube(write_mtr3(tmp_path))
    grid = scene.grid_of(cube)
    assert grid.transform == (18.0, 0.0, 1517858.4, 0.0, -18.0, -1373870.9)
    assert CRS.from_wkt(grid.crs).to_dict()["R"] == pytest.approx(3393833.260758386, abs=1e-6)
    assert cube["good_band"].values.tolist() == [True] * 4 + [False] + [True] * 4 + [False, True]
    column = cube["detector_column"].values
    assert column[3, 2] == 23
    assert (column[0] == -1).all()
    values = cube["reflectance"].values
    assert values[2, 5, 3] == np.float32(0.1 + 0.02 + 0.005 + 0.006)
    assert np.isnan([values[3, 2, 5], values[4, 6, 7]]).all()
    # Two pixels miss one of nine good bands: more than 5 %.
    assert np.count_nonzero(cube["valid"].values) == 5 * 8 - 2
    assert "incidence" not in cube.variables
    assert cube.attrs["provenance"]["sensor"] == "J"


def test_a_copy_of_a_trr3_cube_without_its_label_takes_a_list_and_keeps_its_columns(tmp_path: Path) -> None:
    pixels = trr3_pixels()
    header = write_envi(tmp_path, "frt0000ace5_07_if166l_trr3_cat_corr", pixels)
    with pytest.raises(InputError, match="no wavelengths in its header"):
        open_observation(header, None, None)
    listed = tmp_path / "list.txt"
    listed.write_text("\ufeff" + "\n".join(str(1.0 + 0.1 * band) for band in range(pixels.shape[2])), encoding="utf-8")
    found = open_observation(header, write_ddr(tmp_path), listed)
    assert found.wavelength == pytest.approx(1.0 + 0.1 * np.arange(pixels.shape[2]))
    assert found.column is not None
    assert (found.column == np.arange(pixels.shape[1])).all()
    assert any("clean.incidence: false" in remark for remark in found.remarks)


def test_a_plain_envi_cube_with_wavelengths_works(tmp_path: Path) -> None:
    stored = np.random.default_rng(1).integers(500, 9000, (4, 6, 5))
    stored[1, 2] = -9999
    fields = {
        "wavelength": "{0.9, 0.7, 0.8, 1.1, 1.0}",
        "data_ignore_value": "-9999",
        "reflectance_scale_factor": "10000",
    }
    cube = ingest_cube(write_envi(tmp_path, "field", stored, interleave="bip", dtype=">i2", **fields))
    assert cube["wavelength"].values == pytest.approx([0.7, 0.8, 0.9, 1.0, 1.1])
    expected = (stored / 10000)[:, :, [1, 2, 0, 4, 3]].astype(np.float32)
    found = cube["reflectance"].values
    np.testing.assert_allclose(found[cube["valid"].values], expected[cube["valid"].values], rtol=1e-6)
    assert np.argwhere(~cube["valid"].values).tolist() == [[1, 2]]
    assert (cube["detector_column"].values == -1).all()
    assert scene.grid_of(cube).crs is None


def test_provenance_names_every_file_with_its_hash(tmp_path: Path) -> None:
    cube = ingest_cube(write_trr3(tmp_path), write_ddr(tmp_path), write_wa(tmp_path))
    provenance = cube.attrs["provenance"]
    assert {Path(entry["name"]).suffix for entry in provenance["files"]} == {".img", ".lbl"}
    assert len(provenance["files"]) == 6
    for entry in provenance["files"]:
        content = (tmp_path / entry["name"]).read_bytes()
        assert (entry["sha256"], entry["bytes"]) == (hashlib.sha256(content).hexdigest(), len(content))
    assert provenance["wavelength_source"] == "WA CDR CDR410803692813_WA0300000L_3"
    assert provenance["facts"]["PIXEL_AVERAGING_WIDTH"] == 10


def test_radiance_is_read_when_the_valid_range_is_that_of_its_unit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pixels = trr3_pixels()
    pixels[pixels < 100] *= 40.0
    radiance = write_pds(tmp_path, "frt0000ace5_07_ra166l_trr3", pixels, rows=L_ROWS)
    refused(radiance, r"valid_range \[-0.05, 1.5\] leaves out .* set ingest.valid_range to the range of your unit")
    cube = ingest_cube(radiance, valid_range=(-1.0, 60.0))
    assert cube["valid"].values[:, 1:-1].all()
    assert cube["reflectance"].attrs["long_name"] == cube.attrs["provenance"]["quantity"] == "radiance"
    assert "radiance, not I/F" in caplog.text


def test_what_the_user_should_know_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cube = ingest_cube(write_trr3(tmp_path))
    assert "no DDR given: the maps will have no coordinates" in caplog.text
    assert "nominal" in caplog.text
    assert scene.grid_of(cube).crs is None
    assert cube.attrs["provenance"]["wavelength_source"] == "nominal"


@pytest.mark.parametrize("fill", [{}, {"data_ignore_value": "0"}])
def test_pixels_of_nothing_but_0_are_told_unless_0_is_fill(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, fill: dict[str, str]
) -> None:
    stored = np.full((4, 6, 3), 0.2)
    stored[:2], stored[3, 3, 1] = 0.0, 0.0
    path = write_envi(tmp_path, "field", stored, wavelength="{0.7, 0.8, 0.9}", **fill)
    told = "12 valid pixels are 0 in every band; if that is fill, name it"
    valid = ingest_cube(path, max_bad_bands=0.4)["valid"].values
    assert valid.sum() == (12 if fill else 24)
    assert (told in caplog.text) == (not fill)
    looked = inspection.describe(inspection.inspect(path, Ingest()))
    assert ("12 pixels of 0 in every band" in looked) == (not fill)


def folder_bytes(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_two_runs_write_the_same_bytes(tmp_path: Path) -> None:
    label, geometry = write_trr3(tmp_path), write_ddr(tmp_path)
    for run in ("one", "two"):
        ingest_cube(label, geometry, out=tmp_path / run / "demo.zarr")
    assert folder_bytes(tmp_path / "one") == folder_bytes(tmp_path / "two")


def test_blocks_of_lines_do_not_change_the_cube(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    label, geometry = write_trr3(tmp_path), write_ddr(tmp_path)
    whole = ingest_cube(label, geometry).load()
    monkeypatch.setattr(ingesting, "CHUNK_BYTES", 3 * 12 * 438 * 4)
    cut = ingest_cube(label, geometry, out=tmp_path / "cut" / "demo.zarr").load()
    assert zarr.open_group(tmp_path / "cut" / "demo.zarr", mode="r")["reflectance"].chunks == (3, 12, 438)
    xr.testing.assert_identical(whole, cut)


@pytest.mark.parametrize("interleave", ["bsq", "bil"])
def test_memory_does_not_grow_with_the_scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interleave: str) -> None:
    block = 2**20
    monkeypatch.setattr(ingesting, "CHUNK_BYTES", block)
    pixels = np.full((1280, 64, 128), 0.25, np.float32)  # 40 blocks
    fields = {"wavelength": "{" + ", ".join(str(1000 + band) for band in range(128)) + "}"}
    header = write_envi(tmp_path, "long", pixels, interleave=interleave, **fields)
    tracemalloc.start()
    ingest_cube(header)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * block, f"{peak / block:.1f} blocks at once"


def test_real_cubes_have_carbon_dioxide_at_two_micrometres(shared_data: Path, tmp_path: Path) -> None:
    folder = shared_data / "crism"
    record = folder / "cdr/CDR410803692813_WA0300000L_3.IMG"
    cube = ingest_cube(folder / "trr3/frt0001458f_01_if156l_trr3.lbl", None, record, out=tmp_path / "real.zarr")
    assert cube["reflectance"].shape == (15, 64, 438)
    assert np.count_nonzero(cube["good_band"].values) == 428
    assert cube["valid"].values[:, 3:63].all()
    assert not cube["valid"].values[:, [0, 1, 2, 63]].any()
    nm = cube["wavelength"].values * 1000
    mean = cube["reflectance"].values[cube["valid"].values].mean(axis=0)
    near = np.flatnonzero((nm > 1900) & (nm < 2100))
    assert nm[near[mean[near].argmin()]] == pytest.approx(2007, abs=4), "the strongest of the CO2 triplet"
    assert mean[near].min() < 0.75 * mean[np.abs(nm - 1850).argmin()]


def test_a_real_visible_cube_is_dark_in_the_blue(shared_data: Path, tmp_path: Path) -> None:
    cube = ingest_cube(shared_data / "crism/trr3/frt0001458f_01_if156s_trr3.img", out=tmp_path / "real.zarr")
    assert np.count_nonzero(cube["good_band"].values) == 88
    assert np.count_nonzero(cube["valid"].values) == 885
    mean = cube["reflectance"].values[cube["valid"].values][:, cube["good_band"].values].mean(axis=0)
    assert mean[0] < 0.5 * mean[50], "Mars is red"


def test_a_real_map_projected_crop_keeps_its_outliers_out(shared_data: Path, tmp_path: Path) -> None:
    header = (shared_data / "crism/mtrdr_headers/frt00016438_07_if164j_mtr3.hdr").read_text()
    with rasterio.open(shared_data / "crism/mtrdr/frt0000932c_07_if164j_mtr3_subsampled.tif") as crop:
        pixels = crop.read()
    (tmp_path / "frt0000932c_07_if164j_mtr3.img").write_bytes(pixels.astype("<f4").tobytes())
    text = header.replace("samples = 736", "samples = 20").replace("lines   = 675", "lines   = 20")
    (tmp_path / "frt0000932c_07_if164j_mtr3.hdr").write_text(text)
    cube = ingest_cube(tmp_path / "frt0000932c_07_if164j_mtr3.hdr")
    values, valid = cube["reflectance"].values, cube["valid"].values
    assert np.nanmin(values) >= -0.05
    assert np.nanmax(values) <= 1.5
    assert 0.6 < valid.mean() < 0.75
    assert not valid[(pixels == FILL).all(axis=0)].any()
    assert cube["good_band"].values.mean() > 0.95


def refused(cube: Path, message: str, ddr: Path | None = None, wavelengths: Path | None = None) -> None:
    """Check that ingesting gives one clear line and leaves nothing behind."""
    out = cube.parent / "refused"
    with pytest.raises(InputError, match=message) as caught:
        ingest_cube(cube, ddr, wavelengths, out=out / "demo.zarr")
    assert "\n" not in str(caught.value)
    assert not out.exists() or not list(out.iterdir()), "something half-written was left"


def test_files_that_are_not_there_are_refused(tmp_path: Path) -> None:
    refused(tmp_path / "absent.lbl", "no such file")
    refused(tmp_path / "nowhere" / "absent.lbl", "no such file")
    refused(tmp_path, "is a folder")
    label = write_trr3(tmp_path)
    refused(label, "no such file", tmp_path / "absent_ddr.lbl")
    (tmp_path / "frt0000ace5_07_if166l_trr3.img").unlink()
    refused(label, "IF166L_TRR3.IMG, which is not beside it")
    (tmp_path / "lonely.img").write_bytes(b"1234")
    refused(tmp_path / "lonely.img", "neither a label nor a header")


def test_cubes_without_a_usable_pixel_are_refused(tmp_path: Path) -> None:
    refused(write_trr3(tmp_path, pixels=np.full((7, 12, 438), FILL, np.float32)), "every pixel is fill")
    refused(write_trr3(tmp_path, pixels=np.full((7, 12, 438), np.nan, np.float32)), "every pixel is fill")
    pixels = trr3_pixels()
    pixels[:, :, 2:200] = np.where(np.arange(12)[None, :, None] < 6, FILL, pixels[:, :, 2:200])
    pixels[:, :, 200:] = np.where(np.arange(12)[None, :, None] >= 6, FILL, pixels[:, :, 200:])
    refused(write_trr3(tmp_path, pixels=pixels), "no pixel has 95% of its good bands")


def unscaled_cube(folder: Path, **fields: str) -> Path:
    """A cube of integers 0 to 9000 whose header may forget the scale; 2 of its 7 bands are dark."""
    stored = np.random.default_rng(1).integers(500, 9000, (40, 6, 7))
    stored[:, :, [2, 5]] = np.random.default_rng(2).integers(0, 2, (40, 6, 2))
    wavelength = {"wavelength": "{0.9, 0.7, 0.8, 1.1, 1.0, 1.2, 1.3}"}
    return write_envi(folder, "field", stored, interleave="bip", dtype=">i2", **wavelength, **fields)


def test_a_cube_whose_scale_is_missing_is_refused_with_its_range(tmp_path: Path) -> None:
    refused(
        unscaled_cube(tmp_path),
        r"ingest.valid_range \[-0.05, 1.5\] leaves out 71% of its bands or values, which run from 0 to 8\d\d\d .*"
        "'reflectance scale factor = 10000', or set ingest.valid_range",
    )
    assert ingest_cube(unscaled_cube(tmp_path, reflectance_scale_factor="10000"))["good_band"].values.all()
    assert ingest_cube(unscaled_cube(tmp_path), valid_range=(0.0, 10000.0))["good_band"].values.all()


def test_bands_that_are_mostly_out_of_range_are_refused_even_where_no_band_is_garbage(tmp_path: Path) -> None:
    pixels = trr3_pixels()
    refused(write_trr3(tmp_path, pixels=pixels + 2.0), r"leaves out 100% of its bands or values, which run from 2\.")


def test_the_real_all_fill_cube_is_refused(shared_data: Path, tmp_path: Path) -> None:
    name = "frt0001e5c3_07_if124s_trr3_cropped"
    for suffix, tail in (
        (".lbl", b""),
        (".img", np.arange(185, 292).astype(">u2").tobytes().ljust(2560, b"\0")),
    ):
        (tmp_path / (name + suffix)).write_bytes((shared_data / "crism/trr3" / (name + suffix)).read_bytes() + tail)
    refused(tmp_path / f"{name}.img", "every pixel is fill")


def test_products_that_are_no_cubes_are_refused(tmp_path: Path) -> None:
    refused(write_ddr(tmp_path), "found product FRT0000ACE5_07_DE166L_DDR1, expected an I/F cube")
    refused(write_in(tmp_path), "found product frt0000ace5_07_in166j_mtr3, expected an I/F cube")
    refused(write_wa(tmp_path), "expected an I/F cube")
    refused(write_envi(tmp_path, "grey", np.ones((3, 4, 2))), "no wavelengths in its header or tags")


def test_real_mosaic_labels_sound_or_broken_are_refused(shared_data: Path, tmp_path: Path) -> None:
    labels = sorted(path for path in (shared_data / "crism/mrdr").iterdir() if path.suffix.lower() == ".lbl")
    assert len(labels) == 5
    cropped = "contradicts itself or its image was cropped"
    elsewhere = "longitudes 0 to 10 do not lie about their centre 185"
    reasons = (cropped, cropped, elsewhere, "lacks PRODUCT_ID", "lacks PRODUCT_TYPE")
    for label, reason in zip(labels, reasons, strict=True):
        with pytest.raises(InputError, match=reason) as caught:
            ingest_cube(label, out=tmp_path / "demo.zarr")
        assert "\n" not in str(caught.value)


def test_files_that_do_not_belong_together_are_refused(shared_data: Path, tmp_path: Path) -> None:
    label = write_trr3(tmp_path)
    refused(label, "give the DDR of the same observation", write_ddr(tmp_path, "frt0000ace6_07_de166l_ddr1"))
    refused(label, "do not fit the cube's", None, write_wa(tmp_path, samples=13))
    write_in(tmp_path, samples=10)
    refused(write_mtr3(tmp_path), "do not fit the cube's")
    write_in(tmp_path)
    refused(write_mtr3(tmp_path), "--ddr goes with TRR3 and TER3 cubes only", write_ddr(tmp_path))
    pixels = np.full((6, 9, 10), 0.2, np.float32)
    other = write_pds(tmp_path, "frt0000ace5_07_if166j_mtr3", pixels, storage="BAND_SEQUENTIAL")
    write_mtr3(tmp_path)
    refused(other, r"\(6, 9, 11\) lines, samples, bands, but .* says \(6, 9, 10\)")
    real = shared_data / "crism/trr3/frt0001458f_01_if156l_trr3.lbl"
    with pytest.raises(InputError, match="geometry of FRT00003E25 01 L, but the cube is FRT0001458F 01 L"):
        ingest_cube(real, shared_data / "crism/ddr/frt00003e25_01_de156l_ddr1.lbl", out=tmp_path / "demo.zarr")


def test_the_label_of_another_image_is_refused(tmp_path: Path) -> None:
    write_trr3(tmp_path)
    for suffix in (".img", ".lbl"):
        copy = tmp_path / f"renamed{suffix}"
        copy.write_bytes((tmp_path / f"frt0000ace5_07_if166l_trr3{suffix}").read_bytes())
    refused(tmp_path / "renamed.img", "describes frt0000ace5_07_if166l_trr3.img, not renamed.img")


def test_a_truncated_image_is_refused(tmp_path: Path) -> None:
    for path in (write_trr3(tmp_path), write_mtr3(tmp_path)):
        image = path.with_suffix(".img")
        image.write_bytes(image.read_bytes()[:-4000])
        refused(path, "truncated")


def test_bands_of_one_wavelength_are_refused(tmp_path: Path) -> None:
    header = write_envi(tmp_path, "twice", np.full((3, 4, 2), 0.2), wavelength="{900, 900}")
    refused(header, "two bands have the same wavelength")


@pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
@pytest.mark.parametrize("way", ["envi", "geotiff"])
def test_bad_bands_without_a_wavelength_of_their_own_are_left_out_and_told(tmp_path: Path, way: str) -> None:
    # As PRISMA and Hyperion have them: 0 where no light was measured, and two detectors that overlap.
    values = np.arange(1.0, 7.0) / 10 + np.zeros((3, 4, 6))
    header = write_envi(tmp_path, "gaps", values, wavelength="{0, 500, 700, 700, 600, 0}", bbl="{0, 1, 1, 0, 1, 0}")
    path = header
    if way == "geotiff":
        path = tmp_path / "gaps.tif"
        rasterio.shutil.copy(header.with_suffix(".img"), path, driver="GTiff")
        with rasterio.open(path, "r+") as target:
            target.update_tags(bbl="0, 1, 1, 0, 1, 0")
    told = inspection.describe(inspection.inspect(path, Ingest()))
    assert "ingest leaves out bands 0, 3, 5: bad, and without a wavelength of their own" in told
    cube = ingest_cube(path)
    np.testing.assert_allclose(cube["wavelength"], [0.5, 0.6, 0.7])
    np.testing.assert_allclose(cube["reflectance"][0, 0], [0.2, 0.5, 0.3], rtol=1e-6)
    assert cube["good_band"].values.all()


def test_the_cube_keeps_the_wavelengths_of_every_detector_column(tmp_path: Path) -> None:
    cube = ingest_cube(write_trr3(tmp_path), None, write_wa(tmp_path))
    by_column = cube["column_wavelength"].values
    rows = np.array(L_ROWS)[::-1]
    expected = (3943.0 - 6.6 * rows + 5 + np.abs(np.arange(12)[:, None] - 5.2)) / 1000
    expected[:, -1], expected[[0, -1]] = np.nan, np.nan
    np.testing.assert_allclose(by_column, expected, atol=1e-6)
    np.testing.assert_array_equal(by_column[5, :-1], cube["wavelength"].values[:-1])
    assert "column_wavelength" not in ingest_cube(write_trr3(tmp_path), out=tmp_path / "plain.zarr").variables


def test_the_smile_of_the_real_record_reaches_the_cube(shared_data: Path, tmp_path: Path) -> None:
    folder = shared_data / "crism"
    record = folder / "cdr/CDR410803692813_WA0300000L_3.LBL"
    cube = ingest_cube(folder / "trr3/frt0001458f_01_if156l_trr3.lbl", None, record, out=tmp_path / "real.zarr")
    by_column = cube["column_wavelength"].values
    assert by_column.shape == (64, 438)
    assert np.flatnonzero(np.isnan(by_column).all(axis=1)).tolist() == [0, 1, 2, 63]
    known = by_column[np.isfinite(by_column[:, 5])]
    assert (np.diff(known[:, :-1], axis=1) > 0).all()
    smile = (known.max(axis=0) - known.min(axis=0))[:-1] * 1000
    assert 5 < np.median(smile) < 20, "CRISM.md: about 10 nm over L"


def test_the_garbage_of_the_real_l_cube_never_reaches_a_feature(shared_data: Path, tmp_path: Path) -> None:
    label = shared_data / "crism/trr3/frt0001458f_01_if156l_trr3.lbl"
    cube = ingest_cube(label, out=tmp_path / "real.zarr")
    assert np.nanmax(np.abs(cube["reflectance"].values)) <= 1.5
    # All bands, also those beyond 3.9 µm where the garbage of ±47,000 lies.
    wide = '{"features": {"wavelengths": [1.0, 4.0], "n_features": 5}}'
    assert gibbsite("basis", tmp_path / "real.zarr", "--settings", wide, "--out", tmp_path / "basis.zarr") == 0
    made = ("--basis", tmp_path / "basis.zarr", "--out", tmp_path / "features.zarr")
    assert gibbsite("features", tmp_path / "real.zarr", "--settings", wide, *made) == 0
    basis, features = zarr.open_group(tmp_path / "basis.zarr"), zarr.open_group(tmp_path / "features.zarr")
    assert np.abs(basis["mean"][...]).max() < 1.5
    assert basis["wavelength"][...].max() < 3.926
    assert features["feature"].shape == (900, 5)
    assert features.attrs["clipped_share"] < 0.001
