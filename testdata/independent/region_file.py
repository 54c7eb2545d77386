"""The slots of a region file, read with nothing but Python's standard library.

Every container of a chunk is read that the game writes or wrote: gzip, zlib, none and LZ4, in the file or in an `.mcc`
file beside it, and files whose last sector is not padded. It shares no code with this project.
"""

import gzip
import re
import zlib

NAME = re.compile(r"(?<![A-Za-z0-9])r\.(-?\d+)\.(-?\d+)\.mca$")
SECTOR = 4096
SLOTS = 1024
EXTERNAL = 0x80
LZ4_MAGIC = b"LZ4Block"
LZ4_HEADER = 21


class SlotError(ValueError):
    """A slot whose chunk cannot be read."""


class Slot:
    """A slot that is in use: its chunk's place, its time, and its compressed bytes or why there are none."""

    def __init__(self, region, index, place):
        self.x, self.z = region.x * 32 + index % 32, region.z * 32 + index // 32
        header = SECTOR + index * 4
        self.time = int.from_bytes(region.data[header : header + 4], "big")
        self.external = None
        self.error = None
        self.scheme, self.packed = 0, b""
        start = (place >> 8) * SECTOR
        length = int.from_bytes(region.data[start : start + 4], "big")
        # What the sectors hold is kept also of a damaged slot, so that two can be compared.
        self.packed = region.data[start : start + (place & 0xFF) * SECTOR]
        if start < 2 * SECTOR or start + 5 > len(region.data):
            self.error = f"its sector {place >> 8} is no sector of the file"
        elif length < 1 or start + 4 + length > len(region.data):
            self.error = f"its length {length} does not fit the file"
        else:
            self.scheme = region.data[start + 4]
            self.packed = region.data[start + 5 : start + 4 + length]
            if self.scheme & EXTERNAL:
                self.read_external(region)

    def read_external(self, region):
        self.scheme &= ~EXTERNAL
        self.external = region.path.with_name(f"c.{self.x}.{self.z}.mcc")
        try:
            self.packed = self.external.read_bytes()
        except OSError as error:
            self.error = f"its file {self.external.name} cannot be read: {error.strerror}"

    def unpack(self):
        """The chunk's NBT as bytes."""
        if self.error:
            raise SlotError(self.error)
        try:
            if self.scheme == 1:
                return gzip.decompress(self.packed)
            if self.scheme == 2:
                return zlib.decompressobj().decompress(self.packed)
            if self.scheme == 3:
                return self.packed
            if self.scheme == 4:
                return lz4_stream(self.packed)
        except (OSError, EOFError, zlib.error, IndexError) as error:
            raise SlotError(f"it cannot be decompressed: {error}") from None
        raise SlotError(f"this script cannot read the compression {self.scheme}")


class Region:
    """A region file: the slots in use, by place in the header."""

    def __init__(self, path):
        match = NAME.search(path.name)
        self.path = path
        self.x, self.z = int(match[1]), int(match[2])
        self.data = path.read_bytes()
        places = [int.from_bytes(self.data[at : at + 4], "big") for at in range(0, min(len(self.data), SECTOR), 4)]
        self.slots = {index: Slot(self, index, place) for index, place in enumerate(places) if place}


def lz4_stream(data):
    """The content of lz4-java's block stream: blocks with a header of their own, the last one empty."""
    parts, at = [], 0
    while data[at : at + 8] == LZ4_MAGIC:
        method = data[at + 8] & 0xF0
        packed, size = (int.from_bytes(data[at + 9 + place : at + 13 + place], "little") for place in (0, 4))
        at += LZ4_HEADER
        block = data[at : at + packed]
        at += packed
        if size == 0:
            return b"".join(parts)
        if method == 0x10:
            parts.append(block)
        elif method == 0x20:
            parts.append(lz4_block(block))
        else:
            raise SlotError(f"it cannot be decompressed: there is no LZ4 method {method:#x}")
        if len(parts[-1]) != size:
            raise SlotError(f"it cannot be decompressed: an LZ4 block holds {len(parts[-1])} bytes, not {size}")
    raise SlotError(f"it cannot be decompressed: no LZ4 block at byte {at}")


def lz4_block(data):
    """One LZ4 block: literals, then a copy of what was written before, until the data ends with literals."""

    def length(start):
        nonlocal at
        if start == 15:
            while True:
                start += data[at]
                at += 1
                if data[at - 1] != 255:
                    break
        return start

    out, at = bytearray(), 0
    while True:
        token = data[at]
        at += 1
        literals = length(token >> 4)
        out += data[at : at + literals]
        at += literals
        if at >= len(data):
            return bytes(out)
        offset = data[at] | data[at + 1] << 8
        at += 2
        copied = length(token & 15) + 4
        start = len(out) - offset
        if offset == 0 or start < 0:
            raise SlotError("it cannot be decompressed: an LZ4 copy from before the block")
        for place in range(start, start + copied):
            out.append(out[place])
