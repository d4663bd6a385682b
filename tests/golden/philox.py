# SPDX-License-Identifier: Apache-2.0
"""Philox4x32-10, the counter-based random numbers that pick training windows.

A twin of the C++ generator, in plain integers: shakespeare_twin.py draws the same windows as the
`text` data plugin. Invariant: a window depends on (seed, step, row) alone, never on earlier draws.
Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011; the vectors below
are those of the Random123 distribution (kat_vectors). Run this file to check them.
"""

MASK32 = 0xFFFFFFFF
ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)  # golden ratio and sqrt(3) - 1, added to the key each round
DATA_STREAM = 0x64617461  # "data": keeps window draws apart from other uses of the same seed

Words4 = tuple[int, int, int, int]


def philox4x32(counter: Words4, key: tuple[int, int]) -> Words4:
    """Returns four 32-bit words for one counter and key."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(ROUNDS):
        product0 = MULTIPLIERS[0] * c0
        product1 = MULTIPLIERS[1] * c2
        c0, c1, c2, c3 = (
            (product1 >> 32) ^ c1 ^ k0,
            product1 & MASK32,
            (product0 >> 32) ^ c3 ^ k1,
            product0 & MASK32,
        )
        k0 = (k0 + KEY_STEPS[0]) & MASK32
        k1 = (k1 + KEY_STEPS[1]) & MASK32
    return c0, c1, c2, c3


def window_start(seed: int, step: int, row: int, n_starts: int) -> int:
    """Returns the first token of batch row `row` at 0-based `step`, in [0, n_starts).

    The high half of a 64 x 64 bit product maps u to the range without a modulo.
    """
    counter = (step & MASK32, step >> 32, row, DATA_STREAM)
    out = philox4x32(counter, (seed & MASK32, seed >> 32))
    u = out[0] | out[1] << 32
    return (u * n_starts) >> 64


KNOWN_ANSWERS: tuple[tuple[Words4, tuple[int, int], Words4], ...] = (
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    (
        (MASK32, MASK32, MASK32, MASK32),
        (MASK32, MASK32),
        (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
    ),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
)


def check_known_answers() -> None:
    """Raises when this generator differs from the published vectors."""
    for counter, key, want in KNOWN_ANSWERS:
        got = philox4x32(counter, key)
        if got != want:
            raise ValueError(f"philox4x32 of {counter}, key {key}: got {got}, want {want}")


if __name__ == "__main__":
    check_known_answers()
    print(f"philox4x32-10: {len(KNOWN_ANSWERS)} known answers agree")
