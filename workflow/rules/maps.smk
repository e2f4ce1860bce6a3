# The model back on the scenes: maps, spectra, products.


rule map:
    input:
        features=f"{RESULTS}/features/{{scene}}.zarr",
        model=f"{RESULTS}/model.zarr",
    output:
        code=f"{RESULTS}/maps/{{scene}}_class.tif",
        probability=f"{RESULTS}/maps/{{scene}}_probability.tif",
        entropy=f"{RESULTS}/maps/{{scene}}_entropy.tif",
        unknown=f"{RESULTS}/maps/{{scene}}_unknown.tif",
    log:
        f"{RESULTS}/logs/map/{{scene}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/map/{{scene}}.tsv"
    conda:
        "../../environment.yml"
    shell:
        "gibbsite map --features {input.features:q} --model {input.model:q}"
        ' --out-dir "$(dirname {output.code:q})" 2> {log:q}'


rule spectra:
    input:
        cubes=each_scene("cubes/{scene}.zarr"),
        maps=each_scene("maps/{scene}_class.tif"),
        model=f"{RESULTS}/model.zarr",
    output:
        table=report(
            f"{RESULTS}/spectra/spectra.csv",
            caption="../report/spectra.rst",
            category="Spectra",
        ),
        others=report(
            expand(f"{RESULTS}/spectra/spectra.{{kind}}", kind=["png", "pdf", "nc"]),
            caption="../report/spectra.rst",
            category="Spectra",
        ),
        libraries=expand(
            f"{RESULTS}/spectra/spectra{{quantity}}.{{kind}}",
            quantity=["", "_ratio", "_continuum_removed"],
            kind=["sli", "hdr"],
        ),
    log:
        f"{RESULTS}/logs/spectra.log",
    benchmark:
        f"{RESULTS}/benchmarks/spectra.tsv"
    conda:
        "../../environment.yml"
    params:
        settings=settings("spectra"),
    shell:
        "gibbsite spectra --cubes {input.cubes:q} --maps {input.maps:q} --model {input.model:q}"
        ' --settings {params.settings:q} --out-dir "$(dirname {output.table:q})" 2> {log:q}'


rule interpret:
    input:
        spectra=f"{RESULTS}/spectra/spectra.csv",
        model=f"{RESULTS}/model.zarr",
        cubes=each_scene("cubes/{scene}.zarr"),
        maps=each_scene("maps/{scene}_class.tif"),
        features=each_scene("features/{scene}.zarr"),
        # Not named on the command line: the settings name them.
        libraries=config["interpret"]["libraries"],
    output:
        report(
            f"{RESULTS}/interpretation.json",
            caption="../report/interpretation.rst",
            category="Classes",
        ),
    log:
        f"{RESULTS}/logs/interpret.log",
    benchmark:
        f"{RESULTS}/benchmarks/interpret.tsv"
    conda:
        "../../environment.yml"
    params:
        settings=settings("spectra", "interpret"),
    shell:
        "gibbsite interpret --spectra {input.spectra:q} --model {input.model:q} --cubes {input.cubes:q}"
        " --maps {input.maps:q} --features {input.features:q} --settings {params.settings:q}"
        " --out {output:q} 2> {log:q}"


rule products:
    input:
        class_map=f"{RESULTS}/maps/{{scene}}_class.tif",
        probability=f"{RESULTS}/maps/{{scene}}_probability.tif",
        model=f"{RESULTS}/model.zarr",
    output:
        polygons=f"{RESULTS}/products/{{scene}}_classes.gpkg",
        code=f"{RESULTS}/products/{{scene}}_class.tif",
        style=f"{RESULTS}/products/{{scene}}_class.qml",
        table=report(
            f"{RESULTS}/products/{{scene}}_classes.csv",
            caption="../report/classes.rst",
            category="Classes",
        ),
    log:
        f"{RESULTS}/logs/products/{{scene}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/products/{{scene}}.tsv"
    conda:
        "../../environment.yml"
    params:
        settings=settings("products"),
    shell:
        "gibbsite products --class-map {input.class_map:q} --probability {input.probability:q}"
        ' --model {input.model:q} --settings {params.settings:q} --out-dir "$(dirname {output.polygons:q})" 2> {log:q}'
