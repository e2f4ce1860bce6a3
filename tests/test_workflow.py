"""The workflow through the real `snakemake`, on a toy configuration far from the repository."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
import yaml

from command_line import ROOT, TOY, Run, typed
from gibbsite import store
from gibbsite.labels import HELD_OUT
from gibbsite.scene import grid_of, open_cube
from gibbsite.settings import Settings
from gibbsite.simulate.observation import files

# Sixteen steps, each a process of its own, and the kernels compiled first: minutes on a busy machine.
pytestmark = [pytest.mark.workflow, pytest.mark.timeout(1500)]

HEAD = "scene\tcube\tddr\twavelengths\tlabels\ttruth\n"
ROW = "toy\tin/frt0000ace5_07_if166j_mtr3.hdr\t\t\tin/labels.gpkg\tin/mtr3_truth.tif\n"
CONFIG = {
    "scenes": "scenes.tsv",
    "results": "results",
    **{section: TOY[section] for section in ("fit", "select")},
    "simulate": TOY["simulate"] | {"folder": "in"},
    "report": {"title": "A toy's page"},
}


class Workflow:
    """A folder with a configuration, in which Snakemake runs with the repository's Snakefile."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run = Run(folder / "results", folder / "in")
        (folder / "scenes.tsv").write_text(HEAD + ROW)
        self.configure()

    def configure(self, **changes: Any) -> None:
        """Write the configuration, some of its sections changed."""
        merged = {
            key: CONFIG.get(key, {}) | value if isinstance(value, dict) else value for key, value in changes.items()
        }
        (self.folder / "toy.yaml").write_text(yaml.safe_dump(CONFIG | merged))

    def snakemake(self, *words: object):
        return typed(
            "snakemake", "--snakefile", ROOT / "Snakefile", "--directory", self.folder,
            "--configfile", self.folder / "toy.yaml", "--cores", 2, *words,
        )  # fmt: skip

    def rules_to_run(self, **changes: Any) -> set[str]:
        """The rules that would run under a changed configuration."""
        self.configure(**changes)
        try:
            answer = self.snakemake("--dry-run")
        finally:
            self.configure()
        assert answer.returncode == 0, answer.stderr
        said = answer.stdout + answer.stderr
        # Rules of a group stand indented.
        rules = set(re.findall(r"^ *(?:local)?rule (\w+):", said, re.MULTILINE))
        assert bool(rules) != ("Nothing to be done" in said), said
        return rules


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> Workflow:
    """The workflow after one run from nothing."""
    # Blanks and quotes in paths must not matter.
    folder = tmp_path_factory.mktemp("far away") / "Tim's toy"
    folder.mkdir()
    workflow = Workflow(folder)
    answer = workflow.snakemake()
    logs = "\n".join(path.read_text() for path in folder.rglob("results/logs/**/*.log"))
    assert answer.returncode == 0, answer.stderr + logs
    return workflow


# ---------------------------------------------------------------------------------------------------- results


def test_all_results_are_there(done):
    expected = [
        *("basis.zarr", "model.zarr", "chains/1.zarr", "cubes/toy.zarr", "features/toy.zarr", "labels/toy.zarr"),
        "truths/toy.zarr",
        *(f"maps/toy_{layer}.tif" for layer in ("class", "probability", "entropy", "unknown", "component")),
        *("products/toy_class.tif", "products/toy_class.qml", "products/toy_classes.gpkg", "products/toy_classes.csv"),
        *("products/toy_item.json", "products/collection.json", "products/gibbsite.qgs"),
        *(f"spectra/spectra.{kind}" for kind in ("csv", "hdr", "nc", "pdf", "png", "sli")),
        *("interpretation.json", "evaluation.json", "report.html", "timings.html"),
        *("figures/traces.pdf", "figures/map_toy.png"),
    ]
    results = done.folder / "results"
    assert [name for name in expected if not (results / name).exists()] == []
    assert [path for path in done.folder.rglob("*") if path.name.endswith(".part")] == []


def test_the_rule_names_every_file_of_the_simulation(done):
    written = {path.name for path in (done.folder / "in").iterdir()}
    assert written == set(files(Settings.model_validate({"simulate": CONFIG["simulate"]}).simulate))
    answer = done.snakemake("--summary")
    assert {Path(line.split("\t")[0]).name for line in answer.stdout.splitlines() if line.startswith("in/")} == written


def test_every_rule_leaves_a_log_and_a_benchmark(done):
    results = done.folder / "results"
    logs = {path.relative_to(results / "logs").with_suffix("") for path in results.glob("logs/**/*.log")}
    # Beside the benchmark of a fit lies its table of sweeps.
    tables = [path for path in results.rglob("*.tsv") if not path.stem.endswith("_sweeps")]
    assert logs == {path.relative_to(results / "benchmarks").with_suffix("") for path in tables}
    assert len(logs) == 15
    warned = [path.name for path in results.glob("logs/**/*.log") if "Warning" in path.read_text()]
    assert warned == []


def test_the_times_of_the_sweeps_stand_beside_the_report(done):
    page = (done.folder / "results" / "timings.html").read_text()
    assert f'<td class="num">{TOY["fit"]["sweeps"]}</td>' in page
    assert "No times were recorded" not in page
    assert 'href="timings.html"' in (done.folder / "results" / "report.html").read_text()


def test_snakemakes_own_report_holds_pages_tables_and_figures(done):
    answer = done.snakemake("--report", done.folder / "whole.html")
    assert answer.returncode == 0, answer.stderr
    page = (done.folder / "whole.html").read_text()
    held = {name for name in re.findall(r"results/[\w./-]+", page) if (done.folder / name).is_file()}
    wanted = {
        *("report.html", "timings.html", "interpretation.json", "products/toy_classes.csv"),
        *(f"spectra/spectra.{kind}" for kind in ("csv", "png", "pdf", "nc")),
        *(f"figures/{name}.png" for name in ("map_toy", "traces", "confusion")),
    }
    assert {f"results/{name}" for name in wanted} - held == set()
    for category in ("Report", "Classes", "Spectra", "Figures"):
        assert f'"{category}"' in page
    assert "Dask's part" in page, "captions are there"


def test_the_class_map_lies_where_the_scene_lies_on_mars(done):
    grid = grid_of(open_cube(done.run.cube))
    with rasterio.open(done.run.layer("class")) as class_map, rasterio.open(done.run.mtr3.with_suffix(".img")) as cube:
        assert class_map.crs == cube.crs
        assert tuple(class_map.transform)[:6] == pytest.approx(tuple(cube.transform)[:6], rel=1e-12)
        assert class_map.shape == cube.shape == (grid.height, grid.width)
        assert tuple(class_map.transform)[:6] == grid.transform
        # Mars, and this product's own sphere: not the Earth, and not the mean radius either.
        radius = float(class_map.crs.to_dict()["R"])
        assert 3_376_000 < radius < 3_397_000
        assert radius != 3_396_190


def test_the_class_map_has_nodata_colours_and_names(done):
    with rasterio.open(done.run.layer("class")) as class_map:
        code, tags, colours = class_map.read(1), class_map.tags(), class_map.colormap(1)
        assert class_map.nodata == 0
        assert class_map.dtypes == ("uint16",)
    is_valid = open_cube(done.run.cube)["valid"].values
    assert 0.2 < is_valid.mean() < 0.8
    assert ((code > 0) == is_valid).all()
    names = {int(tag.removeprefix("CLASS_")): name for tag, name in tags.items() if tag.startswith("CLASS_")}
    assert set(code.ravel().tolist()) - {0} <= set(names)
    assert len({colours[number] for number in names}) == len(names), "two classes share a colour"
    assert colours[0] == (0, 0, 0, 0)
    assert "olivine" in names.values()


def test_the_report_names_discovered_classes_and_the_mean_f1(done):
    page = (done.folder / "results" / "report.html").read_text()
    scores = json.loads(done.run.evaluation.read_text())
    words = " ".join(re.sub(r"<[^>]+>", " ", page).split())
    assert "A toy&#39;s page" in page or "A toy's page" in page
    discovered = [name for name in scores["predicted_names"] if name.startswith("new-")]
    assert discovered, "the toy discovers something; else this test shows nothing"
    assert all(name in words for name in discovered)
    assert "mean F1" in words
    assert f"{scores['mean_f1']:.3f}"[:-1] in words
    unlabelled = [item for item in scores["classes"] if not item["is_observed"]]
    assert unlabelled
    assert all(item["name"] in words for item in unlabelled)


# ---------------------------------------------------------------------------------------------------- reruns


def test_a_second_run_has_nothing_to_do(done):
    answer = done.snakemake()
    assert answer.returncode == 0
    assert "Nothing to be done" in answer.stdout + answer.stderr


def test_a_sampler_key_reruns_the_fit_and_what_follows(done):
    rules = done.rules_to_run(fit={"sweeps": 7})
    rules_after = {"fit", "select", "map", "spectra", "interpret", "products", "catalogue", "evaluate", "report", "all"}
    assert rules == rules_after


def test_a_product_key_reruns_only_products_and_their_catalogue(done):
    assert done.rules_to_run(products={"min_polygon_pixels": 9}) == {"products", "catalogue", "all"}


def test_probabilities_of_every_class_rerun_from_the_map_on(done):
    rules = done.rules_to_run(map={"class_probabilities": True})
    assert {"map", "products", "catalogue"} <= rules
    assert not rules & {"fit", "select"}


def test_a_key_of_the_interpretation_reruns_it_and_the_report_but_no_spectra(done):
    rules = done.rules_to_run(interpret={"min_depth": 0.02})
    assert {"interpret", "report"} <= rules
    assert not rules & {"spectra", "map", "fit"}


def test_the_volcano_scan_is_an_input_of_what_is_cleaned_with_it(done):
    scan = "in/adr10000000000_00000_vs30l_8"
    done.configure(clean={"atmosphere": "2007/1980", "volcano_scan": f"{scan}.lbl"})
    try:
        answer = done.snakemake("--dry-run", "results/features/toy.zarr")
    finally:
        done.configure()
    told = answer.stdout + answer.stderr
    inputs = {
        rule: re.search(rf"rule {rule}:\n +input: (.*)", told).group(1).split(", ") for rule in ("basis", "features")
    }
    for rule, named in inputs.items():
        assert {f"{scan}.img", f"{scan}.lbl"} <= set(named), f"{rule} would not run again for another record"


def test_a_volcano_scan_that_is_yet_to_be_simulated_is_an_input_too(tmp_path):
    workflow = Workflow(tmp_path)
    scan = "in/adr10000000000_00000_vs30l_8"
    workflow.configure(clean={"atmosphere": "2007/1980", "volcano_scan": f"{scan}.lbl"})
    told = workflow.snakemake("--dry-run", "results/basis.zarr").stdout
    named = re.search(r"rule basis:\n +input: (.*)", told).group(1).split(", ")
    assert named == ["results/cubes/toy.zarr", f"{scan}.img", f"{scan}.lbl"], "else the next run would do it anew"


def test_a_report_key_reruns_only_the_report(done):
    assert done.rules_to_run(report={"title": "Another page"}) == {"report", "all"}


def test_a_feature_key_reruns_from_the_basis_on_but_not_ingest_or_labels(done):
    rules = done.rules_to_run(features={"n_features": 8})
    assert {"basis", "features", "fit"} <= rules
    assert not rules & {"simulate", "ingest", "labels"}


@pytest.mark.parametrize("change", [{"tile_pixels": 1024}, {"kind": "none", "threads": 1}, {"workers": 2}])
def test_where_the_sweeps_run_reruns_nothing(done, change):
    assert done.rules_to_run(cluster=change) == set()


def test_a_key_written_out_at_its_default_reruns_nothing(done):
    assert done.rules_to_run(products={"min_polygon_pixels": 4}, labels={"train_fraction": 0.2}, clean=None) == set()


@pytest.mark.parametrize("truth", ["in/other_truth.tif", ""])
def test_another_truth_is_scored_anew_without_another_fit(done, truth):
    shutil.copy(done.folder / "in" / "mtr3_truth.tif", done.folder / "in" / "other_truth.tif")
    (done.folder / "other.tsv").write_text(HEAD + ROW.replace("in/mtr3_truth.tif", truth))
    try:
        assert done.rules_to_run(scenes="other.tsv") == {"truth", "evaluate", "report", "all"}
    finally:
        (done.folder / "in" / "other_truth.tif").unlink()


def test_without_a_truth_raster_the_held_out_labels_are_scored(done, tmp_path):
    shutil.copytree(done.folder, tmp_path / "copy")
    workflow = Workflow(tmp_path / "copy")
    (workflow.folder / "scenes.tsv").write_text(HEAD + ROW.replace("in/mtr3_truth.tif", ""))
    answer = workflow.snakemake()
    assert answer.returncode == 0, answer.stderr
    scores = json.loads(workflow.run.evaluation.read_text())
    labelled = store.read(workflow.run.labels, "labels")
    is_held_out = np.asarray(labelled["role"][...]) == HELD_OUT
    assert scores["scored"][0]["source"] == "held-out labels"
    assert 0 < scores["n_pixels"] == is_held_out.sum()
    assert set(scores["truth_names"]) <= set(labelled.attrs["class_names"])
    words = " ".join(re.sub(r"<[^>]+>", " ", (workflow.run.folder / "report.html").read_text()).split())
    assert "On held-out labels the mean F1 is" in words
    assert f"{scores['n_pixels']:,}".replace(",", " ") + " of toy from the held-out labels" in words


# ---------------------------------------------------------------------------------------------------- refusals


def test_a_wrong_truth_ends_the_run_before_the_sampler_starts(done):
    (done.folder / "wrong.tsv").write_text(HEAD + ROW.replace("mtr3_truth", "trr3_truth"))
    done.configure(scenes="wrong.tsv", results="wrong")
    try:
        answer = done.snakemake("--keep-going")
    finally:
        done.configure()
    assert answer.returncode != 0
    said = (done.folder / "wrong" / "logs" / "truth" / "toy.log").read_text()
    assert re.search(r"gibbsite: error: in/trr3_truth.tif: 48 lines × 64 samples, expected the scene's", said)
    assert (done.folder / "wrong" / "features" / "toy.zarr").exists()
    assert not (done.folder / "wrong" / "chains").exists()


def complaint(answer) -> str:
    """The one line that says what is wrong."""
    assert answer.returncode != 0
    said = answer.stdout + answer.stderr
    assert "Traceback" not in said
    # Snakemake puts the place in the Snakefile before and after the line.
    lines = [
        line for line in said.splitlines() if line.strip() and not re.match(r"WorkflowError in file|  File ", line)
    ]
    assert len(lines) == 1, said
    return lines[0]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"fit": {"sweep": 7}}, "config: unknown key 'fit.sweep'; known keys are model, chains, sweeps"),
        ({"fits": {"sweeps": 7}}, "config: unknown key 'fits'; known keys are scenes, results, seed"),
        ({"fit": {"sweeps": "7"}}, "config: fit.sweeps: found '7'; input should be a valid integer"),
        ({"fit": {"sweeps": 0}}, "config: fit.sweeps: found 0; input should be greater than or equal to 1"),
    ],
)
def test_a_wrong_key_stops_the_workflow_with_one_line(tmp_path, change, expected):
    workflow = Workflow(tmp_path)
    workflow.configure(**change)
    assert complaint(workflow.snakemake("--dry-run")).startswith(expected)


def test_a_scene_listed_twice_stops_the_workflow_with_one_line(tmp_path):
    workflow = Workflow(tmp_path)
    (tmp_path / "scenes.tsv").write_text(HEAD + ROW + ROW)
    line = complaint(workflow.snakemake("--dry-run"))
    assert line == "scenes.tsv, row 3: scene 'toy' is listed twice; give each row its own name"


@pytest.mark.parametrize(
    ("column", "file"), [("cube", "data/CUBE.hdr"), ("labels", "in/../nili.gpkg"), ("truth", "nili_truth.tif")]
)
def test_a_file_that_is_not_there_stops_the_workflow_with_one_line(tmp_path, column, file):
    workflow = Workflow(tmp_path)
    row = dict(zip(HEAD.split(), ROW.rstrip("\n").split("\t"), strict=True)) | {column: file}
    (tmp_path / "scenes.tsv").write_text(HEAD + "\t".join(row.values()) + "\n")
    line = complaint(workflow.snakemake("--dry-run"))
    assert line.startswith(f"scenes.tsv: scene 'toy', column '{column}': no such file {file}; paths start from")


def test_nested_keys_on_the_command_line_are_pointed_to_a_file(tmp_path):
    workflow = Workflow(tmp_path)
    line = complaint(workflow.snakemake("--dry-run", "--config", 'fit={"sweeps": 20}'))
    assert line.startswith("config: fit.sweeps: found '20'; input should be a valid integer; --config passes")
    assert line.endswith("use --configfile for them")


def test_a_missing_table_of_scenes_stops_the_workflow_with_one_line(tmp_path):
    workflow = Workflow(tmp_path)
    (tmp_path / "scenes.tsv").unlink()
    assert complaint(workflow.snakemake("--dry-run")).startswith("scenes.tsv: cannot read the table of scenes")


def test_a_table_without_scenes_does_nothing_and_says_what_to_do(tmp_path):
    workflow = Workflow(tmp_path)
    (tmp_path / "scenes.tsv").write_text(HEAD)
    answer = workflow.snakemake("--dry-run")
    assert answer.returncode == 0, answer.stderr
    assert "scenes.tsv lists no scene: add a row" in answer.stdout + answer.stderr
