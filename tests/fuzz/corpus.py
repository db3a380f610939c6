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
    """What reaches edges that nothing in the tree reaches; counters would let in an input for each number of rounds."""
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
            subprocess.run([program, path], stdout=subprocess.DEVNULL, check=True,
                           env=os.environ | {"LLVM_PROFILE_FILE": f"{profile}-%p.profraw"})
    subprocess.run([PROFDATA, "merge", "-o", f"{profile}.profdata", *folder.glob(f"{target}-*.profraw")], check=True)
    told = subprocess.run([COV, "export", "-summary-only", "-instr-profile", f"{profile}.profdata", program, *files],
                          check=True, capture_output=True, text=True).stdout
    data = json.loads(told)["data"][0]
    lines = data["totals"]["lines"]
    each = ", ".join(f"{os.path.basename(file['filename'])} {file['summary']['lines']['percent']:.0f} %" for file in data["files"])
    return f"{target:20} {lines['covered']:5} of {lines['count']:5} lines, {lines['percent']:5.1f} %: {each}"
