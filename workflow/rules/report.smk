# What people read: the score where there is something to score against, and the page.

SCORED_SCENES = [
    scene for scene, files in SCENES.items() if files.truth or files.labels
]


rule evaluate:
    input:
        maps=expand(f"{RESULTS}/maps/{{scene}}_class.tif", scene=SCORED_SCENES),
        truths=expand(f"{RESULTS}/truths/{{scene}}.zarr", scene=SCORED_SCENES),
        model=f"{RESULTS}/model.zarr",
    output:
        f"{RESULTS}/evaluation.json",
    log:
        f"{RESULTS}/logs/evaluate.log",
    benchmark:
        f"{RESULTS}/benchmarks/evaluate.tsv"
    group:
        "page"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=memory(1000, 0.1),
        runtime=minutes(10, 5),
    shell:
        "gibbsite evaluate --maps {input.maps:q} --truths {input.truths:q} --model {input.model:q}"
        " --out {output:q} 2> {log:q}"


rule report:
    input:
        model=f"{RESULTS}/model.zarr",
        chains=expand(f"{RESULTS}/chains/{{chain}}.zarr", chain=CHAINS),
        cubes=each_scene("cubes/{scene}.zarr"),
        labels=each_scene("labels/{scene}.zarr"),
        quick_looks=each_scene("quicklooks/{scene}.png"),
        maps=each_scene("maps/{scene}_class.tif"),
        probabilities=each_scene("maps/{scene}_probability.tif"),
        spectra=f"{RESULTS}/spectra/spectra.csv",
        interpretation=f"{RESULTS}/interpretation.json",
        evaluation=[f"{RESULTS}/evaluation.json"] if SCORED_SCENES else [],
    output:
        page=report(
            f"{RESULTS}/report.html", caption="../report/report.rst", category="Report"
        ),
        timings=report(
            f"{RESULTS}/timings.html",
            caption="../report/timings.rst",
            category="Report",
        ),
        figures=report(
            directory(f"{RESULTS}/figures"),
            patterns=["{name}.png"],
            caption="../report/figures.rst",
            category="Figures",
        ),
    log:
        f"{RESULTS}/logs/report.log",
    benchmark:
        f"{RESULTS}/benchmarks/report.tsv"
    group:
        "page"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=memory(1500, 0.1),
        runtime=minutes(20, 5),
    params:
        settings=settings(
            "seed",
            "ingest",
            "clean",
            "features",
            "labels",
            "fit",
            "select",
            "spectra",
            "interpret",
            "report",
        ),
        evaluation=optional(
            "--evaluation", f"{RESULTS}/evaluation.json" if SCORED_SCENES else ""
        ),
        # Not an input: nobody makes them anew, and the report is as good without.
        timings=expand(f"{RESULTS}/benchmarks/fit/{{chain}}_sweeps.tsv", chain=CHAINS),
    shell:
        "gibbsite report --model {input.model:q} --chains {input.chains:q} --cubes {input.cubes:q}"
        " --labels {input.labels:q} --quick-looks {input.quick_looks:q} --maps {input.maps:q} --spectra {input.spectra:q}"
        " --interpretation {input.interpretation:q} {params.evaluation} --settings {params.settings:q}"
        " --figures {output.figures:q} --timings {params.timings:q} --out {output.page:q} 2> {log:q}"
