// SPDX-License-Identifier: Apache-2.0
// Using an instance a little, whatever its kind: what the cases of level 2 do with it.
//
// A use makes the calls that a host makes, on fixed small inputs, and gives a digest of all that
// came back. Invariant: the digest depends on library, options and seed alone, so that two uses can
// be compared.
#pragma once

#include <string>

#include "sdk/conformance/context.hpp"
#include "sdk/conformance/faults.hpp"

namespace gradrack::conform {

/// How to go about a use, and what it came to.
struct Use {
  int64_t fail_builder_call = 0;  ///< the call of the graph builder that fails; 0: none
  int64_t builder_calls = 0;      ///< out: how many there were
  int32_t code = GR_OK;           ///< out: the status of the plugin's call that failed, if one did
};

/// Uses `table` once. The error is the plugin's own, or says what it gave back that no host takes.
/// The calling thread must play [plan] and [exec]. [any]
template <typename Table>
Result<std::string> use_instance(Context& context, const Table& table, Use* use);

template <>
Result<std::string> use_instance(Context& context, const gr_model_t& table, Use* use);
template <>
Result<std::string> use_instance(Context& context, const gr_data_t& table, Use* use);
template <>
Result<std::string> use_instance(Context& context, const gr_optimizer_t& table, Use* use);
template <>
Result<std::string> use_instance(Context& context, const gr_lr_schedule_t& table, Use* use);
template <>
Result<std::string> use_instance(Context& context, const gr_precision_t& table, Use* use);
template <>
Result<std::string> use_instance(Context& context, const gr_scheduler_t& table, Use* use);
template <>
Result<std::string> use_instance(Context& context, const gr_backend_t& table, Use* use);
template <>
Result<std::string> use_instance(Context& context, const gr_metrics_t& table, Use* use);

/// Calls into the plugin with its allocations counted, and checks that the status is a known one
/// and agrees with the record.
template <typename Call>
Status call_plugin(const char* what, Use* use, Call&& call) {
  gr_error_t err = {};
  int32_t code = GR_OK;
  {
    const InPlugin inside;
    code = call(&err);
  }
  if (code == GR_OK) return {};
  if (use != nullptr) use->code = code;
  if (code < GR_OK || code > GR_INTERNAL) {
    return internal_error(std::string(what) + " returned the unknown status " +
                          std::to_string(code));
  }
  if (err.code != code) {
    return internal_error(std::string(what) + " returned status " + std::to_string(code) +
                          " but wrote " + std::to_string(err.code) + " to err.code");
  }
  if (err.message[0] == '\0') {
    return internal_error(std::string(what) + " returned status " + std::to_string(code) +
                          " without a message");
  }
  return status_from(code, err).with_context(what);
}

/// Collects what came back into a digest (FNV-1a).
class Digest {
 public:
  void add(const void* bytes, size_t count);
  void add(const std::string& text) { add(text.data(), text.size()); }
  template <typename T>
  requires std::is_arithmetic_v<T>
  void add(T number) { add(&number, sizeof number); }
  std::string text() const;

 private:
  uint64_t hash_ = UINT64_C(0xcbf29ce484222325);
};

}  // namespace gradrack::conform
