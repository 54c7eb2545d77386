#!/usr/bin/env python3
"""Prints `cg-minecraft/src/game/blocks.txt`: the blocks of Minecraft Java Edition, their default states, and which states hide
what is behind them.

    npm pack minecraft-data@3.117.0 && tar xzf minecraft-data-3.117.0.tgz
    mvn dependency:copy -Dartifact=net.minestom:data:26.2-rv3 -DoutputDirectory=.
    python3 testdata/tables/java_blocks.py package data-26.2-rv3.jar > cg-minecraft/src/game/blocks.txt
    python3 testdata/tables/java_blocks.py package data-26.2-rv3.jar states > testdata/tables/java_states.txt

The first argument is the unpacked npm package `minecraft-data` (MIT licence), the second the Maven artefact
`net.minestom:data` (Apache licence 2.0). The artefact has the blocks of the newest version. The package has those of
1.13 and later up to the version before: names that the newest does not have, each as the last version has it, and since
when a block has a property. Where both have a block, they must say the same of it, or nothing is printed. Only the
standard library is used.

A line of the table is a block, or a family of blocks that neither source has (`*_slab`, `potted_*`), which is printed only
if all blocks of such a name are alike: its name, what of its cell is full, and each property with its default value. After
`@` follows the DataVersion of the first release in which a block that was there before has the property.

| word | states of the block |
|---|---|
| `cube` | all are cubes that hide what is behind them |
| `cube:KEY=VALUE` | those with this property are |
| `part` | none is, but bodies stop at it |
| `open` | none is, and bodies pass through its default state |

With `states` the answer for every state of the newest version is printed, by which tests check the table and its reader.
A line is a block: its name, its properties with their values, the last of which counts fastest, and whether its states
hide what is behind them: `+` all, `-` none, or a digit for each.

In the artefact a state hides what is behind it if the block occludes, its light is stopped whole (`lightBlock` 15) and its
occlusion shape is a cube. In the package three fields decide:

- `transparent` true: no state hides anything. The game says so itself of glass, leaves and shulker boxes.
- `filterLight` 15: the default state hides what is behind it, and so do all states that have the same shape.
- The collision shapes decide which of several states are cubes: slabs with `type=double`, pistons that are not
  extended. `filterLight` is that of the default state only, which is not the cube of a slab.
"""

import functools
import itertools
import json
import re
import sys
import zipfile
from pathlib import Path

# Drawn as cubes, though bodies sink into them by an eighth. The game's light stops at them: `filterLight` is 15.
SINKS = {"soul_sand", "mud"}
# One state is a cube and no collision shape says so: bodies sink into snow by one of its eight layers.
ONE_STATE = {"snow": "layers=8"}
# Kinds of which the game gets new ones, by the end of the name; `potted_` is the beginning.
FAMILIES = (
    "*_button *_concrete *_door *_fence *_fence_gate *_hanging_sign *_leaves *_log *_planks *_pressure_plate *_sapling *_shelf "
    "*_sign *_slab *_stairs *_trapdoor *_wall *_wall_hanging_sign *_wall_sign *_wood *_wool potted_*"
).split()
# Named like a family and of another kind.
NO_MEMBERS = {"light_weighted_pressure_plate", "heavy_weighted_pressure_plate", "bamboo_sapling"}
BOX = re.compile(r"AABB\[([^]]*)\] -> \[([^]]*)\]")


class Block:
    """A block: `axes` are its properties with their values, `default` the values of its default state, `hides` gives an
    answer for each state, and `is_open` says that bodies pass through it."""

    def __init__(self, axes, default, hides, is_open):
        self.axes, self.default, self.is_open = axes, default, is_open
        self.answers = hides

    @functools.cached_property
    def hides(self):
        # Of a block that a newer version has, an older one is not asked: its fields may contradict each other.
        return self.answers()

    def states(self):
        """The properties of every state: the last property counts fastest."""
        return list(itertools.product(*([f"{name}={value}" for value in values] for name, values in self.axes)))

    def fill(self):
        """The table's word."""
        if all(self.hides):
            return "cube"
        if not any(self.hides):
            return "open" if self.is_open else "part"
        states = self.states()
        for pair in sorted(set(itertools.chain.from_iterable(states))):
            if [pair in state for state in states] == self.hides:
                return f"cube:{pair}"
        raise ValueError(f"no one property says which states are cubes: {self.axes}")


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


# The npm package.


def of_package(block, shapes):
    axes = []
    for axis in block["states"]:
        values = axis.get("values") or (["true", "false"] if axis["type"] == "bool" else range(axis["num_values"]))
        axes.append((axis["name"], [str(value) for value in values]))
    found = Block(axes, {}, lambda: hiding(block, states, shapes), block["boundingBox"] == "empty")
    states = found.states()
    found.default = dict(pair.split("=") for pair in states[block["defaultState"] - block["minStateId"]])
    return found


def hiding(block, states, shapes):
    """Whether each state hides what is behind it."""
    name = block["name"]
    shape_ids = shapes["blocks"][name]
    shape_ids = shape_ids if isinstance(shape_ids, list) else [shape_ids]
    if len(shape_ids) == 1:
        shape_ids *= len(states)
    if len(shape_ids) != len(states):
        raise ValueError(f"{name} has {len(states)} states and {len(shape_ids)} shapes")
    cubes = [is_cube(shapes["shapes"][str(shape)]) for shape in shape_ids]
    stops_light = block["filterLight"] == 15
    if block["transparent"]:
        return [False] * len(cubes)
    if name in ONE_STATE and not any(cubes):
        return [ONE_STATE[name] in state for state in states]
    if stops_light and name in SINKS:
        return [True] * len(cubes)
    if stops_light and not any(cubes):
        raise ValueError(f"{name} stops light and is no cube")
    if all(cubes) and not stops_light:
        raise ValueError(f"{name} is a cube and stops no light")
    return cubes


class Package:
    def __init__(self, folder):
        self.data = folder / "minecraft-data/data"
        self.release = json.loads((folder / "package.json").read_text())["version"]
        self.paths = json.loads((self.data / "dataPaths.json").read_text())["pc"]
        protocols = json.loads((self.data / "pc/common/protocolVersions.json").read_text())
        self.data_versions = {one["minecraftVersion"]: one.get("dataVersion") for one in protocols}
        named = [one for one in self.paths if one.replace(".", "").isdigit() and number(one) >= (1, 13)]
        # Of versions that share a file, the first.
        self.versions = []
        for one in sorted(named, key=number):
            if not self.versions or self.paths[one]["blocks"] != self.paths[self.versions[-1]]["blocks"]:
                self.versions.append(one)

    def read(self, version):
        paths = self.paths[version]
        blocks = json.loads((self.data / paths["blocks"] / "blocks.json").read_text())
        shapes = json.loads((self.data / paths["blockCollisionShapes"] / "blockCollisionShapes.json").read_text())
        return {block["name"]: of_package(block, shapes) for block in blocks}


# The Maven artefact.


def of_artefact(block):
    axes, default = list(block.get("properties", {}).items()), {}
    hides = []
    for text, state in sorted(block["states"].items(), key=lambda one: one[1]["stateId"]):
        pairs = [pair for pair in text.strip("[]").split(",") if pair]
        if state["stateId"] == block["defaultStateId"]:
            default = dict(pair.split("=") for pair in pairs)
        whole = {**block, **state}
        boxes = [tuple(map(float, f"{low},{high}".split(","))) for low, high in BOX.findall(whole["occlusionShape"])]
        hides.append(bool(whole["occludes"] and whole["lightBlock"] == 15 and is_cube(boxes)))
    found = Block(axes, default, lambda: hides, not BOX.search(block["collisionShape"]))
    if len(hides) != len(found.states()) or set(default) != {name for name, _ in axes}:
        raise ValueError(f"{block['id']} has {len(hides)} states, not those of its properties")
    return found


def read_artefact(jar):
    with zipfile.ZipFile(jar) as files:
        blocks = json.loads(files.read("net/minestom/data/block.json"))
        version = json.loads(files.read("net/minestom/data/constants.json"))
    return {name.removeprefix("minecraft:"): of_artefact(block) for name, block in blocks.items()}, version


def check_same(name, ours, theirs):
    for what in ("axes", "default", "hides", "is_open"):
        if getattr(ours, what) != getattr(theirs, what):
            raise ValueError(f"{name}: the sources differ in {what}: {getattr(ours, what)}, {getattr(theirs, what)}")


def is_member(name, family):
    return name.startswith(family[:-1]) if family.endswith("*") else name.endswith(family[1:])


def family_of(name):
    """The family of a name: of several the longest, and `potted_` before all."""
    found = [family for family in FAMILIES if is_member(name, family) and name not in NO_MEMBERS]
    return max(found, key=lambda family: (family.endswith("*"), len(family)), default=None)


def line_of(name, block, since):
    keys = sorted(block.default)
    marks = [f"@{since[name, key]}" if (name, key) in since else "" for key in keys]
    return " ".join([name, block.fill(), *(f"{key}={block.default[key]}{mark}" for key, mark in zip(keys, marks))])


def families(newest):
    for family in sorted(FAMILIES):
        members = [line_of(family, block, {}) for name, block in newest.items() if family_of(name) == family]
        if len(members) < 4 or len(set(members)) != 1:
            raise ValueError(f"the blocks {family} are not alike: {set(members)}")
        yield members[0]


def print_states(newest, source):
    count = sum(len(block.hides) for block in newest.values())
    print(f"# {len(newest):,} blocks with {count:,} states of Minecraft Java Edition, from {source};")
    print("# printed by java_blocks.py, which says how, and not edited by hand.")
    for name, block in sorted(newest.items()):
        answer = "+" if all(block.hides) else "-" if not any(block.hides) else "".join(str(int(one)) for one in block.hides)
        print(" ".join([name, *(f"{axis}={','.join(values)}" for axis, values in block.axes), answer]))


def main():
    package, (newest, version) = Package(Path(sys.argv[1])), read_artefact(sys.argv[2])
    artefact = Path(sys.argv[2]).name.removeprefix("data-").removesuffix(".jar")
    table, since = {}, {}
    for one in package.versions:
        for name, block in package.read(one).items():
            if name in table:
                new = set(block.default) - set(table[name].default)
                since.update({(name, key): package.data_versions[one] for key in new})
            table[name] = block
        last = one
    for name in package.read(last).keys() & newest.keys():
        check_same(name, table[name], newest[name])
    if sys.argv[3:] == ["states"]:
        return print_states(newest, f"the Maven artefact net.minestom:data {artefact} (Apache-2.0)")
    table.update(newest)
    since = {(name, key): at for (name, key), at in since.items() if key in table[name].default}
    print(f"# The {len(newest):,} blocks of Minecraft Java Edition {version['name']} (DataVersion {version['world']}),")
    print(f"# {len(table) - len(newest)} names that only older versions from 1.13 on have, and families of other names.")
    print(f"# Sources: the Maven artefact net.minestom:data {artefact} (Apache licence 2.0), and for the older names and the")
    print(f"# versions after @ the npm package minecraft-data {package.release} (MIT licence, copyright PrismarineJS).")
    print("# Printed by testdata/tables/java_blocks.py, which says what a line means; not edited by hand.")
    lines = [line_of(name, block, since) for name, block in table.items()]
    print("\n".join(sorted([*families(newest), *lines], key=lambda line: line.split()[0])))


if __name__ == "__main__":
    main()
