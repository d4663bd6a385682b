// SPDX-License-Identifier: Apache-2.0
// What stands behind a checked table: Box (the wrapped table and its state) and Thunk (the function
// in each slot). Private to sdk/checked; checked_tables.cpp instantiates it from the tags.
//
// Invariant: the first argument of every function of an outer table is its Box. Knows nothing of
// single functions, but for the graph builder that some are given.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sdk/checked/checked.hpp"

namespace gradrack::checked_calls {

inline constexpr uint32_t kMain = GR_THREAD_MAIN;
inline constexpr uint32_t kPlan = GR_THREAD_PLAN;
inline constexpr uint32_t kExec = GR_THREAD_EXEC;
inline constexpr uint32_t kAny = 0;

/// A function's name as a template argument.
template <size_t N>
struct Name {
  char text[N];
  constexpr Name(const char (&from)[N]) { std::copy_n(from, N, text); }  // NOLINT: implicit
};

/// State of one wrapped table, whatever its type.
struct State {
  State(const char* table_name, bool called_by_plugin, ViolationSink to)
      : table(table_name), by_plugin(called_by_plugin), sink(std::move(to)) {}

  /// Tells the sink. `by_caller`: who calls the table broke the rule, not who filled it.
  void report(const char* function, bool by_caller, uint32_t wanted, const std::string& what,
              gr_error_t* err) const;

  const char* table;
  bool by_plugin;  // the plugin calls this table; else the host does
  ViolationSink sink;
  std::atomic<bool> ended = false;
  std::atomic<bool> busy = false;
  bool per_stream = false;  // [exec] calls are one at a time per stream: GR_BACKEND_CONCURRENT
  bool many_exec = false;   // [exec] calls come several at once: GR_DATA_CONCURRENT
  std::mutex streams_mutex;
  std::vector<const void*> busy_streams;
};

/// One call: the rules before it, and the end of it.
class Call {
 public:
  /// `stream`: the one that the call is about; null: none.
  Call(State& state, const char* function, uint32_t role, const void* stream, gr_error_t* err);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  bool kept_rules() const { return kept_rules_; }
  /// A free is forwarded in spite of a broken rule, unless its object is gone.
  bool may_free() const { return !was_ended_; }
  int32_t checked_status(int32_t status, gr_error_t* err) const;
  void threw(gr_error_t* err) const;

 private:
  /// False: another call of the instance, or of the stream, is under way.
  bool enter();

  State& state_;
  const char* function_;
  const void* stream_;  // null: the call is one at a time per instance
  bool kept_rules_ = true;
  bool was_ended_ = false;
  bool entered_ = false;
};

// Every table names what its functions get first: `self`, or the host's `context`.
template <typename Table>
void*& handle_of(Table& table) {
  return table.self;
}
template <>
inline void*& handle_of(gr_host_t& table) {
  return table.context;
}

/// The wrapped table, the table that is handed out, and their state.
template <typename Table>
struct Box : State {
  Box(const char* name, bool called_by_plugin, ViolationSink to)
      : State(name, called_by_plugin, std::move(to)) {}

  Table inner = {};
  Table outer = {};
  void* handle = nullptr;  // what inner's functions get first

  template <auto Member, Name kName, uint32_t kRole>
  void slot();
};

// Arguments go through as they are, but for a graph builder, which is wrapped for the call.
template <typename T>
struct Argument {
  Argument(T from, const State&) : value(from) {}
  T get() const { return value; }
  T value;
};
template <>
struct Argument<const gr_builder_t*> {
  Argument(const gr_builder_t* from, const State& state) : builder(*from, state.sink) {}
  const gr_builder_t* get() const { return builder.get(); }
  CheckedBuilder builder;
};

/// The stream that a call is about; of a call about an event alone, the event.
inline const void* stream_of() { return nullptr; }
template <typename First, typename... Rest>
const void* stream_of(First first, Rest... rest) {
  if constexpr (std::is_same_v<First, gr_stream_t*>) return first;
  const void* const later = stream_of(rest...);
  if constexpr (std::is_same_v<First, gr_event_t*>) return later != nullptr ? later : first;
  return later;
}

inline gr_error_t* error_of() { return nullptr; }
template <typename First, typename... Rest>
gr_error_t* error_of(First first, Rest... rest) {
  if constexpr (std::is_same_v<First, gr_error_t*>) {
    return first;
  } else {
    return error_of(rest...);
  }
}

template <auto Member, Name kName, uint32_t kRole>
struct Thunk;

template <typename Table, typename R, typename H, typename... A, R (*Table::*Member)(H, A...),
          Name kName, uint32_t kRole>
struct Thunk<Member, kName, kRole> {
  static R call(H self, A... arguments) {
    auto& box = *static_cast<Box<Table>*>(reinterpret_cast<State*>(self));
    gr_error_t* err = error_of(arguments...);
    Call call(box, kName.text, kRole, stream_of(arguments...), err);
    if constexpr (std::is_void_v<R>) {
      if (!call.kept_rules() && !call.may_free()) return;
      forward(box, call, err, arguments...);
      if constexpr (std::string_view(kName.text) == "destroy") box.ended = true;
    } else if constexpr (std::is_same_v<R, int32_t>) {
      if (!call.kept_rules()) return GR_INTERNAL;
      return call.checked_status(forward(box, call, err, arguments...), err);
    } else {
      return call.kept_rules() ? forward(box, call, err, arguments...) : R{};
    }
  }

 private:
  static R forward(Box<Table>& box, const Call& call, gr_error_t* err, A... arguments) {
    bool entered = false;  // before that it is the caller's memory that was not there
    try {
      return pass(box, &entered, Argument<A>(arguments, box)...);
    } catch (...) {
      if (entered) call.threw(err);
    }
    if constexpr (std::is_same_v<R, int32_t>) {
      return entered ? int32_t{GR_INTERNAL}
                     : gr_fail(err, GR_OUT_OF_MEMORY, "", "no memory left to make the call");
    }
    if constexpr (!std::is_void_v<R>) return R{};
  }
  static R pass(Box<Table>& box, bool* entered, const Argument<A>&... arguments) {
    *entered = true;
    return (box.inner.*Member)(static_cast<H>(box.handle), arguments.get()...);
  }
};

/// True when `member` lies inside what whoever filled the table says it filled, and is there.
template <typename Table, typename F>
bool has(const Table& table, F Table::*member) {
  const auto begin = reinterpret_cast<const char*>(&table);
  const auto end = reinterpret_cast<const char*>(&(table.*member)) + sizeof(F);
  return table.struct_size >= static_cast<size_t>(end - begin) && table.*member != nullptr;
}

template <typename Table>
template <auto Member, Name kName, uint32_t kRole>
void Box<Table>::slot() {
  outer.*Member = has(inner, Member) ? Thunk<Member, kName, kRole>::call : nullptr;
}

/// Fills outer's slots. Generated.
template <typename Table>
void fill_slots(Box<Table>& box);
template <>
void fill_slots(Box<gr_graph_api_t>& box);

/// Keeps `box` until the process ends.
template <typename Table>
Box<Table>* keep(std::unique_ptr<Box<Table>> box) {
  static auto* mutex = new std::mutex;
  static auto* kept = new std::vector<std::unique_ptr<Box<Table>>>;
  const std::lock_guard lock(*mutex);
  kept->push_back(std::move(box));
  return kept->back().get();
}

/// Box around a copy of `table`.
template <typename Table>
Box<Table>* wrap(const char* name, const Table& table, bool called_by_plugin, void* handle,
                 ViolationSink sink) {
  auto box = std::make_unique<Box<Table>>(name, called_by_plugin, std::move(sink));
  const uint32_t bytes = std::min(table.struct_size, static_cast<uint32_t>(sizeof table));
  std::memcpy(&box->inner, &table, bytes);
  box->outer = box->inner;
  box->outer.struct_size = bytes;
  box->handle = handle;
  if constexpr (std::is_same_v<Table, gr_backend_t>) {
    box->per_stream = (box->inner.flags & GR_BACKEND_CONCURRENT) != 0;
  }
  if constexpr (std::is_same_v<Table, gr_data_t>) {
    box->many_exec = (box->inner.flags & GR_DATA_CONCURRENT) != 0;
  }
  fill_slots(*box);
  return keep(std::move(box));
}

template <typename Table>
const Table* wrap_table(const char* name, const Table* table, bool called_by_plugin,
                        ViolationSink sink) {
  Table copy = *table;
  Box<Table>* box = wrap(name, copy, called_by_plugin, handle_of(copy), std::move(sink));
  handle_of(box->outer) = static_cast<State*>(box);
  return &box->outer;
}

}  // namespace gradrack::checked_calls
