"""A tree of typed NBT, read from bytes and written to bytes with nothing but Python's standard library.

A value is the pair (tag, content). The content of a number, a string or an array is its bytes as the file has them, so
that two values are equal only when every bit is: -0.0 is not 0.0, and 1 as a byte is not 1 as an int. A compound's
content is a dict of values by name, which compares without order. A list's content is the pair (element tag, contents).
It shares no code with this project.
"""

import struct

BYTE, SHORT, INT, LONG, FLOAT, DOUBLE, BYTES, STRING, LIST, COMPOUND, INTS, LONGS = range(1, 13)
NAMES = ("end", "byte", "short", "int", "long", "float", "double", "byte array", "string", "list", "compound")
NAMES += ("int array", "long array")
SIZES = {BYTE: 1, SHORT: 2, INT: 4, LONG: 8, FLOAT: 4, DOUBLE: 8}
FORMS = {BYTE: ">b", SHORT: ">h", INT: ">i", LONG: ">q", FLOAT: ">f", DOUBLE: ">d"}
ELEMENT_SIZES = {BYTES: 1, INTS: 4, LONGS: 8}
SHOWN = 60


class NbtError(ValueError):
    """These bytes are no tree."""


def parse(data):
    """The name, the value and the end of the tag at the start of `data`. What follows it is not looked at."""
    try:
        tag = data[0]
        start = 3 + int.from_bytes(data[1:3], "big")
        content, end = _content(tag, data, start)
    except IndexError:
        raise NbtError(f"the tree goes on after the last of its {len(data)} bytes") from None
    except RecursionError:
        raise NbtError("the tree is nested too deeply") from None
    if end > len(data):
        raise NbtError(f"{end - len(data)} bytes are missing")
    return data[3:start], (tag, content), end


# A slice that is cut short needs no check of its own: the end of the compound around it is then missing.
def _content(tag, data, at):
    size = SIZES.get(tag)
    if size:
        return data[at : at + size], at + size
    if tag == COMPOUND:
        fields = {}
        while True:
            tag = data[at]
            if tag == 0:
                return fields, at + 1
            start = at + 3 + (data[at + 1] << 8 | data[at + 2])
            name = data[at + 3 : start]
            if name in fields:
                raise NbtError(f"a compound has the field {text(name)} twice")
            content, at = _content(tag, data, start)
            fields[name] = (tag, content)
    if tag == STRING:
        end = at + 2 + (data[at] << 8 | data[at + 1])
        return data[at + 2 : end], end
    if tag == LIST:
        return _list(data, at)
    if tag in ELEMENT_SIZES:
        end = at + 4 + int.from_bytes(data[at : at + 4], "big") * ELEMENT_SIZES[tag]
        return data[at + 4 : end], end
    raise NbtError(f"there is no tag {tag}, at byte {at}")


def _list(data, at):
    inner, count = data[at], int.from_bytes(data[at + 1 : at + 5], "big", signed=True)
    at += 5
    if count <= 0:
        return (inner, []), at
    size = SIZES.get(inner)
    if size:
        end = at + count * size
        if end > len(data):
            raise NbtError(f"a list of {count} {NAMES[inner]} is longer than the {len(data)} bytes")
        return (inner, [data[place : place + size] for place in range(at, end, size)]), end
    contents = []
    for _ in range(count):
        content, at = _content(inner, data, at)
        contents.append(content)
    return (inner, contents), at


def write(name, value):
    """The bytes of a named tag; of a tree that was read, the bytes it was read from."""
    tag, content = value
    return bytes([tag]) + len(name).to_bytes(2, "big") + name + _bytes(tag, content)


def _bytes(tag, content):
    if tag in SIZES:
        return content
    if tag == COMPOUND:
        return b"".join(write(name, value) for name, value in content.items()) + b"\0"
    if tag == STRING:
        return len(content).to_bytes(2, "big") + content
    if tag == LIST:
        inner, contents = content
        return bytes([inner]) + len(contents).to_bytes(4, "big") + b"".join(_bytes(inner, one) for one in contents)
    return (len(content) // ELEMENT_SIZES[tag]).to_bytes(4, "big") + content


def number(tag, content):
    """The number of a number's bytes."""
    return struct.unpack(FORMS[tag], content)[0]


def make(tag, thing):
    """A number or a string as a value."""
    return (tag, thing.encode() if tag == STRING else struct.pack(FORMS[tag], thing))


def field(value, *names):
    """The value at a path of names, or None."""
    for name in names:
        if value is None or value[0] != COMPOUND:
            return None
        value = value[1].get(name)
    return value


def text(name):
    """Bytes of a string for a person."""
    return name.decode("utf-8", "backslashreplace")


def show(value):
    """A value for a person, shortened, with its type."""
    tag, content = value
    if tag in SIZES:
        shown = str(number(tag, content))
    elif tag == STRING:
        shown = repr(text(content))
    elif tag == LIST:
        inner, contents = content
        return f"list of {len(contents)} {NAMES[inner]}"
    elif tag == COMPOUND:
        shown = "{" + ", ".join(text(name) for name in content) + "}"
    else:
        shown = f"of {len(content) // ELEMENT_SIZES[tag]}"
    return f"{NAMES[tag]} {shown if len(shown) <= SHOWN else shown[:SHOWN] + '…'}"
