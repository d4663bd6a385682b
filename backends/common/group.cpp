// SPDX-License-Identifier: Apache-2.0
// Groups of nodes as backends see them, and the C face of their patterns: see group.hpp.
#include "backends/common/group.hpp"

#include <algorithm>

#include "backends/common/handles.hpp"

namespace gradrack::host {
namespace {

std::vector<TensorSpec> tensors(const gr_value_type_t* types, uint32_t count) {
  std::vector<TensorSpec> out;
  for (uint32_t k = 0; k < count; ++k) out.emplace_back(types[k]);
  return out;
}

int place_of(const std::vector<TensorSpec>& border, gr_value_t id) {
  const auto is_it = [id](const TensorSpec& tensor) { return tensor.id == id; };
  const auto at = std::find_if(border.begin(), border.end(), is_it);
  return at == border.end() ? -1 : static_cast<int>(at - border.begin());
}

int32_t claim_group(void* self, uint32_t pattern, const gr_group_t* group, gr_claim_t* claim,
                    gr_error_t* err) noexcept {
  return guarded("claim_group", err, [&] {
    std::string reason;
    const auto& table = *static_cast<const KernelTable*>(self);
    const bool yes = match_group(table, pattern, GroupSpec(*group), &reason) != nullptr;
    claim->verdict = yes ? GR_CLAIM_YES : GR_CLAIM_NO;
    claim->group = -1;
    claim->cost_ns = 0;
    (void)snprintf(claim->reason, sizeof claim->reason, "%s", yes ? "" : reason.c_str());
    return GR_OK;
  });
}

}  // namespace

GroupSpec::GroupSpec(const gr_group_t& group)
    : inputs(tensors(group.inputs, group.input_count)),
      outputs(tensors(group.outputs, group.output_count)) {
  const char* at = reinterpret_cast<const char*>(group.nodes);
  for (uint32_t k = 0; k < group.node_count; ++k, at += group.node_stride) {
    nodes.emplace_back(*reinterpret_cast<const gr_node_view_t*>(at));
  }
}

int GroupSpec::input(gr_value_t id) const { return place_of(inputs, id); }

int GroupSpec::output(gr_value_t id) const { return place_of(outputs, id); }

void KernelTable::add_group(GroupEntry entry) {
  groups_.push_back(std::make_shared<const GroupEntry>(std::move(entry)));
}

const GroupEntry* match_group(const KernelTable& table, uint32_t pattern, const GroupSpec& group,
                              std::string* reason) {
  if (pattern >= table.groups().size()) {
    *reason = "no pattern " + std::to_string(pattern);
    return nullptr;
  }
  const GroupEntry& entry = *table.groups()[pattern];
  if (entry.claim) *reason = entry.claim(group);
  return reason->empty() ? &entry : nullptr;
}

FusionFace::FusionFace(const KernelTable& table) {
  for (const auto& group : table.groups()) {
    patterns_.push_back({sizeof(gr_pattern_t), group->flags, group->name.c_str(),
                         group->help.c_str(), group->pattern.c_str()});
  }
  face_.struct_size = sizeof face_;
  face_.pattern_count = static_cast<uint32_t>(patterns_.size());
  face_.self = const_cast<KernelTable*>(&table);
  face_.patterns = patterns_.data();
  face_.pattern_stride = sizeof(gr_pattern_t);
  face_.claim_group = claim_group;
}

const gr_fusion_t* FusionFace::extension() const { return patterns_.empty() ? nullptr : &face_; }

}  // namespace gradrack::host
