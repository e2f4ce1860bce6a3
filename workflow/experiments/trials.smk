# One method on one table with one seed at a time; each is a file, so a stopped run goes on where it was.


rule trial:
    input:
        files_of_table,
    output:
        scores=f"{EXPERIMENTS}/trials/{{experiment}}/{{table}}/{{method}}/{{repeat}}.csv",
        # Apart: times differ from run to run.
        timings=f"{EXPERIMENTS}/trials/{{experiment}}/{{table}}/{{method}}/{{repeat}}_seconds.csv",
    log:
        f"{EXPERIMENTS}/logs/trials/{{experiment}}_{{table}}_{{method}}_{{repeat}}.log",
    benchmark:
        f"{EXPERIMENTS}/benchmarks/trials/{{experiment}}_{{table}}_{{method}}_{{repeat}}.tsv"
    wildcard_constraints:
        experiment="[a-z]+",
        table="[a-z0-9-]+",
        method="[a-z0-9-]+",
        repeat=r"\d+",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=3000,
        runtime=120,
    params:
        settings=experiment_settings("data", "chains", "sweeps", "cells"),
        # Not passed on: a trial is done anew when the defaults it is run with have changed.
        defaults=Fit().model_dump(),
        name=lambda wildcards: "/".join(
            (
                wildcards.experiment,
                wildcards.table,
                wildcards.method,
                wildcards.repeat,
            )
        ),
    shell:
        "gibbsite trial {params.name} --settings {params.settings:q} --timings {output.timings:q}"
        " --out {output.scores:q} 2> {log:q}"


rule gather:
    input:
        scores=trials_of(".csv"),
        timings=trials_of("_seconds.csv"),
    output:
        scores=f"{EXPERIMENTS}/scores/{{experiment}}.csv",
        timings=f"{EXPERIMENTS}/timings/{{experiment}}.csv",
    log:
        f"{EXPERIMENTS}/logs/gather/{{experiment}}.log",
    benchmark:
        f"{EXPERIMENTS}/benchmarks/gather/{{experiment}}.tsv"
    wildcard_constraints:
        experiment="[a-z]+",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=500,
        runtime=10,
    shell:
        # All files with the header line of the first.
        "(awk 'NR == 1 || FNR > 1' {input.scores:q} > {output.scores:q}"
        " && awk 'NR == 1 || FNR > 1' {input.timings:q} > {output.timings:q}) 2> {log:q}"
