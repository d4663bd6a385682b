// SPDX-License-Identifier: Apache-2.0
// Counts every operator new of a test program: link count_allocations.cpp into it.
#pragma once

#include <cstddef>

namespace gradrack::test {

/// Calls of operator new so far, on all threads.
size_t allocation_count();

}  // namespace gradrack::test
