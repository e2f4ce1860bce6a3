"""Labels of several scenes in one run: classes that only some scenes have, and their colours on the maps."""

from pathlib import Path

import numpy as np
import pytest
import rasterio

from command_line import TOY, Run, gibbsite
from gibbsite import model, store
from label_formats import write_csv

SMALL = TOY | {"simulate": {"lines": 24, "binning": 10}}
OLIVINE, TALC = "#1e6432", "#c8a0f0"


@pytest.fixture(scope="module")
def scenes(tmp_path_factory) -> dict[str, Run]:
    """The features of one cube under two names."""
    folder = tmp_path_factory.mktemp("scenes")
    runs = {name: Run(folder, folder / "observation", name) for name in ("a", "b")}
    assert gibbsite(*runs["a"].words("simulate", runs["a"]), settings=SMALL) == 0
    for run in runs.values():
        assert gibbsite(*run.words("ingest", run), settings=SMALL) == 0
    cubes = [run.cube for run in runs.values()]
    assert gibbsite("basis", *cubes, "--out", runs["a"].basis, settings=SMALL) == 0
    for run in runs.values():
        assert gibbsite(*run.words("features", run), settings=SMALL) == 0
    return runs


def label(scene: Run, folder: Path, counts: dict[str, int], observed: list[str] | None, *flags: str) -> int:
    """The exit code of `labels` for a table that gives some of the scene's usable pixels to each class."""
    row, col = np.nonzero(store.read(scene.cube, "cube")["valid"][...])
    names = np.repeat(list(counts), list(counts.values()))
    colour = {"olivine": OLIVINE, "talc": TALC}
    rows = [(name, row[40 + 7 * i], col[40 + 7 * i], colour.get(name, "")) for i, name in enumerate(names)]
    path = write_csv(folder / f"{scene.scene}.csv", ("class", "row", "col", "colour"), rows)
    words = ("labels", "--cube", scene.cube, "--shapes", path, "--out", folder / f"{scene.scene}.zarr", *flags)
    return gibbsite(*words, settings=SMALL | {"labels": {"observed": observed}})


def fit_words(scenes: dict[str, Run], folder: Path) -> list[object]:
    features, labels = [run.features for run in scenes.values()], [folder / f"{name}.zarr" for name in scenes]
    return ["--features", *features, "--labels", *labels]


def test_a_class_to_observe_may_be_in_some_scenes_only_and_colours_reach_the_map(scenes, tmp_path):
    observed = ["olivine", "talc", "gypsum"]
    assert label(scenes["a"], tmp_path, {"olivine": 30, "dust": 25}, observed, "--one-of-several") == 0
    # Talc has one pixel: enough to be known by name.
    assert label(scenes["b"], tmp_path, {"olivine": 20, "talc": 1, "gypsum": 12}, observed, "--one-of-several") == 0
    words = fit_words(scenes, tmp_path)
    chain, out = tmp_path / "1.zarr", tmp_path / "model.zarr"
    assert gibbsite("fit", *words, "--chain", 1, "--out", chain, settings=SMALL) == 0
    assert gibbsite("select", "--chains", chain, *words, "--out", out, settings=SMALL) == 0
    classes = model.read_model(out).classes
    assert [item["name"] for item in classes if item["is_known"]] == ["gypsum", "olivine", "talc"]
    colours = {item["name"]: item["colour"] for item in classes}
    assert (colours["olivine"], colours["talc"]) == (OLIVINE, TALC)
    assert len(set(colours.values())) == len(colours)
    words = ("map", "--features", scenes["b"].features, "--model", out, "--out-dir", tmp_path / "maps")
    assert gibbsite(*words, settings=SMALL) == 0
    with rasterio.open(tmp_path / "maps" / "b_class.tif") as drawn:
        table = drawn.colormap(1)
        code = {name: int(key.removeprefix("CLASS_")) for key, name in drawn.tags().items() if "CLASS_" in key}
    assert table[code["olivine"]] == (0x1E, 0x64, 0x32, 255)
    assert table[code["talc"]] == (0xC8, 0xA0, 0xF0, 255)


def test_a_class_to_observe_that_one_scene_lacks_needs_to_be_one_of_several(scenes, tmp_path, capfd):
    assert label(scenes["a"], tmp_path, {"olivine": 30}, ["olivine", "talc"]) == 1
    assert "labels.observed: found 'talc', which is no class of the labels" in capfd.readouterr().err


def test_a_class_to_observe_that_no_scene_has_is_refused_before_the_sampler_starts(scenes, tmp_path, capfd):
    for scene in scenes.values():
        assert label(scene, tmp_path, {"olivine": 30, "dust": 9}, ["olivine", "talk"], "--one-of-several") == 0
    capfd.readouterr()
    words = fit_words(scenes, tmp_path)
    assert gibbsite("fit", *words, "--chain", 1, "--out", tmp_path / "1.zarr", settings=SMALL) == 1
    (line,) = capfd.readouterr().err.splitlines()
    assert "labels.observed: found 'talk', which is no class of the labels; expected some of dust, olivine" in line
    assert not (tmp_path / "1.zarr").exists()
