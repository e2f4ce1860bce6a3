"""Interpretation of simulated scenes: the right mineral on top, its bands in place, only the artefact suspected."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from command_line import ROOT, Run, gibbsite
from gibbsite import raster, store, truth
from gibbsite.mixtures import NEAR
from gibbsite.model import Model, write_model
from gibbsite.palette import class_colours
from gibbsite.scene import grid_of, open_cube
from gibbsite.simulate.minerals import MINERALS
from gibbsite.simulate.terrain import CLASSES

KNOWN = [item.name for item in CLASSES if item.role == "known"]
BANDS = {mineral.name: [band.centre for band in mineral.bands] for mineral in MINERALS}


def interpreted(run: Run, libraries: list[str] | None = None) -> dict[str, dict[str, Any]]:
    """Name -> interpretation, by the steps spectra and interpret as typed."""
    assert gibbsite(*run.words("spectra", run)) == 0
    assert gibbsite(*run.words("interpret", run), settings={"interpret": {"libraries": libraries or []}}) == 0
    return {item["name"]: item for item in json.loads(run.interpretation.read_text(encoding="utf-8"))}


def true_map(run: Run) -> None:
    """Write the truth as the class map, with a model of its classes: those never labelled count as discovered."""
    cube = open_cube(run.cube)
    truth = raster.read_band(run.observation / "mtr3_truth.tif")
    names = raster.class_names(run.observation / "mtr3_truth.tif")
    features = store.read(run.features, "features")
    step, feature = features.attrs["step"], np.asarray(features["feature"])
    of_class = {name: feature[truth.ravel()[features["pixel"][:]] == code] * step for code, name in names.items()}
    # Known classes come first, and discovered ones by size.
    ordered = sorted(of_class, key=lambda name: (name not in KNOWN, -len(of_class[name])))
    code_of = {name: code for code, name in enumerate(ordered, 1)}
    colours = class_colours(0, len(names))
    classes = [
        {"code": code, "name": name, "is_known": name in KNOWN, "colour": colours[code - 1]}
        | {"n_pixels": len(of_class[name])}
        for name, code in code_of.items()
    ]
    table = np.zeros(max(names) + 1, np.uint16)
    table[list(names)] = [code_of[name] for name in names.values()]
    raster.write_class_map(run.layer("class"), grid_of(cube), classes, [(0, table[truth])])
    mean = np.stack([of_class[name].mean(0) for name in ordered])
    precision = [np.linalg.inv(np.cov(of_class[name].T) + 1e-6 * np.eye(mean.shape[1])) for name in ordered]
    whiten = np.linalg.cholesky(precision).swapaxes(1, 2)
    weight = np.log([len(of_class[name]) for name in ordered])
    model = Model(np.arange(len(mean)), weight[None], mean[None], mean[None], whiten[None], step, "", classes)
    write_model(run.model, model)


@pytest.fixture(scope="module", params=[1, 5])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp(f"seed{request.param}")
    made = Run(folder, folder / "observation", scene="frt0000ace5")
    settings = {"seed": request.param, "simulate": {"lines": 120, "binning": 5}}
    assert gibbsite(*made.words("simulate", made), settings=settings) == 0
    assert gibbsite(*made.words("ingest", made)) == 0
    assert gibbsite(*made.words("basis", made)) == 0
    assert gibbsite(*made.words("features", made)) == 0
    true_map(made)
    return made


@pytest.fixture(scope="module")
def found(run: Run) -> dict[str, dict[str, Any]]:
    return interpreted(run)


@pytest.mark.parametrize("name", ["jarosite", "alunite"])
def test_the_top_match_of_a_mineral_nobody_labelled_is_the_right_one(found: dict[str, Any], name: str) -> None:
    assert found[name]["matches"][0]["name"] == name
    assert found[name]["matches"][0]["score"] > found[name]["matches"][1]["score"] + 0.1


def test_its_band_centres_are_within_10_nm(found: dict[str, Any]) -> None:
    measured = [band["centre"] for band in found["jarosite"]["bands"]]
    for centre in BANDS["jarosite"]:
        if 1.1 < centre < 2.5:
            assert min(abs(centre - other) for other in measured) < 0.010, (centre, measured)


def test_the_planted_artefact_is_suspected_and_no_mineral_is(found: dict[str, Any]) -> None:
    suspected = {name for name, item in found.items() if item["suspected_artefact"]}
    assert suspected == {"artefact 2.1 um"}
    reasons = " ".join(found["artefact 2.1 um"]["artefact_reasons"])
    assert "2.11 µm" in reasons
    assert "detector columns" in reasons


def test_known_classes_have_no_nearest_known_and_discovered_ones_do(found: dict[str, Any]) -> None:
    assert all((item["nearest_known"] in KNOWN) != (name in KNOWN) for name, item in found.items())


def test_minerals_nobody_labelled_and_the_artefact_are_no_mixtures(found: dict[str, Any]) -> None:
    for name, item in found.items():
        assert not item["suspected_mixture"], name
        assert (item["apart"] is None) == (name in KNOWN)
        assert item["apart"] is None or item["apart"] > 1.2 * NEAR, (name, item["apart"])


def test_libraries_of_the_user_take_part_and_a_rerun_gives_the_same_bytes(run: Run, shared_data: Path) -> None:
    folder = str(shared_data / "crism" / "mica")
    found = interpreted(run, [folder, str(run.folder / "spectra" / "spectra_ratio.sli")])
    first = run.interpretation.read_bytes()
    assert found["jarosite"]["matches"][0]["score"] == pytest.approx(1.0, abs=1e-3), (
        "its own spectrum is in the library"
    )
    assert interpreted(run, [folder, str(run.folder / "spectra" / "spectra_ratio.sli")]) == found
    assert run.interpretation.read_bytes() == first


def test_despiked_pixels_of_the_features_are_used(run: Run, tmp_path: Path) -> None:
    group = store.read(run.features, "features")
    pixel = np.asarray(group["pixel"][:])
    found_code = raster.read_band(run.layer("class")).ravel()[pixel]
    code = next(code for code, name in raster.class_names(run.layer("class")).items() if name == "alunite")
    with store.create(tmp_path / "features.zarr", "features") as features:
        store.add_array(features, "pixel", ("pixel",), pixel)
        store.add_array(features, "n_despiked", ("pixel",), np.where(found_code == code, 30, 1).astype(np.int16))
    words = [tmp_path / "features.zarr" if word == run.features else word for word in run.words("interpret", run)]
    words = [tmp_path / "out.json" if word == run.interpretation else word for word in words]
    assert gibbsite(*words) == 0
    found = {item["name"]: item for item in json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))}
    assert "despiked" in " ".join(found["alunite"]["artefact_reasons"])


@pytest.mark.statistical
def test_the_demo_names_jarosite_and_suspects_the_artefact_alone(tmp_path: Path) -> None:
    demo = yaml.safe_load((ROOT / "config" / "demo.yaml").read_text())
    demo = {key: demo[key] for key in ("fit",)} | {"cluster": {"threads": 2}}
    demo["fit"] |= {"chains": 1}
    made = Run(tmp_path, tmp_path / "observation", scene="frt0000ace5")
    for step in ("simulate", "ingest", "basis", "features", "labels", "truth", "fit", "select", "map"):
        assert gibbsite(*made.words(step, made), settings=demo) == 0
    assert gibbsite(*made.words("evaluate", made)) == 0
    found = interpreted(made)
    scores = json.loads(made.evaluation.read_text(encoding="utf-8"))["classes"]
    stands_for = {score["name"]: score["matched"] for score in scores}
    jarosite = found[stands_for["jarosite"]]
    assert jarosite["matches"][0]["name"] == "jarosite"
    measured = [band["centre"] for band in jarosite["bands"]]
    assert all(min(abs(centre - other) for other in measured) < 0.010 for centre in (1.47, 1.85, 2.265)), measured
    suspected = {name: item["code"] for name, item in found.items() if item["suspected_artefact"]}
    assert stands_for["artefact 2.1 um"] in suspected
    unmixed = {name for name, item in found.items() if not (item["is_known"] or item["suspected_mixture"])}
    assert {stands_for[name] for name in ("jarosite", "alunite", "artefact 2.1 um")} <= unmixed
    n_new = sum(not item["is_known"] for item in found.values())
    assert len(unmixed) <= n_new / 2, "most others are borders between two or three classes"
    # It may come out as several classes; nothing else may be suspected.
    seen = truth.read(made.truth)
    is_artefact = seen.truth == seen.class_names.index("artefact 2.1 um")
    is_suspected = np.isin(raster.read_band(made.layer("class")), list(suspected.values()))
    assert is_artefact[is_suspected].mean() > 0.9
