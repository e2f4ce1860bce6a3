# The whole pipeline, from archive files to maps, spectra and a report:
#   snakemake --workflow-profile workflow/profiles/local
# Settings: config/config.yaml. Scenes: the table it names.

import json
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger
from snakemake.utils import min_version, validate

from gibbsite.errors import GibbsiteError
from gibbsite.scenes import check_files, megabytes, read_scenes
from gibbsite.settings import validate as check_settings

min_version("9.0")


configfile: "config/config.yaml"


# gibbsite's own check comes first: it names the key, what was found and what is allowed, in one line.
try:
    config.update(check_settings(config, "config").model_dump(mode="json"))
    SCENES = read_scenes(Path(config["scenes"]))
    check_files(Path(config["scenes"]), SCENES, config["simulate"]["folder"])
except GibbsiteError as error:
    is_nested = any(
        isinstance(given, dict) for given in workflow.config_settings.config.values()
    )
    hint = "; --config passes nested keys on as text: use --configfile for them"
    raise WorkflowError(f"{error}{hint if is_nested else ''}")
validate(config, "workflow/schemas/config.schema.json")
if not SCENES:
    logger.warning(
        f"{config['scenes']} lists no scene: add a row, or try the demo: --configfile config/demo.yaml"
        " (the target `experiments` needs none)"
    )
RESULTS = config["results"]


wildcard_constraints:
    scene="|".join(SCENES),
    chain=r"\d+",


include: "workflow/rules/lookups.smk"
include: "workflow/rules/simulate.smk"
include: "workflow/rules/scenes.smk"
include: "workflow/rules/model.smk"
include: "workflow/rules/maps.smk"
include: "workflow/rules/report.smk"
include: "workflow/experiments/lookups.smk"
include: "workflow/experiments/trials.smk"
include: "workflow/experiments/crism.smk"
include: "workflow/experiments/page.smk"


rule all:
    default_target: True
    input:
        # Asked for here too: Snakemake does not look for a missing file that only a finished rule would need.
        (
            each_scene("maps/{scene}_probabilities.zarr")
            if config["map"]["class_probabilities"]
            else []
        ),
        [f"{RESULTS}/report.html", f"{RESULTS}/spectra/spectra.csv"] if SCENES else [],
        each_scene("maps/{scene}_class.tif"),
        each_scene("products/{scene}_classes.gpkg"),
        [f"{RESULTS}/products/gibbsite.qgs"] if SCENES else [],
