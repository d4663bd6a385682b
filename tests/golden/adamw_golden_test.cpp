// SPDX-License-Identifier: Apache-2.0
// Optimizer `adamw` against torch.optim.AdamW: ten updates of a decayed and an undecayed group,
// fp64.
//
// Each parameter is updated by a graph that the plugin builds, run by the reference backend. The
// difference from PyTorch is held below 1e-12 of the largest element, after every update.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "core/exec/executor.hpp"
#include "core/graph/builder_api.hpp"
#include "tests/golden/model_run.hpp"

namespace gradrack {
namespace {

using testing::Instance;
using testing::load_factory;

constexpr const char* kGolden = GRADRACK_SOURCE_DIR "/tests/golden/adamw.safetensors";
constexpr size_t kUpdates = 10;

Result<ValueId> add_source(Graph& graph, Source kind, const char* name, Shape shape) {
  Value value;
  value.source = kind;
  value.name = name;
  value.type = {GR_FLOAT64, std::move(shape)};
  return graph.add_source(std::move(value));
}

/// A graph whose one run is one update: parameter "p", gradient "g", states "m" and "v".
Result<Graph> update_graph(const Instance<gr_optimizer_t>& optimizer,
                           const std::vector<int64_t>& dims) {
  Graph graph;
  const Shape shape(dims.begin(), dims.end());
  GR_ASSIGN(const ValueId p, add_source(graph, Source::kParameter, "p", shape));
  GR_ASSIGN(const ValueId g, add_source(graph, Source::kInput, "g", shape));
  GR_ASSIGN(const ValueId m, add_source(graph, Source::kState, "m", shape));
  GR_ASSIGN(const ValueId v, add_source(graph, Source::kState, "v", shape));
  GR_ASSIGN(const ValueId lr, add_source(graph, Source::kScalar, "lr", {}));
  GR_ASSIGN(const ValueId step, add_source(graph, Source::kScalar, "step", {}));
  const gr_parameter_info_t info = {
      sizeof info,   GR_FLOAT64, "p", "", dims.data(), static_cast<uint32_t>(dims.size()),
      GR_ROLE_WEIGHT};
  const ValueId states[] = {m, v};
  gr_update_t update = {};
  update.struct_size = sizeof update;
  update.state_count = 2;
  update.info = &info;
  update.parameter = p;
  update.gradient = g;
  update.states = states;
  update.lr = lr;
  update.step = step;
  BuilderApi api(graph);
  const gr_builder_t builder = api.builder();
  gr_error_t err = {};
  GR_TRY(status_from(optimizer->build_update(optimizer.self(), &builder, &update, &err), err));
  GR_TRY(graph.add_write(p, update.new_parameter));
  GR_TRY(graph.add_write(m, update.new_states[0]));
  GR_TRY(graph.add_write(v, update.new_states[1]));
  return graph;
}

std::vector<double> slice(const std::vector<double>& all, size_t index, size_t count) {
  return {all.begin() + static_cast<int64_t>(index * count),
          all.begin() + static_cast<int64_t>((index + 1) * count)};
}

std::vector<double> read_store(const Store& store, const char* name) {
  std::vector<double> numbers(static_cast<size_t>(store.find(name)->bytes) / sizeof(double));
  EXPECT_TRUE(store.read(name, std::as_writable_bytes(std::span(numbers))).ok());
  return numbers;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& want,
                 const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  double largest = 0;
  for (const double number : want) largest = std::max(largest, std::fabs(number));
  for (size_t k = 0; k < got.size(); ++k) {
    EXPECT_NEAR(got[k], want[k], 1e-12 * largest) << what << "[" << k << "]";
  }
}

/// Updates one parameter ten times and compares it and its states after each.
Status replay_updates(const SafetensorsFile& golden, const std::string& key, const char* decay) {
  const Instance<gr_optimizer_t> optimizer(
      load_factory("gradrack_optimizer_adamw", "optimizer", "adamw"),
      {{"weight_decay", decay}, {"betas", "[0.9, 0.999]"}, {"eps", "1e-8"}});
  GR_ASSIGN(const Graph graph, update_graph(optimizer, golden.find("init." + key)->shape));
  const Instance<gr_backend_t> backend(load_factory("reference", "backend", "reference"), {});
  GR_ASSIGN(const std::unique_ptr<Device> device, Device::make("reference", backend.operator->()));
  PlanRequest request;
  request.graph = &graph;
  request.devices = {device.get()};
  GR_ASSIGN(const std::shared_ptr<const Plan> plan, make_plan(request));
  Store store(device.get());
  GR_TRY(store.declare_sources(graph, 1));
  GR_TRY(store.allocate());
  const std::vector<double> initial = testing::read_doubles(golden, "init." + key);
  GR_TRY(store.write("p", std::as_bytes(std::span(initial))));
  GR_ASSIGN(const std::unique_ptr<Executor> executor, Executor::make(plan, &store));
  GR_ASSIGN(const TensorHandle gradient, executor->input("g"));
  GR_ASSIGN(const TensorHandle lr, executor->scalar("lr"));
  GR_ASSIGN(const TensorHandle step, executor->scalar("step"));

  const std::vector<double> gradients = testing::read_doubles(golden, "grad." + key);
  for (size_t k = 0; k < kUpdates; ++k) {
    const std::vector<double> g = slice(gradients, k, initial.size());
    std::memcpy(executor->tensor(gradient)->data, g.data(), g.size() * sizeof(double));
    GR_TRY(executor->set_scalar(lr, 0.01));
    GR_TRY(executor->set_scalar(step, static_cast<double>(k + 1)));
    GR_TRY(executor->run());
    for (const auto& [ours, theirs] :
         {std::pair{"p", "param."}, std::pair{"m", "exp_avg."}, std::pair{"v", "exp_avg_sq."}}) {
      const auto want = slice(testing::read_doubles(golden, theirs + key), k, initial.size());
      expect_near(read_store(store, ours), want,
                  theirs + key + " after update " + std::to_string(k + 1));
    }
  }
  return {};
}

TEST(AdamWGolden, MatchesPyTorchOverTenUpdates) {
  const auto golden = SafetensorsFile::open(kGolden);
  ASSERT_TRUE(golden.ok()) << golden.status().message();
  size_t parameters = 0;
  for (const SafetensorsEntry& entry : golden->entries()) {
    if (entry.name.rfind("init.", 0) != 0) continue;
    const std::string key = entry.name.substr(5);
    const bool decayed = key.rfind("decay.", 0) == 0;
    const Status status = replay_updates(*golden, key, decayed ? "0.1" : "0");
    ASSERT_TRUE(status.ok()) << key << ": " << status.message();
    ++parameters;
  }
  EXPECT_GE(parameters, 2u);
}

}  // namespace
}  // namespace gradrack
