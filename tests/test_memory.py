"""Scenes larger than memory: every step stays below the ceiling that docs/architecture.md states for it.

The ceilings are for any size, so a scene of half a million pixels shows them as well as one of twenty million: its cube
(256 MB) is more than a step that streams it may take. What is measured is the resident memory of real processes.
"""

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import rasterio
from numpy.testing import assert_array_equal

from command_line import ROOT, gibbsite
from gibbsite import raster, store

N_PIXELS, N_BANDS = 500_000, 128
NOISY_PIXELS = 2_000_000
SETTINGS = {
    "fit": {"sweeps": 2, "chains": 1, "pre_sweeps": 2, "start_components": 12, "label_components": 20},
    "select": {"polish_sweeps": 2},
    "cluster": {"kind": "none", "threads": 1},
}
STEPS = (
    *("ingest", "basis", "features", "labels", "truth", "fit", "select", "map"),
    *("spectra", "interpret", "products", "catalogue", "evaluate", "report"),
)


@pytest.fixture(scope="module")
def memory() -> Iterator[ModuleType]:
    """benchmarks/memory.py."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        yield importlib.import_module("memory")


@pytest.fixture(scope="module")
def products(memory: ModuleType) -> ModuleType:  # noqa: ARG001 - the other finds it
    """benchmarks/products.py."""
    return importlib.import_module("products")


def ceilings() -> dict[str, tuple[float, float]]:
    """Step -> megabytes for any scene, and bytes more per pixel, as docs/architecture.md states them."""
    text = (ROOT / "docs" / "architecture.md").read_text().split("## Memory\n")[1].split("\n## ")[0]
    return {
        step: (float(base), float(each)) for step, base, each in re.findall(r"\| `(\w+)` \| (\d+) \| (\d+) \|", text)
    }


# ---------------------------------------------------------------------------------------------------- ceilings


@pytest.fixture(scope="module")
def peaks(memory: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """Step -> its peak resident memory in megabytes, on a cube of 256 MB."""
    scene = memory.Scene(tmp_path_factory.mktemp("large"), N_PIXELS, N_BANDS)
    memory.write_scene(scene)
    assert scene.cube.with_suffix(".img").stat().st_size > 250e6
    words = memory.steps(scene, scene.folder / "results")
    return {step: memory.run(step, words[step], SETTINGS)[0] for step in words}


def test_every_step_that_reads_pixels_has_a_ceiling(peaks: dict[str, float]) -> None:
    assert set(ceilings()) == set(peaks) == set(STEPS)


@pytest.mark.parametrize("step", STEPS)
def test_a_step_stays_below_its_ceiling(step: str, peaks: dict[str, float]) -> None:
    base, each = ceilings()[step]
    assert peaks[step] <= base + each * N_PIXELS / 1e6


@pytest.fixture(scope="module")
def noisy_peaks(products: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """Step -> its peak on a map of two million pixels with noise in every layer, few bands and known columns."""
    scene = products.Scene(tmp_path_factory.mktemp("noisy"), NOISY_PIXELS, 8)
    products.write_scene(scene)
    return {step: products.run(step, words, {})[0] for step, words in products.words_of(scene.folder).items()}


@pytest.mark.parametrize("step", ["spectra", "interpret", "products", "catalogue", "report"])
def test_a_step_after_the_map_stays_below_its_ceiling_on_a_noisy_map(step: str, noisy_peaks: dict[str, float]) -> None:
    base, each = ceilings()[step]
    assert noisy_peaks[step] <= base + each * NOISY_PIXELS / 1e6


def test_the_ceilings_of_twenty_million_pixels_lie_below_the_promise() -> None:
    assert max(base + each * 20 for base, each in ceilings().values()) <= 1500


# ---------------------------------------------------------------------------------------------------- many scenes


def cut(header: Path, lines: range, out: Path) -> Path:
    """The header of a cube that has these lines of a scene, with its labels beside it."""
    text = header.read_text()
    height, width, n_bands = (
        int(re.search(rf"^{key} = (\d+)", text, re.MULTILINE)[1]) for key in ("lines", "samples", "bands")
    )
    out.mkdir()
    rows = slice(lines.start, lines.stop)
    np.fromfile(header.with_suffix(".img"), "<f4").reshape(height, n_bands, width)[rows].tofile(out / "large.img")
    top = f"1, 1, 0.0, {-18.0 * lines.start}, 18.0"
    text = text.replace(f"lines = {height}", f"lines = {len(lines)}").replace("1, 1, 0.0, 0.0, 18.0", top)
    (out / "large.hdr").write_text(text)
    with rasterio.open(header.with_name("labels.tif")) as source:
        moved = source.transform @ rasterio.Affine.translation(0, lines.start)
        with rasterio.open(
            out / "labels.tif", "w", **source.profile | {"height": len(lines), "transform": moved}
        ) as target:
            target.update_tags(**source.tags())
            target.write(source.read(1)[rows], 1)
    return out / "large.hdr"


def test_a_fit_over_many_scenes_is_that_of_one_scene_with_all_their_pixels(memory: ModuleType, tmp_path: Path) -> None:
    settings = SETTINGS | {"labels": {"train_fraction": 1.0}, "features": {"n_features": 4}}
    settings["fit"] = SETTINGS["fit"] | {"sweeps": 6, "split_every": 2}
    whole = memory.Scene(tmp_path / "whole", 8000, 16)
    memory.write_scene(whole)
    scenes = {
        "whole": whole.cube,
        "a_top": cut(whole.cube, range(33), tmp_path / "a_top"),
        "b_rest": cut(whole.cube, range(33, whole.shape[0]), tmp_path / "b_rest"),
    }
    out = {name: tmp_path / "out" / name for name in scenes}

    def step(*words: object) -> None:
        assert gibbsite(*words, settings=settings) == 0

    for name, header in scenes.items():
        step("ingest", header, "--out", out[name] / f"{name}.zarr")
    cubes = {name: out[name] / f"{name}.zarr" for name in scenes}
    step("basis", cubes["b_rest"], cubes["a_top"], "--out", tmp_path / "basis.zarr")
    for name, cube in cubes.items():
        step("features", cube, "--basis", tmp_path / "basis.zarr", "--out", out[name] / "features" / f"{name}.zarr")
        shapes = scenes[name].parent / "labels.tif"
        step("labels", "--cube", cube, "--shapes", shapes, "--out", out[name] / "labels" / f"{name}.zarr")
    for group, names in (("one", ["whole"]), ("many", ["b_rest", "a_top"])):
        stores = {kind: [out[name] / kind / f"{name}.zarr" for name in names] for kind in ("features", "labels")}
        fitted = ["--features", *stores["features"], "--labels", *stores["labels"]]
        step("fit", *fitted, "--chain", 1, "--out", tmp_path / group / "1.zarr")
        step("select", "--chains", tmp_path / group / "1.zarr", *fitted, "--out", tmp_path / group / "model.zarr")
        for features in stores["features"]:
            step(
                "map",
                "--features",
                features,
                "--model",
                tmp_path / group / "model.zarr",
                "--out-dir",
                tmp_path / "maps",
            )
    one, many = (store.read(tmp_path / group / "1.zarr", "chain") for group in ("one", "many"))
    for name in ("trace_log_joint", "last/outer", "best/class_of", "last/block_label"):
        assert_array_equal(one[name][...], many[name][...], err_msg=f"{name} depends on how pixels lie in scenes")
    assert one["trace_n_classes"][-1] > 3, "nothing was discovered; the test shows too little"
    maps = {name: raster.read_band(tmp_path / "maps" / f"{name}_class.tif") for name in scenes}
    assert (maps["whole"] > 0).all()
    assert_array_equal(np.concatenate([maps["a_top"], maps["b_rest"]]), maps["whole"])
