// SPDX-License-Identifier: Apache-2.0
// Work of nodes: products, convolutions, attention, everything else.
#include "core/plan/work.hpp"

#include <gtest/gtest.h>

#include "core/graph/emitter.hpp"

namespace gradrack {
namespace {

/// One node of inputs with these dims, made an output.
class OneNode {
 public:
  OneNode(const char* domain, const char* op, std::vector<std::vector<int64_t>> dims, Attrs attrs,
          size_t outputs = 1) {
    Emitter e(graph_);
    std::vector<ValueId> inputs;
    for (const auto& each : dims) {
      Value value;
      value.source = Source::kInput;
      value.name = "x" + std::to_string(inputs.size());
      for (const int64_t dim : each) value.type.shape.push_back(Dim(dim));
      inputs.push_back(*graph_.add_source(std::move(value)));
    }
    for (const ValueId id : e.multi(domain, op, inputs, std::move(attrs), outputs)) {
      EXPECT_TRUE(graph_.add_output("y" + std::to_string(id), id).ok());
    }
    EXPECT_TRUE(e.status().ok()) << e.status().message();
  }

  Work work() {
    const auto bound = bind_graph(graph_, {});
    EXPECT_TRUE(bound.ok()) << bound.status().message();
    return work_of(graph_.nodes().back(), *bound);
  }

 private:
  Graph graph_;
};

TEST(Work, OfAProductIsTwoOperationsATerm) {
  const Work work = OneNode("", "MatMul", {{2, 3, 5}, {5, 7}}, {}).work();
  EXPECT_EQ(work.flops, 2 * 2 * 3 * 5 * 7);
  EXPECT_EQ(work.bytes, 4 * (2 * 3 * 5 + 5 * 7 + 2 * 3 * 7));
}

TEST(Work, OfATransposedProductLooksAtTheOtherAxis) {
  const Attrs attrs{{"transA", int64_t{1}}};
  EXPECT_EQ(OneNode("gradrack", "FusedMatMul", {{5, 3}, {5, 7}}, attrs).work().flops,
            2 * 3 * 5 * 7);
}

TEST(Work, OfAConvolutionCountsItsGroups) {
  const Attrs attrs{{"group", int64_t{2}}};
  EXPECT_EQ(OneNode("", "Conv", {{1, 4, 5, 5}, {6, 2, 3, 3}}, attrs).work().flops,
            2 * (6 * 3 * 3) * (2 * 3 * 3));
}

TEST(Work, OfCausalAttentionCountsWhatIsSeen) {
  const std::vector<std::vector<int64_t>> dims{{1, 2, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 5}};
  EXPECT_EQ(OneNode("", "Attention", dims, {}).work().flops, 2 * 2 * 9 * (4 + 5));
  EXPECT_EQ(OneNode("", "Attention", dims, {{"is_causal", int64_t{1}}}).work().flops,
            2 * 2 * 6 * (4 + 5));
  const std::vector<std::vector<int64_t>> grad{{1, 3, 10}, {1, 3, 8}, {1, 3, 8}, {1, 3, 10}};
  const Attrs packed{{"q_num_heads", int64_t{2}}, {"kv_num_heads", int64_t{2}}};
  EXPECT_EQ(OneNode("gradrack", "AttentionGrad", grad, packed, 3).work().flops,
            2 * 2 * 9 * (3 * 4 + 2 * 5));
}

TEST(Work, OfAnyOtherNodeIsOneOperationAnElement) {
  const Work work = OneNode("", "Add", {{2, 3}, {3}}, {}).work();
  EXPECT_EQ(work.flops, 6);
  EXPECT_EQ(work.bytes, 4 * (6 + 3 + 6));
}

}  // namespace
}  // namespace gradrack
