// SPDX-License-Identifier: Apache-2.0
// Precisions `fp32` and `fp64`: one dtype for storage and for every node.
//
// fp32 is the default of a run; fp64 is for goldens and finite differences. Invariant: one answer
// to every question, so the host inserts no casts.
#include "gradrack/precision.hpp"

namespace {

template <gr_dtype_t kDtype>
class FullPrecision {
 public:
  static constexpr const char* kName = kDtype == GR_FLOAT32 ? "fp32" : "fp64";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp =
      kDtype == GR_FLOAT32 ? "Everything in float32." : "Everything in float64.";

  explicit FullPrecision(const gradrack::sdk::Options&) {}

  gr_dtype_t storage_dtype() const { return kDtype; }
  gr_dtype_t node_dtype(const gr_precision_node_t&) const { return kDtype; }
};

}  // namespace

GRADRACK_PLUGIN("gradrack.full_precision", "1.0.0",
                gradrack::sdk::Precision<FullPrecision<GR_FLOAT32>>,
                gradrack::sdk::Precision<FullPrecision<GR_FLOAT64>>)
