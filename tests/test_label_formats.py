"""Every label format gives the same known classes and colours for the same shapes, on maps and in sensor space."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

import handmade_cubes
import label_formats
from command_line import gibbsite
from gibbsite import store
from gibbsite.scene import Grid
from handmade_cubes import HEIGHT, WIDTH, Cube
from label_formats import COLOURS, FORMATS, GRID, IN_PIXELS, NAMES, expected_known

UNCOLOURED = ("GeoTIFF of masks",)
"""Formats that have no place for colours."""


def write_cube(folder: Path, *, on_map: bool) -> Path:
    longitude, latitude = handmade_cubes.degrees_of(GRID)
    if on_map:
        cube = Cube(handmade_cubes.spectra(), GRID)
    else:
        extra = {"longitude": longitude, "latitude": latitude}
        cube = Cube(handmade_cubes.spectra(), Grid(HEIGHT, WIDTH), extra=extra)
    return handmade_cubes.write_cube(folder / "scene.zarr", cube)


def known_of(cube: Path, shapes: Path, **settings: object) -> tuple[np.ndarray, np.ndarray, dict]:
    """Known classes, roles and facts of `gibbsite labels`."""
    out = cube.parent / "labels.zarr"
    words = ("labels", "--cube", cube, "--shapes", shapes, "--out", out)
    assert gibbsite(*words, settings={"labels": settings}) == 0
    group = store.read(out, "labels")
    return np.asarray(group["known"][...]), np.asarray(group["role"][...]), dict(group.attrs)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("on_map", [True, False], ids=["map", "sensor space"])
def test_every_format_gives_the_same_known_classes(tmp_path, form, on_map):
    cube = write_cube(tmp_path, on_map=on_map)
    path = FORMATS[form](tmp_path, GRID if on_map else Grid(HEIGHT, WIDTH))
    known, role, facts = known_of(cube, path)
    np.testing.assert_array_equal(known, expected_known())
    assert facts["class_names"] == NAMES
    assert facts["observed"] == [True] * 3
    assert facts["disputed"] == []
    assert facts["colours"] == ({} if form in UNCOLOURED else COLOURS)
    assert facts["files"][0]["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    # The split depends on the pixels and the names alone, so it is the same for all formats too.
    counts = np.bincount(role.ravel(), minlength=3)
    assert counts.tolist() == [HEIGHT * WIDTH - 70, 18, 52]


def test_the_shapes_can_fail_the_comparison():
    """Swapped axes or a shift by a pixel would show: no shape is its own mirror, and all are away from the edges."""
    known = expected_known()
    assert sorted(np.bincount(known[known >= 0])) == [6, 30, 34]
    for other in (known[::-1], known[:, ::-1], np.roll(known, 1, 0), np.roll(known, 1, 1)):
        assert (other != known).sum() > 10


def test_one_mask_per_class_may_be_a_folder_of_files(tmp_path):
    folder = tmp_path / "masks"
    folder.mkdir()
    (folder / "notes.txt").write_text("drawn by hand")
    for name in NAMES:
        mask = label_formats.pixels(name)
        values = np.where(mask, 1.0, np.nan).astype(np.float32)
        label_formats.Tiff(folder / f"{name.replace('/', '-')}.tif", GRID).write(values)
    known, _, facts = known_of(write_cube(tmp_path, on_map=True), folder)
    np.testing.assert_array_equal(known, expected_known())
    assert facts["class_names"] == [name.replace("/", "-") for name in NAMES]
    assert [item["name"] for item in facts["files"]] == sorted(f"{name.replace('/', '-')}.tif" for name in NAMES)


def test_numbers_serve_as_names_where_a_raster_has_colours_alone(tmp_path):
    colours = {value: (value, 200, 30, 255) for value in label_formats.NUMBER.values()}
    path = label_formats.Tiff(tmp_path / "a.tif", GRID).write(
        label_formats.values(label_formats.NUMBER), colours=colours
    )
    known, _, facts = known_of(write_cube(tmp_path, on_map=True), path)
    assert facts["class_names"] == ["1", "3", "7"]
    assert facts["colours"] == {"1": "#01c81e", "3": "#03c81e", "7": "#07c81e"}
    assert (known[label_formats.pixels("kieserite")] == 2).all()


def test_entries_of_a_colour_table_that_nobody_set_are_no_colours(tmp_path):
    """GDAL fills them with black, which would paint two classes alike."""
    tags = {f"CLASS_{value}": name for name, value in label_formats.NUMBER.items()}
    colours = {label_formats.NUMBER["olivine"]: (10, 128, 32, 255)}
    path = label_formats.Tiff(tmp_path / "a.tif", GRID).write(
        label_formats.values(label_formats.NUMBER), tags=tags, colours=colours
    )
    assert known_of(write_cube(tmp_path, on_map=True), path)[2]["colours"] == {"olivine": COLOURS["olivine"]}


def test_one_layer_of_several_is_chosen_by_name(tmp_path):
    path = tmp_path / "labels.gpkg"
    label_formats.frame().iloc[:1].to_file(path, layer="first sketch")
    label_formats.frame().to_file(path, layer="final")
    known, _, _ = known_of(write_cube(tmp_path, on_map=True), path, layer="final")
    np.testing.assert_array_equal(known, expected_known())


def test_points_of_a_vector_layer_label_the_pixels_that_hold_them(tmp_path):
    layer = label_formats.frame()
    layer.geometry = [
        label_formats.shapely.multipoints(
            np.stack(label_formats.on_map(*(np.argwhere(label_formats.pixels(name))[:, ::-1].T + 0.3)), axis=1)
        )
        for name in layer["class"]
    ]
    layer.to_file(tmp_path / "points.gpkg")
    known, _, _ = known_of(write_cube(tmp_path, on_map=True), tmp_path / "points.gpkg")
    np.testing.assert_array_equal(known, expected_known())


def test_fill_of_an_envi_classification_image_is_no_class(tmp_path):
    path = label_formats.envi_classes(tmp_path, GRID)
    image = path.with_suffix(".img")
    image.write_bytes(bytes(255 if value == 0 else value for value in image.read_bytes()))
    path.write_text(path.read_text() + "data ignore value = 255\n")
    known, _, _ = known_of(write_cube(tmp_path, on_map=True), path)
    np.testing.assert_array_equal(known, expected_known())


def test_a_truth_may_be_an_envi_classification_image_too(tmp_path):
    cube, path = write_cube(tmp_path, on_map=True), label_formats.envi_classes(tmp_path, GRID)
    known_of(cube, path)
    words = ("truth", "--cube", cube, "--labels", tmp_path / "labels.zarr", "--raster", path)
    assert gibbsite(*words, "--out", tmp_path / "truth.zarr") == 0
    group, role = store.read(tmp_path / "truth.zarr", "truth"), store.read(tmp_path / "labels.zarr", "labels")["role"]
    expected = np.where(np.asarray(role[...]) == 1, -1, expected_known())
    np.testing.assert_array_equal(group["truth"][...], expected)


@pytest.mark.parametrize("form", IN_PIXELS)
def test_a_scene_without_any_place_takes_labels_in_its_own_pixels(tmp_path, form):
    cube = Cube(handmade_cubes.spectra(), Grid(HEIGHT, WIDTH))
    path = IN_PIXELS[form](tmp_path, Grid(HEIGHT, WIDTH))
    known, _, _ = known_of(handmade_cubes.write_cube(tmp_path / "scene.zarr", cube), path)
    np.testing.assert_array_equal(known, expected_known())


def test_labels_are_the_same_bytes_when_made_again(tmp_path):
    def digest(folder: Path) -> str:
        files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        return hashlib.sha256(json.dumps({k: v.hex() for k, v in sorted(files.items())}).encode()).hexdigest()

    cube, path = write_cube(tmp_path, on_map=True), label_formats.geopackage(tmp_path, GRID)
    known_of(cube, path)
    first = digest(tmp_path / "labels.zarr")
    known_of(cube, path)
    assert digest(tmp_path / "labels.zarr") == first
