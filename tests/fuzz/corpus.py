# SPDX-License-Identifier: MIT
"""The inputs of a target: those worth a place in the tree, and the lines that they reach."""
import json
import os
import shutil
import subprocess

# Inputs larger than this do not get into the tree.
KEEP_BYTES = 4096
# Of LLVM 14, as the compiler of the presets.
PROFDATA, COV = "llvm-profdata-14", "llvm-cov-14"


def minimize(folder, corpora, target):
    """Inputs that reach edges that no other input reaches; counters would add an input for each number of rounds."""
    kept, small = corpora / target, folder / "small" / target
    kept.mkdir(parents=True, exist_ok=True)
    before = sum(1 for _ in kept.iterdir())
    shutil.rmtree(small, ignore_errors=True)
    small.mkdir(parents=True)
    grown = folder / "corpora" / target
    for path in grown.iterdir() if grown.is_dir() else ():
        if path.stat().st_size <= KEEP_BYTES:
            shutil.copy(path, small)
    with open(folder / f"{target}.log", "wb") as log:
        subprocess.run([folder / "tests" / f"fuzz-{target}", "-merge=1", "-use_counters=0", f"-max_len={KEEP_BYTES}", kept, small],
                       stdout=log, stderr=log, check=True)
    shutil.rmtree(small)
    after = sum(1 for _ in kept.iterdir())
    return f"{target:20} {after:4} inputs, {after - before} of them new"


def cover(folder, inputs, target, files):
    """The lines that inputs of these folders reach in files that the target is for."""
    program, profile = folder / "tests" / f"fuzz-{target}", folder / target
    for old in folder.glob(f"{target}-*.profraw"):
        old.unlink()
    for path in inputs:
        if path.is_dir() and any(path.iterdir()):
            # A module that it loads has a profile of its own.
            subprocess.run([program, path], stdout=subprocess.DEVNULL, check=True,
                           env=os.environ | {"LLVM_PROFILE_FILE": f"{profile}-%p-%m.profraw"})
    subprocess.run([PROFDATA, "merge", "-o", f"{profile}.profdata", *folder.glob(f"{target}-*.profraw")], check=True)
    modules = [word for path in sorted((folder / "modules").rglob("*.so")) for word in ("-object", path)]
    told = subprocess.run([COV, "export", "-summary-only", "-instr-profile", f"{profile}.profdata", program, *modules],
                          check=True, capture_output=True, text=True).stdout
    # By the end of their names: a compiler's cache may have made them relative.
    seen = {name: file["summary"]["lines"] for name in files for file in json.loads(told)["data"][0]["files"]
            if file["filename"].endswith("/" + name)}
    covered, count = (sum(lines[what] for lines in seen.values()) for what in ("covered", "count"))
    each = ", ".join(f"{os.path.basename(name)} {lines['percent']:.0f} %" for name, lines in seen.items())
    return f"{target:20} {covered:5} of {count:5} lines, {100 * covered / max(count, 1):5.1f} %: {each}"
