"""The target `experiments` through the real `snakemake`, and its steps as typed, on tiny settings."""

import json
import re
from pathlib import Path

import pytest
import yaml

from command_line import ROOT, gibbsite, typed
from gibbsite.experiments import catalogue, checksums
from gibbsite.settings import Settings
from gibbsite.simulate.observation import files

pytestmark = [pytest.mark.workflow, pytest.mark.timeout(900)]

NOTHING = {
    "folder": "out", "data": "no data", "repeats": 1, "chains": 1, "sweeps": 12, "simulated": 0, "benchmarks": [],
    "discovery": [], "peers": [], "peer_tables": [], "ablations": [], "cytometry": [], "crism": {"lines": 0},
}  # fmt: skip
TINY = NOTHING | {"benchmarks": ["salinas"], "peers": ["lda", "lda-distance"], "peer_tables": ["simulated-1"]}


def snakemake(folder: Path, asked: dict, *words: object):
    (folder / "tiny.yaml").write_text(yaml.safe_dump({"scenes": "scenes.tsv", "experiments": asked}))
    return typed(
        "snakemake", "--snakefile", ROOT / "Snakefile", "--directory", folder, "--configfile", folder / "tiny.yaml",
        "--cores", 1, *words,
    )  # fmt: skip


def jobs(answer) -> dict[str, int]:
    """Rule -> number of jobs of a dry run."""
    assert answer.returncode == 0, answer.stderr
    return {rule: int(n) for rule, n in re.findall(r"^(\w+) +(\d+)$", answer.stdout + answer.stderr, re.MULTILINE)}


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> Path:
    """The folder after a run of the tiny experiments."""
    folder = tmp_path_factory.mktemp("a few experiments")
    (folder / "scenes.tsv").write_text((ROOT / "config" / "scenes.tsv").read_text())
    answer = snakemake(folder, TINY, "experiments")
    assert answer.returncode == 0, answer.stderr + "".join(p.read_text() for p in folder.glob("out/logs/**/*.log"))
    return folder


def test_the_target_leaves_scores_tables_a_page_and_their_checksums(done):
    out = done / "out"
    assert set(checksums.read(out / "SHA256SUMS")) == {"experiments.html", "scores/peers.csv", "tables/peers.csv"}
    page = (out / "experiments.html").read_text()
    assert "LDA (closed set)" in page
    assert "Salinas-A" in page, "what is left out is named"
    assert not re.search(r'(src|href)="(?!data:)', page), "the page needs no other file and no network"


def test_only_what_is_missing_runs_again(done):
    assert "Nothing to be done" in snakemake(done, TINY, "experiments", "--dry-run").stdout
    before = (done / "out" / "SHA256SUMS").read_text()
    # As if the run had been stopped within the second trial.
    for name in ("trials/peers/simulated-1/lda/1.csv", "scores/peers.csv", "experiments.html"):
        (done / "out" / name).unlink()
    found = jobs(snakemake(done, TINY, "experiments", "--dry-run"))
    assert found == {"trial": 1, "gather": 1, "experiments_page": 1, "experiments": 1, "total": 4}
    assert snakemake(done, TINY, "experiments").returncode == 0
    assert (done / "out" / "SHA256SUMS").read_text() == before, "a rerun gives the same bytes"


def test_verify_tells_the_same_results_from_others(done, capsys):
    published = done / "out" / "SHA256SUMS"
    assert gibbsite("verify", "--published", published, "--out-dir", done / "out") == 0
    assert gibbsite("verify", "--published", published, "--out-dir", done) == 1
    assert "3 of 3 published files differ" in capsys.readouterr().err


def test_the_scene_of_the_experiment_on_crism_goes_through_the_pipelines_own_rules(done):
    asked = NOTHING | {"crism": {"lines": 48, "binning": 10, "chains": 2, "sweeps": 6}}
    answer = snakemake(done, asked, "experiments", "--dry-run")
    found = jobs(answer)
    assert (found["crism_simulate"], found["crism_fit"], found["crism_select"], found["crism_evaluate"]) == (1, 6, 3, 6)
    simulated = Settings.model_validate({"simulate": {"lines": 48, "binning": 10}}).simulate
    named = set(re.findall(r"out/crism/observation/([\w.]+)", answer.stdout))
    assert named
    assert named - set(files(simulated)) == set(), "the rule names a file that the simulation does not write"


def test_the_quick_version_asks_for_less_of_everything():
    quick = yaml.safe_load((ROOT / "config" / "experiments-quick.yaml").read_text())
    small = Settings.model_validate(quick).experiments.model_dump()
    full = Settings().experiments.model_dump()
    assert small["folder"] != full["folder"]
    for key in ("repeats", "chains", "sweeps", "simulated", "cells"):
        assert small[key] < full[key]
    for key in ("benchmarks", "discovery", "peers", "peer_tables", "ablations"):
        assert len(catalogue.each(small[key])) < len(catalogue.each(full[key]))


def test_a_trial_without_its_table_says_which_file_it_needs(tmp_path, capsys):
    settings = json.dumps({"experiments": {"data": str(tmp_path)}})
    words = ["trial", "benchmarks/flc1/igmm/1", "--settings", settings, "--out", tmp_path / "out.csv"]
    assert gibbsite(*words) == 1
    assert "flc1.csv: no such file" in capsys.readouterr().err
    assert not (tmp_path / "out.csv").exists()
