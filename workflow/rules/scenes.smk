# One scene at a time: archive files -> cube -> features, shapes -> labels, and what the map is scored against.


# Threads of one job share the way to memory; more of them gain little, and each holds a block of lines. On a cluster two, which
# every node has.
CLEANING_THREADS = min(4, workflow.resource_settings.cores or 2)


rule ingest:
    input:
        unpack(cube_files),
    output:
        directory(f"{RESULTS}/cubes/{{scene}}.zarr"),
    log:
        f"{RESULTS}/logs/ingest/{{scene}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/ingest/{{scene}}.tsv"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=memory(1000),
        runtime=minutes(10, 10),
    params:
        settings=settings("ingest"),
        ddr=lambda wildcards: optional("--ddr", SCENES[wildcards.scene].ddr),
        wavelengths=lambda wildcards: optional(
            "--wavelengths", SCENES[wildcards.scene].wavelengths
        ),
    shell:
        "gibbsite ingest {input.cube:q} {params.ddr} {params.wavelengths}"
        " --settings {params.settings:q} --out {output:q} 2> {log:q}"


rule basis:
    input:
        cubes=each_scene("cubes/{scene}.zarr"),
        air=air_record(),
    output:
        directory(f"{RESULTS}/basis.zarr"),
    log:
        f"{RESULTS}/logs/basis.log",
    benchmark:
        f"{RESULTS}/benchmarks/basis.tsv"
    conda:
        "../../environment.yml"
    threads: CLEANING_THREADS
    resources:
        mem_mb=memory(900, per_thread=60),
        runtime=minutes(10, 20),
    params:
        settings=settings("clean", "features"),
    shell:
        "GIBBSITE_THREADS={threads} gibbsite basis {input.cubes:q} --settings {params.settings:q} --out {output:q} 2> {log:q}"


rule features:
    input:
        cube=f"{RESULTS}/cubes/{{scene}}.zarr",
        basis=f"{RESULTS}/basis.zarr",
        air=air_record(),
    output:
        features=directory(f"{RESULTS}/features/{{scene}}.zarr"),
        quick_look=f"{RESULTS}/quicklooks/{{scene}}.png",
    log:
        f"{RESULTS}/logs/features/{{scene}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/features/{{scene}}.tsv"
    conda:
        "../../environment.yml"
    threads: CLEANING_THREADS
    resources:
        mem_mb=memory(900, per_thread=60),
        runtime=minutes(10, 20),
    params:
        settings=settings("clean", "features"),
    shell:
        "GIBBSITE_THREADS={threads} gibbsite features {input.cube:q} --basis {input.basis:q}"
        " --settings {params.settings:q} --out {output.features:q} --quick-look {output.quick_look:q} 2> {log:q}"


rule labels:
    input:
        unpack(label_files),
        cube=f"{RESULTS}/cubes/{{scene}}.zarr",
    output:
        directory(f"{RESULTS}/labels/{{scene}}.zarr"),
    log:
        f"{RESULTS}/logs/labels/{{scene}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/labels/{{scene}}.tsv"
    group:
        "known"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=memory(1000, 0.1),
        runtime=minutes(10, 5),
    params:
        settings=settings("seed", "labels"),
        shapes=lambda wildcards: optional("--shapes", SCENES[wildcards.scene].labels),
        several="--one-of-several" if len(SCENES) > 1 else "",
    shell:
        "gibbsite labels --cube {input.cube:q} {params.shapes} {params.several}"
        " --settings {params.settings:q} --out {output:q} 2> {log:q}"


rule truth:
    input:
        unpack(truth_files),
        cube=f"{RESULTS}/cubes/{{scene}}.zarr",
        labels=f"{RESULTS}/labels/{{scene}}.zarr",
    output:
        directory(f"{RESULTS}/truths/{{scene}}.zarr"),
    log:
        f"{RESULTS}/logs/truth/{{scene}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/truth/{{scene}}.tsv"
    group:
        "known"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=memory(1000, 0.1),
        runtime=minutes(10, 5),
    params:
        raster=lambda wildcards: optional("--raster", SCENES[wildcards.scene].truth),
    shell:
        "gibbsite truth --cube {input.cube:q} --labels {input.labels:q} {params.raster} --out {output:q} 2> {log:q}"
