"""What goes wrong outside gibbsite: each time one clear line, a non-zero exit, and nothing half-written.

The disk that is full and the folder that cannot be written are real ones where this user may mount a file system.
"""

import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pytest
from shapely import box
from shapely.affinity import translate

from command_line import PIPELINE, TOY, Run, gibbsite
from small_disks import mounted

SMALL = TOY | {"simulate": {"lines": 24, "binning": 10}}

OTHERS = {
    "seed": 2,
    "simulate": {"lines": 26, "binning": 10},
    "ingest": {"max_bad_bands": 0.2},
    "features": {"n_features": 8},
    "products": {"min_polygon_pixels": 1},
    "spectra": {"quantiles": [0.2, 0.8]},
    "interpret": {"candidates": 2},
    "report": {"title": "Another page"},
}
"""Settings under which the steps would write something else than under SMALL."""


FREE = {"evaluate": 0, "simulate": 3 * 2**20}
"""Bytes of a disk that is nearly full, for steps that write less, or first of all more, than others."""


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> Run:
    """A finished run over a small simulated scene; tests must not change it."""
    folder = tmp_path_factory.mktemp("good")
    run = Run(folder, folder / "observation")
    for step in PIPELINE:
        assert gibbsite(*run.words(step, run), settings=SMALL) == 0, step
    return run


@pytest.fixture
def own(good, tmp_path) -> Run:
    """The same run with archive files that a test may spoil, and results of its own."""
    shutil.copytree(good.observation, tmp_path / "in")
    return replace(good, observation=tmp_path / "in")


@pytest.fixture
def refused(capfd):
    """Asserts that a command fails with one line, which it gives back."""

    def refused(*words: object, settings: Mapping[str, Any] = SMALL) -> str:
        capfd.readouterr()
        assert gibbsite(*words, settings=settings) == 1
        streams = capfd.readouterr()
        assert streams.out == ""
        (line,) = streams.err.splitlines()
        assert line.startswith("gibbsite: error: ")
        return line

    return refused


def contents(folder: Path) -> dict[str, str]:
    """Digest of every file under a folder, hidden ones too, by its path."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def resize(path: Path, n_bytes: int) -> None:
    """Cut a file short, or let it grow, by so many bytes."""
    os.truncate(path, path.stat().st_size + n_bytes)


# ---------------------------------------------------------------------------------------------------- inputs


@pytest.mark.parametrize("step", [step for step in PIPELINE if step != "simulate"])
def test_missing_inputs_are_named(step, refused, tmp_path):
    absent = Run(tmp_path / "absent", tmp_path / "absent")
    line = refused(*absent.words(step, Run(tmp_path / "out", tmp_path / "out")))
    assert str(tmp_path / "absent") in line
    assert "no such" in line
    assert contents(tmp_path) == {}


@pytest.mark.parametrize(
    ("step", "gone"),
    [
        ("features", "basis.zarr"),
        ("fit", "labels/toy.zarr"),
        ("select", "chains/1.zarr"),
        ("map", "model.zarr"),
        ("products", "maps/toy_probability.tif"),
        ("report", "spectra/spectra.csv"),
        ("report", "evaluation.json"),
        ("report", "interpretation.json"),
        ("interpret", "spectra/spectra.csv"),
    ],
)
def test_one_missing_input_among_others_is_named(step, gone, good, refused, tmp_path):
    there = tmp_path / "there"
    shutil.copytree(good.folder, there)
    shutil.rmtree(there / gone) if (there / gone).is_dir() else (there / gone).unlink()
    line = refused(*replace(good, folder=there).words(step, Run(tmp_path / "out", tmp_path / "out")))
    assert str(there / gone) in line
    assert not list(tmp_path.glob("out/**/*"))


@pytest.mark.parametrize("kind", ["trr3", "mtr3"])
def test_a_truncated_image_is_told_from_a_whole_one(kind, own, refused, tmp_path):
    cube = getattr(own, kind)
    resize(cube.with_suffix(".img"), -40)
    line = refused("ingest", cube, "--out", tmp_path / "cubes" / "toy.zarr")
    assert "truncated" in line
    assert cube.with_suffix(".img").name in line
    assert not (tmp_path / "cubes").exists()


@pytest.mark.parametrize("kind", ["trr3", "mtr3"])
def test_an_image_longer_than_its_label_says_is_refused(kind, own, refused, tmp_path):
    cube = getattr(own, kind)
    resize(cube.with_suffix(".img"), 4096)
    line = refused("ingest", cube, "--out", tmp_path / "cubes" / "toy.zarr")
    assert "do not belong together" in line
    assert not (tmp_path / "cubes").exists()


def test_a_label_that_counts_other_lines_than_the_image_has_is_refused(own, refused, tmp_path):
    text = own.trr3.read_bytes()
    assert text.count(b"LINES ") >= 1
    own.trr3.write_bytes(text.replace(b"= 24\r\n", b"= 23\r\n"))
    line = refused("ingest", own.trr3, "--out", tmp_path / "cubes" / "toy.zarr")
    assert own.trr3.name in line
    assert not (tmp_path / "cubes").exists()


def test_a_header_that_counts_other_samples_than_the_label_is_refused(own, refused, tmp_path):
    text = own.mtr3.read_text()
    own.mtr3.write_text(text.replace("samples = ", "samples = 1", 1))
    line = refused("ingest", own.mtr3, "--out", tmp_path / "cubes" / "toy.zarr")
    assert "do not belong together" in line
    assert not (tmp_path / "cubes").exists()


def test_the_geometry_of_another_scene_is_refused(own, refused, tmp_path):
    other = {"simulate": {"lines": 30, "binning": 10}}
    assert gibbsite("simulate", "--out", tmp_path / "other", settings=other) == 0
    line = refused("ingest", own.trr3, "--ddr", tmp_path / "other" / own.ddr.name, "--out", tmp_path / "toy.zarr")
    assert "de166l_ddr1" in line
    assert not (tmp_path / "toy.zarr").exists()


def test_a_cube_of_fill_alone_is_refused(own, refused, tmp_path):
    image = own.mtr3.with_suffix(".img")
    np.full(image.stat().st_size // 4, 65535.0, "<f4").tofile(image)
    line = refused("ingest", own.mtr3, "--out", tmp_path / "cubes" / "toy.zarr")
    assert "every pixel is fill" in line
    assert image.name in line
    assert not (tmp_path / "cubes").exists()


def rewrite_shapes(own: Run, change) -> Path:
    """Change the label polygons, a GeoDataFrame."""
    frame = change(geopandas.read_file(own.shapes))
    own.shapes.unlink()
    frame.to_file(own.shapes, driver="GPKG")
    return own.shapes


def test_polygons_outside_the_scene_are_refused(own, good, refused, tmp_path):
    def move(frame):
        return frame.set_geometry([translate(shape, 3.0, 1.5) for shape in frame.geometry])

    shapes = rewrite_shapes(own, move)
    line = refused("labels", "--cube", good.cube, "--shapes", shapes, "--out", tmp_path / "labels.zarr")
    assert "outside the scene" in line
    assert not (tmp_path / "labels.zarr").exists()


def test_polygons_between_the_pixels_label_none_and_are_refused(own, good, refused, tmp_path):
    def shrink(frame):
        # A thousandth of a pixel wide (pixels are 0.003 degrees).
        inside = [shape.representative_point() for shape in frame.geometry]
        return frame.set_geometry([box(at.x, at.y, at.x + 3e-6, at.y + 2e-6) for at in inside])

    shapes = rewrite_shapes(own, shrink)
    line = refused("labels", "--cube", good.cube, "--shapes", shapes, "--out", tmp_path / "labels.zarr")
    assert "no labelled pixel" in line
    assert not (tmp_path / "labels.zarr").exists()


def test_a_class_named_twice_is_refused_with_both_spellings(own, good, refused, tmp_path):
    def respell(frame):
        first = frame.index[frame["class"] == "olivine"][0]
        frame.loc[first, "class"] = "Olivine "
        return frame

    shapes = rewrite_shapes(own, respell)
    line = refused("labels", "--cube", good.cube, "--shapes", shapes, "--out", tmp_path / "labels.zarr")
    assert "class named twice" in line
    assert "'Olivine '" in line
    assert "'olivine'" in line
    assert not (tmp_path / "labels.zarr").exists()


def test_a_class_to_observe_that_no_polygon_has_is_refused(good, refused, tmp_path):
    other = SMALL | {"labels": {"observed": ["unobtainium"]}}
    line = refused("labels", "--cube", good.cube, "--shapes", good.shapes, "--out", tmp_path / "l.zarr", settings=other)
    assert "labels.observed: found 'unobtainium'" in line
    assert contents(tmp_path) == {}


@pytest.mark.parametrize("step", PIPELINE)
def test_an_unknown_settings_key_stops_every_step_before_it_starts(step, good, refused, tmp_path):
    out = Run(tmp_path / "out", tmp_path / "out")
    line = refused(*good.words(step, out), settings={"fit": {"temperature": 1}})
    assert "unknown key 'fit.temperature'; known keys are model, chains" in line
    assert contents(tmp_path) == {}


@pytest.mark.parametrize("given", ["basis", "labels", "model"])
def test_a_store_of_another_kind_is_refused(given, good, refused, tmp_path):
    line = refused("features", getattr(good, given), "--basis", good.basis, "--out", tmp_path / "features.zarr")
    assert f"kind '{given}'" in line
    assert "expected 'cube'" in line
    assert contents(tmp_path) == {}


def test_a_store_that_lost_a_file_is_refused(good, refused, tmp_path):
    broken = tmp_path / "cubes" / "toy.zarr"
    shutil.copytree(good.cube, broken)
    (broken / "zarr.json").write_text("{")
    line = refused("basis", broken, "--out", tmp_path / "basis.zarr")
    assert str(broken) in line
    assert not (tmp_path / "basis.zarr").exists()


# ---------------------------------------------------------------------------------------------------- outputs


@pytest.fixture(scope="module")
def read_only(tmp_path_factory) -> Iterator[Path]:
    """A folder into which nobody can write."""
    folder = tmp_path_factory.mktemp("outputs") / "read-only"
    if os.geteuid() != 0:
        folder.mkdir(mode=0o555)
        yield folder
        return
    # Permissions do not bind root; a file system that is read only does.
    with mounted(folder, "size=64k,ro"):
        yield folder


def fill_up(folder: Path, n_free: int) -> None:
    """Leave so many bytes free on the folder's file system."""
    with suppress(OSError), (folder / "filler").open("wb", buffering=0) as filler:
        while True:
            filler.write(bytes(4096))
    resize(folder / "filler", -n_free)


WITH_A_FOLDER_OF_THEIR_OWN = [step for step in PIPELINE if step != "catalogue"]
"""The catalogue writes beside the items it lists, and nowhere else."""


@pytest.mark.parametrize("step", WITH_A_FOLDER_OF_THEIR_OWN)
def test_a_folder_that_cannot_be_written_is_named(step, good, refused, read_only):
    line = refused(*good.words(step, Run(read_only / "results", read_only / "results")))
    assert "cannot write" in line
    assert str(read_only / "results") in line
    assert ".part" not in line


@pytest.mark.parametrize("step", WITH_A_FOLDER_OF_THEIR_OWN)
def test_a_file_where_the_folder_should_be_is_named_and_survives(step, good, refused, tmp_path):
    (tmp_path / "results").write_text("precious")
    line = refused(*good.words(step, Run(tmp_path / "results", tmp_path / "results" / "observation")))
    assert "cannot write" in line
    assert str(tmp_path / "results") in line
    assert contents(tmp_path) == {"results": hashlib.sha256(b"precious").hexdigest()}


@pytest.mark.parametrize("step", WITH_A_FOLDER_OF_THEIR_OWN)
def test_a_full_disk_leaves_nothing_or_the_earlier_result(step, good, refused, tmp_path):
    with mounted(tmp_path / "disk", "size=64m") as disk:
        out = Run(disk, disk / "observation")
        assert gibbsite(*good.words(step, out), settings=SMALL) == 0
        n_free = FREE.get(step, 8192)
        fill_up(disk, n_free)
        before = contents(disk)
        line = refused(*good.words(step, out), settings=SMALL | OTHERS)
        assert "No space left on device" in line
        assert ".part" not in line
        assert contents(disk) == before, "the earlier result did not survive as it was"
        for earlier in [path for path in disk.iterdir() if path.name != "filler"]:
            shutil.rmtree(earlier) if earlier.is_dir() else earlier.unlink()
        (disk / "filler").unlink()
        fill_up(disk, n_free)
        line = refused(*good.words(step, out), settings=SMALL | OTHERS)
        assert "No space left on device" in line
        assert list(contents(disk)) == ["filler"], "something half-written was left"
