"""Whether the judge of compare_saves.py sees each difference and nothing else, tried on small saves made here.

A judge that cannot fail is worth nothing: each case changes one thing in a save of four chunk layouts and names the
kinds of differences that must be reported, none where the change has no meaning. With the real worlds at hand (in
CG_WORLDS) the reader of NBT is compared with the pinned package of another author.
"""

import gzip
import io
import itertools
import os
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

from compare_saves import Judge, regions_of
from region_file import SECTOR, Region, lz4_block
from typed_nbt import BYTE, COMPOUND, DOUBLE, ELEMENT_SIZES, INT, LIST, LONG, LONGS, SHORT, SIZES, STRING
from typed_nbt import BYTES, FORMS, make, parse, write

CHECKED_PER_REGION = 3


# A save as values: bytes of a file by its path, or the slots of a region by their place.


class Slot:
    def __init__(self, tree, time, scheme=2, external=False):
        self.tree, self.time, self.scheme, self.external = tree, time, scheme, external
        self.cut = 0


def compound(**fields):
    return (COMPOUND, {name.encode(): value for name, value in fields.items()})


def listed(tag, *things):
    return (LIST, (tag, [make(tag, thing)[1] if tag != COMPOUND else thing[1] for thing in things]))


def state(name, **properties):
    fields = {"Name": make(STRING, name)}
    if properties:
        fields["Properties"] = compound(**{key: make(STRING, value) for key, value in properties.items()})
    return compound(**fields)


def words(indices, bits, padded):
    """Indices as the file has them: per word from the lowest bit on, or as one number over all words."""
    if padded:
        step = 64 // bits
        groups = [indices[at : at + step] for at in range(0, len(indices), step)]
        numbers = [sum(index << bits * place for place, index in enumerate(group)) for group in groups]
    else:
        whole = sum(index << bits * place for place, index in enumerate(indices))
        numbers = [whole >> at & (1 << 64) - 1 for at in range(0, len(indices) * bits, 64)]
    return (LONGS, struct.pack(f">{len(numbers)}Q", *numbers))


CELLS = [(cell * 7 + cell // 16) % 17 for cell in range(4096)]
STATES = [state("minecraft:air"), state("minecraft:oak_log", axis="y"), *(state(f"mod:b{n}") for n in range(15))]


def new_chunk():
    """As of 1.18 and later, with a section of 17 states and one of one state."""
    mixed = compound(palette=listed(COMPOUND, *STATES), data=words(CELLS, 5, True))
    biomes = compound(palette=listed(STRING, "minecraft:plains", "minecraft:river"), data=(LONGS, bytes(7) + b"\1"))
    single = compound(palette=listed(COMPOUND, STATES[0]))
    return compound(
        DataVersion=make(INT, 4788),
        xPos=make(INT, 1),
        sections=listed(
            COMPOUND,
            compound(Y=make(BYTE, -4), block_states=mixed, biomes=biomes),
            compound(Y=make(BYTE, -3), block_states=single),
        ),
        block_entities=listed(COMPOUND, *(compound(id=make(STRING, "chest"), x=make(INT, x)) for x in (3, 2))),
        entities=(LIST, (0, [])),
        InhabitedTime=make(LONG, 12),
        Heights=listed(SHORT, 5, 6),
    )


def flattened_chunk():
    """As of 1.13 to 1.15: in `Level`, indices over words."""
    mixed = compound(Y=make(BYTE, 0), Palette=listed(COMPOUND, *STATES), BlockStates=words(CELLS, 5, False))
    single = compound(Y=make(BYTE, 1), Palette=listed(COMPOUND, STATES[1]), BlockStates=words([0] * 4096, 4, False))
    return compound(DataVersion=make(INT, 2230), Level=compound(Sections=listed(COMPOUND, mixed, single)))


def numeric_chunk():
    """As of before 1.13: without a version, with numbers in place of states."""
    section = compound(Y=make(BYTE, 0), Blocks=(BYTES, bytes([1, 2, 3, 4] * 1024)), Data=(BYTES, bytes(2048)))
    return compound(Level=compound(Sections=listed(COMPOUND, section)))


def of_ids(name, **properties):
    """An entry of 26.3: a name where it has no properties."""
    if not properties:
        return compound(**{"": make(STRING, name)})
    return compound(id=make(STRING, name), properties=compound(**{key: make(STRING, value) for key, value in properties.items()}))


IDS_STATES = [of_ids("minecraft:air"), of_ids("minecraft:oak_log", axis="x"), *(of_ids(f"mod:b{n}", k="v") for n in range(15))]


def ids_chunk():
    """As of 26.3: names, and compounds with `id`."""
    mixed = compound(palette=listed(COMPOUND, *IDS_STATES), data=words(CELLS, 5, True))
    names = compound(palette=listed(STRING, "minecraft:air", "minecraft:stone"), data=words([cell % 2 for cell in CELLS], 4, True))
    sections = (compound(Y=make(BYTE, y), block_states=states) for y, states in ((0, mixed), (1, names)))
    return compound(DataVersion=make(INT, 5023), sections=listed(COMPOUND, *sections))


def new_save():
    entity = compound(id=make(STRING, "cow"), Pos=listed(DOUBLE, 1.5, 64.0, 0.0))
    columns = {index: Slot(make_chunk(), 100 + index) for index, make_chunk in enumerate(CHUNKS)}
    return {
        "level.dat": gzip.compress(b"level", mtime=0),
        "data/raids.dat": b"raids",
        "DIM-1/region/r.-1.2.mca": {1023: Slot(new_chunk(), 7)},
        "region/r.0.0.mca": columns,
        "entities/r.0.0.mca": {5: Slot(compound(Entities=listed(COMPOUND, entity)), 8)},
        "poi/r.0.0.mca": {6: Slot(compound(Sections=compound()), 9)},
    }


CHUNKS = (new_chunk, flattened_chunk, numeric_chunk, ids_chunk)
NEW, FLATTENED, NUMERIC, IDS = range(4)
# Those without `Level`, whose indices span no words.
PADDED = (NEW, IDS)


def packed(scheme, data):
    if scheme == 4:
        # A block of literals only, then the empty one that ends the stream.
        lengths = bytes([255] * ((len(data) - 15) // 255) + [(len(data) - 15) % 255])
        block = b"\xf0" + lengths + data
        header = struct.pack("<8sBIII", b"LZ4Block", 0x25, len(block), len(data), 0)
        return header + block + struct.pack("<8sBIII", b"LZ4Block", 0x15, 0, 0, 0)
    return {1: gzip.compress, 2: zlib.compress, 3: bytes}[scheme](data)


def write_save(save, root):
    root.mkdir()
    for name, content in save.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            path.mkdir()
        elif isinstance(content, bytes):
            path.write_bytes(content)
        else:
            write_region(content, path)


def write_region(slots, path):
    places, times, body = bytearray(SECTOR), bytearray(SECTOR), b""
    x, z = (int(part) for part in path.name.split(".")[-3:-1])
    for index, slot in slots.items():
        body += bytes(-len(body) % SECTOR)
        data = packed(slot.scheme, write(b"", slot.tree))
        scheme = bytes([slot.scheme])
        if slot.external:
            if slot.external != "lost":
                (path.parent / f"c.{x * 32 + index % 32}.{z * 32 + index // 32}.mcc").write_bytes(data)
            scheme, data = bytes([slot.scheme | 0x80]), b""
        chunk = (len(data) + 1).to_bytes(4, "big") + scheme + data[: len(data) - slot.cut]
        place = (2 + len(body) // SECTOR) << 8 | -(-len(chunk) // SECTOR)
        places[index * 4 : index * 4 + 4] = place.to_bytes(4, "big")
        times[index * 4 : index * 4 + 4] = slot.time.to_bytes(4, "big")
        body += chunk
    path.write_bytes(bytes(places + times) + body if slots else b"")


# What is changed. Each gets a save of its own.


def slot(save, index=NEW):
    return save["region/r.0.0.mca"][index]


def fields(save, index=NEW):
    return slot(save, index).tree[1]


def section(save, index=NEW, place=0):
    column = fields(save, index)
    sections = column[b"sections"] if index in PADDED else column[b"Level"][1][b"Sections"]
    return sections[1][1][place]


def sections(save):
    return fields(save)[b"sections"][1][1]


def holder(save, index=NEW, place=0):
    found = section(save, index, place)
    return found[b"block_states"][1] if index in PADDED else found


def put_palette(save, index, palette, order):
    """Another palette, with the index that each old one becomes."""
    data = words([order[cell] for cell in CELLS], 5, index in PADDED)
    names = (b"palette", b"data") if index in PADDED else (b"Palette", b"BlockStates")
    holder(save, index).update(zip(names, (listed(COMPOUND, *palette), data)))


def reverse_palette(save, index):
    put_palette(save, index, (IDS_STATES if index == IDS else STATES)[::-1], range(16, -1, -1))


def turn_names(save):
    """The list of names the other way round, and its indices too."""
    data = words([1 - cell % 2 for cell in CELLS], 4, True)
    holder(save, IDS, 1).update({b"palette": listed(STRING, "minecraft:stone", "minecraft:air"), b"data": data})


def wrap_names(save):
    """The same names, each in a compound."""
    put(holder(save, IDS, 1), b"palette", listed(COMPOUND, of_ids("minecraft:air"), of_ids("minecraft:stone")))


def put_entry(save, place, entry):
    holder(save, IDS)[b"palette"][1][1][place] = entry[1]


def change_block(save, index):
    """The block at 15 15 15 becomes that of index 0."""
    cells = [*CELLS[:-1], 0]
    name = b"data" if index == NEW else b"BlockStates"
    holder(save, index)[name] = words(cells, 5, index == NEW)


def grow_palette(save):
    extra = [*STATES, state("minecraft:unused"), STATES[3]]
    put_palette(save, NEW, extra, [*range(3), 18, *range(4, 17)])


def fill_spare_bits(save):
    data = holder(save)[b"data"][1]
    holder(save)[b"data"] = (LONGS, b"".join(bytes([word[0] | 0xF0]) + word[1:] for word in eights(data)))


def eights(data):
    return [data[at : at + 8] for at in range(0, len(data), 8)]


def type_state(save):
    palette = holder(save)[b"palette"][1][1]
    palette[1] = compound(Name=make(STRING, "minecraft:oak_log"), Properties=compound(axis=(BYTES, b"y")))[1]


def reverse_fields(value):
    tag, content = value
    if tag == COMPOUND:
        return (tag, {name: reverse_fields(content[name]) for name in reversed(content)})
    if tag == LIST and content[0] == COMPOUND:
        return (tag, (COMPOUND, [reverse_fields((COMPOUND, one))[1] for one in content[1]]))
    return value


def reverse_all_fields(save):
    for name, content in save.items():
        for one in content.values() if name.endswith(".mca") else ():
            one.tree = reverse_fields(one.tree)


def reverse_biomes(save):
    section(save)[b"biomes"][1][b"palette"][1][1].reverse()


def put(holder, name, value):
    holder[name] = value


def flip_zero(save):
    save["entities/r.0.0.mca"][5].tree[1][b"Entities"][1][1][0][b"Pos"] = listed(DOUBLE, 1.5, 64.0, -0.0)


def set_slots(save, **attributes):
    for name, value in attributes.items():
        for one in save["region/r.0.0.mca"].values():
            setattr(one, name, value)


# What is changed, how, and the kinds of differences that must be seen.
CASES = (
    ("nothing", lambda s: None, []),
    ("palette reversed", lambda s: reverse_palette(s, NEW), []),
    ("old palette reversed", lambda s: reverse_palette(s, FLATTENED), []),
    ("palette with more entries", grow_palette, []),
    ("data of a palette of one entry", lambda s: put(holder(s, NEW, 1), b"data", words([0] * 4096, 4, True)), []),
    ("spare bits of words", fill_spare_bits, []),
    ("fields reversed", reverse_all_fields, []),
    ("gzip", lambda s: set_slots(s, scheme=1), []),
    ("no compression", lambda s: set_slots(s, scheme=3), []),
    ("LZ4", lambda s: set_slots(s, scheme=4), []),
    ("external chunks", lambda s: set_slots(s, external=True), []),
    ("region without a chunk", lambda s: put(s, "region/r.5.5.mca", {}), []),
    ("session.lock", lambda s: put(s, "session.lock", b"\xe2"), []),
    ("wrong byte", lambda s: put(s, "data/raids.dat", b"raidz"), ["data/*.dat differs"]),
    ("file missing", lambda s: s.pop("data/raids.dat"), ["data/*.dat is missing"]),
    ("file added", lambda s: put(s, "data/new.dat", b""), ["data/*.dat was added"]),
    ("level.dat missing", lambda s: s.pop("level.dat"), ["./*.dat is missing"]),
    ("empty folder", lambda s: put(s, "DIM1", None), ["an empty folder was added"]),
    ("external file of no slot", lambda s: put(s, "region/c.9.9.mcc", b""), ["region/*.mcc was added"]),
    (
        "region added",
        lambda s: put(s, "region/r.1.0.mca", {0: Slot(new_chunk(), 1)}),
        ["region: region file was added"],
    ),
    ("region missing", lambda s: s.pop("poi/r.0.0.mca"), ["poi: region file is missing"]),
    (
        "region in another folder",
        lambda s: put(s, "DIM1/region/r.-1.2.mca", s.pop("DIM-1/region/r.-1.2.mca")),
        ["region: region file is missing", "region: region file was added"],
    ),
    ("region emptied", lambda s: s["poi/r.0.0.mca"].clear(), ["poi: region file is missing"]),
    ("chunk missing", lambda s: s["region/r.0.0.mca"].pop(NUMERIC), ["region: chunk is missing"]),
    ("chunk added", lambda s: put(s["poi/r.0.0.mca"], 0, Slot(compound(), 1)), ["poi: chunk was added"]),
    ("chunk cut", lambda s: setattr(slot(s, NUMERIC), "cut", 3), ["region: chunk cannot be read"]),
    (
        "external file missing",
        lambda s: setattr(slot(s, NUMERIC), "external", "lost"),
        ["region: chunk cannot be read"],
    ),
    ("slot time", lambda s: setattr(slot(s), "time", 99), ["region: time of a slot"]),
    ("block", lambda s: change_block(s, NEW), ["region: sections[].block_states.palette states"]),
    ("old block", lambda s: change_block(s, FLATTENED), ["region: Level.Sections[].Palette states"]),
    (
        "numeric block",
        lambda s: put(section(s, NUMERIC), b"Blocks", (BYTES, bytes(4096))),
        ["region: Level.Sections[].Blocks elements"],
    ),
    ("type in a state", type_state, ["region: sections[].block_states.palette states"]),
    ("order of biomes", reverse_biomes, ["region: sections[].biomes.palette order"]),
    (
        "data of an old palette of one entry missing",
        lambda s: holder(s, FLATTENED, 1).pop(b"BlockStates"),
        ["region: Level.Sections[].BlockStates is missing"],
    ),
    ("order of a palette of ids", lambda s: reverse_palette(s, IDS), []),
    ("order of a palette of names", turn_names, []),
    ("names in compounds", wrap_names, ["region: sections[].block_states.palette states"]),
    (
        "a name becomes an id",
        lambda s: put_entry(s, 0, compound(id=make(STRING, "minecraft:air"))),
        ["region: sections[].block_states.palette states"],
    ),
    (
        "an id becomes a Name",
        lambda s: put_entry(s, 1, state("minecraft:oak_log", axis="x")),
        ["region: sections[].block_states.palette states"],
    ),
    (
        "another property",
        lambda s: put_entry(s, 1, of_ids("minecraft:oak_log", axis="z")),
        ["region: sections[].block_states.palette states"],
    ),
    ("type of a tag", lambda s: put(fields(s), b"InhabitedTime", make(INT, 12)), ["region: InhabitedTime type"]),
    ("value", lambda s: put(fields(s), b"InhabitedTime", make(LONG, 13)), ["region: InhabitedTime value"]),
    (
        "type of list elements",
        lambda s: put(fields(s), b"Heights", listed(INT, 5, 6)),
        ["region: Heights element type"],
    ),
    (
        "type of an empty list",
        lambda s: put(fields(s), b"entities", (LIST, (COMPOUND, []))),
        ["region: entities element type"],
    ),
    ("empty list missing", lambda s: fields(s).pop(b"entities"), ["region: entities is missing"]),
    ("field added", lambda s: put(section(s), b"SkyLight", (BYTES, b"")), ["region: sections[].SkyLight was added"]),
    (
        "block entities reversed",
        lambda s: fields(s)[b"block_entities"][1][1].reverse(),
        ["region: block_entities order"],
    ),
    ("block entity missing", lambda s: fields(s)[b"block_entities"][1][1].pop(), ["region: block_entities length"]),
    ("sections reversed", lambda s: sections(s).reverse(), ["region: sections order"]),
    (
        "number of a section of another type",
        lambda s: put(section(s), b"Y", make(INT, -4)),
        ["region: sections[].Y type"],
    ),
    (
        "sections reversed and a block",
        lambda s: (change_block(s, NEW), sections(s).reverse()),
        ["region: sections order", "region: sections[].block_states.palette states"],
    ),
    (
        "section of another number",
        lambda s: put(section(s, NEW, 1), b"Y", make(BYTE, 9)),
        ["region: sections numbers"],
    ),
    ("section missing", lambda s: sections(s).pop(0), ["region: sections length"]),
    ("sign of zero", flip_zero, ["entities: Entities[].Pos[] value"]),
    (
        "section and field",
        lambda s: (change_block(s, NEW), fields(s).pop(b"xPos")),
        ["region: sections[].block_states.palette states", "region: xPos is missing"],
    ),
)


def run():
    """Tries all cases, prints those that fail and returns the exit status."""
    failed, checked = [], 0
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        before = folder / "before"
        write_save(new_save(), before)
        for number, (name, change, expected) in enumerate(CASES):
            save, after = new_save(), folder / str(number)
            change(save)
            write_save(save, after)
            for flag, (ours, theirs) in enumerate([(before, after), (after, before)]):
                judge = Judge()
                judge.saves(ours, theirs)
                # The other way round only the number is the same, and a folder may be missing.
                found = sorted(judge.kinds.elements()) if flag == 0 else judge.found()
                wanted = expected if flag == 0 else len([one for one in expected if "folder" not in one])
                if found != wanted:
                    failed.append(f"{name}: seen is {found}, not {wanted}")
        failed += others(folder, before)
    failed += [] if lz4_block(b"\x11a\1\0\x10b") == b"aaaaaab" else ["a copy in an LZ4 block is wrong"]
    if worlds := os.environ.get("CG_WORLDS"):
        checked = compare_readers(Path(worlds), failed)
    for line in failed:
        print(line)
    print(
        f"{len(CASES)} cases of the judge, both ways: {len(failed)} failures; another package read {checked} chunks too"
    )
    return 1 if failed else 0


def others(folder, before):
    """Options, pairs of region files, and exit codes."""
    later = new_save()
    set_slots(later, time=5)
    write_save(later, folder / "later")
    without_times = Judge(times=False)
    without_times.saves(before, folder / "later")
    if without_times.found():
        yield "times are compared although they are not wanted"
    unpadded = Region(before / "region/r.0.0.mca")
    if len(unpadded.data) % SECTOR == 0 or len(unpadded.slots) != 4:
        yield "the last sector is padded, so that the other case is not tried"
    (folder / "bare").mkdir()
    bare = folder / "bare/entities_a_r.0.0.mca"
    bare.write_bytes((before / "entities/r.0.0.mca").read_bytes())
    if regions_of(bare).keys() != regions_of(before / "entities").keys():
        yield "a prefix does not say the kind"
    for arguments, expected in (
        ([before, before], 0),
        ([before, folder / "later"], 1),
        (["--no-times", before, folder / "later"], 0),
        (["--regions", bare, before / "entities"], 0),
        (["--regions", bare, before / "poi"], 1),
        (["--regions", folder / "bare", before], 1),
        ([before], 2),
        ([before, folder / "nowhere"], 2),
        ([bare, bare], 2),
        (["--regions", before / "data", before / "data"], 2),
    ):
        script = Path(__file__).with_name("compare_saves.py")
        ended = subprocess.run([sys.executable, script, *arguments], capture_output=True, check=False)
        if ended.returncode != expected:
            shown = [getattr(argument, "name", argument) for argument in arguments]
            yield f"exit {ended.returncode}, not {expected}, with {shown}: {ended.stderr.decode()}"


def compare_readers(worlds, failed):
    """Reads some chunks of each real region file with the pinned package too; returns how many."""
    from nbt.nbt import NBTFile

    checked = 0
    for path in sorted([*worlds.glob("java26/**/*.mca"), *worlds.glob("mca*/*.mca")]):
        for one in itertools.islice(Region(path).slots.values(), CHECKED_PER_REGION):
            data = one.unpack()
            checked += 1
            if from_package(NBTFile(buffer=io.BytesIO(data))) != parse(data)[1]:
                failed.append(f"{path.name}: another package reads chunk {one.x},{one.z} otherwise")
    return checked


def from_package(tag):
    kind = tag.id
    if kind in SIZES:
        return (kind, struct.pack(FORMS[kind], tag.value))
    if kind == STRING:
        return (kind, tag.value.encode())
    if kind == LIST:
        return (kind, (tag.tagID, [from_package(one)[1] for one in tag.tags]))
    if kind == COMPOUND:
        return (kind, {one.name.encode(): from_package(one) for one in tag.tags})
    form = {1: "B", 4: "i", 8: "q"}[ELEMENT_SIZES[kind]]
    return (kind, struct.pack(f">{len(tag.value)}{form}", *tag.value))
