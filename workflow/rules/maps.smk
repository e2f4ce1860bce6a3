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
        component=f"{RESULTS}/maps/{{scene}}_component.tif",
        each_class=(
            [directory(f"{RESULTS}/maps/{{scene}}_probabilities.zarr")]
            if config["map"]["class_probabilities"]
            else []
        ),
    log:
        f"{RESULTS}/logs/map/{{scene}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/map/{{scene}}.tsv"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=memory(1000, 0.1),
        runtime=minutes(10, 60),
    params:
        settings=settings("map"),
    shell:
        "gibbsite map --features {input.features:q} --model {input.model:q} --settings {params.settings:q}"
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
        figures=report(
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
    resources:
        mem_mb=memory(1000, 0.1),
        runtime=minutes(10, 10),
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
    resources:
        mem_mb=memory(1000, 0.1),
        runtime=minutes(10, 10),
    params:
        settings=settings("spectra", "interpret"),
    shell:
        "gibbsite interpret --spectra {input.spectra:q} --model {input.model:q} --cubes {input.cubes:q}"
        " --maps {input.maps:q} --features {input.features:q} --settings {params.settings:q}"
        " --out {output:q} 2> {log:q}"


rule products:
    input:
        interpretation=f"{RESULTS}/interpretation.json",
        class_map=f"{RESULTS}/maps/{{scene}}_class.tif",
        layers=expand(
            f"{RESULTS}/maps/{{{{scene}}}}_{{layer}}.tif",
            layer=["probability", "entropy", "unknown", "component"],
        ),
        each_class=(
            [f"{RESULTS}/maps/{{scene}}_probabilities.zarr"]
            if config["map"]["class_probabilities"]
            else []
        ),
        model=f"{RESULTS}/model.zarr",
        cube=f"{RESULTS}/cubes/{{scene}}.zarr",
    output:
        polygons=f"{RESULTS}/products/{{scene}}_classes.gpkg",
        table=report(
            f"{RESULTS}/products/{{scene}}_classes.csv",
            caption="../report/classes.rst",
            category="Classes",
        ),
        item=f"{RESULTS}/products/{{scene}}_item.json",
        maps=expand(
            f"{RESULTS}/products/{{{{scene}}}}_{{layer}}.{{ending}}",
            layer=["class", "probability", "entropy", "unknown", "component"],
            ending=["tif", "qml", "sld"],
        ),
        tables=expand(
            f"{RESULTS}/products/{{{{scene}}}}_{{layer}}.tif.{{ending}}",
            layer=["class", "component"],
            ending=["aux.xml", "vat.dbf", "vat.cpg"],
        ),
        envi=multiext(f"{RESULTS}/products/{{scene}}_class", ".img", ".hdr"),
        each_class=(
            [directory(f"{RESULTS}/products/{{scene}}_probabilities")]
            if config["map"]["class_probabilities"]
            else []
        ),
    log:
        f"{RESULTS}/logs/products/{{scene}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/products/{{scene}}.tsv"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=memory(1000, 0.5),
        runtime=minutes(10, 20),
    params:
        settings=settings("products"),
        each_class=lambda wildcards, input: optional(
            "--class-probabilities", "".join(input.each_class)
        ),
    shell:
        "gibbsite products --class-map {input.class_map:q} --model {input.model:q} --cube {input.cube:q}"
        " --interpretation {input.interpretation:q} {params.each_class} --settings {params.settings:q}"
        ' --out-dir "$(dirname {output.polygons:q})" 2> {log:q}'


rule catalogue:
    input:
        each_scene("products/{scene}_item.json"),
    output:
        collection=f"{RESULTS}/products/collection.json",
        project=f"{RESULTS}/products/gibbsite.qgs",
    log:
        f"{RESULTS}/logs/catalogue.log",
    benchmark:
        f"{RESULTS}/benchmarks/catalogue.tsv"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=memory(1000),
        runtime=minutes(10, 1),
    shell:
        'gibbsite catalogue --items {input:q} --out-dir "$(dirname {output.project:q})" 2> {log:q}'
