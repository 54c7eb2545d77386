#!/usr/bin/env python3
"""Makes a save in the folders of before 26.1 from one in the folders of 26.1, for tests of the old layout.

    make_old_save.py SAVE OUT

Region files go to the root, `DIM-1` and `DIM1`, players to `playerdata`, `advancements` and `stats`, saved data to
`data`; `level.dat` says that 1.21.11 wrote it. Chunks and all other files keep their bytes. OUT must not be there. The
same SAVE makes the same bytes. It shares no code with this project.
"""

import argparse
import gzip
import shutil
from pathlib import Path, PurePosixPath

from typed_nbt import INT, STRING, field, make, parse, write

# The last game with the old folders.
VERSION, VERSION_NAME = 4671, "1.21.11"
# The first rule that fits a path counts; what no rule fits keeps its path.
MOVES = (
    ("dimensions/minecraft/overworld/data/minecraft", "data"),
    ("dimensions/minecraft/overworld", ""),
    ("dimensions/minecraft/the_nether/data/minecraft", "DIM-1/data"),
    ("dimensions/minecraft/the_nether", "DIM-1"),
    ("dimensions/minecraft/the_end/data/minecraft", "DIM1/data"),
    ("dimensions/minecraft/the_end", "DIM1"),
    ("players/data", "playerdata"),
    ("players/advancements", "advancements"),
    ("players/stats", "stats"),
    ("data/minecraft", "data"),
)


def moved(path):
    """Where the old layout has a file."""
    for before, after in MOVES:
        if PurePosixPath(before) in path.parents:
            return PurePosixPath(after) / path.relative_to(before)
    return path


def aged(packed):
    """A `level.dat` as the older game would have marked it."""
    name, level, end = parse(gzip.decompress(packed))
    data = field(level, b"Data")[1]
    data[b"DataVersion"] = make(INT, VERSION)
    version = data[b"Version"][1]
    version[b"Id"] = make(INT, VERSION)
    version[b"Name"] = make(STRING, VERSION_NAME)
    return gzip.compress(write(name, level), mtime=0)


def make_old_save(save, out):
    targets = {}
    for path in sorted(path for path in save.rglob("*") if path.is_file()):
        target = moved(PurePosixPath(path.relative_to(save).as_posix()))
        if target in targets:
            raise ValueError(f"{path} and {targets[target]} would both be {target}")
        targets[target] = path
    out.mkdir(parents=True)
    for target, path in targets.items():
        place = out / target
        place.parent.mkdir(parents=True, exist_ok=True)
        if target.name in ("level.dat", "level.dat_old") and len(target.parts) == 1:
            place.write_bytes(aged(path.read_bytes()))
        else:
            shutil.copyfile(path, place)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("save", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    if not (options.save / "level.dat").is_file():
        parser.error(f"{options.save} has no level.dat")
    if options.out.exists():
        parser.error(f"{options.out} is there already")
    make_old_save(options.save, options.out)


if __name__ == "__main__":
    main()
