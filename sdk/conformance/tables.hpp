// SPDX-License-Identifier: Apache-2.0
// Calls by kind: from a kind's name to its C table type, and a raw table whose size a case chooses.
#pragma once

#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "core/plugin/kinds.hpp"
#include "sdk/conformance/case.hpp"
#include "sdk/conformance/context.hpp"

namespace gradrack::conform {

/// Calls `body` with std::type_identity<gr_KIND_t>; a kind that nobody knows is a failure.
template <typename Body>
Outcome with_table(const std::string& kind, Body&& body) {
  if (kind == "model") return body(std::type_identity<gr_model_t>());
  if (kind == "data") return body(std::type_identity<gr_data_t>());
  if (kind == "optimizer") return body(std::type_identity<gr_optimizer_t>());
  if (kind == "lr_schedule") return body(std::type_identity<gr_lr_schedule_t>());
  if (kind == "precision") return body(std::type_identity<gr_precision_t>());
  if (kind == "scheduler") return body(std::type_identity<gr_scheduler_t>());
  if (kind == "backend") return body(std::type_identity<gr_backend_t>());
  if (kind == "metrics") return body(std::type_identity<gr_metrics_t>());
  return fail("the kit does not know the kind '" + kind + "'");
}

/// Every kind's table begins this way.
struct TableHead {
  uint32_t struct_size;
  uint32_t flags;
  void* self;
  void (*destroy)(void* self);
};

/// A zeroed table of `announced` bytes with canaries after it. Destroys what was made in it.
class RawTable {
 public:
  explicit RawTable(size_t announced);
  ~RawTable();
  RawTable(const RawTable&) = delete;
  RawTable& operator=(const RawTable&) = delete;

  void* data() { return bytes_.data(); }
  TableHead head() const;
  /// The slot is inside the table and not NULL.
  bool filled(const Slot& slot) const;
  /// First byte at or after `from` that is not what it was, or -1. `from` >= announced: canaries.
  int64_t first_changed(size_t from) const;
  void set_made() { made_ = true; }

 private:
  size_t announced_;
  bool made_ = false;
  std::vector<unsigned char> bytes_;
};

}  // namespace gradrack::conform
