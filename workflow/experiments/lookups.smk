# What the rules of the experiments look up in the settings.

from gibbsite.experiments.plan import trials
from gibbsite.experiments import catalogue
from gibbsite.settings import Experiments, Fit

EXPERIMENTS = config["experiments"]["folder"]
TRIALS = trials(Experiments.model_validate(config["experiments"], strict=False))


def experiment_settings(*keys):
    """The keys of `experiments` that shape a result, as JSON."""
    return json.dumps(
        {"experiments": {key: config["experiments"][key] for key in keys}}
    )


def files_of_table(wildcards):
    """So that trials are done anew when their data have changed."""
    folder = Path(config["experiments"]["data"])
    return [str(path) for path in catalogue.files(wildcards.table, folder)]


def trials_of(ending):
    return lambda wildcards: [
        f"{EXPERIMENTS}/trials/{trial.name}{ending}"
        for trial in TRIALS
        if trial.experiment == wildcards.experiment
    ]


CRISM = f"{EXPERIMENTS}/crism"
CRISM_SCENE = "frt0000ace5"
CRISM_MODELS = ["igmm", "i2gmm", "ai2gmm"]
CRISM_OBSERVATION = config["simulate"] | {
    key: config["experiments"]["crism"][key] for key in ("lines", "binning")
}
CRISM_CHAINS = range(1, config["experiments"]["crism"]["chains"] + 1)
CRISM_WA = f"cdr410803692813_wa0{ {1: 0, 2: 1, 5: 2, 10: 3}[CRISM_OBSERVATION['binning']]}00000l_3"


def crism_fit_settings(wildcards):
    asked = {"sweeps": config["experiments"]["crism"]["sweeps"]}
    fit = config["fit"] | asked | {"model": wildcards.model}
    return chain_settings(fit)


def crism_log(step):
    return f"{EXPERIMENTS}/logs/crism/{step}.log"


def crism_benchmark(step):
    return f"{EXPERIMENTS}/benchmarks/crism/{step}.tsv"
