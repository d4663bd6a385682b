// SPDX-License-Identifier: Apache-2.0
// For tests of model plugins: one build of a model, and what stands in its graph.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "core/autodiff/autodiff.hpp"
#include "core/graph/builder_api.hpp"
#include "core/graph/graph.hpp"
#include "tests/unit/plugins/loaded_plugin.hpp"

namespace gradrack::testing {

/// One build of a model.
struct Built {
  Built(const char* name, const OptionTexts& texts, const gr_data_info_t* data, bool training)
      : api(graph),
        plugin(load_factory(std::string("gradrack_model_") + name, "model", name), texts) {
    status = plugin.status();
    if (status != GR_OK) {
      message = plugin.field() + ": " + plugin.message();
      return;
    }
    const gr_builder_t builder = api.builder();
    gr_model_context_t context = {};
    context.struct_size = sizeof context;
    context.training = training ? 1 : 0;
    context.data = data;
    gr_error_t err = {};
    status = plugin->build(plugin.self(), &builder, &context, &err);
    message = std::string(err.field) + ": " + err.message;
  }

  std::vector<std::string> names(Source source) const {
    std::vector<std::string> out;
    for (const Value& value : graph.values()) {
      if (value.source == source) out.push_back(value.name);
    }
    return out;
  }
  size_t count(const std::string& op) const {
    return static_cast<size_t>(
        std::count_if(graph.nodes().begin(), graph.nodes().end(),
                      [&](const Node& node) { return node.op->full_name() == op; }));
  }
  Value source(const std::string& name) const {
    const ValueId id = graph.find_source(name);
    EXPECT_NE(id, GR_NO_VALUE) << name;
    return id == GR_NO_VALUE ? Value{} : graph.value(id);
  }
  std::string shape(const std::string& name) const { return to_text(source(name).type); }

  Graph graph;
  BuilderApi api;
  Instance<gr_model_t> plugin;
  int32_t status = GR_INTERNAL;
  std::string message;
};

/// Differentiates the model's training graph; every parameter must get a gradient of its shape.
inline void expect_all_gradients(Built& model) {
  ASSERT_EQ(model.status, GR_OK) << model.message;
  std::vector<ValueId> parameters;
  for (const std::string& name : model.names(Source::kParameter)) {
    parameters.push_back(model.graph.find_source(name));
  }
  const auto gradients = differentiate(model.graph, parameters);
  ASSERT_TRUE(gradients.ok()) << gradients.status().message();
  for (size_t k = 0; k < parameters.size(); ++k) {
    const Value& parameter =
        model.graph.value(model.graph.find_source(model.names(Source::kParameter)[k]));
    ASSERT_NE(gradients->of[k], GR_NO_VALUE) << parameter.name;
    EXPECT_EQ(model.graph.value(gradients->of[k]).type, parameter.type) << parameter.name;
  }
}

/// What a model must refuse with GR_INVALID_ARGUMENT, and a part of its message.
struct Refusal {
  OptionTexts texts;
  const gr_data_info_t* data;
  const char* message;
};

inline void expect_refused(const char* plugin, const std::vector<Refusal>& cases) {
  for (const Refusal& c : cases) {
    const Built model(plugin, c.texts, c.data, true);
    EXPECT_EQ(model.status, GR_INVALID_ARGUMENT) << c.message;
    EXPECT_NE(model.message.find(c.message), std::string::npos) << model.message;
  }
}

}  // namespace gradrack::testing
