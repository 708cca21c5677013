"""What macOS reads in a program or a library before it runs it: the libraries, the oldest system, and the signature.

No tool of Linux checks the signature, without which a Mac with Apple's processor ends the program at once.
"""

import hashlib
import struct

MAGIC = b"\xcf\xfa\xed\xfe"
LOAD_LIBRARY = {0xC, 0x80000018, 0x8000001F}
BUILD_VERSION, MINIMUM_VERSION, CODE_SIGNATURE = 0x32, 0x24, 0x1D
SUPER_BLOB, CODE_DIRECTORY, SHA256 = 0xFADE0CC0, 0xFADE0C02, 2


class MachO:
    """A file for one processor."""

    def __init__(self, content):
        assert content[:4] == MAGIC, "not a 64-bit Mach-O file"
        self.libraries, self.minimum, self.is_signed = [], None, False
        (commands,) = struct.unpack_from("<I", content, 16)
        place = 32
        for _ in range(commands):
            command, size = struct.unpack_from("<II", content, place)
            if command in LOAD_LIBRARY:
                (name,) = struct.unpack_from("<I", content, place + 8)
                self.libraries.append(content[place + name : place + size].split(b"\0")[0].decode())
            elif command in (BUILD_VERSION, MINIMUM_VERSION):
                (version,) = struct.unpack_from("<I", content, place + (12 if command == BUILD_VERSION else 8))
                self.minimum = f"{version >> 16}.{version >> 8 & 0xFF}"
            elif command == CODE_SIGNATURE:
                start, length = struct.unpack_from("<II", content, place + 8)
                self.is_signed = is_signed(content, content[start : start + length], start)
            place += size


def is_signed(content, signature, end):
    """Whether the hashes of all pages before the signature are those that it lists."""
    magic, _, count = struct.unpack_from(">III", signature)
    assert magic == SUPER_BLOB
    for index in range(count):
        _, place = struct.unpack_from(">II", signature, 12 + 8 * index)
        directory = signature[place:]
        if struct.unpack_from(">I", directory)[0] != CODE_DIRECTORY:
            continue
        hashes, _, _, slots, limit = struct.unpack_from(">IIIII", directory, 16)
        size, kind, _, page = struct.unpack_from(">BBBB", directory, 36)
        assert (kind, size) == (SHA256, 32)
        listed = [directory[hashes + 32 * slot : hashes + 32 * slot + 32] for slot in range(slots)]
        pages = range(0, limit, 1 << page)
        real = [hashlib.sha256(content[at : min(at + (1 << page), limit)]).digest() for at in pages]
        return limit == end and listed == real
    return False
