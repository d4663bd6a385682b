// SPDX-License-Identifier: Apache-2.0
// Scheduler `sequential`: program order on one stream.
//
// The fallback of every other scheduler and the measure of what they gain. Invariant: program order
// is itself legal, so the answer always passes the host's check.
#include <algorithm>
#include <numeric>

#include "gradrack/scheduler.hpp"

namespace {

class Sequential {
 public:
  static constexpr const char* kName = "sequential";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "Program order on one stream.";

  explicit Sequential(const gradrack::sdk::Options&) {}

  uint32_t streams() const { return 1; }

  void schedule(const gradrack::sdk::Tasks&, std::span<uint32_t> order,
                std::span<uint32_t> stream) const {
    std::iota(order.begin(), order.end(), 0u);
    std::fill(stream.begin(), stream.end(), 0u);
  }
};

}  // namespace

GRADRACK_PLUGIN("gradrack.sequential", "1.0.0", gradrack::sdk::Scheduler<Sequential>)
