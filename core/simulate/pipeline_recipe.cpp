// SPDX-License-Identifier: Apache-2.0
// Recipe `pipeline`: layers on devices, microbatches through them, gradients back.
//
// Every layer has for every microbatch a forward, an input gradient (dX) and a weight gradient
// (dW); dX waits for the dX of the next layer, dW for the dX of its own. Where two neighbours live
// on different devices a transfer stands between them. Invariant: program order is GPipe's, all
// forwards before all gradients.
#include <fmt/format.h>

#include <map>

#include "core/simulate/recipe.hpp"
#include "gradrack/precision.h"

namespace gradrack {
namespace {

constexpr gr_option_t required(const char* name, double most, const char* help) {
  return {sizeof(gr_option_t),
          GR_OPTION_REQUIRED,
          name,
          GR_OPTION_INT,
          0,
          nullptr,
          1,
          most,
          nullptr,
          help};
}

constexpr gr_option_t kOptions[] = {
    required("stages", 1024, "devices"),
    required("microbatches", 65536, "microbatches of a step"),
    GR_OPT_INT("layers", "0", 0, 65536, "layers, a multiple of stages; 0: one a stage"),
    GR_OPT_CHOICE("allocation", "contiguous", "contiguous|modulo",
                  "device of layer v: v / (layers / stages), or v mod stages"),
    GR_OPT_CHOICE("backward", "split", "split|fused", "fused: dX and dW are one task"),
    GR_OPT_FLOAT("forward_ms", "1", 0, 1e9, "time of a layer's forward"),
    GR_OPT_FLOAT("input_gradient_ms", "1", 0, 1e9, "time of a layer's dX"),
    GR_OPT_FLOAT("weight_gradient_ms", "1", 0, 1e9, "time of a layer's dW"),
    GR_OPT_FLOAT("transfer_ms", "0", 0, 1e9, "from one device to the next; does not queue"),
    GR_OPT_INT("transfer_bytes", "0", 0, 1e15, "bytes of one transfer"),
    GR_OPT_INT("forward_bytes", "0", 0, 1e15, "a forward holds them until its dX has run"),
    GR_OPT_INT("weight_gradient_bytes", "0", 0, 1e15, "of forward_bytes, held on until dW has run"),
    GR_OPT_FLOAT("memory_limit", "0", 0, 1e6,
                 "of a device, in times stages x forward_bytes x its layers; 0: none"),
};

class PipelineMaker {
 public:
  explicit PipelineMaker(const OptionValues& values)
      : stages_(values.integer("stages")),
        layers_(values.integer("layers") > 0 ? values.integer("layers") : stages_),
        microbatches_(values.integer("microbatches")),
        modulo_(values.text("allocation") == "modulo"),
        fused_(values.text("backward") == "fused"),
        forward_ns_(ns_of_ms(values.number("forward_ms"))),
        input_gradient_ns_(ns_of_ms(values.number("input_gradient_ms"))),
        weight_gradient_ns_(ns_of_ms(values.number("weight_gradient_ms"))),
        transfer_ns_(ns_of_ms(values.number("transfer_ms"))),
        transfer_bytes_(values.integer("transfer_bytes")),
        forward_bytes_(values.integer("forward_bytes")),
        weight_gradient_bytes_(values.integer("weight_gradient_bytes")),
        memory_limit_(values.number("memory_limit")) {}

  Result<SimTable> make() {
    GR_TRY(check());
    const double unit = static_cast<double>(stages_ * (layers_ / stages_) * forward_bytes_);
    for (int64_t k = 0; k < stages_; ++k) {
      table_.devices.push_back(
          {fmt::format("device{}", k), 1, static_cast<int64_t>(memory_limit_ * unit)});
    }
    add_links();
    for (int64_t j = 0; j < microbatches_; ++j) add_forwards(j);
    for (int64_t j = 0; j < microbatches_; ++j) add_gradients(j);
    GR_TRY(finish_table(&table_));
    return std::move(table_);
  }

 private:
  Status check() const {
    constexpr int64_t kMostTasks = int64_t{1} << 21;
    if (layers_ % stages_ != 0) {
      return invalid_argument(
          fmt::format("layers is {}, wanted a multiple of stages ({})", layers_, stages_));
    }
    if (layers_ * microbatches_ > kMostTasks) {
      return invalid_argument(fmt::format("{} layers x {} microbatches: wanted at most {}", layers_,
                                          microbatches_, kMostTasks));
    }
    if (weight_gradient_bytes_ > forward_bytes_) {
      return invalid_argument(
          fmt::format("weight_gradient_bytes is {}, wanted at most forward_bytes ({})",
                      weight_gradient_bytes_, forward_bytes_));
    }
    return {};
  }

  int32_t device(int64_t layer) const {
    return static_cast<int32_t>(modulo_ ? layer % stages_ : layer / (layers_ / stages_));
  }

  void add_links() {
    for (int64_t layer = 1; layer < layers_; ++layer) {
      const int32_t a = device(layer - 1), b = device(layer);
      if (a == b) continue;
      for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
        const auto index = static_cast<int32_t>(stages_ + static_cast<int64_t>(links_.size()));
        if (!links_.emplace(std::pair(from, to), index).second) continue;
        table_.links.push_back({fmt::format("{}to{}", from, to), transfer_ns_, 0});
      }
    }
  }

  uint32_t add(std::string name, int32_t kind, int32_t where, int64_t layer, int64_t microbatch) {
    Task task;
    task.name = std::move(name);
    task.kind = kind;
    task.device = where;
    task.stage = stage_of_layer(layer);
    SimTask more;
    more.microbatch = static_cast<int32_t>(microbatch);
    table_.tasks.tasks.push_back(std::move(task));
    table_.more.push_back(std::move(more));
    return static_cast<uint32_t>(table_.size()) - 1;
  }

  int32_t stage_of_layer(int64_t layer) {
    while (static_cast<int64_t>(table_.tasks.stages.size()) <= layer) {
      table_.tasks.stages.push_back(fmt::format("layer{}", table_.tasks.stages.size()));
    }
    return static_cast<int32_t>(layer);
  }

  // `task`, or its arrival on the device of layer `to`.
  uint32_t send(uint32_t task, int64_t from, int64_t to, int64_t microbatch) {
    const int32_t a = device(from), b = device(to);
    if (a == b) return task;
    const uint32_t sent = add(table_.tasks.tasks[task].name + ".send", GR_KIND_COPY,
                              links_.at({a, b}), from, microbatch);
    table_.tasks.tasks[sent].deps = {task};
    table_.more[sent].bytes_moved = transfer_bytes_;
    return sent;
  }

  void add_forwards(int64_t j) {
    uint32_t input = 0;
    for (int64_t v = 0; v < layers_; ++v) {
      const uint32_t f = add(fmt::format("F{}.{}", v, j), GR_KIND_FORWARD, device(v), v, j);
      Task& task = table_.tasks.tasks[f];
      task.cost_ns = forward_ns_;
      task.bytes_held = forward_bytes_;
      if (v > 0) task.deps = {input};
      forwards_.push_back(f);
      if (v + 1 < layers_) input = send(f, v, v + 1, j);
    }
  }

  void add_gradients(int64_t j) {
    uint32_t gradient = 0;
    for (int64_t v = layers_ - 1; v >= 0; --v) {
      const uint32_t x = add(fmt::format("{}{}.{}", fused_ ? "B" : "dX", v, j),
                             GR_KIND_INPUT_GRADIENT, device(v), v, j);
      table_.tasks.tasks[x].cost_ns = input_gradient_ns_ + (fused_ ? weight_gradient_ns_ : 0);
      table_.more[x].bytes_freed = forward_bytes_ - (fused_ ? 0 : weight_gradient_bytes_);
      table_.tasks.tasks[x].deps = {forwards_[static_cast<size_t>(j * layers_ + v)]};
      if (v + 1 < layers_) table_.tasks.tasks[x].deps.push_back(gradient);
      if (v > 0) gradient = send(x, v, v - 1, j);
      if (fused_) continue;
      const uint32_t w =
          add(fmt::format("dW{}.{}", v, j), GR_KIND_WEIGHT_GRADIENT, device(v), v, j);
      table_.tasks.tasks[w].cost_ns = weight_gradient_ns_;
      table_.more[w].bytes_freed = weight_gradient_bytes_;
      table_.tasks.tasks[w].deps = {x};
    }
  }

  int64_t stages_, layers_, microbatches_;
  bool modulo_, fused_;
  int64_t forward_ns_, input_gradient_ns_, weight_gradient_ns_, transfer_ns_;
  int64_t transfer_bytes_, forward_bytes_, weight_gradient_bytes_;
  double memory_limit_;
  std::map<std::pair<int32_t, int32_t>, int32_t> links_;  // (from, to) -> resource
  std::vector<uint32_t> forwards_;                        // [microbatch][layer]
  SimTable table_;
};

Result<SimTable> make_pipeline(const OptionValues& values) { return PipelineMaker(values).make(); }

}  // namespace

const Recipe& pipeline_recipe() {
  static const Recipe recipe = {"pipeline", "microbatches through layers on devices",
                                OptionTable(std::begin(kOptions), std::end(kOptions)),
                                make_pipeline};
  return recipe;
}

}  // namespace gradrack
