"""The products step: files a GIS opens."""

import argparse
import csv
import hashlib
import logging
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import geopandas as gpd
import numpy as np
import pytest
import rasterio
from numpy.testing import assert_allclose, assert_array_equal
from rio_cogeo.cogeo import cog_validate

from gibbsite import raster
from gibbsite.errors import InputError
from gibbsite.products import scene_name
from gibbsite.qgis import class_map_style
from gibbsite.settings import Settings
from gibbsite.steps import products as step
from handmade_results import Results, make_results

SHAPES = {"frt0000aaaa": (290, 610), "frt0000bbbb": (600, 171)}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return make_results(tmp_path_factory.mktemp("results"), SHAPES)


@pytest.fixture(scope="module")
def folder(results: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("products")
    for scene in results.scenes:
        step.run(arguments(results, scene, out), Settings())
    return out


def arguments(results: Results, scene: str, out: Path) -> argparse.Namespace:
    return argparse.Namespace(
        class_map=results.layer(scene, "class"),
        probability=results.layer(scene, "probability"),
        cube=Path("unused.zarr"),
        model=results.model,
        out_dir=out,
    )


def test_each_scene_gets_polygons_map_style_and_table(folder: Path) -> None:
    endings = ("class.qml", "class.tif", "classes.csv", "classes.gpkg")
    assert sorted(path.name for path in folder.iterdir()) == sorted(f"{s}_{e}" for s in SHAPES for e in endings)


@pytest.mark.parametrize("scene", SHAPES)
def test_the_cog_is_valid_and_equals_the_map(results: Results, folder: Path, scene: str) -> None:
    path = folder / f"{scene}_class.tif"
    is_valid, errors, warnings = cog_validate(path, strict=True, quiet=True)
    assert (is_valid, errors, warnings) == (True, [], [])
    assert_array_equal(raster.read_band(path), results.code[scene])
    assert raster.read_grid(path) == raster.read_grid(results.layer(scene, "class"))
    assert raster.class_names(path) == raster.class_names(results.layer(scene, "class"))
    with rasterio.open(path) as cog, rasterio.open(results.layer(scene, "class")) as class_map:
        assert cog.nodata == 0
        assert cog.colormap(1) == class_map.colormap(1)
        assert cog.overviews(1)[0] == 2
        small = cog.read(1, out_shape=(cog.height // 2, cog.width // 2))
        assert set(np.unique(small)) <= set(np.unique(results.code[scene])), "overviews hold classes only"


@pytest.mark.parametrize("scene", SHAPES)
def test_table_and_polygons_add_up_to_the_map(results: Results, folder: Path, scene: str) -> None:
    with (folder / f"{scene}_classes.csv").open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    frame = gpd.read_file(folder / f"{scene}_classes.gpkg")
    code, probability = results.code[scene], results.probability[scene]
    assert [row["name"] for row in table] == [item["name"] for item in results.classes]
    for row in table:
        own = code == int(row["code"])
        assert int(row["n_pixels"]) == own.sum()
        assert float(row["mean_probability"]) == pytest.approx(float(probability[own].mean()), abs=1e-4)
        assert int(row["n_polygons"]) == (frame["code"] == int(row["code"])).sum()
        assert 0 < int(row["n_speck_pixels"]) < own.sum()
    assert sum(float(row["share"]) for row in table) == pytest.approx(1.0, abs=1e-5)
    assert frame["n_pixels"].sum() == (code > 0).sum()
    assert frame["n_pixels"].min() >= 4, "patches below min_polygon_pixels are merged"
    assert_allclose(frame["area_m2"].sum(), sum(float(row["area_m2"]) for row in table), rtol=1e-6)
    assert frame.is_valid.all()


def test_a_class_too_small_for_a_polygon_is_told_in_table_and_log(
    results: Results, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    code = np.full((20, 31), 1, np.uint16)
    code[5, 5:8], code[9:11, 3:5], code[9, 20] = 3, 4, 4
    grid = raster.read_grid(results.layer("frt0000aaaa", "class"))
    grid = replace(grid, height=20, width=31)
    raster.write_class_map(tmp_path / "s_class.tif", grid, results.classes, [(0, code)])
    raster.write_layer(tmp_path / "s_probability.tif", grid, [(0, np.ones(code.shape, np.float32))], "probability")
    args = argparse.Namespace(
        class_map=tmp_path / "s_class.tif",
        probability=tmp_path / "s_probability.tif",
        cube=Path("unused.zarr"),
        model=results.model,
        out_dir=tmp_path / "out",
    )
    with caplog.at_level(logging.INFO):
        step.run(args, Settings())
    assert "no polygon of olivine: no patch of products.min_polygon_pixels (4)" in caplog.text
    with (tmp_path / "out" / "s_classes.csv").open(encoding="utf-8", newline="") as file:
        table = {row["name"]: row for row in csv.DictReader(file)}
    found = {name: (int(row["n_polygons"]), int(row["n_speck_pixels"])) for name, row in table.items()}
    assert (found["olivine"], found["ulexit (Ätna)"], found["new-1"]) == ((0, 3), (1, 1), (0, 0))
    frame = gpd.read_file(tmp_path / "out" / "s_classes.gpkg")
    assert "olivine" not in set(frame["name"])


def test_areas_of_a_map_scene_are_pixels_times_pixel_size(folder: Path) -> None:
    frame = gpd.read_file(folder / "frt0000aaaa_classes.gpkg")
    assert_allclose(frame["area_m2"], 324.0 * frame["n_pixels"])
    assert_allclose(frame.geometry.area, frame["area_m2"])


def test_a_rerun_gives_the_same_bytes(results: Results, folder: Path, tmp_path: Path) -> None:
    for scene in results.scenes:
        step.run(arguments(results, scene, tmp_path), Settings())
    for path in sorted(folder.iterdir()):
        again = hashlib.sha256((tmp_path / path.name).read_bytes()).hexdigest()
        assert again == hashlib.sha256(path.read_bytes()).hexdigest(), path.name


def test_the_qgis_style_names_and_colours_every_class(results: Results) -> None:
    root = ET.fromstring(class_map_style(results.classes))
    renderer = root.find("pipe/rasterrenderer")
    assert renderer is not None
    assert renderer.get("type") == "paletted"
    entries = {int(e.get("value", 0)): (e.get("color"), e.get("label")) for e in renderer.iter("paletteEntry")}
    assert entries[2] == (results.classes[1]["colour"], 'bassanite <hydrated & "dry">')
    assert entries[5] == (results.classes[4]["colour"], "new-1 (discovered)")
    assert len(entries) == 6


def test_layers_of_different_scenes_are_refused(results: Results, tmp_path: Path) -> None:
    args = arguments(results, "frt0000aaaa", tmp_path)
    args.probability = results.layer("frt0000bbbb", "probability")
    with pytest.raises(InputError, match="found 600 × 171 pixels, the class map has 290 × 610"):
        step.run(args, Settings())
    assert not any(tmp_path.iterdir())


def test_a_scene_is_named_by_its_map() -> None:
    assert scene_name(Path("maps/my_class_class.tif")) == "my_class"
