# The paper's experiment on CRISM: a simulated observation through the pipeline's own rules, once per model.


rule crism_simulate:
    output:
        cube=multiext(f"{CRISM}/observation/frt0000ace5_07_if166l_trr3", ".lbl", ".img"),
        ddr=multiext(f"{CRISM}/observation/frt0000ace5_07_de166l_ddr1", ".lbl", ".img"),
        wavelengths=multiext(f"{CRISM}/observation/{CRISM_WA}", ".lbl", ".img"),
        labels=f"{CRISM}/observation/labels.gpkg",
        truth=f"{CRISM}/observation/trr3_truth.tif",
        summary=f"{CRISM}/observation/truth.json",
    log:
        crism_log("simulate"),
    benchmark:
        crism_benchmark("simulate")
    conda:
        "../../environment.yml"
    resources:
        mem_mb=1500,
        runtime=120,
    params:
        settings=json.dumps({"seed": config["seed"], "simulate": CRISM_OBSERVATION}),
        folder=subpath(output[0], parent=True),
    shell:
        "gibbsite simulate --settings {params.settings:q} --out {params.folder:q} 2> {log:q}"


use rule ingest as crism_ingest with:
    input:
        cube=rules.crism_simulate.output.cube[0],
        ddr=rules.crism_simulate.output.ddr[0],
        wavelengths=rules.crism_simulate.output.wavelengths[0],
    output:
        directory(f"{CRISM}/cubes/{CRISM_SCENE}.zarr"),
    log:
        crism_log("ingest"),
    benchmark:
        crism_benchmark("ingest")
    resources:
        mem_mb=2000,
        runtime=60,
    params:
        settings=settings("ingest"),
        ddr=lambda wildcards, input: optional("--ddr", input.ddr),
        wavelengths=lambda wildcards, input: optional(
            "--wavelengths", input.wavelengths
        ),


use rule basis as crism_basis with:
    input:
        cubes=rules.crism_ingest.output,
    output:
        directory(f"{CRISM}/basis.zarr"),
    log:
        crism_log("basis"),
    benchmark:
        crism_benchmark("basis")
    resources:
        mem_mb=2000,
        runtime=60,


use rule features as crism_features with:
    input:
        cube=rules.crism_ingest.output,
        basis=rules.crism_basis.output,
    output:
        features=directory(f"{CRISM}/features/{CRISM_SCENE}.zarr"),
        quick_look=f"{CRISM}/quicklook.png",
    log:
        crism_log("features"),
    benchmark:
        crism_benchmark("features")
    resources:
        mem_mb=2000,
        runtime=60,


use rule labels as crism_labels with:
    input:
        cube=rules.crism_ingest.output,
        shapes=rules.crism_simulate.output.labels,
    output:
        directory(f"{CRISM}/labels/{CRISM_SCENE}.zarr"),
    log:
        crism_log("labels"),
    benchmark:
        crism_benchmark("labels")
    resources:
        mem_mb=2000,
        runtime=60,
    params:
        settings=settings("seed", "labels"),
        shapes=lambda wildcards, input: optional("--shapes", input.shapes),
        several="",


# Two answers to what a map is scored against: the paper's, the labels held out, and all pixels of the simulated truth.
use rule truth as crism_held_out with:
    input:
        cube=rules.crism_ingest.output,
        labels=rules.crism_labels.output,
    output:
        directory(f"{CRISM}/held_out/{CRISM_SCENE}.zarr"),
    log:
        crism_log("held_out"),
    benchmark:
        crism_benchmark("held_out")
    resources:
        mem_mb=2000,
        runtime=60,
    params:
        raster="",


use rule truth as crism_truth with:
    input:
        cube=rules.crism_ingest.output,
        labels=rules.crism_labels.output,
        raster=rules.crism_simulate.output.truth,
    output:
        directory(f"{CRISM}/truth/{CRISM_SCENE}.zarr"),
    log:
        crism_log("truth"),
    benchmark:
        crism_benchmark("truth")
    resources:
        mem_mb=2000,
        runtime=60,
    params:
        raster=lambda wildcards, input: optional("--raster", input.raster),


use rule fit as crism_fit with:
    input:
        features=rules.crism_features.output.features,
        labels=rules.crism_labels.output,
    output:
        directory(f"{CRISM}/{{model}}/chains/{{chain}}.zarr"),
    log:
        crism_log("fit_{model}_{chain}"),
    benchmark:
        crism_benchmark("fit_{model}_{chain}")
    resources:
        mem_mb=3000,
        runtime=240,
        sweeps_on=settings("cluster"),
    params:
        settings=crism_fit_settings,
        checkpoint=f"{CRISM}/{{model}}/checkpoints/{{chain}}.zarr",
        timings=f"{EXPERIMENTS}/benchmarks/crism/fit_{{model}}_{{chain}}_sweeps.tsv",


use rule select as crism_select with:
    input:
        chains=expand(
            f"{CRISM}/{{{{model}}}}/chains/{{chain}}.zarr", chain=CRISM_CHAINS
        ),
        features=rules.crism_features.output.features,
        labels=rules.crism_labels.output,
    output:
        directory(f"{CRISM}/{{model}}/model.zarr"),
    log:
        crism_log("select_{model}"),
    benchmark:
        crism_benchmark("select_{model}")
    resources:
        mem_mb=3000,
        runtime=120,
        sweeps_on=settings("cluster"),


use rule map as crism_map with:
    input:
        features=rules.crism_features.output.features,
        model=rules.crism_select.output,
    output:
        code=f"{CRISM}/{{model}}/maps/{CRISM_SCENE}_class.tif",
        others=expand(
            f"{CRISM}/{{{{model}}}}/maps/{CRISM_SCENE}_{{layer}}.tif",
            layer=["probability", "entropy", "unknown", "component"],
        ),
    log:
        crism_log("map_{model}"),
    benchmark:
        crism_benchmark("map_{model}")
    resources:
        mem_mb=2000,
        runtime=60,
    params:
        settings=json.dumps({"map": {"class_probabilities": False}}),


use rule spectra as crism_spectra with:
    input:
        cubes=rules.crism_ingest.output,
        maps=rules.crism_map.output.code,
        model=rules.crism_select.output,
    output:
        table=f"{CRISM}/{{model}}/spectra/spectra.csv",
        figures=expand(
            f"{CRISM}/{{{{model}}}}/spectra/spectra.{{kind}}",
            kind=["png", "pdf", "nc"],
        ),
    log:
        crism_log("spectra_{model}"),
    benchmark:
        crism_benchmark("spectra_{model}")
    resources:
        mem_mb=2000,
        runtime=60,


use rule interpret as crism_interpret with:
    input:
        spectra=rules.crism_spectra.output.table,
        model=rules.crism_select.output,
        cubes=rules.crism_ingest.output,
        maps=rules.crism_map.output.code,
        features=rules.crism_features.output.features,
        libraries=config["interpret"]["libraries"],
    output:
        f"{CRISM}/{{model}}/interpretation.json",
    log:
        crism_log("interpret_{model}"),
    benchmark:
        crism_benchmark("interpret_{model}")
    resources:
        mem_mb=2000,
        runtime=60,


use rule evaluate as crism_evaluate with:
    input:
        maps=rules.crism_map.output.code,
        truths=f"{CRISM}/{{against}}/{CRISM_SCENE}.zarr",
        model=rules.crism_select.output,
    output:
        f"{CRISM}/{{model}}/evaluation_{{against}}.json",
    log:
        crism_log("evaluate_{model}_{against}"),
    benchmark:
        crism_benchmark("evaluate_{model}_{against}")
    resources:
        mem_mb=2000,
        runtime=60,
