// SPDX-License-Identifier: Apache-2.0
// Finding rules, and operators that are refused: see rules.hpp.
#include "rules.hpp"

#include <map>
#include <string_view>

namespace gradrack::onnx {

namespace {

std::map<std::string, Rule, std::less<>> all_rules() {
  std::map<std::string, Rule, std::less<>> rules;
  for (const auto& family : {shape_rules(), element_rules(), network_rules(), form_rules(),
                             contrib_rules(), training_rules()}) {
    for (const RuleEntry& entry : family) rules.emplace(entry.op, entry.rule);
  }
  return rules;
}

struct Refusal {
  const char* ops;  // words
  const char* reason;
};

constexpr Refusal kRefusals[] = {
    {" If Loop Scan SequenceMap ", "control flow is not trained here"},
    {" SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength "
     "SplitToSequence ConcatFromSequence Optional OptionalGetElement OptionalHasElement ",
     "sequences and optional values are not read"},
    {" StringConcat StringNormalizer StringSplit RegexFullMatch TfIdfVectorizer ",
     "texts are not read: put what turns them into numbers into the data"},
    {" QuantizeLinear DequantizeLinear DynamicQuantizeLinear QLinearConv QLinearMatMul ConvInteger "
     "MatMulInteger ",
     "quantised operators are not trained: bring the model as it was before it was quantised"},
    {" NonZero Unique NonMaxSuppression Compress ",
     "the shape of its result depends on data, and plans know their memory before the first step"},
    {" RandomNormal RandomNormalLike RandomUniform RandomUniformLike Multinomial Bernoulli ",
     "random values other than Dropout's are not read"},
    {" ImageDecoder ", "pictures are decoded by the data source"},
};

}  // namespace

Rule find_rule(const Node& node) {
  static const auto* const rules = new std::map(all_rules());
  const auto at = rules->find(node.full_op());
  return at != rules->end() ? at->second : nullptr;
}

void check_supported(const Node& node) {
  const std::string word = " " + node.op + " ";
  for (const Refusal& refusal : kRefusals) {
    const bool named = std::string_view(refusal.ops).find(word) != std::string_view::npos;
    sdk::require(!named || !node.domain.empty(), GR_UNSUPPORTED, "file", refusal.reason);
  }
  for (const AttributeMessage& attribute : node.attributes) {
    sdk::require(!attribute.has_graph, GR_UNSUPPORTED, "file", "attribute '", attribute.name,
                 "' is a graph: control flow is not trained here");
  }
}

Value ints_value(GraphBuilder& g, const std::vector<int64_t>& numbers) {
  return g.ints(numbers, {static_cast<int64_t>(numbers.size())});
}

}  // namespace gradrack::onnx
