// SPDX-License-Identifier: Apache-2.0
// Private to simulate/: a table from names, however the file spells it.
//
// The readers of JSON and CSV hand over rows of text and numbers; ids, devices and links are looked
// up here, once. Invariant: each name is there once, and what a row names exists.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/status.hpp"
#include "core/simulate/sim_table.hpp"

namespace gradrack {

/// One task as written; empty text and absent numbers mean that the file left them out.
struct TaskRow {
  std::string id, kind, device, link, stage;
  std::vector<std::string> deps, reads;
  int64_t duration_ns = 0, bytes_held = 0, bytes_freed = 0, bytes = 0;
  int64_t microbatch = -1, priority = -1;
};

class TableBuilder {
 public:
  explicit TableBuilder(const std::string& name) { table_.name = name; }

  /// `where` is the row's place in the file, for messages.
  Status add_device(const std::string& where, SimDevice device);
  Status add_link(const std::string& where, SimLink link);
  Status add_task(const std::string& where, const TaskRow& row);
  Result<SimTable> finish();

 private:
  Result<int32_t> resource(const std::string& where, const TaskRow& row) const;
  Result<std::vector<uint32_t>> tasks(const std::string& where, const char* key,
                                      const std::vector<std::string>& ids) const;
  Status add_name(const std::string& where, const std::string& name);

  SimTable table_;
  std::unordered_map<std::string, int32_t> resources_;  // devices first, then links
  std::unordered_map<std::string, uint32_t> ids_;
};

Result<LinkPolicy> read_link_policy(const std::string& where, const std::string& text);

}  // namespace gradrack
