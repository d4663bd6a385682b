// SPDX-License-Identifier: Apache-2.0
// Model `bigram`: the next token from this one alone, as one table of logits.
//
// The smallest model that learns from text; shows that a model builds against the installed SDK.
// Dims: B batch, T tokens, V vocabulary.
#include "gradrack/model.hpp"

namespace {

namespace gr = gradrack::sdk;

class Bigram {
 public:
  static constexpr const char* kName = "bigram";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "Next token from this one alone.";

  explicit Bigram(const gr::Options&) {}

  void build(gr::GraphBuilder& g, const gr_model_context_t& context) const {
    gr::require(context.data != nullptr && context.data->vocab > 0, GR_INVALID_ARGUMENT, "data",
                "the model takes its vocabulary from the data: use a text source");
    const int64_t vocab = context.data->vocab, block = context.data->block;
    const gr::Value tokens = g.input("tokens", GR_INT64, {"batch", block}, vocab);
    const gr::Value targets = g.input("targets", GR_INT64, {"batch", block}, vocab);
    const gr::GraphBuilder::Stage stage(g, "table");
    const gr::Value table =
        g.parameter("table.weight", {vocab, vocab}, gr::init_normal(0, 0.02), GR_ROLE_EMBEDDING);
    const gr::Value logits = g.gather(table, tokens);  // [B, T, V]
    g.output("logits", logits);
    g.softmax_cross_entropy("loss", g.reshape(logits, {-1, vocab}), g.reshape(targets, {-1}));
  }
};

}  // namespace

GRADRACK_PLUGIN("org.example.bigram", "1.0.0", gr::Model<Bigram>)
