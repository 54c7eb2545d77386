#!/usr/bin/env python3
"""Counts what a directory of region files holds, with a reader that shares no code with this project.

    check_export.py DIR [--truth TRUTH.json --key FILE]

DIR holds r.X.Z.mca files, in itself or in `region` and `entities` below it. Printed is one JSON object: chunks, sections with
blocks, total of each block state, block entities and entities by id. With --truth the figures of FILE in
TRUTH.json are compared and differences are printed to stderr; exit 0 when there are none, 1 otherwise.

Region files and NBT are read by anvil-parser2 (see xtask/requirements.txt). Totals are counted by the few lines
below; on a sample of each column's cells they are compared with the package's own `get_block`.
"""

import argparse
import json
import re
import sys
from collections import Counter
from pathlib import Path

import anvil

CELLS = 4096
PADDED_WORDS = 2529
SAMPLES_PER_SECTION = 2
# What the package can read by coordinates: of a section without indices it says air, whatever the palette says.
PACKAGE_SECTIONS = range(-4, 20)


def state_text(entry):
    """`name[key=value,...]` of a palette entry, keys ascending, with the properties that the entry says.

    Since 26.3 an entry is a string, `{"": string}`, or `{id, properties}`; before it `{Name, Properties}`. What an entry
    leaves out is the default state's, which only the game knows.
    """
    if not hasattr(entry, "tags"):
        return entry.value
    fields = {tag.name: tag for tag in entry.tags}
    name = next(name for name in ("Name", "id", "") if name in fields)
    inside = fields.get({"Name": "Properties", "id": "properties"}.get(name))
    pairs = sorted((tag.name, tag.value) for tag in inside.tags) if inside else []
    text = ",".join(f"{key}={value}" for key, value in pairs)
    return f"{fields[name].value}[{text}]" if pairs else fields[name].value


def indices(words, states, data_version):
    """The 4,096 palette indices, in the order y, z, x."""
    bits = max(4, (states - 1).bit_length())
    mask = (1 << bits) - 1
    words = [word & 0xFFFFFFFFFFFFFFFF for word in words]
    if data_version < PADDED_WORDS:
        whole = b"".join(word.to_bytes(8, "little") for word in words)
        assert len(whole) * 8 == CELLS * bits, (len(whole), bits)
        number = int.from_bytes(whole, "little")
        text = format(number, f"0{CELLS * bits}b")
        return [int(text[end - bits : end], 2) for end in range(len(text), 0, -bits)]
    per_word = 64 // bits
    assert len(words) == -(-CELLS // per_word), (len(words), bits)
    found = [word >> (bits * place) & mask for word in words for place in range(per_word)]
    return found[:CELLS]


class Totals:
    """Everything that is counted over all files."""

    def __init__(self):
        self.chunks = 0
        self.sections_with_blocks = 0
        self.states = Counter()
        self.block_entities = Counter()
        self.entities = Counter()
        self.cells = {}

    def add_slot(self, region, x, z, keep):
        nbt = region.chunk_data(x, z)
        if nbt is None:
            return
        self.chunks += 1
        data_version = nbt["DataVersion"].value
        column = nbt["Level"] if "Level" in nbt else nbt
        for name in ("Entities", "entities"):
            if name in column:
                self.entities.update(entity["id"].value for entity in column[name])
        for name in ("TileEntities", "block_entities"):
            if name in column:
                self.block_entities.update(entity["id"].value for entity in column[name])
        column_x_z = (column["xPos"].value, column["zPos"].value) if "xPos" in column else None
        sampled = []
        for name in ("Sections", "sections"):
            for section in column[name] if name in column else []:
                self.add_section(section, data_version, column_x_z, keep, sampled)
        if sampled:
            self.compare_with_package(region.get_chunk(x, z), sampled)

    def add_section(self, section, data_version, column_x_z, keep, sampled):
        holder = section["block_states"] if "block_states" in section else section
        palette = next((holder[name] for name in ("palette", "Palette") if name in holder), None)
        words = next((holder[name].value for name in ("data", "BlockStates") if name in holder), None)
        if palette is None:
            return
        texts = [state_text(entry) for entry in palette]
        is_named = all("Name" in entry for entry in palette if hasattr(entry, "tags")) and hasattr(palette[0], "tags")
        found = indices(words, len(texts), data_version) if words else [0] * CELLS
        self.sections_with_blocks += 1
        for index, count in Counter(found).items():
            self.states[texts[index]] += count
        y = section["Y"].value
        # The package knows the form before 26.3 alone.
        for step in range(SAMPLES_PER_SECTION if words and is_named and y in PACKAGE_SECTIONS else 0):
            cell = (y * 1237 + step * 2711) % CELLS
            sampled.append((cell % 16, y * 16 + cell // 256, cell // 16 % 16, texts[found[cell]]))
        for x, block_y, z in keep.get((*column_x_z, y), []):
            self.cells[x, block_y, z] = texts[found[(block_y % 16) * 256 + (z % 16) * 16 + x % 16]]

    @staticmethod
    def compare_with_package(chunk, sampled):
        for x, y, z, expected in sampled:
            block = chunk.get_block(x, y, z)
            pairs = sorted((key, str(value)) for key, value in block.properties.items())
            text = block.name() + ("[" + ",".join(f"{key}={value}" for key, value in pairs) + "]" if pairs else "")
            if text != expected:
                sys.exit(f"the package reads {text} at ({x}, {y}, {z}) where the count has {expected}")

    def figures(self):
        return {
            "chunks": self.chunks,
            "sections_with_blocks": self.sections_with_blocks,
            "blocks_total": sum(self.states.values()),
            "states": dict(sorted(self.states.items())),
            "block_entities": dict(sorted(self.block_entities.items())),
            "entities": dict(sorted(self.entities.items())),
        }


def region_files(directory):
    """Every region file of a directory, blocks first."""
    places = [directory, directory / "region", directory / "entities"]
    return [file for place in places if place.is_dir() for file in sorted(place.glob("r.*.mca"))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--truth", type=Path, help="TRUTH.json")
    parser.add_argument("--key", help="the file in TRUTH.json to compare with")
    options = parser.parse_args()

    truth = json.loads(options.truth.read_text())[options.key] if options.truth else {}
    samples = truth.get("samples_xyz_state", [])
    keep = {}
    for x, y, z, _ in samples:
        keep.setdefault((x >> 4, z >> 4, y >> 4), []).append((x, y, z))

    files = region_files(options.directory)
    if not files:
        sys.exit(f"no region files in {options.directory}")
    totals = Totals()
    for file in files:
        assert re.fullmatch(r"r\.-?\d+\.-?\d+\.mca", file.name), file
        region = anvil.Region.from_file(str(file))
        for z in range(32):
            for x in range(32):
                totals.add_slot(region, x, z, keep)

    found = totals.figures()
    print(json.dumps(found))
    wrong = [name for name in found if truth and found[name] != truth[name]]
    wrong += [f"block {sample[:3]}" for sample in samples if totals.cells.get(tuple(sample[:3])) != sample[3]]
    for name in wrong:
        print(f"{options.key}: {name} differs", file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
