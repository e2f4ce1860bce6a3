# All scenes at once: chains of the sampler -> one model.
# Where a step runs does not change its result, so the cluster's settings are resources, which cause no rerun.

# Without a number of threads a chain takes every core, and chains run one after the other. Where others sweep (an
# existing scheduler, or workers that are Slurm jobs of their own) the step itself needs one.
FIT_THREADS = (
    1
    if config["cluster"]["kind"] in ("address", "slurm")
    else max(1, config["cluster"]["workers"]) * config["cluster"]["threads"]
    or workflow.resource_settings.cores
    or 1
)
CHAINS = range(1, config["fit"]["chains"] + 1)


rule fit:
    input:
        features=each_scene("features/{scene}.zarr"),
        labels=each_scene("labels/{scene}.zarr"),
        # Not read: a wrong truth must end the run before the sampler starts. Another truth needs no other chain.
        truths=ancient(each_scene("truths/{scene}.zarr")),
    output:
        directory(f"{RESULTS}/chains/{{chain}}.zarr"),
    log:
        f"{RESULTS}/logs/fit/{{chain}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/fit/{{chain}}.tsv"
    conda:
        "../../environment.yml"
    threads: FIT_THREADS
    resources:
        mem_mb=memory(1500, 0.2),
        runtime=minutes(20, 0.1 * config["fit"]["sweeps"]),
        # Not called `cluster`: the Slurm executor would take it for the name of one.
        sweeps_on=settings("cluster"),
    params:
        settings=chain_settings(config["fit"]),
        # Not an output: those of a failed job are deleted.
        checkpoint=f"{RESULTS}/checkpoints/{{chain}}.zarr",
        # Nor this: times differ from run to run.
        timings=f"{RESULTS}/benchmarks/fit/{{chain}}_sweeps.tsv",
    shell:
        "GIBBSITE_THREADS={threads} gibbsite fit --features {input.features:q} --labels {input.labels:q} --chain {wildcards.chain}"
        " --settings {params.settings:q} --settings {resources.sweeps_on:q} --checkpoint {params.checkpoint:q}"
        " --timings {params.timings:q} --out {output:q} 2> {log:q}"


rule select:
    input:
        chains=expand(f"{RESULTS}/chains/{{chain}}.zarr", chain=CHAINS),
        features=each_scene("features/{scene}.zarr"),
        labels=each_scene("labels/{scene}.zarr"),
    output:
        directory(f"{RESULTS}/model.zarr"),
    log:
        f"{RESULTS}/logs/select.log",
    benchmark:
        f"{RESULTS}/benchmarks/select.tsv"
    conda:
        "../../environment.yml"
    threads: FIT_THREADS
    resources:
        mem_mb=memory(1500, 0.2),
        runtime=minutes(20, 0.2 * config["select"]["polish_sweeps"]),
        # Not called `cluster`: the Slurm executor would take it for the name of one.
        sweeps_on=settings("cluster"),
    params:
        settings=settings("seed", "select"),
    shell:
        "GIBBSITE_THREADS={threads} gibbsite select --chains {input.chains:q} --features {input.features:q} --labels {input.labels:q}"
        " --settings {params.settings:q} --settings {resources.sweeps_on:q} --out {output:q} 2> {log:q}"
