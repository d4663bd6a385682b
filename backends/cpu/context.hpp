// SPDX-License-Identifier: Apache-2.0
// Context: what the kernels of one cpu backend share: the pool and the table of hot loops.
//
// Made by plugin.cpp, alive as long as the backend; kernels hold a reference.
#pragma once

#include "backends/cpu/pool.hpp"
#include "backends/cpu/simd.hpp"

namespace gradrack::cpu {

/// Holds oneDNN to what GRADRACK_CPU_ISA asks for; to be called before oneDNN is used (onednn.cpp).
void cap_onednn();

struct Context {
  explicit Context(int threads) : Context(1, threads, {}) {}
  /// As Pool's.
  Context(int streams, int threads_per_stream, const std::vector<int>& cores)
      : pool(streams, threads_per_stream, cores), loops(simd()) {
    cap_onednn();
  }
  mutable Pool pool;
  const Simd& loops;
};

}  // namespace gradrack::cpu
