# What rules look up in the settings and in the table of scenes.

import shlex


def settings(*sections):
    """The sections a step reads, as JSON: a rule reruns when one of these changes, and only then."""
    return json.dumps({name: config[name] for name in sections}, sort_keys=True)


def each_scene(pattern):
    return expand(f"{RESULTS}/{pattern}", scene=SCENES)


def optional(flag, path):
    return f"{flag} {shlex.quote(path)}" if path else ""


def cube_files(wildcards):
    files = SCENES[wildcards.scene]
    named = {"cube": files.cube, "ddr": files.ddr, "wavelengths": files.wavelengths}
    return {name: path for name, path in named.items() if path}


def label_files(wildcards):
    shapes = SCENES[wildcards.scene].labels
    return {"shapes": shapes} if shapes else {}


def truth_files(wildcards):
    raster = SCENES[wildcards.scene].truth
    return {"raster": raster} if raster else {}
