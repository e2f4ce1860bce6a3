"""The project keeps its word: versions agree, every setting is written down, modules stay within their borders."""

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from command_line import BIN, ROOT, environment
from gibbsite import settings
from gibbsite.scenes import read_scenes
from gibbsite.settings import Settings
from gibbsite.simulate.observation import files

PACKAGE = ROOT / "src" / "gibbsite"

# ---------------------------------------------------------------------------------------------------- versions

CONDA_NAMES = {"snakemake": "snakemake-minimal", "dask": "dask-core", "matplotlib": "matplotlib-base"}
"""PyPI name -> conda name, where conda's package of the same name brings more than is needed."""


def locked_versions() -> dict[str, str]:
    """Package -> version of requirements.lock."""
    found = re.findall(r"^([A-Za-z0-9_.-]+)==([^\s;]+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    return dict(found)


def runtime_dependencies() -> list[str]:
    """Names of the packages that pyproject.toml requires at run time."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [re.split(r"[<>=!~; \[]", line)[0].lower() for line in project["dependencies"]]


def test_environment_yml_has_the_versions_of_the_lock():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    found = dict(line.split("=", 1) for line in environment["dependencies"])
    locked = locked_versions()
    expected = {CONDA_NAMES.get(name, name): locked[name] for name in runtime_dependencies()}
    assert found == expected | {"python": found["python"]}
    lowest = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"].removeprefix(">=")
    assert found["python"] == lowest, "conda users get the oldest Python that the lock was resolved for"


def test_the_lock_holds_nothing_but_pinned_packages_and_their_hashes():
    text = (ROOT / "requirements.lock").read_text().replace("\\\n", " ")
    pinned = re.compile(r"[a-z0-9.-]+==[^\s;]+( ; [^\\]+?)?(\s+--hash=sha256:[0-9a-f]{64})+\s*")
    strange = [line[:80] for line in text.splitlines() if line.strip() and not pinned.fullmatch(line)]
    assert not strange, "lines that are not `name==version --hash=...`: an index, a host, or a package without hash"


def test_the_lock_has_every_package_of_pyproject():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    wanted = {re.split(r"[<>=!~; \[]", line)[0].lower() for line in named}
    assert wanted - set(locked_versions()) == set()


# ---------------------------------------------------------------------------------------------------- settings

CONFIG = ROOT / "config" / "config.yaml"


def leaves(mapping: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The place of every key that has a value and no keys of its own."""
    for key, value in mapping.items():
        if isinstance(value, dict):
            yield from leaves(value, (*above, key))
        else:
            yield (*above, key)


ALL_KEYS = list(leaves(Settings().model_dump(mode="json")))


def test_config_yaml_has_every_key_at_its_default():
    assert yaml.safe_load(CONFIG.read_text()) == Settings().model_dump(mode="json")
    assert settings.load([str(CONFIG)]) == Settings()


def test_config_yaml_explains_every_key_on_its_line_or_under_it():
    lines = CONFIG.read_text().splitlines()
    groups, seen, bare = [], [], []
    for number, line in enumerate(lines):
        key = re.match(r"( *)([a-z0-9_]+):(.*)", line)
        if not key:
            continue
        below = lines[number + 1].strip() if number + 1 < len(lines) else ""
        is_group = not key[3].split("#")[0].strip()
        groups = groups[: len(key[1]) // 2]
        place = (*groups, key[2])
        groups += [key[2]] if is_group else []
        seen += [] if is_group else [place]
        if not is_group and "# " not in key[3] and not below.startswith("# "):
            bare.append(".".join(place))
    assert seen, "no key found at all: the test no longer reads the file"
    assert sorted(seen) == sorted(ALL_KEYS)
    assert not bare, "keys of config.yaml without a comment"


def test_config_readme_mentions_every_key():
    text = (ROOT / "config" / "README.md").read_text()
    absent = [".".join(place) for place in ALL_KEYS if not re.search(rf"(?<![a-z0-9_]){place[-1]}(?![a-z0-9_])", text)]
    assert not absent, "keys that config/README.md does not mention"


def test_the_schema_snakemake_validates_with_is_that_of_the_settings():
    found = (ROOT / "workflow" / "schemas" / "config.schema.json").read_text()
    assert found == settings.schema(), "run `make schema`"


def test_the_demo_maps_files_that_the_simulation_writes():
    demo = settings.validate(yaml.safe_load((ROOT / "config" / "demo.yaml").read_text()), "demo.yaml")
    written = {f"{demo.simulate.folder}/{name}" for name in files(demo.simulate)}
    scenes = read_scenes(ROOT / demo.scenes)
    assert scenes
    for scene in scenes.values():
        named = {path for path in (scene.cube, scene.ddr, scene.wavelengths, scene.labels, scene.truth) if path}
        assert named - written == set()


def test_the_table_of_scenes_that_users_fill_in_starts_empty():
    assert read_scenes(ROOT / Settings().scenes) == {}


# ---------------------------------------------------------------------------------------------------- what is told

HOSTS = ("py" + "pi.", "python" + "hosted", "ana" + "conda.org", "arti" + "factory", "dev" + "pi", "crates" + ".io")
FLAGS = ("--index" + "-url", "--extra-index" + "-url", "--find" + "-links", "--trusted" + "-host", "INDEX" + "_URL")
HOMES = ("home", "root", "work", "Users", "tmp", "mnt", "scratch")


def project_files() -> list[Path]:
    """Files that are in git or would be added."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode:
        pytest.skip("not a git checkout, so what belongs to the project is not known")
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    return [path for path in paths if path.is_file()]


def test_no_file_names_a_package_registry():
    pattern = re.compile("|".join(map(re.escape, HOSTS + FLAGS)))
    assert matches(pattern) == []


def test_no_file_names_a_path_of_one_machine():
    # Not in the middle of a longer path or address.
    pattern = re.compile(r"(?<![\w.*<>})\]-])/(" + "|".join(HOMES) + r")/\w")
    assert matches(pattern) == []


def matches(pattern: re.Pattern[str]) -> list[str]:
    """File, line number and text of all matches in the project's text files."""
    found = []
    for path in project_files():
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue
        here = path.relative_to(ROOT)
        found += [f"{here}:{number}: {line[:120]}" for number, line in enumerate(lines, 1) if pattern.search(line)]
    return found


# ---------------------------------------------------------------------------------------------------- borders

FLOOR = {"__init__", "errors", "settings"}
"""What every module may import."""
MATHS = {
    *("statistics", "niw", "kernels", "features", "fences", "streams", "diagnostics"),
    *("clean", "crism", "evaluate", "palette", "spectra", "threads"),
    *("continuum", "bland", "absorptions", "matching", "mixtures", "artefacts", "whereabouts", "pixel_spectra"),
}
SAMPLER = {
    *("gibbs", "moves", "class_rules", "splits", "replay", "hyper", "maps", "state", "tiles", "components"),
    *("start", "start_cells", "fusion", "sampling", "plan", "class_splits", "consensus"),
}
EDGES = {
    *("cli", "steps", "simulate", "cluster", "store", "scene", "scenes"),
    *("pds", "label_tokens", "envi", "geotiff", "tile", "bands", "image", "ddr", "wavelength", "volcano"),
    *("product", "product_kinds", "observation", "ingest", "mars", "projection", "projected", "footprints"),
    *("label_files", "labels", "drawings", "places", "shapes", "points", "rois", "class_raster", "raster_grid"),
    *("inspection", "survey", "quicklook"),
    *("sources", "corrections", "blocks", "lit", "gains", "cleaned", "before_after", "growing", "feature_store"),
    *("truth", "pixels"),
    *(
        "chain",
        "checkpoint",
        "differences",
        "progress",
        "model",
        "classifier",
        "coarse_columns",
        "column_residuals",
        "column_scale",
        "row_order",
        "table_checks",
        "versions",
    ),
    *(
        "raster",
        "rows",
        "zones",
        "ground",
        "footprint",
        "patches",
        "polygons",
        "geopackage",
        "class_layers",
        "class_table",
        "attribute_table",
    ),
    *("cog", "layers", "qml", "sld", "envi_classes", "stac", "qgis_project", "products"),
    *("figures", "interactive", "pages", "report", "timings", "mapped_scenes", "experiments"),
    *("spectra_files", "library", "interpretation", "cards", "page_pixels"),
}
LAYERS = {"floor": FLOOR, "maths": MATHS, "sampler": SAMPLER, "edges": EDGES}
MAY_IMPORT = {
    # The package's front door names the classifier, and imports it only when it is asked for.
    "floor": FLOOR | {"classifier"},
    "maths": MATHS | {"errors"},
    "sampler": SAMPLER | MATHS | FLOOR,
    "edges": EDGES | SAMPLER | MATHS | FLOOR,
}
ONLY_EDGES = {
    *("rasterio", "xarray", "zarr", "geopandas", "pyogrio", "shapely", "pyproj", "pystac", "pvl", "rio_cogeo"),
    *("bokeh", "matplotlib", "jinja2", "tqdm", "dask", "distributed", "dask_jobqueue", "snakemake"),
}
"""Libraries that read, write, draw or distribute; the middle and the maths know nothing of them."""

MODULES = sorted(PACKAGE.rglob("*.py"))


def part_of(path: Path) -> str:
    """The module, or the package inside gibbsite, that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> Iterator[str]:
    """Dotted names of everything a file imports, also inside functions and for types only."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def libraries(path: Path) -> set[str]:
    return {name.split(".")[0] for name in imported(path)}


def own_parts(path: Path) -> set[str]:
    """The modules and packages of gibbsite that a file imports."""
    names = [name.split(".") for name in imported(path) if name.split(".")[0] == "gibbsite"]
    parts = {part_of(module) for module in MODULES}
    # `from gibbsite import __version__` names no module.
    return {name[1] for name in names if len(name) > 1 and name[1] in parts}


def offenders(wrong: Mapping[str, set[str]]) -> dict[str, list[str]]:
    return {name: sorted(found) for name, found in wrong.items() if found}


def layer_of(path: Path) -> str:
    return next(layer for layer, parts in LAYERS.items() if part_of(path) in parts)


def test_every_module_belongs_to_exactly_one_layer():
    parts = {part_of(path) for path in MODULES}
    placed = [part for layer in LAYERS.values() for part in layer]
    assert sorted(parts - set(placed)) == [], "modules without a layer: place them in LAYERS"
    assert sorted(set(placed) - parts) == [], "modules that are gone: take them out of LAYERS"
    assert len(placed) == len(set(placed)), "a module is in two layers"


@pytest.mark.parametrize("layer", sorted(LAYERS))
def test_modules_import_only_from_their_own_layer_and_those_below(layer):
    paths = [path for path in MODULES if layer_of(path) == layer]
    wrong = {str(path.relative_to(PACKAGE)): own_parts(path) - MAY_IMPORT[layer] for path in paths}
    assert paths
    assert offenders(wrong) == {}


@pytest.mark.parametrize("layer", ["floor", "maths", "sampler"])
def test_below_the_edges_no_module_reads_writes_draws_or_distributes(layer):
    paths = [path for path in MODULES if layer_of(path) == layer]
    assert offenders({path.name: libraries(path) & ONLY_EDGES for path in paths}) == {}


@pytest.mark.parametrize(
    ("library", "home"),
    [
        ("distributed", "cluster"),
        ("dask", "cluster"),
        ("dask_jobqueue", "cluster"),
        ("numba", "kernels"),
        ("bokeh", "interactive"),
    ],
)
def test_a_library_has_one_home(library, home):
    users = {part_of(path) for path in MODULES if library in libraries(path)}
    assert users <= {home}


def test_only_the_command_line_knows_the_steps():
    users = [path.name for path in MODULES if "steps" in own_parts(path)]
    assert users == [], "steps are called by name from cli.py; nothing imports them"
    assert "gibbsite.steps." in (PACKAGE / "cli.py").read_text()


def test_kernels_import_nothing_of_the_sampler_or_the_edges():
    wrong = {path.name: own_parts(path) - {"kernels"} for path in MODULES if part_of(path) == "kernels"}
    assert offenders(wrong) == {}


# ---------------------------------------------------------------------------------------------------- sizes


def longest_module(path: Path) -> int:
    return 320 if part_of(path) == "kernels" else 300


def test_no_module_is_longer_than_300_lines():
    n_lines = {path: len(path.read_text().splitlines()) for path in MODULES}
    assert {str(path.relative_to(ROOT)): n for path, n in n_lines.items() if n > longest_module(path)} == {}


def test_no_function_body_is_longer_than_40_lines_except_kernels():
    wrong = {}
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())) if part_of(path) != "kernels" else ():
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and body_lines(node) > 40:
                wrong[f"{path.relative_to(PACKAGE)}: {node.name}"] = body_lines(node)
    assert wrong == {}


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function's body, without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def test_no_module_collects_strays():
    names = {"utils", "util", "helpers", "helper", "common", "base", "manager", "handler", "misc"}
    found = [path for top in ("src", "tests", "workflow") for path in (ROOT / top).rglob("*") if path.stem in names]
    assert found == []


# ---------------------------------------------------------------------------------------------------- commands


@pytest.mark.parametrize(
    ("goal", "command"),
    [("demo", "--configfile config/demo.yaml"), ("test", "-m pytest"), ("lint", "snakefmt --check Snakefile workflow")],
)
def test_make_goals_install_once_and_run_from_their_own_environment(goal, command, tmp_path):
    fresh = subprocess.run(
        ["make", "--dry-run", f"VENV={tmp_path / 'venv'}", goal],
        cwd=ROOT, capture_output=True, text=True, check=True, env=environment(),
    ).stdout  # fmt: skip
    assert "--require-hashes -r requirements.lock" in fresh
    assert fresh.index("requirements.lock") < fresh.index(command)
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv" / ".ready").touch()
    again = subprocess.run(
        ["make", "--dry-run", f"VENV={tmp_path / 'venv'}", goal],
        cwd=ROOT, capture_output=True, text=True, check=True, env=environment(),
    ).stdout  # fmt: skip
    assert command in again
    assert "requirements.lock" not in again


def test_the_commands_the_rules_call_are_installed_together():
    assert (BIN / "gibbsite").exists()
    assert (BIN / "snakemake").exists()
