// SPDX-License-Identifier: Apache-2.0
// Violations as events: see check_calls.hpp.
#include "core/plugin/check_calls.hpp"

#include "core/base/log.hpp"

namespace gradrack {

ViolationSink log_violations(std::string who) {
  return [who = std::move(who)](const Violation& violation) {
    log_event({violation.by_plugin ? "plugin_misbehaves" : "host_misbehaves",
               Level::kError,
               who + ": " + violation.message,
               {{"plugin", who},
                {"function", violation.function},
                {"wanted", violation.wanted == 0 ? "" : role_text(violation.wanted)},
                {"actual", role_text(violation.actual)}}});
  };
}

bool may_call(const char* function, uint32_t wanted, const std::string& who) {
  return !kCheckedCalls || check_role(function, wanted, log_violations(who));
}

}  // namespace gradrack
