// SPDX-License-Identifier: Apache-2.0
// Where the checked tables of sdk/checked enter the host, and what becomes of their findings.
//
// With GRADRACK_CHECKED (the presets dev, asan and tsan) every instance's table, the host's table
// and the functions without instance are checked; without it nothing is added to a call. Invariant:
// a violation is an event of kind "plugin_misbehaves" or "host_misbehaves" and GR_INTERNAL, never a
// crash.
#pragma once

#include <string>

#include "sdk/checked/checked.hpp"

namespace gradrack {

#ifdef GRADRACK_CHECKED
inline constexpr bool kCheckedCalls = true;
#else
inline constexpr bool kCheckedCalls = false;
#endif

/// A sink that logs each violation as an event about `who` ("optimizer 'adamw' (/path)"). [any]
ViolationSink log_violations(std::string who);

/// Puts a checked table in the place of `*table`, whose calls are about `who`. [main]
template <typename Table>
void check_calls(Table* table, const std::string& who) {
  if constexpr (kCheckedCalls) *table = *checked(table, log_violations(who));
}

/// False when calls are checked and this thread does not play `wanted`: the call is not to be made.
/// For functions without an instance: "gr_factory_t.create". [any]
bool may_call(const char* function, uint32_t wanted, const std::string& who);

}  // namespace gradrack
