// SPDX-License-Identifier: Apache-2.0
// Learning-rate schedule `constant`: the group's own rate at every update.
#include "gradrack/lr_schedule.hpp"

namespace {

class Constant {
 public:
  static constexpr const char* kName = "constant";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "The same learning rate at every update.";

  explicit Constant(const gradrack::sdk::Options&) {}

  double value(const gr_lr_request_t& request) const { return request.base_lr; }
};

}  // namespace

GRADRACK_PLUGIN("gradrack.constant", "1.0.0", gradrack::sdk::LrSchedule<Constant>)
