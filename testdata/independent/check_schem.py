#!/usr/bin/env python3
"""Reads a schematic of version 2 or 3 with nothing but Python's standard library, and compares it.

    check_schem.py FILE --truth TRUTH.json --key FILE      figures of FILE in TRUTH.json
    check_schem.py FILE --same OTHER                       content of another schematic

Written from the specification (github.com/SpongePowered/Schematic-Specification); it shares no code with this project.
Compared with the truth are version 3, data version, size, total of each state, block entities and entities by id, and
the states at the sample places. Compared with another schematic are size, data version, the state and biome of every
block, block entities and entities with all of their data. Properties of a state are put in order first: the format
leaves their order open. Differences are printed, one a line; exit 0 when there are none, 1 otherwise.
"""

import argparse
import gzip
import json
import struct
import sys
from collections import Counter


class Nbt:
    """A cursor over the bytes of a tree."""

    NUMBERS = {1: ">b", 2: ">h", 3: ">i", 4: ">q", 5: ">f", 6: ">d"}
    ARRAYS = {11: "i", 12: "q"}

    def __init__(self, data):
        self.data = data
        self.at = 0

    def take(self, count):
        part = self.data[self.at : self.at + count]
        if len(part) != count:
            raise ValueError(f"{count} bytes are missing at {self.at}")
        self.at += count
        return part

    def number(self, form):
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def text(self):
        return self.take(self.number(">H")).decode("utf-8", "surrogatepass")

    def value(self, tag):
        if tag in self.NUMBERS:
            return self.number(self.NUMBERS[tag])
        if tag == 7:
            return self.take(self.number(">i"))
        if tag == 8:
            return self.text()
        if tag == 9:
            inner, count = self.number(">B"), self.number(">i")
            return [self.value(inner) for _ in range(count)]
        if tag == 10:
            fields = {}
            while True:
                tag = self.number(">B")
                if tag == 0:
                    return fields
                name = self.text()
                fields[name] = self.value(tag)
        if tag in self.ARRAYS:
            count = self.number(">i")
            width = struct.calcsize(self.ARRAYS[tag])
            return list(struct.unpack(f">{count}{self.ARRAYS[tag]}", self.take(count * width)))
        raise ValueError(f"tag {tag} at {self.at}")

    def root(self):
        tag, name = self.number(">B"), self.text()
        if tag != 10:
            raise ValueError(f"the root has tag {tag}")
        fields = self.value(tag)
        if self.at != len(self.data):
            raise ValueError(f"{len(self.data) - self.at} bytes behind the root")
        return name, fields


def varints(data):
    """The numbers of a byte array: seven bits a byte, lowest first."""
    numbers, number, shift = [], 0, 0
    for byte in data:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(number)
            number = shift = 0
    if shift:
        raise ValueError("the last number is cut off")
    return numbers


def in_order(state):
    block, bracket, properties = state.partition("[")
    if not bracket:
        return state
    return block + "[" + ",".join(sorted(properties[:-1].split(","))) + "]"


class Schematic:
    """What a file says, in one form for both versions."""

    def __init__(self, path):
        with open(path, "rb") as file:
            name, root = Nbt(gzip.decompress(file.read())).root()
        said = root.get("Schematic", root)
        self.version, self.data_version = said["Version"], said["DataVersion"]
        if self.version == 3 and (name != "" or set(root) != {"Schematic"}):
            raise ValueError("version 3 is one compound named Schematic in a root without a name")
        self.size = [said[side] & 0xFFFF for side in ("Width", "Height", "Length")]
        cells = self.size[0] * self.size[1] * self.size[2]
        if self.version == 3:
            blocks, biomes = said["Blocks"], said.get("Biomes")
        else:
            blocks = {"Palette": said["Palette"], "Data": said["BlockData"]}
            blocks["BlockEntities"] = said.get("BlockEntities", said.get("TileEntities", []))
            biomes = None
            if "BiomeData" in said:
                biomes = {"Palette": said["BiomePalette"], "Data": said["BiomeData"] * self.size[1]}
        self.states = self.names(blocks, cells, in_order)
        self.biomes = None if biomes is None else self.names(biomes, cells, str)
        self.block_entities = self.things(blocks.get("BlockEntities", []), [0, 0, 0])
        offset = said.get("Offset", [0, 0, 0]) if self.version == 2 else [0, 0, 0]
        self.entities = self.things(said.get("Entities", []), offset)

    @staticmethod
    def names(grid, cells, form):
        palette = {index: form(name) for name, index in grid["Palette"].items()}
        names = [palette[index] for index in varints(grid["Data"])]
        if len(names) != cells:
            raise ValueError(f"{len(names)} entries for {cells} blocks")
        return names

    def things(self, listed, offset):
        found = []
        for thing in listed:
            own = {name: value for name, value in thing.items() if name not in ("Id", "Pos")}
            data = own.get("Data", {}) if self.version == 3 else own
            # The writers of version 2 give places in a world.
            pos = [number - offset for number, offset in zip(thing["Pos"], offset)]
            found.append(json.dumps([thing["Id"], pos, data], sort_keys=True, default=bytes.hex))
        return sorted(found)

    @staticmethod
    def by_id(things):
        return dict(Counter(json.loads(thing)[0] for thing in things))


def against_truth(found, truth):
    totals = Counter()
    for state, count in truth["states"].items():
        totals[in_order(state)] += count
    width, _, length = found.size
    samples = {
        f"state at {x} {y} {z}": (found.states[x + (z + y * length) * width], in_order(state))
        for x, y, z, state in truth["samples_xyz_state"]
    }
    return {
        "version": (found.version, 3),
        "data version": (found.data_version, truth["data_version"]),
        "size": (found.size, truth["dims"]),
        "states": (dict(Counter(found.states)), dict(totals)),
        "block entities": (Schematic.by_id(found.block_entities), truth["block_entities"]),
        "entities": (Schematic.by_id(found.entities), truth["entities"]),
        **samples,
    }


def against_other(found, other):
    fields = ("size", "data_version", "states", "biomes", "block_entities", "entities")
    return {field: (getattr(found, field), getattr(other, field)) for field in fields}


def shown(value):
    text = str(value)
    return text if len(text) <= 300 else text[:300] + "…"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--truth")
    parser.add_argument("--key")
    parser.add_argument("--same")
    args = parser.parse_args()
    found = Schematic(args.file)
    compared = {}
    if args.truth:
        with open(args.truth, encoding="utf-8") as file:
            compared.update(against_truth(found, json.load(file)[args.key]))
    if args.same:
        compared.update(against_other(found, Schematic(args.same)))
    different = {what: pair for what, pair in compared.items() if pair[0] != pair[1]}
    for what, (ours, theirs) in different.items():
        print(f"{args.file}: {what}: {shown(ours)} where {shown(theirs)} is expected")
    return 1 if different or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
