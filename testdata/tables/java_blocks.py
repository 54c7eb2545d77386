#!/usr/bin/env python3
"""Prints `cg-cli/src/mapping/blocks.rs`: which blocks of Minecraft Java Edition hide what is behind them.

    npm pack minecraft-data@3.117.0 && tar xzf minecraft-data-3.117.0.tgz
    python3 testdata/tables/java_blocks.py package 26.1 > cg-cli/src/mapping/blocks.rs
    python3 testdata/tables/java_blocks.py package 26.1 states > testdata/tables/java_states.txt

With `states` it prints the answer for every state of that version, by which a test of `mapping/kind.rs` checks the table
and its reader. A line is a block: its name, its properties with their values, the last of which counts fastest, and
whether its states hide what is behind them: `+` all, `-` none, or a digit for each.

The first argument is the unpacked npm package `minecraft-data` (MIT), the second the version of the game. Blocks that
only versions from 1.13 on before it have are added, each as the last of them has it. Only the standard library is used.

Three fields decide, and where they contradict each other in a way that no rule below explains, nothing is printed:

- `transparent` true: no state hides anything. The game says so itself of glass, leaves and shulker boxes.
- `filterLight` 15: the default state hides what is behind it, and so do all states that have the same shape.
- The collision shapes decide which of several states are cubes: slabs with `type=double`, pistons that are not
  extended. `filterLight` is that of the default state only, which is not the cube of a slab.
"""

import itertools
import json
import sys
from pathlib import Path

# Drawn as cubes, though bodies sink into them by an eighth. The game's light stops at them: `filterLight` is 15.
SINKS = {"soul_sand", "mud"}
# One state is a cube and no collision shape says so: bodies sink into snow by one of its eight layers.
ONE_STATE = {"snow": "layers=8"}


def axes(block):
    """The properties with their values."""
    for axis in block["states"]:
        values = axis.get("values") or (["true", "false"] if axis["type"] == "bool" else range(axis["num_values"]))
        yield axis["name"], [str(value) for value in values]


def states(block):
    """The properties of every state, in the order of the state ids: the last property counts fastest."""
    return list(itertools.product(*([f"{name}={value}" for value in values] for name, values in axes(block))))


def is_cube(boxes):
    """Whether boxes together fill the cell."""
    cuts = [sorted({0.0, 1.0, *(box[axis + side] for box in boxes for side in (0, 3))}) for axis in range(3)]
    cells = itertools.product(*(list(itertools.pairwise(cut)) for cut in cuts))
    inside = (cell for cell in cells if all(0 <= low and high <= 1 for low, high in cell))
    return all(any(covers(box, cell) for box in boxes) for cell in inside)


def covers(box, cell):
    return all(box[axis] <= low and high <= box[axis + 3] for axis, (low, high) in enumerate(cell))


def number(version):
    return tuple(int(part) for part in version.split("."))


def hiding(block, shapes):
    """Whether each state hides what is behind it."""
    name, all_states = block["name"], states(block)
    shape_ids = shapes["blocks"][name]
    shape_ids = shape_ids if isinstance(shape_ids, list) else [shape_ids]
    if len(shape_ids) == 1:
        shape_ids *= len(all_states)
    if len(shape_ids) != len(all_states):
        raise ValueError(f"{name} has {len(all_states)} states and {len(shape_ids)} shapes")
    cubes = [is_cube(shapes["shapes"][str(shape)]) for shape in shape_ids]
    stops_light = block["filterLight"] == 15
    if block["transparent"]:
        return [False] * len(cubes)
    if name in ONE_STATE and not any(cubes):
        return [ONE_STATE[name] in state for state in all_states]
    if stops_light and name in SINKS:
        return [True] * len(cubes)
    if stops_light and not any(cubes):
        raise ValueError(f"{name} stops light and is no cube")
    if all(cubes) and not stops_light:
        raise ValueError(f"{name} is a cube and stops no light")
    return cubes


def fill(block, shapes):
    """The table's word for a block."""
    hides, all_states = hiding(block, shapes), states(block)
    if all(hides):
        return "Cube"
    if not any(hides):
        return "Open" if block["boundingBox"] == "empty" else "Part"
    for pair in sorted(set(itertools.chain.from_iterable(all_states))):
        if [pair in state for state in all_states] == hides:
            return f'CubeIf("{pair}")'
    raise ValueError(f"no one property says which states of {block['name']} are cubes")


def print_states(table, release, version):
    """Prints the answer for every state, and checks that no state of the version is left out."""
    found = sorted(table.values(), key=lambda found: found[0]["minStateId"])
    ids = [id for block, _ in found for id in range(block["minStateId"], block["maxStateId"] + 1)]
    if ids != list(range(len(ids))) or len(ids) != sum(len(states(block)) for block, _ in found):
        raise ValueError("the states have other ids than 0 and up")
    print(f"# {len(found):,} blocks with {len(ids):,} states of Minecraft Java Edition {version}, from the npm package")
    print(f"# minecraft-data {release} (MIT); printed by java_blocks.py, which says how, and not edited by hand.")
    for block, shapes in sorted(found, key=lambda found: found[0]["name"]):
        hides = hiding(block, shapes)
        answer = "+" if all(hides) else "-" if not any(hides) else "".join(str(int(one)) for one in hides)
        print(" ".join([block["name"], *(f"{axis}={','.join(values)}" for axis, values in axes(block)), answer]))


def read(package, version, paths):
    data = package / "minecraft-data/data"
    blocks = json.loads((data / paths[version]["blocks"] / "blocks.json").read_text())
    shapes = json.loads((data / paths[version]["blockCollisionShapes"] / "blockCollisionShapes.json").read_text())
    return {block["name"]: (block, shapes) for block in blocks}


def main():
    package, version = Path(sys.argv[1]), sys.argv[2]
    release = json.loads((package / "package.json").read_text())["version"]
    paths = json.loads((package / "minecraft-data/data/dataPaths.json").read_text())["pc"]
    table = read(package, version, paths)
    newest = len(table)
    if sys.argv[3:] == ["states"]:
        return print_states(table, release, version)
    versions = [one for one in paths if one.replace(".", "").isdigit()]
    older = [one for one in versions if (1, 13) <= number(one) < number(version)]
    for one in sorted(older, key=number, reverse=True):
        for name, found in read(package, one, paths).items():
            table.setdefault(name, found)
    lines = [f'    ("{name}", {fill(*found)}),' for name, found in sorted(table.items())]
    print(f"""\
//! The blocks of Minecraft Java Edition {version}, and which states of them hide what is behind them: a table.
//!
//! Source: the npm package `minecraft-data` {release} (<https://github.com/PrismarineJS/minecraft-data>), MIT licence.
//! It holds the {newest:,} blocks of {version} and {len(table) - newest} names that only older versions from 1.13 on have.
//! Printed by `testdata/tables/java_blocks.py`, which says how the package's fields decide; not edited by hand.

use super::kind::Fill::{{self, Cube, CubeIf, Open, Part}};

/// Every block without its namespace, sorted.
pub(crate) static BLOCKS: [(&str, Fill); {len(table)}] = [
{chr(10).join(lines)}
];""")


if __name__ == "__main__":
    main()
