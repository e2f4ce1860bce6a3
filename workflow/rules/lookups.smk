# What rules look up in the settings and in the table of scenes.

import shlex


def settings(*sections):
    """The sections a step reads, as JSON: a rule reruns when one of these changes, and only then."""
    return json.dumps({name: config[name] for name in sections}, sort_keys=True)


def chain_settings(fit):
    """The settings of one chain: how many others there are does not matter to it."""
    own = {key: value for key, value in fit.items() if key != "chains"}
    return json.dumps({"seed": config["seed"], "fit": own}, sort_keys=True)


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


def air_record():
    """Label and image of the volcano scan: another one reruns all that was cleaned with it."""
    given = config["clean"]["atmosphere"] and config["clean"]["volcano_scan"]
    if not given:
        return []
    folder, stem = Path(given).parent, Path(given).stem.lower()
    there = folder.iterdir() if folder.is_dir() else []
    found = sorted(str(path) for path in there if path.stem.lower() == stem)
    # What `simulate` has yet to write: the same inputs now as in the next run, which would else do all anew.
    return found or [str(Path(given).with_suffix(kind)) for kind in (".img", ".lbl")]


def scenes_mb(wildcards):
    """Megabytes of the archive files of a rule's scene; of all scenes in rules that see them together."""
    scenes = [wildcards.scene] if "scene" in wildcards.keys() else SCENES
    return sum(megabytes(SCENES[scene]) for scene in scenes)


def memory(base, share=0.0, per_thread=0):
    """Megabytes for a rule: `base`, a share of its scenes' size, and some for each thread; doubled whenever it is
    tried again."""
    return lambda wildcards, attempt, threads: int(
        2 ** (attempt - 1)
        * (base + share * scenes_mb(wildcards) + per_thread * threads)
    )


def minutes(base, per_gigabyte):
    """Minutes for a rule; doubled whenever it is tried again."""
    return lambda wildcards, attempt: int(
        2 ** (attempt - 1) * (base + per_gigabyte * scenes_mb(wildcards) / 1000)
    )
