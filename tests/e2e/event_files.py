# SPDX-License-Identifier: Apache-2.0
"""Reads TensorBoard's event files by their published format: frames, check sums, messages.

A reader of its own, so that writer and reader can be wrong only in different ways; where the
tensorboard package is installed, sinks_test.py asks that too.
"""

import struct


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def frames(data):
    at = 0
    while at < len(data):
        head = data[at:at + 8]
        length, check = struct.unpack_from("<QI", data, at)
        if check != masked(head):
            raise ValueError(f"check sum of the length at {at}")
        message = data[at + 12:at + 12 + length]
        (check,) = struct.unpack_from("<I", data, at + 12 + length)
        if len(message) != length or check != masked(message):
            raise ValueError(f"check sum of the message at {at}")
        yield message
        at += 16 + length


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(message):
    """(number, value) of a protocol buffer: ints for numbers, bytes for what has a length."""
    at = 0
    while at < len(message):
        tag, at = varint(message, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = varint(message, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            value, at = message[at:at + size], at + size
        elif wire == 2:
            size, at = varint(message, at)
            value, at = message[at:at + size], at + size
        else:
            raise ValueError(f"wire type {wire}")
        yield number, value


class Event:
    """One Event: time, step, version, scalars by tag, texts by tag, restart."""

    def __init__(self, message):
        self.step, self.version, self.scalars, self.texts, self.restart = 0, None, {}, {}, False
        for number, value in fields(message):
            if number == 1:
                (self.time,) = struct.unpack("<d", value)
            elif number == 2:
                self.step = value
            elif number == 3:
                self.version = value.decode()
            elif number == 5:
                self.read_summary(value)
            elif number == 7:
                self.restart = dict(fields(value)).get(1) == 1

    def read_summary(self, summary):
        for _, item in fields(summary):
            parts = dict(fields(item))
            tag = parts[1].decode()
            if 2 in parts:
                (self.scalars[tag],) = struct.unpack("<f", parts[2])
            if 8 in parts:
                self.texts[tag] = dict(fields(parts[8]))[8].decode()


def read_folder(folder):
    """Events of all files in the order of their names, each list with what restarts drop gone."""
    kept = []
    for path in sorted(folder.iterdir()):
        for event in map(Event, frames(path.read_bytes())):
            if event.restart:
                kept = [e for e in kept if e.step < event.step]
            kept.append(event)
    return kept
