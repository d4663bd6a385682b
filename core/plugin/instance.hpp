// SPDX-License-Identifier: Apache-2.0
// Instance<Table>: one made thing of a plugin, with the options it was made from.
//
// Fourth step of plugin/. Invariant: every required function pointer is there; destroy is called
// exactly once, before the options go.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "core/config/options.hpp"
#include "core/config/run_config.hpp"
#include "core/plugin/check_calls.hpp"
#include "core/plugin/kinds.hpp"
#include "core/plugin/library.hpp"
#include "core/plugin/lifecycle.hpp"

namespace gradrack {

/// Bytes behind a table that create must leave alone.
inline constexpr size_t kTableGuardBytes = 512;

/// Owns a made instance. Movable; the table's address stays the same.
template <typename Table>
class Instance {
 public:
  /// Makes one. Errors as create_table. [main]
  static Result<Instance> create(const Factory& factory, OptionValues options);

  const Table* operator->() const { return &state_->memory.table; }
  const Table& table() const { return state_->memory.table; }
  const Factory& factory() const { return *state_->factory; }
  const std::string& name() const { return state_->factory->name; }
  const OptionValues& options() const { return state_->options; }

 private:
  struct State {
    const Factory* factory = nullptr;
    OptionValues options;
    struct {
      Table table = {};
      unsigned char guard[kTableGuardBytes];  // create_table looks whether it was written
    } memory;
    bool made = false;
    State() = default;
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() {
      if (!made) return;
      memory.table.destroy(memory.table.self);
      instance_gone(factory->library);
    }
  };
  explicit Instance(std::unique_ptr<State> state) : state_(std::move(state)) {}

  std::unique_ptr<State> state_;
};

/// Calls factory.create into a zeroed table of `info`, behind which lie kTableGuardBytes that are
/// the caller's too, and checks its slots; a table with a missing one is destroyed again, one that
/// was written beyond its end is not touched any more. The plugin's own code and text come back,
/// headed by kind, name and path; an unknown code or an exception is GR_INTERNAL.
Status create_table(const Factory& factory, const OptionValues& options, const KindInfo& info,
                    void* table);

template <typename Table>
Result<Instance<Table>> Instance<Table>::create(const Factory& factory, OptionValues options) {
  auto state = std::make_unique<State>();
  state->factory = &factory;
  state->options = std::move(options);
  state->memory.table.struct_size = sizeof(Table);
  GR_TRY(create_table(factory, state->options, kind_info<Table>(), &state->memory.table));
  state->made = true;
  instance_made(factory.library);
  check_calls(&state->memory.table, factory.text());
  return Instance(std::move(state));
}

}  // namespace gradrack
