"""The products step: everything a GIS opens, from the maps of a scene."""

import argparse
import csv
import hashlib
import json
import logging
import re
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import geopandas as gpd
import numpy as np
import pytest
import rasterio
import zarr
from numpy.testing import assert_allclose, assert_array_equal
from rio_cogeo.cogeo import cog_validate

from gibbsite import attribute_table, class_layers, raster, settings, store
from gibbsite.errors import InputError, OutputError
from gibbsite.ground import pixel_areas
from gibbsite.layers import LAYER_NAMES
from gibbsite.model import Model, fingerprint, named_components, write_model
from gibbsite.palette import class_colours
from gibbsite.products import scene_name
from gibbsite.scene import Grid
from gibbsite.settings import Settings
from gibbsite.steps import catalogue
from gibbsite.steps import products as step
from handmade_results import MARS_SPHERE, Results, make_results, map_grid, polar_grid, sensor_grid
from small_disks import mounted

SHAPES = {"frt0000aaaa": (290, 610), "frt0000bbbb": (600, 171)}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return make_results(tmp_path_factory.mktemp("results"), SHAPES)


@pytest.fixture(scope="module")
def folder(results: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("products")
    for scene in results.scenes:
        step.run(arguments(results, scene, out), Settings())
    catalogue.run(argparse.Namespace(items=sorted(out.glob("*_item.json")), out_dir=out), Settings())
    return out


def arguments(results: Results, scene: str, out: Path, **others: Any) -> argparse.Namespace:
    given = {"class_probabilities": None, "interpretation": None} | others
    return argparse.Namespace(
        class_map=results.layer(scene, "class"), model=results.model, cube=results.cube(scene), out_dir=out, **given
    )


def table_of(folder: Path, scene: str) -> list[dict[str, str]]:
    with (folder / f"{scene}_classes.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# ------------------------------------------------------------------------------------------------ what is there


def test_each_scene_gets_its_files_and_all_scenes_one_entrance(folder: Path) -> None:
    thematic = [f"{layer}.tif.{end}" for layer in ("class", "component") for end in ("aux.xml", "vat.dbf", "vat.cpg")]
    layers = [f"{layer}.{end}" for layer in LAYER_NAMES for end in ("tif", "qml", "sld")]
    own = [*thematic, *layers, "class.img", "class.hdr", "classes.gpkg", "classes.csv", "item.json"]
    expected = [f"{scene}_{name}" for scene in SHAPES for name in own] + ["collection.json", "gibbsite.qgs"]
    assert sorted(path.name for path in folder.iterdir()) == sorted(expected)


@pytest.mark.parametrize("layer", LAYER_NAMES)
@pytest.mark.parametrize("scene", SHAPES)
def test_cogs_are_valid_and_equal_their_maps(results: Results, folder: Path, scene: str, layer: str) -> None:
    path, source = folder / f"{scene}_{layer}.tif", results.layer(scene, layer)
    is_valid, errors, warnings = cog_validate(path, strict=True, quiet=True)
    assert (is_valid, errors, warnings) == (True, [], [])
    assert_array_equal(raster.read_band(path), raster.read_band(source))
    assert raster.read_grid(path) == raster.read_grid(source)
    with rasterio.open(path) as cog, rasterio.open(source) as drawn:
        assert cog.descriptions == drawn.descriptions
        assert cog.overviews(1)[0] == 2
        assert_array_equal([cog.nodata], [drawn.nodata])
        small = cog.read(1, out_shape=(cog.height // 2, cog.width // 2), masked=True)
        if layer in ("class", "component"):
            assert cog.colormap(1) == drawn.colormap(1)
            assert raster.class_names(path) == raster.class_names(source)
            assert set(small.compressed()) <= set(np.unique(drawn.read(1))), "overviews hold classes only"
        elif drawn.width % 2 == 0:
            # Of an odd width, columns of the overview are a bit narrower than two pixels.
            whole = drawn.read(1)[: 2 * small.shape[0], : 2 * small.shape[1]].astype(float)
            blocks = whole.reshape(small.shape[0], 2, small.shape[1], 2).mean(axis=(1, 3))
            inside = np.isfinite(blocks)
            assert_allclose(small.filled(np.nan)[inside], blocks[inside], rtol=1e-5, err_msg="overviews by average")


def test_a_map_says_where_it_comes_from(results: Results, folder: Path) -> None:
    with rasterio.open(folder / "frt0000aaaa_entropy.tif") as opened:
        tags = opened.tags()
    assert tags["GIBBSITE_VERSION"] == "0.1.0"
    assert tags["GIBBSITE_SEED"] == "7"
    assert tags["GIBBSITE_MODEL_SHA256"] == fingerprint(results.model)
    assert tags["GIBBSITE_PRODUCT"] == "FRT0000AAAA_07_IF168J_MTR3"
    assert tags["GIBBSITE_INPUT_1"] == f"frt0000aaaa.img sha256:{0:064x}"
    assert not any("TIME" in key or "DATE" in key for key in tags)


def test_another_model_has_another_fingerprint(results: Results, tmp_path: Path) -> None:
    group = store.read(results.model, "model")
    changed = {name: group[name][...] for name in ("class_of", "log_weight", "mean", "centre", "whiten")}
    changed["mean"][0, 0, 0] += 1e-12
    facts = {key: group.attrs[key] for key in ("step", "basis", "classes")}
    write_model(tmp_path / "model.zarr", Model(**changed, **facts))
    assert fingerprint(tmp_path / "model.zarr") != fingerprint(results.model)
    assert len(fingerprint(results.model)) == 64


# ------------------------------------------------------------------------------------------------ sizes


@pytest.mark.parametrize("scene", SHAPES)
def test_table_and_polygons_add_up_to_the_map(results: Results, folder: Path, scene: str) -> None:
    table, frame = table_of(folder, scene), gpd.read_file(folder / f"{scene}_classes.gpkg", layer="classes")
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
    with caplog.at_level(logging.INFO):
        out = publish(tmp_path, code, map_grid(20, 31), results.classes)
    assert "no polygon of olivine: no patch of products.min_polygon_pixels (4)" in caplog.text
    found = {row["name"]: (int(row["n_polygons"]), int(row["n_speck_pixels"])) for row in table_of(out, "s")}
    assert (found["olivine"], found["ulexit (Ätna)"], found["new-1"]) == ((0, 3), (1, 1), (0, 0))
    assert "olivine" not in set(gpd.read_file(out / "s_classes.gpkg", layer="classes")["name"])


# ------------------------------------------------------------------------------------------------ reruns


def test_a_rerun_gives_the_same_bytes(results: Results, folder: Path, tmp_path: Path) -> None:
    for scene in results.scenes:
        step.run(arguments(results, scene, tmp_path), Settings())
    catalogue.run(argparse.Namespace(items=sorted(tmp_path.glob("*_item.json")), out_dir=tmp_path), Settings())
    for path in sorted(folder.iterdir()):
        again = hashlib.sha256((tmp_path / path.name).read_bytes()).hexdigest()
        assert again == hashlib.sha256(path.read_bytes()).hexdigest(), path.name


def test_the_item_lists_every_file_with_its_checksum(folder: Path) -> None:
    for scene in SHAPES:
        item = json.loads((folder / f"{scene}_item.json").read_text())
        listed = {asset["href"].removeprefix("./"): asset["file:checksum"] for asset in item["assets"].values()}
        there = {path.name for path in folder.glob(f"{scene}_*")} - {f"{scene}_item.json"}
        assert set(listed) == there
        for name, checksum in listed.items():
            assert checksum == "1220" + hashlib.sha256((folder / name).read_bytes()).hexdigest()
        assert item["properties"]["datetime"] == "2007-01-13T05:59:08.707000Z"


# ------------------------------------------------------------------------------------------------ odd scenes


def odd_classes(names: list[str], n_known: int) -> list[dict[str, Any]]:
    colours = class_colours(n_known, len(names) - n_known)
    facts = {"n_pixels": 1, "n_classified": 1, "n_new_component": 0, "n_components": 1}
    return [
        {"code": k, "name": name, "is_known": k <= n_known, "colour": colours[k - 1]} | facts
        for k, name in enumerate(names, start=1)
    ]


def publish(folder: Path, code: np.ndarray, grid: Grid, classes: Any, **others: Any) -> Path:
    """The products of a hand-made map whose classes have one component each, and of which all is certain."""
    n = len(classes)
    arrays = [np.arange(n), np.zeros((1, n)), np.zeros((1, n, 1)), np.zeros((1, n, 1)), np.ones((1, n, 1, 1))]
    single = [dict(item) | {"n_components": 1} for item in classes]
    write_model(folder / "model.zarr", Model(*arrays, step=1.0, basis="", classes=single))
    for layer in ("probability", "entropy", "unknown"):
        values = np.where(code > 0, 1.0, np.nan).astype(np.float32)
        raster.write_layer(folder / f"s_{layer}.tif", grid, [(0, values)], layer)
    raster.write_class_map(folder / "s_class.tif", grid, single, [(0, code)])
    raster.write_class_map(folder / "s_component.tif", grid, named_components(single, np.arange(n)), [(0, code)])
    provenance = {"product": "S", "sensor": "L", "files": [], "facts": {}}
    with store.create(folder / "cube.zarr", "cube", scene="s", grid=grid.to_json(), provenance=provenance):
        pass
    out = folder / "out"
    given = {"class_probabilities": None, "interpretation": None} | others
    paths = {"class_map": folder / "s_class.tif", "model": folder / "model.zarr", "cube": folder / "cube.zarr"}
    step.run(argparse.Namespace(**paths, out_dir=out, **given), Settings())
    catalogue.run(argparse.Namespace(items=[out / "s_item.json"], out_dir=out), Settings())
    return out


@pytest.mark.parametrize(
    ("names", "n_known"),
    [
        (["olivine", "gips"], 2),
        (["new-1", "new-2"], 0),
        ([f"class {k}" for k in range(1, 301)], 40),
        (["Ätna ≥ 火山", "../../etc/passwd", "C:\\maps\\class.tif", 'a, {b} = "c" & <d>\n', " "], 5),
    ],
    ids=["nothing discovered", "nothing known", "300 classes", "odd names"],
)
def test_all_kinds_of_classes_are_published_under_their_names(tmp_path: Path, names: list[str], n_known: int) -> None:
    code = (np.arange(60 * 47, dtype=np.uint16).reshape(60, 47) // 5) % (len(names) + 1)
    code[7, 7] = len(names)
    classes = odd_classes(names, n_known)
    out = publish(tmp_path, code.astype(np.uint16), map_grid(60, 47), classes)
    assert [row["name"] for row in table_of(out, "s")] == names
    frame = gpd.read_file(out / "s_classes.gpkg", layer="classes")
    assert set(frame["name"]) <= set(names)
    assert_array_equal(raster.read_band(out / "s_class.tif"), code)
    with rasterio.open(out / "s_class.tif") as opened:
        palette = opened.colormap(1)
    assert len({palette[item["code"]] for item in classes}) == len(names), "two classes share a colour"
    with rasterio.open(out / "s_class.img") as opened:
        assert_array_equal(opened.read(1), code)
    assert not [path for path in tmp_path.rglob("*passwd*")]


def test_a_class_of_one_pixel_keeps_its_pixel_and_its_area(tmp_path: Path) -> None:
    code = np.ones((30, 20), np.uint16)
    code[11, 7] = 2
    out = publish(tmp_path, code, map_grid(30, 20), odd_classes(["olivine", "new-1"], 1))
    row = table_of(out, "s")[1]
    assert (row["n_pixels"], row["n_polygons"], row["n_speck_pixels"]) == ("1", "0", "1")
    assert 300 < float(row["area_m2"]) < 324
    assert raster.read_band(out / "s_class.tif")[11, 7] == 2


@pytest.mark.parametrize(
    "grid",
    [
        polar_grid(60, 47),
        polar_grid(60, 47, -1.0),
        sensor_grid(60, 47, 179.995, 12.0),
        Grid(60, 47, MARS_SPHERE, (0.01, 0.0, 179.8, 0.0, -0.01, 12.0)),
        Grid(60, 47),
    ],
    ids=["north pole", "south pole", "meridian", "meridian on a map", "nowhere"],
)
def test_scenes_at_odd_places_are_published(tmp_path: Path, grid: Grid) -> None:
    code = (1 + np.arange(60 * 47, dtype=np.uint16).reshape(60, 47) // 600 % 3).astype(np.uint16)
    out = publish(tmp_path, code, grid, odd_classes(["a", "b", "new-1"], 2))
    frame = gpd.read_file(out / "s_classes.gpkg", layer="classes")
    assert frame.is_valid.all()
    assert frame["n_pixels"].sum() == code.size
    total = sum(float(row["area_m2"] or "nan") for row in table_of(out, "s"))
    if grid.crs is None:
        assert np.isnan(total)
        assert frame["area_m2"].isna().all()
    else:
        assert_allclose(frame["area_m2"].sum(), total, rtol=1e-6)
        assert total > 0
    width = np.ptp(frame.total_bounds[[0, 2]])
    assert width < (1.0 if frame.crs is not None and frame.crs.is_geographic else 1e4), "nothing once around the planet"


def test_the_probability_of_every_class_is_a_layer_of_its_own(tmp_path: Path) -> None:
    code = np.ones((30, 20), np.uint16)
    code[:4] = 0
    pixel = np.flatnonzero(code.ravel())
    chance = np.random.Generator(np.random.Philox(6)).uniform(size=(2, len(pixel))).astype(np.float32)
    with class_layers.create(tmp_path / "s_probabilities.zarr", "s", pixel, 2) as array:
        assert isinstance(array, zarr.Array)
        array[...] = chance
    classes = odd_classes(["../a/b", "new-1"], 1)
    out = publish(tmp_path, code, map_grid(30, 20), classes, class_probabilities=tmp_path / "s_probabilities.zarr")
    for k in (1, 2):
        path = out / "s_probabilities" / f"s_probability_{k}.tif"
        assert cog_validate(path, strict=True, quiet=True) == (True, [], [])
        found = raster.read_band(path)
        assert_array_equal(found.ravel()[pixel], chance[k - 1])
        assert np.isnan(found[:4]).all()
        with rasterio.open(path) as opened:
            assert opened.descriptions == (f"probability of {classes[k - 1]['name']}",)
    item = json.loads((out / "s_item.json").read_text())
    assert item["assets"]["probability-2"]["href"] == "./s_probabilities/s_probability_2.tif"


@pytest.mark.parametrize(
    ("scene", "n_classes", "n_pixels", "message"),
    [("other", 2, 600, "of scene 'other'"), ("s", 3, 600, "3 classes"), ("s", 2, 700, "up to number 699")],
)
def test_probabilities_of_another_scene_or_model_are_refused(
    tmp_path: Path, scene: str, n_classes: int, n_pixels: int, message: str
) -> None:
    path = tmp_path / "s_probabilities.zarr"
    with class_layers.create(path, scene, np.arange(n_pixels), n_classes) as array:
        array[...] = 0.5
    with pytest.raises(InputError, match=message):
        publish(
            tmp_path,
            np.ones((30, 20), np.uint16),
            map_grid(30, 20),
            odd_classes(["a", "b"], 1),
            class_probabilities=path,
        )


# ------------------------------------------------------------------------------------------------ refusals


def test_layers_of_different_scenes_are_refused(results: Results, tmp_path: Path) -> None:
    other = tmp_path / "maps"
    other.mkdir()
    for layer in ("class", "probability"):
        source = results.layer("frt0000aaaa" if layer == "class" else "frt0000bbbb", layer)
        (other / f"frt0000aaaa_{layer}.tif").write_bytes(source.read_bytes())
    args = arguments(results, "frt0000aaaa", tmp_path / "out")
    args.class_map = other / "frt0000aaaa_class.tif"
    with pytest.raises(InputError, match="found 600 × 171 pixels, the class map has 290 × 610"):
        step.run(args, Settings())
    assert not (tmp_path / "out").exists()


def test_the_cube_of_another_scene_is_refused(results: Results, tmp_path: Path) -> None:
    args = arguments(
        results,
        "frt0000aaaa",
        tmp_path / "out",
    )
    args.cube = results.cube("frt0000bbbb")
    with pytest.raises(InputError, match="cube of scene 'frt0000bbbb', but the map shows 'frt0000aaaa'"):
        step.run(args, Settings())


def test_a_component_that_the_model_does_not_have_is_refused(results: Results, tmp_path: Path) -> None:
    maps = tmp_path / "maps"
    maps.mkdir()
    for layer in LAYER_NAMES:
        (maps / f"frt0000bbbb_{layer}.tif").write_bytes(results.layer("frt0000bbbb", layer).read_bytes())
    grid = raster.read_grid(maps / "frt0000bbbb_class.tif")
    strange = np.full((600, 171), 99, np.uint16)
    raster.write_class_map(maps / "frt0000bbbb_component.tif", grid, [], [(0, strange)], "component")
    args = arguments(results, "frt0000bbbb", tmp_path / "out")
    args.class_map = maps / "frt0000bbbb_class.tif"
    with pytest.raises(InputError, match="found code 99, the model has 12"):
        step.run(args, Settings())
    assert not list((tmp_path / "out").glob("*")), "nothing half written is left"


def test_items_elsewhere_than_the_collection_are_refused(folder: Path, tmp_path: Path) -> None:
    args = argparse.Namespace(items=sorted(folder.glob("*_item.json")), out_dir=tmp_path)
    with pytest.raises(InputError, match="links are relative"):
        catalogue.run(args, Settings())
    (tmp_path / "x_item.json").write_text('{"type": "Feature", "assets": {}}')
    with pytest.raises(InputError, match="not a catalogue item of products"):
        catalogue.run(argparse.Namespace(items=[tmp_path / "x_item.json"], out_dir=tmp_path), Settings())


def test_a_scene_is_named_by_its_map() -> None:
    assert scene_name(Path("maps/my_class_class.tif")) == "my_class"


FULL = r"{}[^\n]*: cannot write \([^\n]+\); check .*space"
"""What is said of a full disk: one line that names the file, or its folder."""


@pytest.mark.parametrize("most", [2, 300, 90_000])
def test_a_file_that_cannot_grow_is_one_line_and_leaves_nothing(results: Results, tmp_path: Path, most: int) -> None:
    """GDAL tells of no failure when it closes a file, so whatever it writes is packed in memory or checked."""
    out = tmp_path / "out"
    out.mkdir()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        with pytest.raises(OutputError) as told:
            step.run(arguments(results, "frt0000bbbb", out), Settings())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert re.fullmatch(FULL.format(re.escape(str(out))), str(told.value))
    assert not list(out.iterdir())


@pytest.fixture
def tiny_disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A file system of so many kilobytes."""
    with mounted(tmp_path / "disk", f"size={request.param}k") as folder:
        yield folder


@pytest.mark.parametrize("tiny_disk", [1200, 1500, 3300, 4200, 5300, 5400, 5500], indirect=True)
def test_a_full_disk_is_one_line_and_leaves_nothing(results: Results, tiny_disk: Path) -> None:
    """It is full in the middle of one file or another: a map, the numbers of patches, the polygons, their style."""
    with pytest.raises(OutputError) as told:
        step.run(arguments(results, "frt0000bbbb", tiny_disk / "out"), Settings())
    assert re.fullmatch(FULL.format(re.escape(str(tiny_disk / "out"))), str(told.value))
    assert not list((tiny_disk / "out").iterdir())


@pytest.mark.parametrize("size", [0, 31, 700, -2])
def test_an_attribute_table_cut_short_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    write = attribute_table.pyogrio.write_dataframe

    def write_some(table: Any, path: Path, **options: Any) -> None:
        write(table, path, **options)
        path.write_bytes(path.read_bytes()[:size])

    monkeypatch.setattr(attribute_table.pyogrio, "write_dataframe", write_some)
    with pytest.raises(OutputError, match=r"s\.dbf: cannot write \(not all of it reached the disk\)"):
        attribute_table.write_dbf(tmp_path / "s.dbf", odd_classes([f"class {k}" for k in range(20)], 3), {})


# ------------------------------------------------------------------------------------------------ common maps


def test_products_on_a_common_map_are_those_of_its_grid(results: Results, tmp_path: Path) -> None:
    """Every product, polygons and ENVI's too, lies in IAU_2015:49910, and areas stay those of the ground."""
    scene = "frt0000aaaa"
    common = settings.validate({"products": {"crs": "equirectangular"}}, "test")
    step.run(arguments(results, scene, tmp_path), common)
    catalogue.run(argparse.Namespace(items=[tmp_path / f"{scene}_item.json"], out_dir=tmp_path), common)
    grid = raster.read_grid(tmp_path / f"{scene}_class.tif")
    for layer in LAYER_NAMES:
        assert cog_validate(tmp_path / f"{scene}_{layer}.tif", strict=True, quiet=True) == (True, [], [])
        assert raster.read_grid(tmp_path / f"{scene}_{layer}.tif") == grid
    code = raster.read_band(tmp_path / f"{scene}_class.tif")
    frame = gpd.read_file(tmp_path / f"{scene}_classes.gpkg", layer="classes")
    assert frame["n_pixels"].sum() == (code > 0).sum()
    with rasterio.open(tmp_path / f"{scene}_class.img") as opened:
        assert_array_equal(opened.read(1), code)
    item = json.loads((tmp_path / f"{scene}_item.json").read_text())
    assert item["properties"]["proj:code"] == "IAU_2015:49910"
    # The scene's own sphere is 0.04 % smaller than the common one, so areas on the latter are larger by twice that.
    own = sum(area[results.code[scene][rows] > 0].sum() for rows, area in pixel_areas(map_grid(290, 610)))
    assert frame["area_m2"].sum() == pytest.approx(own * (3_396_190.0 / 3_394_839.8133) ** 2, rel=2e-3)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
