# Tables, figures and the page of all experiments, with their checksums.

EXPERIMENT_NAMES = list(dict.fromkeys(trial.experiment for trial in TRIALS))
CRISM_FOLDERS = (
    [f"{CRISM}/{model}" for model in CRISM_MODELS]
    if config["experiments"]["crism"]["lines"]
    else []
)


rule experiments_page:
    input:
        scores=expand(
            f"{EXPERIMENTS}/scores/{{experiment}}.csv", experiment=EXPERIMENT_NAMES
        ),
        timings=expand(
            f"{EXPERIMENTS}/timings/{{experiment}}.csv", experiment=EXPERIMENT_NAMES
        ),
        # Not named on the command line, which names their folders.
        crism=expand(
            "{folder}/{file}",
            folder=CRISM_FOLDERS,
            file=[
                "evaluation_held_out.json",
                "evaluation_truth.json",
                "interpretation.json",
                "spectra/spectra.csv",
            ],
        ),
    output:
        page=f"{EXPERIMENTS}/experiments.html",
        tables=directory(f"{EXPERIMENTS}/tables"),
        figures=directory(f"{EXPERIMENTS}/figures"),
        timings=f"{EXPERIMENTS}/timings.csv",
        sums=f"{EXPERIMENTS}/SHA256SUMS",
    log:
        f"{EXPERIMENTS}/logs/page.log",
    benchmark:
        f"{EXPERIMENTS}/benchmarks/page.tsv"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        settings=json.dumps({"experiments": config["experiments"]}),
        crism=CRISM_FOLDERS,
    shell:
        "gibbsite experiments --scores {input.scores:q} --timings {input.timings:q} --crism {params.crism:q}"
        ' --settings {params.settings:q} --out-dir "$(dirname {output.page:q})" 2> {log:q}'


rule experiments:
    input:
        rules.experiments_page.output.page,
