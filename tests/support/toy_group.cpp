// SPDX-License-Identifier: Apache-2.0
// See toy_group.hpp.
#include "tests/support/toy_group.hpp"

#include <map>
#include <stdexcept>

namespace gradrack::toy {

namespace {

using host::GroupSpec;
using host::NodeSpec;

/// Where a value of the group is: at its border, or in the workspace.
struct Where {
  enum { kInput, kOutput, kInside } kind = kInside;
  int64_t at = 0;  // border place, or offset in floats
};

struct Step {
  std::string op;
  std::vector<Where> inputs;
  std::vector<Where> outputs;
  int64_t count = 0;
};

class NodeByNode final : public host::Kernel {
 public:
  explicit NodeByNode(const GroupSpec& group) {
    for (const NodeSpec& node : group.nodes) {
      Step step{node.op, {}, {}, node.outputs[0].count};
      const size_t read = node.op == "Flat" ? 1 : node.inputs.size();
      for (size_t k = 0; k < read; ++k) {
        step.inputs.push_back(where(group, node.inputs[k], false));
      }
      for (const host::TensorSpec& output : node.outputs) {
        step.outputs.push_back(where(group, output, true));
      }
      steps_.push_back(std::move(step));
    }
  }

  int64_t workspace_bytes() const override { return floats_ * int64_t{sizeof(float)}; }
  int32_t run(const DLTensor* const* in, DLTensor* const* out, void* workspace,
              gr_error_t*) const override {
    const auto at = [&](const Where& where) {
      if (where.kind == Where::kInput) return static_cast<float*>(in[where.at]->data);
      if (where.kind == Where::kOutput) return static_cast<float*>(out[where.at]->data);
      return static_cast<float*>(workspace) + where.at;
    };
    for (const Step& step : steps_) {
      for (int64_t i = 0; i < step.count; ++i) run_element(step, i, at);
    }
    return GR_OK;
  }

 private:
  template <class At>
  static void run_element(const Step& step, int64_t i, const At& at) {
    const float a = at(step.inputs[0])[i];
    const float b = step.inputs.size() > 1 ? at(step.inputs[1])[i] : 0;
    float& y = at(step.outputs[0])[i];
    if (step.op == "Add") y = a + b;
    if (step.op == "Mul") y = a * b;
    if (step.op == "Move") y = a - b;
    if (step.op == "Neg") y = -a;
    if (step.op == "Twice") y = a + a;
    if (step.op == "Flat") y = a;
    if (step.op == "Halves") y = a / 2;
    if (step.outputs.size() > 1) at(step.outputs[1])[i] = a / 4;
  }

  Where where(const GroupSpec& group, const host::TensorSpec& value, bool made) {
    if (!made && group.input(value.id) >= 0) return {Where::kInput, group.input(value.id)};
    if (group.output(value.id) >= 0) return {Where::kOutput, group.output(value.id)};
    const auto [at, is_new] = inside_.emplace(value.id, floats_);
    if (is_new && !made) throw std::runtime_error("a value from nowhere");
    if (is_new) floats_ += value.count;
    return {Where::kInside, at->second};
  }

  std::vector<Step> steps_;
  std::map<gr_value_t, int64_t> inside_;
  int64_t floats_ = 0;
};

}  // namespace

host::GroupEntry pattern(const std::string& name, const std::string& expression, uint32_t flags,
                         std::function<std::string(const GroupSpec&)> claim) {
  return {name, "for tests", expression, flags, std::move(claim), [](const GroupSpec& group) {
            return std::make_unique<NodeByNode>(group);
          }};
}

}  // namespace gradrack::toy
