// SPDX-License-Identifier: Apache-2.0
// Blocks of host memory for arenas and stores.
//
// A large block asks the system for huge pages: with pages of 4 KiB every pass over it misses in
// the processor's table of addresses, at half the speed (measured: a sum of two arrays of 64 MiB,
// 6.8 and 11.6 GB/s on one core). Only whole huge pages are asked for, so a block takes no more
// than its bytes.
#pragma once

#include <cstdint>

namespace gradrack::host {

/// At least 1 byte, aligned to 64; null: there is no such memory, or bytes < 0. [any]
void* allocate_block(int64_t bytes) noexcept;
/// Takes null too. [any]
void release_block(void* block) noexcept;

}  // namespace gradrack::host
