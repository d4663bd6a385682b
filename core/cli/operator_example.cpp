// SPDX-License-Identifier: Apache-2.0
// Examples of operators: see operator_example.hpp.
//
// An example is text: inputs in order, then attributes. `f:2,4` float32, `i:` int64 and `b:` bool
// tensors of those dims, `d:` a float64 scalar, `k:1,2` known int64 contents, `n:3` a known int64
// scalar, `-` left out, `@axis=1`, `@ratio=0.5`, `@strides=[2,2]` and `@mode=wrap` attributes.
#include "core/cli/operator_example.hpp"

#include <map>
#include <sstream>

namespace gradrack {
namespace {

const char* example_text(const std::string& op) {
  static const auto* examples = new std::map<std::string, const char*>{
      {"And", "b:2,4 b:2,4"},
      {"Or", "b:2,4 b:2,4"},
      {"Xor", "b:2,4 b:2,4"},
      {"Not", "b:2,4"},
      {"Where", "b:2,4 f:2,4 f:2,4"},
      {"Cast", "i:2,4 @to=544"},
      {"Clip", "f:2,4 - -"},
      {"Concat", "f:2,4 f:2,4 @axis=0"},
      {"Constant", "@value_float=1.5"},
      {"Expand", "f:1,4 k:2,4"},
      {"Flatten", "f:2,4"},
      {"Gather", "f:5,4 i:2"},
      {"GatherElements", "f:5,4 i:2,4"},
      {"ScatterElements", "f:5,4 i:2,4 f:2,4 @axis=0"},
      {"Gemm", "f:2,4 f:4,3 f:3"},
      {"MatMul", "f:2,4 f:4,3"},
      {"gradrack.FusedMatMul", "f:2,4 f:4,3"},
      {"Conv", "f:1,2,5,5 f:3,2,3,3 f:3"},
      {"gradrack.ConvInputGrad", "f:1,3,3,3 f:3,2,3,3 k:1,2,5,5"},
      {"gradrack.ConvWeightGrad", "f:1,3,3,3 f:1,2,5,5 k:3,2,3,3"},
      {"MaxPool", "f:1,2,4,4 @kernel_shape=[2,2] @strides=[2,2]"},
      {"gradrack.MaxPoolGrad", "f:1,2,2,2 f:1,2,4,4 @kernel_shape=[2,2] @strides=[2,2]"},
      {"AveragePool", "f:1,2,4,4 @kernel_shape=[2,2] @strides=[2,2]"},
      {"gradrack.AveragePoolGrad", "f:1,2,2,2 k:1,2,4,4 @kernel_shape=[2,2] @strides=[2,2]"},
      {"GlobalAveragePool", "f:1,2,4,4"},
      {"BatchNormalization", "f:2,3,4,4 f:3 f:3 f:3 f:3 @training_mode=1"},
      {"gradrack.BatchNormalizationGrad", "f:2,3,4,4 f:2,3,4,4 f:3"},
      {"gradrack.BatchNormalizationScaleGrad", "f:2,3,4,4 f:2,3,4,4"},
      {"GroupNormalization", "f:2,4,3,3 f:4 f:4 @num_groups=2"},
      {"LayerNormalization", "f:2,4 f:4 f:4"},
      {"gradrack.LayerNormalizationGrad", "f:2,4 f:2,4 f:4"},
      {"RMSNormalization", "f:2,4 f:4"},
      {"gradrack.RMSNormalizationGrad", "f:2,4 f:2,4 f:4"},
      {"Dropout", "f:2,4 - b1:"},
      {"gradrack.After", "f:2,4 f:2"},
      {"gradrack.Dropout", "f:2,4 i:3 @ratio=0.5 @stream=1"},
      {"gradrack.StochasticRound", "f:2,4 i:3 @stream=1"},
      {"gradrack.GatherGrad", "f:2,4 i:2 k:5,4"},
      {"Pad", "f:2,4 k:0,1,0,1"},
      {"Slice", "f:2,4 k:0 k:2 k:1"},
      {"gradrack.SliceGrad", "f:2,2 k:2,4 k:0 k:2 k:1"},
      {"Split", "f:4,4 @num_outputs=2"},
      {"Reshape", "f:2,4 k:4,2"},
      {"Squeeze", "f:2,1 k:1"},
      {"Unsqueeze", "f:2,4 k:0"},
      {"ReduceMax", "f:2,4 k:1"},
      {"ReduceMin", "f:2,4 k:1"},
      {"ReduceMean", "f:2,4 k:1"},
      {"ReduceSum", "f:2,4 k:1"},
      {"RotaryEmbedding", "f:1,2,3,4 f:1,3,2 f:1,3,2"},
      {"Attention", "f:1,2,3,4 f:1,2,3,4 f:1,2,3,4 @is_causal=1"},
      {"gradrack.AttentionGrad", "f:1,2,3,4 f:1,2,3,4 f:1,2,3,4 f:1,2,3,4 @is_causal=1"},
      {"SoftmaxCrossEntropyLoss", "f:2,4 i:2"},
      {"gradrack.SoftmaxCrossEntropyLossGrad", "f: f:2,4 i:2"},
      {"gradrack.CountTargets", "i:2"},
      {"AffineGrid", "f:2,2,3 k:2,1,2,3"},
      {"CenterCropPad", "f:5,2 k:2,5"},
      {"ConstantOfShape", "k:2,3"},
      {"ConvTranspose", "f:1,3,3,3 f:3,2,3,3 f:2"},
      {"CumProd", "f:2,4 n:1"},
      {"CumSum", "f:2,4 n:1"},
      {"DepthToSpace", "f:1,4,2,2 @blocksize=2"},
      {"SpaceToDepth", "f:1,1,4,4 @blocksize=2"},
      {"Einsum", "f:2,3 f:3,4 @equation=ij,jk->ik"},
      {"RNN", "f:3,2,4 f:1,5,4 f:1,5,5 @hidden_size=5"},
      {"GRU", "f:3,2,4 f:1,15,4 f:1,15,5 @hidden_size=5"},
      {"LSTM", "f:3,2,4 f:1,20,4 f:1,20,5 @hidden_size=5"},
      {"GatherND", "f:2,3 i:2,2"},
      {"ScatterND", "f:4,2 i:2,1 f:2,2"},
      {"GlobalLpPool", "f:1,2,4,4"},
      {"GlobalMaxPool", "f:1,2,4,4"},
      {"LpPool", "f:1,2,4,4 @kernel_shape=[2,2]"},
      {"GridSample", "f:1,2,3,4 f:1,2,2,2"},
      {"InstanceNormalization", "f:2,3,4,4 f:3 f:3"},
      {"LRN", "f:1,5,2,2 @size=3"},
      {"MeanVarianceNormalization", "f:2,3,4,4"},
      {"Mod", "i:2,4 i:2,4"},
      {"NegativeLogLikelihoodLoss", "f:2,4 i:2"},
      {"OneHot", "i:2 n:4 f:2"},
      {"Range", "n:0 n:5 n:1"},
      {"Resize", "f:2,3 k:2,5"},
      {"ReverseSequence", "f:4,2,2 i:2"},
      {"Tile", "f:2,3 k:2,1"},
      {"TopK", "f:3,5 k:2"},
      {"gradrack.PadMode", "f:3,4 k:1,2,2,3 @mode=reflect"},
      {"gradrack.AdamW", "f:2,4 f:2,4 f:2,4 f:2,4 d: d:"},
  };
  const auto found = examples->find(op);
  return found == examples->end() ? nullptr : found->second;
}

std::vector<int64_t> read_numbers(const std::string& text) {
  std::vector<int64_t> numbers;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) numbers.push_back(std::stoll(word));
  return numbers;
}

Shape shape_of(const std::vector<int64_t>& dims) {
  Shape shape;
  for (const int64_t dim : dims) shape.push_back(Dim(dim));
  return shape;
}

// "@axis=1", "@ratio=0.5", "@strides=[2,2]"
void read_attribute(const std::string& word, Attrs* attrs) {
  const size_t equals = word.find('=');
  const std::string name = word.substr(1, equals - 1);
  const std::string value = word.substr(equals + 1);
  if (value[0] == '[') {
    attrs->set(name, read_numbers(value.substr(1, value.size() - 2)));
  } else if (value[0] >= 'a' && value[0] <= 'z') {
    attrs->set(name, value);
  } else if (value.find('.') != std::string::npos) {
    attrs->set(name, std::stod(value));
  } else {
    attrs->set(name, int64_t{std::stoll(value)});
  }
}

Result<ValueId> add_input(Graph& graph, const std::string& word, size_t index) {
  if (word == "-") return ValueId{GR_NO_VALUE};
  const std::vector<int64_t> numbers = read_numbers(word.substr(word.find(':') + 1));
  if (word[0] == 'k') {
    return graph.add_constant({GR_INT64, {Dim(static_cast<int64_t>(numbers.size()))}},
                              {{}, numbers});
  }
  if (word[0] == 'n') return graph.add_constant({GR_INT64, {}}, {{}, numbers});
  if (word == "b1:") return graph.add_constant({GR_BOOL, {}}, {{}, {1}});
  const std::map<char, gr_dtype_t> dtypes = {
      {'f', GR_FLOAT32}, {'d', GR_FLOAT64}, {'i', GR_INT64}, {'b', GR_BOOL}};
  Value value;
  value.source = Source::kInput;
  value.name = "x" + std::to_string(index);
  value.type = {dtypes.at(word[0]), shape_of(numbers)};
  return graph.add_source(std::move(value));
}

size_t required_inputs(const OpDef& op) {
  size_t count = 0;
  for (const PortDef& port : op.inputs) count += port.variadic ? 2 : port.optional ? 0 : 1;
  return count;
}

std::string default_text(const OpDef& op) {
  std::string text;
  for (size_t k = 0; k < required_inputs(op); ++k) text += "f:2,4 ";
  return text;
}

}  // namespace

Result<Graph> operator_example(const OpDef& op) {
  const char* known = example_text(op.full_name());
  std::istringstream words(known != nullptr ? known : default_text(op));
  Graph graph;
  std::vector<ValueId> inputs;
  Attrs attrs;
  for (std::string word; words >> word;) {
    if (word[0] == '@') {
      read_attribute(word, &attrs);
      continue;
    }
    GR_ASSIGN(const ValueId input, add_input(graph, word, inputs.size()));
    inputs.push_back(input);
  }
  size_t outputs = 0;
  for (const PortDef& port : op.outputs) {
    if (port.variadic) outputs += 1;  // one more than the plain ones: two pieces of a Split
    if (!port.optional) ++outputs;
  }
  GR_ASSIGN(const std::vector<ValueId> made,
            graph.add_node(op, std::move(inputs), std::move(attrs), outputs));
  for (size_t k = 0; k < made.size(); ++k) {
    GR_TRY(graph.add_output("y" + std::to_string(k), made[k]));
  }
  return graph;
}

}  // namespace gradrack
