"""What rules ask for: memory and time by the scene's size, more at each retry; profiles that Snakemake takes."""

import re
from pathlib import Path

import pytest
import yaml

from command_line import ROOT, typed
from gibbsite.scenes import SceneFiles, megabytes
from test_memory import ceilings

pytestmark = pytest.mark.workflow

HEAD = "scene\tcube\tddr\twavelengths\tlabels\ttruth\n"
GROUPED = {"labels": "known", "truth": "known", "evaluate": "page", "report": "page"}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with the configuration of one scene whose cube says it is 20 million pixels of 64 bands."""
    (tmp_path / "large.hdr").write_text("not yet read")
    with (tmp_path / "large.img").open("wb") as image:
        image.truncate(20_000_000 * 64 * 4)
    for name in ("labels.gpkg", "truth.tif"):
        (tmp_path / name).touch()
    (tmp_path / "scenes.tsv").write_text(HEAD + "large\tlarge.hdr\t\t\tlabels.gpkg\ttruth.tif\n")
    (tmp_path / "toy.yaml").write_text(yaml.safe_dump({"scenes": "scenes.tsv", "results": "results"}))
    return tmp_path


def snakemake(site: Path, *words: object, profile: str = "local"):
    return typed(
        "snakemake", "--snakefile", ROOT / "Snakefile", "--directory", site, "--configfile", site / "toy.yaml",
        "--workflow-profile", ROOT / "workflow" / "profiles" / profile, *words,
    )  # fmt: skip


def asked_for(said: str) -> dict[str, list[tuple[int, int]]]:
    """Rule -> megabytes and minutes, each time it is named."""
    found: dict[str, list[tuple[int, int]]] = {}
    _, *parts = re.split(r"^ *(?:local)?rule (\w+):\n", said, flags=re.MULTILINE)
    for rule, block in zip(parts[::2], parts[1::2], strict=True):
        if rule != "all":
            # Nothing but numbers: a rule that names none fails here.
            mem_mb, runtime = (re.findall(rf"\b{name}=(\d+)", block)[0] for name in ("mem_mb", "runtime"))
            found.setdefault(rule, []).append((int(mem_mb), int(runtime)))
    return found


@pytest.mark.parametrize("profile", ["local", "slurm"])
def test_every_rule_asks_for_what_a_large_scene_needs(site, profile):
    answer = snakemake(site, "--dry-run", profile=profile)
    assert answer.returncode == 0, answer.stderr
    found = asked_for(answer.stdout + answer.stderr)
    rules = set(re.findall(r"^ *rule (\w+):", "".join(f.read_text() for f in ROOT.glob("workflow/rules/*.smk")), re.M))
    assert set(found) == rules - {"simulate"}
    for step, (base, each) in ceilings().items():
        assert found[step][0][0] >= base + each * 20, f"{step} asks for less than its ceiling"


def test_a_small_scene_asks_for_less(site):
    large = asked_for(snakemake(site, "--dry-run").stdout)
    (site / "large.img").write_bytes(b"small")
    small = asked_for(snakemake(site, "--dry-run").stdout)
    assert small["fit"] < large["fit"]
    assert small["products"] < large["products"]
    assert small["ingest"][0][1] < large["ingest"][0][1]


def test_each_retry_asks_for_twice_as_much(site):
    answer = snakemake(site, "--cores", 1, "--retries", 2, "results/cubes/large.zarr")
    assert answer.returncode != 0
    first, *more = asked_for(answer.stdout + answer.stderr)["ingest"]
    assert more == [(2 * first[0], 2 * first[1]), (4 * first[0], 4 * first[1])]


def test_rules_have_a_log_a_benchmark_and_the_small_ones_a_group():
    groups = {}
    for file in ROOT.glob("workflow/rules/*.smk"):
        for rule, body in re.findall(r"^ *rule (\w+):\n((?:(?! *rule ).*\n)+)", file.read_text(), re.MULTILINE):
            assert "log:" in body, f"{rule} keeps no log"
            assert "benchmark:" in body, f"{rule} is not measured"
            group = re.search(r'group:\s+"(\w+)"', body)
            groups |= {rule: group[1]} if group else {}
    assert groups == GROUPED


def test_every_profile_that_is_named_exists():
    named = set()
    for path in [ROOT / "README.md", *ROOT.glob("*/*.md"), ROOT / "Makefile", ROOT / "Snakefile",
                 *ROOT.glob("src/gibbsite/templates/*"), *ROOT.glob("workflow/*.sh")]:  # fmt: skip
        named |= set(re.findall(r"workflow/profiles/(\w+)", path.read_text()))
    assert named == {folder.name for folder in (ROOT / "workflow" / "profiles").iterdir()}


def test_the_size_of_a_scene_is_that_of_all_its_files_in_any_letter_case(tmp_path):
    for name, size in (("Cube.hdr", 100), ("CUBE.IMG", 2_000_000), ("cube.lbl", 300), ("cube_2.img", 5_000_000)):
        (tmp_path / name).write_bytes(bytes(size))
    assert megabytes(SceneFiles("a", str(tmp_path / "Cube.hdr"))) == pytest.approx(2.0004)
    assert megabytes(SceneFiles("a", str(tmp_path / "nowhere" / "cube.hdr"))) == 0.0
