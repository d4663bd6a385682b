# SPDX-License-Identifier: Apache-2.0
"""Files that are no plugin of this machine, made from a good one or from nothing.

Each function gives the bytes of one file. Sizes and offsets are those of the ELF format (System V
ABI, "Object Files"): e_ident is 16 bytes, e_type and e_machine follow.
"""

import struct

DATA = 5  # place in e_ident
EM_386, EM_X86_64, EM_AARCH64 = 3, 62, 183
ET_EXEC, ET_DYN = 2, 3


def patched(library, offset, code, value):
    copy = bytearray(library)
    struct.pack_into(code, copy, offset, value)
    return bytes(copy)


def other_machine(library):
    machine = struct.unpack_from("<H", library, 18)[0]
    return patched(library, 18, "<H", EM_AARCH64 if machine == EM_X86_64 else EM_X86_64)


def wrong_word_size(_):
    """A whole, if empty, shared library of 32 bits: header and one loadable segment."""
    ident = b"\x7fELF" + bytes([1, 1, 1]) + bytes(9)
    header = ident + struct.pack("<HHIIIIIHHHHHH", ET_DYN, EM_386, 1, 0, 52, 0, 0, 52, 32, 1, 40, 0,
                                 0)
    load = struct.pack("<IIIIIIII", 1, 0, 0, 0, 84, 84, 5, 4096)
    return header + load + bytes(12)


def other_byte_order(library):
    return patched(library, DATA, "<B", 2)


def program_file(library):
    return patched(library, 16, "<H", ET_EXEC)


def text_file(_):
    return b"this is no library at all, however long the text may be; 64 bytes of it at least\n"


def empty_file(_):
    return b""


def cut_in_header(library):
    return library[:40]


def cut_in_half(library):
    """Half of what the loader maps; debug information behind it would not be missed."""
    table, = struct.unpack_from("<Q", library, 32)
    size, count = struct.unpack_from("<HH", library, 54)
    end = 0
    for at in range(table, table + size * count, size):
        kind, _, offset, _, _, in_file = struct.unpack_from("<IIQQQQ", library, at)
        if kind == 1:  # PT_LOAD
            end = max(end, offset + in_file)
    return library[:end // 2]


MAKERS = [other_machine, wrong_word_size, other_byte_order, program_file, text_file, empty_file,
          cut_in_header, cut_in_half]
