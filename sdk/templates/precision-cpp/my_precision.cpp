// SPDX-License-Identifier: Apache-2.0
// Precision `my_precision`: float32 everywhere, but losses are computed in float64.
//
// Asked while planning, about storage once and about each node; the host rewrites the graph and
// puts casts where the answers differ. Invariant: the same question gets the same answer.
// Change first: the rule in node_dtype (node.op, node.domain, node.stage, node.kind).
#include <string_view>

#include "gradrack/precision.hpp"

namespace {

namespace gr = gradrack::sdk;

constexpr gr_option_t kOptionTable[] = {
    GR_OPT_BOOL("wide_losses", "true", "compute cross entropies in float64"),
};

class MyPrecision {
 public:
  static constexpr const char* kName = "my_precision";  // `plugin: my_precision`
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "float32, with losses in float64.";
  static constexpr auto& kOptions = kOptionTable;

  explicit MyPrecision(const gr::Options& options)
      : wide_losses_(options.get<bool>("wide_losses")) {}

  // Parameters, buffers, gradients and optimizer state; what weights.safetensors holds.
  gr_dtype_t storage_dtype() const { return GR_FLOAT32; }

  // Asked about the nodes of the forward graph, the gradient's and the update's; node.kind tells.
  gr_dtype_t node_dtype(const gr_precision_node_t& node) const {
    const std::string_view op = node.op;
    const bool loss = op.find("CrossEntropy") != std::string_view::npos;  // its gradient as well
    return loss && wide_losses_ ? GR_FLOAT64 : GR_FLOAT32;
  }

 private:
  bool wide_losses_;
};

}  // namespace

// The one exported symbol. The id is yours: reverse DNS.
GRADRACK_PLUGIN("org.example.my_precision", "1.0.0", gr::Precision<MyPrecision>)
