#!/usr/bin/env python3
"""Compares two save folders with a reader that shares no code with this project.

    compare_saves.py BEFORE AFTER                 two saves, path by path
    compare_saves.py --regions BEFORE AFTER       region files, or folders of them, by chunk
    compare_saves.py --self-test                  whether the judge itself sees what it must

Both saves must have the same paths, every file that is no region the same bytes, and every chunk of a region file in
`region`, `entities` or `poi` the same typed NBT at the same time: types of tags and of list elements, also of empty
lists, and the order of lists count. Sections are compared by their number, so that another order of them is one
difference.

These differences have no meaning for the game and are not seen:
- the order of a compound's fields;
- what block_states.py sets equal: above all the order of a section's palette of blocks (not that of biomes);
- how a chunk is compressed, where its sectors are, whether it has an `.mcc` file of its own, bytes after its tree;
- region files without a chunk, the time of an empty slot, `session.lock`, folders that AFTER lacks with nothing in it.

With --regions the files are paired by kind, X and Z: `r.X.Z.mca` may have any prefix. The kind is the folder's name, or
else the one that the prefix begins with, or else `region`. Nothing but chunks is compared.

Each difference is a line on stdout: path, chunk, path in the chunk, what differs. The first ones are printed, and then
each kind of difference with its number; the last line counts what was compared. Exit 0 when there is no difference, 1
when there is one, 2 when nothing could be compared.
"""

import argparse
import os
import re
import sys
from collections import Counter
from pathlib import Path

import block_states
from region_file import NAME, Region, SlotError
from typed_nbt import COMPOUND, ELEMENT_SIZES, LIST, NbtError, parse, show, text

KINDS = ("region", "entities", "poi")
SECTIONS = re.compile(r"(\.Level)?\.[sS]ections")
SHOWN_DIFFERENCES = 50
SHOWN_KINDS = 100


class Judge:
    """Everything that was compared, and every difference."""

    def __init__(self, times=True, shown=SHOWN_DIFFERENCES):
        self.times = times
        self.shown = shown
        self.counts = Counter()
        self.lines = []
        self.kinds = Counter()
        self.examples = {}
        self.table = block_states.Table()

    def difference(self, kind, line):
        self.kinds[kind] += 1
        self.examples.setdefault(kind, line)
        if len(self.lines) < self.shown:
            self.lines.append(line)

    def found(self):
        return sum(self.kinds.values())

    def report(self):
        for line in self.lines:
            print(line)
        if self.found() > len(self.lines):
            print(f"and {self.found() - len(self.lines)} more; each kind, with one of it:")
            for kind, count in self.kinds.most_common(SHOWN_KINDS):
                print(f"{count:8} {kind}; {self.examples[kind]}")
            if len(self.kinds) > SHOWN_KINDS:
                print(f"and {len(self.kinds) - SHOWN_KINDS} more kinds")
        counts = self.counts
        print(
            f"{self.found()} differences in {counts['files']} files that are no regions and {counts['chunks']} chunks "
            f"of {counts['regions']} region files ({counts['same bytes']} chunks with the same bytes); set equal: "
            f"palettes of {counts['palettes']} sections; left out: {counts['empty']} region files without a chunk, "
            f"{counts['locks']} session.lock"
        )

    # Saves.

    def saves(self, before, after):
        ours, our_folders = files_below(before)
        theirs, their_folders = files_below(after)
        regions, others, used = set(), set(), set()
        for path in ours.keys() | theirs.keys():
            (regions if is_region(path) else others).add(path)
        for path in sorted(regions):
            pair = [Region(side[path]) if path in side else None for side in (ours, theirs)]
            used.update(path.with_name(name) for region in pair for name in externals(region))
            self.regions(path.as_posix(), path.parent.name, *pair)
        for path in sorted(others - used):
            if path == Path("session.lock"):
                self.counts["locks"] += 1
            else:
                self.files(path, ours.get(path), theirs.get(path))
        for folder in sorted(their_folders - our_folders):
            if not any(folder in path.parents for path in others | regions):
                self.difference("an empty folder was added", f"{folder.as_posix()}/: an empty folder was added")

    def files(self, path, before, after):
        self.counts["files"] += 1
        kind = f"{path.parent.as_posix()}/*{path.suffix}"
        if after is None:
            self.difference(f"{kind} is missing", f"{path.as_posix()}: is missing")
        elif before is None:
            self.difference(f"{kind} was added", f"{path.as_posix()}: was added")
        else:
            ours, theirs = before.read_bytes(), after.read_bytes()
            if ours != theirs:
                place = len(os.path.commonprefix([ours, theirs]))
                sizes = f"{len(ours)} bytes became {len(theirs)}" if len(ours) != len(theirs) else f"{len(ours)} bytes"
                line = f"{path.as_posix()}: the bytes differ from byte {place} on ({sizes})"
                self.difference(f"{kind} differs", line)

    # Regions.

    def bare_regions(self, before, after):
        ours, theirs = regions_of(before), regions_of(after)
        for key in sorted(ours.keys() | theirs.keys()):
            kind, x, z = key
            self.regions(f"{kind}/r.{x}.{z}.mca", kind, ours.get(key), theirs.get(key))

    def regions(self, path, kind, before, after):
        sides = [region.slots if region else {} for region in (before, after)]
        if not any(sides):
            self.counts["empty"] += 1
            return
        self.counts["regions"] += 1
        if not all(sides):
            chunks = len(sides[0] or sides[1])
            what = "was added" if sides[1] else "is missing"
            self.counts["chunks"] += chunks
            line = f"{path}: the region file {what}, with {chunks} chunks"
            self.difference(f"{kind}: region file {what}", line)
            return
        for index in sorted(sides[0].keys() | sides[1].keys()):
            self.counts["chunks"] += 1
            ours, theirs = (side.get(index) for side in sides)
            label = f"{path}: chunk {(ours or theirs).x},{(ours or theirs).z}"
            if theirs is None:
                self.difference(f"{kind}: chunk is missing", f"{label}: is missing")
            elif ours is None:
                self.difference(f"{kind}: chunk was added", f"{label}: was added")
            else:
                if self.times and ours.time != theirs.time:
                    line = f"{label}: its time {ours.time} became {theirs.time}"
                    self.difference(f"{kind}: time of a slot", line)
                self.chunks(label, kind, ours, theirs)

    def chunks(self, label, kind, before, after):
        if (before.error, before.scheme, before.packed) == (after.error, after.scheme, after.packed):
            self.counts["same bytes"] += 1
            return
        trees, errors, datas = [], [], []
        for slot in (before, after):
            try:
                datas.append(slot.unpack())
                trees.append(parse(datas[-1])[:2])
                errors.append("")
            except (SlotError, NbtError) as error:
                errors.append(f"cannot be read: {error}")
        if len(datas) == 2 and datas[0] == datas[1]:
            self.counts["same bytes"] += 1
            return
        if any(errors):
            ours, theirs = (error or "can be read" for error in errors)
            self.difference(f"{kind}: chunk cannot be read", f"{label}: before it {ours}; after it {theirs}")
            return
        (our_name, ours), (their_name, theirs) = trees
        self.counts["palettes"] += block_states.set_equal(ours, theirs, self.table)
        if our_name != their_name:
            self.difference(f"{kind}: name of the tree", f"{label}: its name {our_name!r} became {their_name!r}")
        self.values(ours, theirs, "", lambda path, what, line: self.value(label, kind, path, what, line))

    def value(self, label, kind, path, what, line):
        path = path.removeprefix(".")
        self.difference(f"{kind}: {re.sub('-?[0-9]+]', ']', path)} {what}", f"{label}: {path}: {line}")

    def values(self, before, after, path, report):
        """Every place where two values differ."""
        if before == after:
            return
        (tag, ours), (other, theirs) = before, after
        if tag != other:
            report(path, "type", f"{show(before)} became {show(after)}")
        elif tag == COMPOUND:
            for name, value in ours.items():
                place = f"{path}.{text(name)}"
                if name in theirs:
                    self.values(value, theirs[name], place, report)
                else:
                    report(place, "is missing", f"{shown(value)} is missing")
            for name in theirs.keys() - ours.keys():
                report(f"{path}.{text(name)}", "was added", f"{shown(theirs[name])} was added")
        elif tag == LIST:
            self.lists(ours, theirs, path, report)
        elif tag == block_states.STATES:
            cells = [cell for cell, (one, two) in enumerate(zip(ours, theirs)) if one != two]
            cell = cells[0]
            first = f"at {cell & 15} {cell >> 8} {cell >> 4 & 15} {self.table.names[ours[cell]]} became "
            line = f"{len(cells)} of {block_states.CELLS} states differ, {first}{self.table.names[theirs[cell]]}"
            report(path, "states", line)
        elif tag in ELEMENT_SIZES and len(ours) == len(theirs):
            size = ELEMENT_SIZES[tag]
            pairs = [[side[at : at + size] for side in (ours, theirs)] for at in range(0, len(ours), size)]
            places = [place for place, (one, two) in enumerate(pairs) if one != two]
            one, two = pairs[places[0]]
            first = f"[{places[0]}] 0x{one.hex()} became 0x{two.hex()}"
            report(path, "elements", f"{len(places)} of {len(pairs)} elements differ, {first}")
        else:
            report(path, "value", f"{show(before)} became {show(after)}")

    def lists(self, before, after, path, report):
        (inner, ours), (other, theirs) = before, after
        if inner != other:
            report(path, "element type", f"{show((LIST, before))} became {show((LIST, after))}")
        elif inner == COMPOUND and SECTIONS.fullmatch(path):
            self.sections(ours, theirs, path, report)
        elif len(ours) != len(theirs):
            report(path, "length", f"{len(ours)} elements became {len(theirs)}")
        elif same_elements(inner, ours, theirs):
            report(path, "order", f"the {len(ours)} elements are in another order")
        else:
            for index, (one, two) in enumerate(zip(ours, theirs)):
                self.values((inner, one), (inner, two), f"{path}[{index}]", report)


    def sections(self, before, after, path, report):
        """Two lists of sections: which there are, their order, and then each two of one number."""
        if len(before) != len(after):
            report(path, "length", f"{len(before)} elements became {len(after)}")
        numbers = [block_states.section_numbers(sections) for sections in (before, after)]
        if None not in numbers:
            ours, theirs = ([y for y in one if y in other] for one, other in (numbers, numbers[::-1]))
            if ours != theirs:
                report(path, "order", f"the sections {ours} are in the order {theirs}")
            if len(before) == len(after) and set(numbers[0]) != set(numbers[1]):
                report(path, "numbers", f"the sections {sorted(numbers[0])} became {sorted(numbers[1])}")
        elif len(before) == len(after) and same_elements(COMPOUND, before, after):
            report(path, "order", f"the {len(before)} elements are in another order")
            return
        for number, one, two in block_states.paired(before, after):
            self.values((COMPOUND, one), (COMPOUND, two), f"{path}[{number}]", report)


def same_elements(inner, ours, theirs):
    """Whether two lists differ in their order only."""
    one, two = (Counter(block_states.freeze(inner, content) for content in contents) for contents in (ours, theirs))
    return one == two


def shown(value):
    return "the block states" if value[0] == block_states.STATES else show(value)


def is_region(path):
    return path.parent.name in KINDS and path.name.startswith("r.") and NAME.fullmatch(path.name) is not None


def externals(region):
    """Names of the files beside a region that belong to it."""
    slots = region.slots.values() if region else ()
    return [slot.external.name for slot in slots if slot.external]


def files_below(root):
    """Every file and every folder below a folder, by the path from there, through links too."""
    files, folders = {}, set()

    def visit(folder, above):
        real = folder.resolve()
        if real in above:
            return
        for entry in sorted(folder.iterdir()):
            if entry.is_dir():
                folders.add(entry.relative_to(root))
                visit(entry, above | {real})
            else:
                files[entry.relative_to(root)] = entry

    visit(root, frozenset())
    return files, folders


def regions_of(place):
    """The region files with a chunk of a file or a folder, by kind, X and Z."""
    found = {}
    for path in [place] if place.is_file() else sorted(files_below(place)[0].values()):
        if not NAME.search(path.name):
            continue
        region = Region(path)
        named = [kind for kind in KINDS if path.name.startswith(kind)] or ["region"]
        key = (path.parent.name if path.parent.name in KINDS else named[0], region.x, region.z)
        if region.slots and key in found:
            raise ValueError(f"{path} and {found[key].path} are for the same chunks")
        if region.slots:
            found[key] = region
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, nargs="?")
    parser.add_argument("after", type=Path, nargs="?")
    parser.add_argument("--regions", action="store_true", help="compare region files only, by chunk")
    parser.add_argument("--no-times", action="store_true", help="do not compare the time of a slot")
    parser.add_argument("--first", type=int, default=SHOWN_DIFFERENCES, help="how many differences are printed")
    parser.add_argument("--self-test", action="store_true", help="try the judge on saves that it makes")
    options = parser.parse_args()
    if options.self_test:
        import compare_saves_test

        sys.exit(compare_saves_test.run())
    if options.after is None:
        parser.error("BEFORE and AFTER are needed")
    for place in (options.before, options.after):
        if not (place.is_dir() or options.regions and place.is_file()):
            parser.error(f"there is no {place}")

    judge = Judge(not options.no_times, options.first)
    try:
        compare = judge.bare_regions if options.regions else judge.saves
        compare(options.before, options.after)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    if judge.counts["files"] + judge.counts["chunks"] == 0:
        parser.error("there is nothing to compare in either")
    judge.report()
    sys.exit(1 if judge.found() else 0)


if __name__ == "__main__":
    main()
