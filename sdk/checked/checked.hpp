// SPDX-License-Identifier: Apache-2.0
// checked(): a table of the plugin ABI wrapped in one that holds both sides to the rules.
//
// Between whoever calls a table and whoever filled it: the host's debug builds put it around every
// instance, and around what a plugin is given to call; the conformance kit does the same. Which
// role a function asks for is generated from the tags of the headers (checked_tables.cpp).
// Invariant: a call that keeps the rules goes through unchanged; one that breaks them is told to
// the sink, does not reach the other side (but for frees, which would leak) and gives GR_INTERNAL.
//
// Checked: the calling thread's role; one call at a time per instance (but for [any], and
// for [exec] of a concurrent backend: per stream); no call
// after destroy, or, for what the host gives, after the end of the call that it was given for; only
// known status codes; no exception out of a table. What is wrapped is kept until the process ends,
// so that a late call is a report and not a crash.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "gradrack/gradrack.h"
#include "sdk/checked/thread_role.hpp"

namespace gradrack {

/// A rule of the ABI that a call broke.
struct Violation {
  bool by_plugin = false;  ///< who broke it: the plugin, or the host
  std::string function;    ///< "gr_backend_t.launch"
  uint32_t wanted = 0;     ///< GR_THREAD_*; 0: the rule is not about roles
  uint32_t actual = 0;     ///< roles of the calling thread
  std::string message;     ///< a sentence with all of it
};

/// Is told of each violation, on the thread that broke the rule: any thread, several at a time.
using ViolationSink = std::function<void(const Violation&)>;

/// A table like `*table`, which is copied, that checks each call and forwards it. Optional
/// functions that `*table` lacks are lacking here too. Made for the kinds' tables (calls by
/// the host into a plugin; it ends with destroy) and for gr_host_t (calls by a plugin into the
/// host; it ends with end_checked). Lives until the process ends. [any]
template <typename Table>
const Table* checked(const Table* table, ViolationSink sink);

template <>
const gr_backend_t* checked(const gr_backend_t* table, ViolationSink sink);
template <>
const gr_data_t* checked(const gr_data_t* table, ViolationSink sink);
template <>
const gr_lr_schedule_t* checked(const gr_lr_schedule_t* table, ViolationSink sink);
template <>
const gr_metrics_t* checked(const gr_metrics_t* table, ViolationSink sink);
template <>
const gr_model_t* checked(const gr_model_t* table, ViolationSink sink);
template <>
const gr_optimizer_t* checked(const gr_optimizer_t* table, ViolationSink sink);
template <>
const gr_precision_t* checked(const gr_precision_t* table, ViolationSink sink);
template <>
const gr_scheduler_t* checked(const gr_scheduler_t* table, ViolationSink sink);
template <>
const gr_host_t* checked(const gr_host_t* table, ViolationSink sink);

/// From now on every call through `host`, a table that checked() made, is a violation: the library
/// was stopped. [main]
void end_checked(const gr_host_t* host);

/// A graph builder for one call: while it lives, the graph may be built through it, on threads that
/// play [plan], one call at a time; calls after its end are reported. checked() uses it for `build`
/// and `build_update`. [plan]
class CheckedBuilder {
 public:
  CheckedBuilder(const gr_builder_t& builder, ViolationSink sink);
  ~CheckedBuilder();
  CheckedBuilder(const CheckedBuilder&) = delete;
  CheckedBuilder& operator=(const CheckedBuilder&) = delete;
  const gr_builder_t* get() const;

 private:
  struct Wrapped;
  Wrapped* wrapped_;  // kept until the process ends
};

/// For functions without an instance (entry, probe, create, stop): does the calling thread play
/// `wanted`? If not, tells the sink that the host misbehaves. [any]
bool check_role(const char* function, uint32_t wanted, const ViolationSink& sink);

}  // namespace gradrack
