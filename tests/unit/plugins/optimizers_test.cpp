// SPDX-License-Identifier: Apache-2.0
// Optimizer plugins: the states and nodes that they ask for. Their numbers are checked with
// goldens.
#include "core/graph/builder_api.hpp"
#include "core/graph/graph.hpp"
#include "tests/unit/plugins/loaded_plugin.hpp"

namespace gradrack {
namespace {

using testing::Instance;

const gr_factory_t* adamw() {
  return testing::load_factory("gradrack_optimizer_adamw", "optimizer", "adamw");
}

ValueId source(Graph& graph, Source kind, const char* name, gr_dtype_t dtype, Shape shape) {
  Value value;
  value.source = kind;
  value.name = name;
  value.type = {dtype, std::move(shape)};
  const auto id = graph.add_source(std::move(value));
  EXPECT_TRUE(id.ok());
  return *id;
}

TEST(AdamW, OPT02_DeclaresTwoMomentsThatBeginAtZero) {
  const Instance<gr_optimizer_t> plugin(adamw(), {});
  const int64_t dims[] = {3, 4};
  const gr_parameter_info_t info = {sizeof info, GR_FLOAT64, "w", "", dims, 2, GR_ROLE_WEIGHT};
  gr_state_t states[GR_MAX_STATES] = {};
  uint32_t count = 0;
  gr_error_t err = {};
  ASSERT_EQ(plugin->declare_state(plugin.self(), &info, states, &count, &err), GR_OK);
  ASSERT_EQ(count, 2u);
  EXPECT_STREQ(states[0].name, "exp_avg");
  EXPECT_STREQ(states[1].name, "exp_avg_sq");
  for (const gr_state_t& state : {states[0], states[1]}) {
    EXPECT_EQ(state.dtype, GR_FLOAT64);
    EXPECT_EQ(state.rank, 2u);
    EXPECT_EQ(state.dims[1], 4);
    EXPECT_EQ(state.init.kind, GR_INIT_CONSTANT);
    EXPECT_EQ(state.init.a, 0);
  }
}

TEST(AdamW, EmitsOneNodeWithItsOptions) {
  const Instance<gr_optimizer_t> plugin(
      adamw(), {{"betas", "[0.8, 0.95]"}, {"eps", "1e-6"}, {"weight_decay", "0.1"}});
  Graph graph;
  BuilderApi api(graph);
  const Shape shape{3, 4};
  const int64_t dims[] = {3, 4};
  const gr_parameter_info_t info = {sizeof info, GR_FLOAT32, "w", "", dims, 2, GR_ROLE_WEIGHT};
  const ValueId states[] = {source(graph, Source::kState, "w.exp_avg", GR_FLOAT32, shape),
                            source(graph, Source::kState, "w.exp_avg_sq", GR_FLOAT32, shape)};
  gr_update_t update = {};
  update.struct_size = sizeof update;
  update.state_count = 2;
  update.info = &info;
  update.parameter = source(graph, Source::kParameter, "w", GR_FLOAT32, shape);
  update.gradient = source(graph, Source::kInput, "g", GR_FLOAT32, shape);
  update.states = states;
  update.lr = source(graph, Source::kScalar, "lr", GR_FLOAT64, {});
  update.step = source(graph, Source::kScalar, "step", GR_FLOAT64, {});
  const gr_builder_t builder = api.builder();
  gr_error_t err = {};
  ASSERT_EQ(plugin->build_update(plugin.self(), &builder, &update, &err), GR_OK) << err.message;

  ASSERT_EQ(graph.nodes().size(), 1u);
  const Node& node = graph.nodes()[0];
  EXPECT_EQ(node.op->full_name(), "gradrack.AdamW");
  EXPECT_EQ(node.attrs.get_float("beta1"), 0.8);
  EXPECT_EQ(node.attrs.get_float("beta2"), 0.95);
  EXPECT_EQ(node.attrs.get_float("eps"), 1e-6);
  EXPECT_EQ(node.attrs.get_float("weight_decay"), 0.1);
  EXPECT_EQ(update.new_parameter, node.outputs[0]);
  EXPECT_EQ(update.new_states[0], node.outputs[1]);
  EXPECT_EQ(update.new_states[1], node.outputs[2]);
}

TEST(AdamW, RefusesABetaOfOne) {
  const Instance<gr_optimizer_t> plugin(adamw(), {{"betas", "[0.9, 1]"}});
  EXPECT_EQ(plugin.status(), GR_INVALID_ARGUMENT);
  EXPECT_EQ(plugin.field(), "betas");
}

}  // namespace
}  // namespace gradrack
