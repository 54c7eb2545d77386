"""The 4,096 typed block states of a section, whatever order its palette has and whatever form its entries have.

Two sections of equal states are set equal before their chunks are compared. That makes no difference of the order of
a palette, of entries that no block uses or that are there twice, of the spare bits of a word, and, from 1.18 on, of
the data of a palette of one entry, which the game does not read. It shares no code with this project.

An entry is `{Name, Properties}`, since 26.3 also a string, `{"": string}` in a list with compounds, or `{id, properties}`.
Two entries are equal only if they are spelled alike: what is the default state of a block, only the game knows, and a
string is not the same as a compound of it.
"""

import struct

from typed_nbt import BYTE, COMPOUND, INT, LIST, LONG, LONGS, SHORT, STRING, field, number, show, text

# Fields of an entry that is a compound: its name and its properties.
FORMS = ((b"Name", b"Properties"), (b"id", b"properties"), (b"", None))

CELLS = 4096
# The tag that stands for states here; no file has it.
STATES = 100
# From this DataVersion on (20w17a) no index spans two words.
PADDED_WORDS = 2529


class Table:
    """A small number for each state that was met, and back."""

    def __init__(self):
        self.numbers = {}
        self.names = []

    def number(self, tag, entry):
        key = (tag, freeze(tag, entry))
        if key not in self.numbers:
            self.numbers[key] = len(self.names)
            self.names.append(state_text(tag, entry))
        return self.numbers[key]


def freeze(tag, content):
    """A value as a hashable one, equal where the values are equal."""
    if tag == COMPOUND:
        return frozenset((name, inner, freeze(inner, value)) for name, (inner, value) in content.items())
    if tag == LIST:
        return (content[0], tuple(freeze(content[0], value) for value in content[1]))
    return content


def state_text(tag, entry):
    """`name[key=value,...]` of a palette entry; what is not as in `{Name, Properties}` is said."""
    if tag == STRING:
        return f'"{text(entry)}"'
    form = next((form for form in FORMS if form[0] in entry), FORMS[0])
    name, properties = entry.get(form[0], (0, b"")), entry.get(form[1])
    shown = text(name[1]) if name[0] == STRING else "no name"
    if properties and properties[0] == COMPOUND:
        pairs = (f"{text(key)}={text(one[1]) if one[0] == STRING else show(one)}" for key, one in properties[1].items())
        shown += "[" + ",".join(sorted(pairs)) + "]"
    others = [f"{text(key)}: {show(one)}" for key, one in entry.items() if key not in form]
    return " ".join([shown, *([] if form == FORMS[0] else [f"by {text(form[0]) or 'an empty name'}"]), *sorted(others)])


def set_equal(before, after, table):
    """Puts states in place of palettes in both chunks where both sections have some; returns how many differed
    before and were set equal."""
    count = 0
    padded = [data_version(chunk) >= PADDED_WORDS for chunk in (before, after)]
    for name, ours, theirs in section_pairs(before, after):
        if name == b"block_states":
            ours, theirs = ours[name][1], theirs[name][1]
        names = (b"palette", b"data") if name == b"block_states" else (b"Palette", b"BlockStates")
        if all(ours.get(one) == theirs.get(one) for one in names):
            continue
        found = [states(holder, names, flag, table) for holder, flag in ((ours, padded[0]), (theirs, padded[1]))]
        if None in found:
            continue
        for holder, value in zip((ours, theirs), found):
            holder[names[0]] = (STATES, value)
            holder.pop(names[1], None)
        count += found[0] == found[1]
    return count


def data_version(chunk):
    version = field(chunk, b"DataVersion")
    return number(*version) if version and version[0] == INT else 0


def section_pairs(before, after):
    """Which field has the palette, and the two sections, of each two sections of one number."""
    for path in ((b"sections",), (b"Sections",), (b"Level", b"sections"), (b"Level", b"Sections")):
        lists = [field(chunk, *path) for chunk in (before, after)]
        if any(one is None or one[0] != LIST or one[1][0] != COMPOUND for one in lists):
            continue
        for _, ours, theirs in paired(lists[0][1][1], lists[1][1][1]):
            for name in (b"block_states", b"Palette"):
                tag = COMPOUND if name == b"block_states" else LIST
                if all(section.get(name, (0, None))[0] == tag for section in (ours, theirs)):
                    yield name, ours, theirs


def paired(before, after):
    """The sections that both lists have, each two with their number; by place where the numbers do not tell them apart."""
    numbers = [section_numbers(sections) for sections in (before, after)]
    if None in numbers:
        return [(place, *pair) for place, pair in enumerate(zip(before, after))]
    ours, theirs = (dict(zip(found, sections)) for found, sections in zip(numbers, (before, after)))
    return [(number, section, theirs[number]) for number, section in ours.items() if number in theirs]


def section_numbers(sections):
    """The number of each section, whatever kind its Y has, or None where one has none or two have the same."""
    ys = [section.get(b"Y", (0, b"")) for section in sections]
    if any(tag not in (BYTE, SHORT, INT, LONG) for tag, _ in ys):
        return None
    numbers = [number(*y) for y in ys]
    return numbers if len(set(numbers)) == len(numbers) else None


def states(holder, names, padded, table):
    """The numbers of a section's states in the order y, z, x, or None where palette and data do not say them."""
    palette, data = (holder.get(name) for name in names)
    if palette is None or palette[0] != LIST or palette[1][0] not in (COMPOUND, STRING) or not palette[1][1]:
        return None
    tag, entries = palette[1]
    if data is not None and data[0] != LONGS:
        return None
    # Before 1.18 the game takes a section without data for empty, whatever its palette says.
    if data is None and (len(entries) > 1 or names[1] == b"BlockStates"):
        return None
    numbers = [table.number(tag, entry) for entry in entries]
    if len(entries) == 1:
        return tuple(numbers) * CELLS
    return cells(data[1], numbers, padded)


def cells(data, numbers, padded):
    """The number at each cell's index, or None where the data has another length or an index past the palette."""
    bits = max(4, (len(numbers) - 1).bit_length())
    words = struct.unpack(f">{len(data) // 8}Q", data)
    if padded:
        used = 64 // bits * bits
        if len(words) != -(-CELLS * bits // used):
            return None
        digits = "".join(format(word, "064b")[-used:] for word in reversed(words))
    else:
        if len(words) * 64 != CELLS * bits:
            return None
        digits = "".join(format(word, "064b") for word in reversed(words))
    by_digits = {format(index, f"0{bits}b"): value for index, value in enumerate(numbers)}
    last = len(digits)
    try:
        return tuple(by_digits[digits[end - bits : end]] for end in range(last, last - CELLS * bits, -bits))
    except KeyError:
        return None
