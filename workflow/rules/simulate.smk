# A simulated observation in archive formats, when config has simulate.folder (the demo).

if config["simulate"]["folder"]:
    # The WA file's name carries the binning, as in the archive.
    BINNING_CODE = {1: 0, 2: 1, 5: 2, 10: 3}[config["simulate"]["binning"]]

    rule simulate:
        output:
            expand(
                f"{config['simulate']['folder']}/frt0000ace5_07_{{product}}",
                product=[
                    "if166l_trr3.img",
                    "if166l_trr3.lbl",
                    "if166s_trr3.img",
                    "if166s_trr3.lbl",
                    "de166l_ddr1.img",
                    "de166l_ddr1.lbl",
                    "if166j_mtr3.img",
                    "if166j_mtr3.hdr",
                    "if166j_mtr3.lbl",
                    "in166j_mtr3.img",
                    "in166j_mtr3.hdr",
                    "in166j_mtr3.lbl",
                ],
            ),
            expand(
                f"{config['simulate']['folder']}/cdr410803692813_wa0{BINNING_CODE}00000{{sensor}}.{{kind}}",
                sensor=["l_3", "s_2"],
                kind=["img", "lbl"],
            ),
            expand(
                f"{config['simulate']['folder']}/adr10000000000_00000_vs{BINNING_CODE}0l_8.{{kind}}",
                kind=["img", "lbl"],
            ),
            expand(
                f"{config['simulate']['folder']}/{{name}}",
                name=[
                    "labels.gpkg",
                    "trr3_labels.tif",
                    "mtr3_labels.tif",
                    "trr3_truth.tif",
                    "mtr3_truth.tif",
                    "truth.json",
                    "truth_spectra.csv",
                ],
            ),
        log:
            f"{RESULTS}/logs/simulate.log",
        benchmark:
            f"{RESULTS}/benchmarks/simulate.tsv"
        conda:
            "../../environment.yml"
        resources:
            mem_mb=memory(1000),
            runtime=minutes(60, 0),
        params:
            settings=settings("seed", "simulate"),
            folder=subpath(output[0], parent=True),
        shell:
            "gibbsite simulate --settings {params.settings:q} --out {params.folder:q} 2> {log:q}"
