// SPDX-License-Identifier: Apache-2.0
// Small inputs that cases share: see samples.hpp.
#include "sdk/conformance/samples.hpp"

#include <algorithm>
#include <iterator>

namespace gradrack::conform {
namespace {

constexpr int64_t kTokens = 16, kVocabulary = 65, kClasses = 10;

gr_data_output_t output(const char* name, gr_dtype_t dtype, std::vector<int64_t> rest,
                        int64_t limit) {
  gr_data_output_t made = {};
  made.name = name;
  made.dtype = dtype;
  made.rank = static_cast<uint32_t>(rest.size() + 1);
  made.dims[0] = {0, "batch"};
  for (size_t k = 0; k < rest.size(); ++k) made.dims[k + 1] = {rest[k], nullptr};
  made.limit = limit;
  return made;
}

gr_data_info_t info_over(const gr_data_output_t* outputs, uint32_t count, const char* summary) {
  gr_data_info_t info = {};
  info.struct_size = sizeof info;
  info.outputs = outputs;
  info.output_count = count;
  info.output_stride = sizeof(gr_data_output_t);
  info.train_items = 1000;
  info.validation_items = 100;
  info.summary = summary;
  return info;
}

}  // namespace

const std::vector<SampleData>& sample_data() {
  static const gr_data_output_t text[] = {output("tokens", GR_INT64, {kTokens}, kVocabulary),
                                          output("targets", GR_INT64, {kTokens}, kVocabulary)};
  static const gr_data_output_t images[] = {output("images", GR_FLOAT32, {1, 8, 8}, 0),
                                            output("labels", GR_INT64, {}, kClasses)};
  static const gr_data_output_t figures[] = {output("images", GR_FLOAT32, {3, 64, 64}, 0),
                                             output("targets.p3", GR_FLOAT32, {56, 8, 8}, 0),
                                             output("targets.p4", GR_FLOAT32, {56, 4, 4}, 0),
                                             output("targets.p5", GR_FLOAT32, {56, 2, 2}, 0)};
  static const gr_data_info_t text_info = [] {
    gr_data_info_t info = info_over(text, 2, "the kit's tokens");
    info.vocab = kVocabulary;
    info.block = kTokens;
    return info;
  }();
  static const gr_data_info_t image_info = [] {
    gr_data_info_t info = info_over(images, 2, "the kit's images");
    info.classes = kClasses;
    return info;
  }();
  static const gr_data_info_t figure_info = [] {
    gr_data_info_t info = info_over(figures, 4, "the kit's target maps");
    info.classes = 1;
    return info;
  }();
  static const std::vector<SampleData> all = {{"no data", nullptr},
                                              {"tokens", &text_info},
                                              {"images", &image_info},
                                              {"images with target maps", &figure_info}};
  return all;
}

namespace {

Result<Graph> build_for(const gr_model_t& model, bool training, const SampleData& data, Use* use) {
  Graph graph;
  WatchedBuilder watched(graph, use != nullptr ? use->fail_builder_call : 0);
  const gr_builder_t builder = watched.builder();
  gr_model_context_t modes = {};
  modes.struct_size = sizeof modes;
  modes.training = training ? 1 : 0;
  modes.data = data.info;
  const Status status = call_plugin("build", use, [&](gr_error_t* err) {
    return model.build(model.self, &builder, &modes, err);
  });
  if (use != nullptr) use->builder_calls += watched.calls();
  if (status.ok() && watched.failed()) {
    return internal_error("build succeeds although call " + std::to_string(use->fail_builder_call) +
                          " of the builder failed");
  }
  GR_TRY(status);
  return graph;
}

}  // namespace

Result<Graph> build_model_graph(Context& context, const gr_model_t& model, bool training,
                                Use* use) {
  const std::vector<SampleData>& all = sample_data();
  std::string refusals;
  for (size_t k = 0; context.model_sample < 0 && k < all.size(); ++k) {
    const Result<Graph> graph = build_for(model, training, all[k], nullptr);
    if (graph.ok())
      context.model_sample = static_cast<int>(k);
    else
      refusals += std::string("; for ") + all[k].name + ": " + graph.status().message();
  }
  if (context.model_sample < 0) {
    return invalid_argument("the model can be built for none of the kit's data" + refusals);
  }
  return build_for(model, training, all[static_cast<size_t>(context.model_sample)], use);
}

std::vector<SampleParameter> sample_parameters() {
  return {{"scale", GR_FLOAT32, {}, GR_ROLE_NORM},
          {"bias", GR_FLOAT32, {5}, GR_ROLE_BIAS},
          {"one", GR_FLOAT32, {1, 1}, GR_ROLE_WEIGHT},
          {"weight", GR_FLOAT32, {4, 3}, GR_ROLE_WEIGHT},
          {"wide", GR_FLOAT32, {3, 8}, GR_ROLE_WEIGHT},
          {"embedding", GR_FLOAT32, {7, 4}, GR_ROLE_EMBEDDING},
          {"cube", GR_FLOAT32, {2, 3, 4}, GR_ROLE_WEIGHT},
          {"kernel", GR_FLOAT32, {2, 3, 3, 2}, GR_ROLE_WEIGHT},
          {"double", GR_FLOAT64, {3, 2}, GR_ROLE_WEIGHT}};
}

namespace {

Result<ValueId> add(Graph& graph, Source source, const std::string& name, gr_dtype_t dtype,
                    const std::vector<int64_t>& dims, gr_init_t init = {}) {
  Value value;
  value.source = source;
  value.name = name;
  value.type = {dtype, Shape(dims.begin(), dims.end())};
  value.init = init;
  return graph.add_source(std::move(value));
}

/// One update on its way into a graph.
class UpdateBuilder {
 public:
  UpdateBuilder(const gr_optimizer_t& optimizer, const SampleParameter& parameter, Use* use)
      : optimizer_(optimizer), parameter_(parameter), use_(use) {}

  Result<Graph> run() {
    info_ = {sizeof info_,   parameter_.dtype,       parameter_.name.c_str(),
             "layer.0",      parameter_.dims.data(), static_cast<uint32_t>(parameter_.dims.size()),
             parameter_.role};
    GR_ASSIGN(update_.parameter,
              add(graph_, Source::kParameter, "parameter", parameter_.dtype, parameter_.dims));
    GR_ASSIGN(update_.gradient,
              add(graph_, Source::kInput, "gradient", parameter_.dtype, parameter_.dims));
    GR_TRY(declare());
    GR_ASSIGN(update_.lr, add(graph_, Source::kScalar, "lr", GR_FLOAT64, {}));
    GR_ASSIGN(update_.step, add(graph_, Source::kScalar, "step", GR_FLOAT64, {}));
    GR_TRY(build());
    return std::move(graph_);
  }

 private:
  Status declare() {
    gr_state_t declared[GR_MAX_STATES + 1] = {};
    declared[GR_MAX_STATES].rank = 77;  // a canary
    uint32_t count = GR_MAX_STATES;
    GR_TRY(call_plugin("declare_state", use_, [&](gr_error_t* err) {
      return optimizer_.declare_state(optimizer_.self, &info_, declared, &count, err);
    }));
    if (declared[GR_MAX_STATES].rank != 77 || count > GR_MAX_STATES) {
      return internal_error("declare_state declares more than GR_MAX_STATES states");
    }
    for (uint32_t k = 0; k < count; ++k) {
      const gr_state_t& state = declared[k];
      if (state.name == nullptr || *state.name == '\0' || state.rank > GR_MAX_RANK) {
        return internal_error("declare_state: a state without a name, or of more than 8 dims");
      }
      const std::vector<int64_t> dims(state.dims, state.dims + state.rank);
      GR_ASSIGN(const ValueId id,
                add(graph_, Source::kState, std::string("parameter.") + state.name, state.dtype,
                    dims, state.init));
      states_.push_back(id);
    }
    return {};
  }

  Status build() {
    update_.struct_size = sizeof update_;
    update_.info = &info_;
    update_.state_count = static_cast<uint32_t>(states_.size());
    update_.states = states_.data();
    update_.new_parameter = GR_NO_VALUE;
    std::fill(std::begin(update_.new_states), std::end(update_.new_states), GR_NO_VALUE);
    WatchedBuilder watched(graph_, use_ != nullptr ? use_->fail_builder_call : 0);
    const gr_builder_t builder = watched.builder();
    const Status status = call_plugin("build_update", use_, [&](gr_error_t* err) {
      return optimizer_.build_update(optimizer_.self, &builder, &update_, err);
    });
    if (use_ != nullptr) use_->builder_calls += watched.calls();
    if (status.ok() && watched.failed()) {
      return internal_error("build_update succeeds although a call of the builder failed");
    }
    GR_TRY(status);
    GR_TRY(commit("new_parameter", update_.parameter, update_.new_parameter));
    for (size_t k = 0; k < states_.size(); ++k) {
      GR_TRY(commit("new_states[" + std::to_string(k) + "]", states_[k], update_.new_states[k]));
    }
    return {};
  }

  Status commit(const std::string& what, ValueId target, ValueId value) {
    if (!graph_.has(value)) return internal_error(what + " is not set");
    const Type &wanted = graph_.value(target).type, &got = graph_.value(value).type;
    if (!(wanted == got)) {
      return internal_error(what + " is " + to_text(got) + ", " + to_text(wanted) + " wanted");
    }
    return graph_.add_write(target, value);
  }

  const gr_optimizer_t& optimizer_;
  const SampleParameter& parameter_;
  Use* use_;
  Graph graph_;
  gr_parameter_info_t info_ = {};
  gr_update_t update_ = {};
  std::vector<ValueId> states_;
};

}  // namespace

Result<Graph> build_update_graph(const gr_optimizer_t& optimizer, const SampleParameter& parameter,
                                 Use* use) {
  return UpdateBuilder(optimizer, parameter, use).run();
}

namespace {

// What each task makes, used by it and its readers.
void add_buffers(TaskTable* table) {
  std::vector<TaskBuffer> made(table->tasks.size());
  for (uint32_t k = 0; k < made.size(); ++k) {
    made[k].bytes = table->tasks[k].bytes_held;
    made[k].users.push_back(k);
    for (const uint32_t dep : table->tasks[k].deps) made[dep].users.push_back(k);
  }
  for (TaskBuffer& buffer : made) buffer.kept = buffer.users.size() == 1;
  table->buffers = std::move(made);
}

}  // namespace

TaskTable random_tasks(std::mt19937_64& random, uint32_t count) {
  TaskTable table;
  table.stages = {"embed", "block.0", "block.1", "head"};
  for (uint32_t k = 0; k < count; ++k) {
    Task task;
    task.kind = static_cast<int32_t>(random() % 6);
    task.stage = static_cast<int32_t>(random() % 5) - 1;
    task.cost_ns = static_cast<int64_t>(random() % 1000000);
    task.bytes_held = static_cast<int64_t>(random() % 4096);
    const uint64_t wanted = k == 0 ? 0 : random() % std::min<uint64_t>(k + 1, 4);
    for (uint64_t d = 0; d < wanted; ++d) task.deps.push_back(static_cast<uint32_t>(random() % k));
    std::sort(task.deps.begin(), task.deps.end());
    task.deps.erase(std::unique(task.deps.begin(), task.deps.end()), task.deps.end());
    table.tasks.push_back(std::move(task));
  }
  if (random() % 2 == 0) add_buffers(&table);  // as newer hosts do, or older ones
  // Outputs go with their last reader in program order; those that nobody reads stay.
  std::vector<bool> freed(count, false);
  for (size_t k = count; k-- > 0;) {
    for (const uint32_t dep : table.tasks[k].deps) {
      if (!freed[dep]) table.tasks[k].bytes_freed += table.tasks[dep].bytes_held;
      freed[dep] = true;
    }
  }
  return table;
}

}  // namespace gradrack::conform
