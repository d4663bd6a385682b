// SPDX-License-Identifier: Apache-2.0
// Prepare, launch, look: see backend_kernel.hpp.
#include "sdk/conformance/backend_kernel.hpp"

#include <fmt/format.h>

#include <cstring>
#include <deque>
#include <set>

#include "core/plan/border.hpp"
#include "core/plan/node_views.hpp"

namespace gradrack::conform {

/// Memory and tensors of one launch.
struct KernelRun::Scene {
  std::map<ValueId, size_t> input_buffer;  // of each distinct input
  std::vector<size_t> output_buffer;
  std::deque<DeviceBuffer> buffers;
  std::deque<DeviceTensor> tensors;
  std::vector<const DLTensor*> inputs;
  std::vector<DLTensor*> outputs;
  const DLTensor* workspace = nullptr;
  size_t workspace_buffer = 0;
};

Result<KernelRun> KernelRun::prepare(const Rig& rig, const BoundGraph& bound, size_t index) {
  KernelRun run(rig, bound);
  const Node& node = bound.graph->nodes()[index];
  for (const ValueId id : node.inputs) {
    if (id != GR_NO_VALUE) run.inputs_.push_back(id);
  }
  run.outputs_ = node.outputs;
  GR_TRY(run.prepare_group({index}, 0, nullptr));
  return run;
}

Result<KernelRun> KernelRun::prepare_match(const Rig& rig, const BoundGraph& bound,
                                           const std::vector<size_t>& nodes, uint32_t index) {
  KernelRun run(rig, bound);
  const Wires wires = find_wires(bound);
  Border border = border_of_match(bound, wires, with_views(bound, wires, nodes));
  run.inputs_ = std::move(border.inputs);
  run.outputs_ = std::move(border.outputs);
  GR_TRY(run.prepare_group(nodes, index + 1, &wires.root));
  return run;
}

Status KernelRun::prepare_group(const std::vector<size_t>& nodes, uint32_t pattern,
                                const std::vector<ValueId>* roots) {
  NodeViews views(*bound_, roots);
  for (const size_t node : nodes) views.add(node);
  const std::vector<gr_value_type_t> inputs = views.types_of(inputs_);
  const std::vector<gr_value_type_t> outputs = views.types_of(outputs_);
  gr_group_t group = views.group(inputs, outputs);
  group.pattern = pattern;
  info_.struct_size = sizeof info_;
  for (int32_t& input : info_.in_place) input = -1;
  gr_kernel_t* kernel = nullptr;
  gr_error_t err = {};
  const gr_backend_t* b = rig_->table();
  const int32_t code = b->prepare(b->self, &group, &kernel, &info_, &err);
  GR_TRY(status_from(code, err).with_context("prepare"));
  if (kernel == nullptr) return internal_error("prepare gave no kernel and said GR_OK");
  kernel_ = Kernel(rig_->device(), kernel);
  return {};
}

std::string KernelRun::info_fault() const {
  if (info_.workspace_bytes < 0) {
    return fmt::format("workspace_bytes is {}", info_.workspace_bytes);
  }
  std::set<int32_t> taken;
  for (size_t k = 0; k < GR_MAX_IN_PLACE; ++k) {
    const int32_t input = info_.in_place[k];
    if (k >= outputs_.size() || input < 0) continue;
    if (static_cast<size_t>(input) >= inputs_.size()) {
      return fmt::format("in_place[{}] is {}, but there are {} inputs", k, input, inputs_.size());
    }
    const int64_t from = bound_->at(inputs_[size_t(input)]).bytes;
    if (from != bound_->at(outputs_[k]).bytes) {
      return fmt::format("in_place[{}] names input {}, which has {} bytes where the output has {}",
                         k, input, from, bound_->at(outputs_[k]).bytes);
    }
    if (!taken.insert(input).second) {
      return fmt::format("in_place gives input {} to two outputs", input);
    }
  }
  return "";
}

bool KernelRun::allows_in_place() const {
  const LaunchStyle sharing{0, 0, 0, true, false};
  for (size_t k = 0; k < outputs_.size(); ++k) {
    if (shared_input(k, sharing) >= 0) return true;
  }
  return false;
}

/// The input whose memory output `k` takes in this style, or -1. The host shares only what is read
/// through one port and is no constant.
int32_t KernelRun::shared_input(size_t k, const LaunchStyle& style) const {
  if (!style.in_place || k >= GR_MAX_IN_PLACE) return -1;
  const int32_t input = info_.in_place[k];
  if (input < 0 || static_cast<size_t>(input) >= inputs_.size()) return -1;
  const ValueId id = inputs_[size_t(input)];
  int ports = 0;
  for (const ValueId other : inputs_) ports += other == id ? 1 : 0;
  return ports == 1 && !bound_->at(id).constant ? input : -1;
}

Result<HostArray> KernelRun::content_of(const Contents& contents, ValueId id) const {
  const auto at = contents.find(id);
  if (at != contents.end()) return at->second;
  const BoundValue& bound = bound_->at(id);
  if (!bound.constant) return internal_error("a case gives no contents for an input");
  HostArray array(bound_->graph->value(id).type.dtype, bound.dims);
  array.bytes = bound.content;
  return array;
}

Status KernelRun::set_scene(const Contents& contents, const LaunchStyle& style,
                            Scene* scene) const {
  for (const ValueId id : inputs_) {
    GR_ASSIGN(const HostArray array, content_of(contents, id));
    const auto [at, made] = scene->input_buffer.emplace(id, scene->buffers.size());
    if (made) {
      GR_ASSIGN(DeviceBuffer buffer,
                DeviceBuffer::make(*rig_, static_cast<int64_t>(array.bytes.size())));
      GR_TRY(buffer.put(array.bytes.data(), 0, style.guard));
      scene->buffers.push_back(std::move(buffer));
    }
    scene->inputs.push_back(
        scene->tensors
            .emplace_back(scene->buffers[at->second], array.dtype, array.dims, style.odd_strides)
            .get());
  }
  for (size_t k = 0; k < outputs_.size(); ++k) {
    const BoundValue& bound = bound_->at(outputs_[k]);
    const int32_t shared = shared_input(k, style);
    if (shared >= 0) {
      scene->output_buffer.push_back(scene->input_buffer.at(inputs_[size_t(shared)]));
    } else {
      GR_ASSIGN(DeviceBuffer buffer, DeviceBuffer::make(*rig_, bound.bytes));
      GR_TRY(buffer.put(nullptr, style.output, style.guard));
      scene->output_buffer.push_back(scene->buffers.size());
      scene->buffers.push_back(std::move(buffer));
    }
    scene->outputs.push_back(scene->tensors
                                 .emplace_back(scene->buffers[scene->output_buffer.back()],
                                               bound_->graph->value(outputs_[k]).type.dtype,
                                               bound.dims, style.odd_strides)
                                 .get());
  }
  if (info_.workspace_bytes <= 0) return {};
  GR_ASSIGN(DeviceBuffer buffer, DeviceBuffer::make(*rig_, info_.workspace_bytes));
  GR_TRY(buffer.put(nullptr, style.workspace, style.guard));
  scene->workspace_buffer = scene->buffers.size();
  scene->buffers.push_back(std::move(buffer));
  const std::vector<int64_t> row = {info_.workspace_bytes};
  scene->workspace =
      scene->tensors.emplace_back(scene->buffers.back(), gr_dtype_t{GR_UINT8}, row).get();
  return {};
}

Status KernelRun::queue(Scene* scene) const {
  const gr_backend_t* b = rig_->table();
  gr_error_t err = {};
  const int32_t code = b->launch(b->self, kernel_.get(), scene->inputs.data(),
                                 scene->outputs.data(), scene->workspace, rig_->stream(), &err);
  GR_TRY(status_from(code, err).with_context("launch"));
  return rig_->synchronize();
}

Result<std::vector<HostArray>> KernelRun::look(const Contents& contents, const LaunchStyle& style,
                                               const Scene& scene,
                                               std::vector<std::string>* faults) const {
  std::vector<std::vector<std::byte>> images;
  for (const DeviceBuffer& buffer : scene.buffers) {
    GR_ASSIGN(std::vector<std::byte> image, buffer.get());
    images.push_back(std::move(image));
  }
  const auto check_guard = [&](size_t buffer, const std::string& what) {
    const std::string fault = scene.buffers[buffer].guard_fault(images[buffer], style.guard);
    if (!fault.empty()) faults->push_back(what + ": " + fault);
  };
  const std::set<size_t> written(scene.output_buffer.begin(), scene.output_buffer.end());
  for (size_t k = 0; k < inputs_.size(); ++k) {
    const size_t buffer = scene.input_buffer.at(inputs_[k]);
    check_guard(buffer, fmt::format("input {}", k));
    if (written.count(buffer) > 0) continue;
    GR_ASSIGN(const HostArray before, content_of(contents, inputs_[k]));
    const std::byte* now = scene.buffers[buffer].body(images[buffer]);
    if (!before.bytes.empty() && std::memcmp(now, before.bytes.data(), before.bytes.size()) != 0) {
      faults->push_back(fmt::format("input {} was written", k));
    }
  }
  std::vector<HostArray> out;
  for (size_t k = 0; k < outputs_.size(); ++k) {
    const size_t buffer = scene.output_buffer[k];
    check_guard(buffer, fmt::format("output {}", k));
    HostArray array(bound_->graph->value(outputs_[k]).type.dtype, bound_->at(outputs_[k]).dims);
    const std::byte* body = scene.buffers[buffer].body(images[buffer]);
    array.bytes.assign(body, body + array.bytes.size());
    for (int64_t i = 0; array.dtype == GR_BOOL && i < array.count(); ++i) {
      if (array.number(i) <= 1) continue;
      faults->push_back(fmt::format("output {}: bool element {} is {}", k, i, array.number(i)));
      break;
    }
    out.push_back(std::move(array));
  }
  if (scene.workspace != nullptr) check_guard(scene.workspace_buffer, "workspace");
  return out;
}

Result<std::vector<HostArray>> KernelRun::launch(const Contents& contents, const LaunchStyle& style,
                                                 std::vector<std::string>* faults) const {
  Scene scene;
  GR_TRY(set_scene(contents, style, &scene));
  GR_TRY(queue(&scene));
  return look(contents, style, scene, faults);
}

}  // namespace gradrack::conform
