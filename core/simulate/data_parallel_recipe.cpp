// SPDX-License-Identifier: Apache-2.0
// Recipe `data_parallel`: the steady state of a ResNet trained on equal devices, seen from one.
//
// From the start of a backward pass to the end of the next forward pass: that is one iteration,
// and as each layer's forward waits for the all-reduce of its gradient, the link is idle at both
// ends. Forward, dX and dW of a layer take time by its multiply-adds, its all-reduce by its
// parameters (float32). The network counts as the chain of its convolutions and its classifier;
// the first one needs no dX. Source: shapes of He et al., "Deep Residual Learning", table 1, with
// the stride of a block in its 3x3 convolution.
#include <fmt/format.h>

#include <cmath>

#include "core/simulate/recipe.hpp"
#include "gradrack/precision.h"

namespace gradrack {
namespace {

constexpr gr_option_t kOptions[] = {
    GR_OPT_CHOICE("network", "resnet50", "resnet50|resnet101", "whose layers"),
    GR_OPT_FLOAT("ratio", "1", 0, 1e6, "time of all all-reduces over time of all computation"),
    GR_OPT_FLOAT("compute_ms", "100", 1e-3, 1e9, "forward, dX and dW of all layers"),
    GR_OPT_INT("batch_size", "128", 1, 1 << 20, "samples of a device: bytes of output gradients"),
    GR_OPT_CHOICE("policy", "fifo", "fifo|priority|preemptive", "which all-reduce goes first"),
};

struct Layer {
  int64_t multiply_adds;
  int64_t parameters;
  int64_t outputs;  // elements of a sample
};

Layer convolution(int64_t size, int64_t kernel, int64_t in, int64_t out) {
  const int64_t parameters = kernel * kernel * in * out;
  return {size * size * parameters, parameters, size * size * out};
}

std::vector<Layer> resnet(const std::vector<int64_t>& blocks) {
  std::vector<Layer> layers = {convolution(112, 7, 3, 64)};
  int64_t in = 64;
  for (size_t group = 0; group < blocks.size(); ++group) {
    const int64_t size = 56 >> group;
    const int64_t width = 64 << group;
    for (int64_t block = 0; block < blocks[group]; ++block) {
      const int64_t before = block == 0 && group > 0 ? 2 * size : size;
      layers.push_back(convolution(before, 1, in, width));
      layers.push_back(convolution(size, 3, width, width));
      layers.push_back(convolution(size, 1, width, 4 * width));
      if (block == 0) layers.push_back(convolution(size, 1, in, 4 * width));
      in = 4 * width;
    }
  }
  layers.push_back(convolution(1, 1, 2048, 1000));
  return layers;
}

class StepMaker {
 public:
  explicit StepMaker(const OptionValues& values)
      : layers_(resnet(values.text("network") == "resnet50" ? std::vector<int64_t>{3, 4, 6, 3}
                                                            : std::vector<int64_t>{3, 4, 23, 3})),
        compute_ns_(values.number("compute_ms") * 1e6),
        ratio_(values.number("ratio")),
        batch_size_(values.integer("batch_size")) {
    table_.devices.push_back({"device", 1, 0});
    SimLink link{"allreduce"};
    const auto& policies = link_policy_names();
    while (policies[static_cast<size_t>(link.policy)] != values.text("policy")) {
      link.policy = static_cast<LinkPolicy>(static_cast<int>(link.policy) + 1);
    }
    table_.links.push_back(link);
    for (const Layer& layer : layers_) {
      multiply_adds_ += static_cast<double>(layer.multiply_adds);
      parameters_ += static_cast<double>(layer.parameters);
    }
  }

  Result<SimTable> make() {
    const auto count = static_cast<int32_t>(layers_.size());
    for (int32_t k = 0; k < count; ++k) table_.tasks.stages.push_back(fmt::format("layer{}", k));
    std::vector<uint32_t> reduced(layers_.size());
    constexpr uint32_t kNone = ~0u;
    uint32_t gradient = kNone;  // what made the gradient of this layer's output
    for (int32_t k = count - 1; k >= 0; --k) {
      const uint32_t w = compute("dW", GR_KIND_WEIGHT_GRADIENT, k);
      if (gradient != kNone) table_.more[w].reads = {gradient};
      reduced[static_cast<size_t>(k)] = all_reduce(w, k);
      if (k == 0) break;
      const uint32_t x = compute("dX", GR_KIND_INPUT_GRADIENT, k);
      if (gradient != kNone) table_.more[x].reads = {gradient};
      const Layer& before = layers_[static_cast<size_t>(k) - 1];
      table_.tasks.tasks[x].bytes_held = before.outputs * batch_size_ * 4;
      gradient = x;
    }
    for (int32_t k = 0; k < count; ++k) {
      const uint32_t f = compute("F", GR_KIND_FORWARD, k);
      table_.tasks.tasks[f].deps = {reduced[static_cast<size_t>(k)], f - 1};
    }
    GR_TRY(finish_table(&table_));
    return std::move(table_);
  }

 private:
  uint32_t add(const char* what, int32_t kind, int32_t resource, int32_t layer) {
    Task task;
    task.name = fmt::format("{}{}", what, layer);
    task.kind = kind;
    task.device = resource;
    task.stage = layer;
    table_.tasks.tasks.push_back(std::move(task));
    table_.more.emplace_back();
    return static_cast<uint32_t>(table_.size()) - 1;
  }

  uint32_t compute(const char* what, int32_t kind, int32_t layer) {
    const uint32_t task = add(what, kind, 0, layer);
    const auto work = static_cast<double>(layers_[static_cast<size_t>(layer)].multiply_adds);
    table_.tasks.tasks[task].cost_ns = std::llround(work / multiply_adds_ / 3 * compute_ns_);
    return task;
  }

  uint32_t all_reduce(uint32_t dw, int32_t layer) {
    const uint32_t task = add("allreduce", GR_KIND_COLLECTIVE, 1, layer);
    const int64_t parameters = layers_[static_cast<size_t>(layer)].parameters;
    table_.tasks.tasks[task].deps = {dw};
    table_.tasks.tasks[task].cost_ns =
        std::llround(static_cast<double>(parameters) / parameters_ * ratio_ * compute_ns_);
    table_.more[task].bytes_moved = parameters * 4;
    table_.more[task].priority = layer;
    return task;
  }

  std::vector<Layer> layers_;
  double compute_ns_, ratio_;
  int64_t batch_size_;
  double multiply_adds_ = 0, parameters_ = 0;
  SimTable table_;
};

Result<SimTable> make_step(const OptionValues& values) { return StepMaker(values).make(); }

}  // namespace

const Recipe& data_parallel_recipe() {
  static const Recipe recipe = {"data_parallel", "one step of a ResNet on one of many devices",
                                OptionTable(std::begin(kOptions), std::end(kOptions)), make_step};
  return recipe;
}

}  // namespace gradrack
