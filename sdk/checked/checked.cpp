// SPDX-License-Identifier: Apache-2.0
// The rules of a call: see checked.hpp and thunk.hpp.
#include "sdk/checked/checked.hpp"

#include "sdk/checked/thunk.hpp"

namespace gradrack {
namespace checked_calls {

void State::report(const char* function, bool by_caller, uint32_t wanted, const std::string& what,
                   gr_error_t* err) const {
  Violation violation;
  violation.by_plugin = by_caller == by_plugin;
  violation.function = std::string(table) + "." + function;
  violation.wanted = wanted;
  violation.actual = current_roles();
  violation.message = (violation.by_plugin ? "the plugin misbehaves: " : "the host misbehaves: ") +
                      violation.function + " " + what;
  (void)gr_fail(err, GR_INTERNAL, function, violation.message.c_str());
  sink(violation);
}

Call::Call(State& state, const char* function, uint32_t role, const void* stream, gr_error_t* err)
    : state_(state),
      function_(function),
      stream_(state.per_stream && role == kExec ? stream : nullptr) {
  const auto broken = [&](uint32_t wanted, const std::string& what) {
    kept_rules_ = false;
    state_.report(function, true, wanted, what, err);
  };
  was_ended_ = state_.ended;
  if (was_ended_) {
    broken(0, state_.by_plugin ? "was called after the end of what it was given for"
                               : "was called after destroy");
  } else if (role == kAny) {
    return;
  } else if ((current_roles() & role) == 0) {
    broken(role, "was called on a thread with role " + role_text(current_roles()) + ", " +
                     role_text(role) + " wanted");
  } else if (state_.many_exec && role == kExec) {
    return;
  } else if (!enter()) {
    broken(0, std::string("was called while another call of the same ") +
                  (stream_ != nullptr ? "stream" : "instance") + " was under way");
  } else {
    entered_ = true;
  }
}

bool Call::enter() {
  if (stream_ == nullptr) return !state_.busy.exchange(true);
  const std::lock_guard lock(state_.streams_mutex);
  std::vector<const void*>& busy = state_.busy_streams;
  if (std::find(busy.begin(), busy.end(), stream_) != busy.end()) return false;
  busy.push_back(stream_);
  return true;
}

Call::~Call() {
  if (!entered_) return;
  if (stream_ == nullptr) {
    state_.busy = false;
    return;
  }
  const std::lock_guard lock(state_.streams_mutex);
  std::erase(state_.busy_streams, stream_);
}

int32_t Call::checked_status(int32_t status, gr_error_t* err) const {
  if (status >= GR_OK && status <= GR_INTERNAL) return status;
  state_.report(function_, false, 0, "returned the unknown status " + std::to_string(status), err);
  return GR_INTERNAL;
}

void Call::threw(gr_error_t* err) const {
  state_.report(function_, false, 0, "threw an exception across the C interface", err);
}

}  // namespace checked_calls

struct CheckedBuilder::Wrapped {
  checked_calls::Box<gr_graph_api_t>* box;
  gr_builder_t builder;
};

CheckedBuilder::CheckedBuilder(const gr_builder_t& builder, ViolationSink sink) {
  auto* box =
      checked_calls::wrap("gr_graph_api_t", *builder.api, true, builder.graph, std::move(sink));
  auto* graph = reinterpret_cast<gr_graph_t*>(static_cast<checked_calls::State*>(box));
  static auto* mutex = new std::mutex;
  static auto* kept = new std::vector<std::unique_ptr<Wrapped>>;
  const std::lock_guard lock(*mutex);
  kept->push_back(std::make_unique<Wrapped>(Wrapped{box, {&box->outer, graph}}));
  wrapped_ = kept->back().get();
}

CheckedBuilder::~CheckedBuilder() { wrapped_->box->ended = true; }

const gr_builder_t* CheckedBuilder::get() const { return &wrapped_->builder; }

void end_checked(const gr_host_t* host) {
  static_cast<checked_calls::Box<gr_host_t>*>(static_cast<checked_calls::State*>(host->context))
      ->ended = true;
}

bool check_role(const char* function, uint32_t wanted, const ViolationSink& sink) {
  if ((current_roles() & wanted) != 0) return true;
  sink({false, function, wanted, current_roles(),
        std::string("the host misbehaves: ") + function + " was called on a thread with role " +
            role_text(current_roles()) + ", " + role_text(wanted) + " wanted"});
  return false;
}

}  // namespace gradrack
