// SPDX-License-Identifier: Apache-2.0
// Model `onnx`: a model that others exported, trained as it is.
//
// The file is read and checked when the instance is made; build() declares what of it is needed and
// says its nodes by the host's operators. Invariant: parameters and buffers keep the names of the
// file's tensors, and begin with their content.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "facts.hpp"
#include "gradrack/model.hpp"
#include "gradrack/model_file.h"
#include "gradrack/node.hpp"
#include "importer.hpp"
#include "objective.hpp"
#include "roles.hpp"
#include "writer.hpp"

namespace gradrack::onnx {

namespace {

/// "batch_size" for "batch size"; no digit first.
std::string identifier(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    out.push_back(plain ? c : '_');
  }
  return out.empty() || (out[0] >= '0' && out[0] <= '9') ? "d" + out : out;
}

class OnnxModel {
 public:
  static constexpr const char* kName = "onnx";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "A model from an ONNX file.";
  static constexpr auto& kOptions = kOnnxOptions;

  explicit OnnxModel(const sdk::Options& options)
      : settings_(read_settings(options)),
        model_(load_model(settings_.file, "file")),
        roles_(settle_roles(model_, settings_)),
        facts_(facts_of(model_, roles_)) {
    check_dims();
  }

  void build(GraphBuilder& g, const gr_model_context_t& context) const {
    const bool training = context.training != 0;
    const bool exporting = GR_HAS(&context, exporting) && context.exporting != 0;
    const Forms forms{training && settings_.dropout, training && settings_.batch_norm,
                      settings_.free_batch};
    Importer importer(model_, g, forms);
    add_inputs(g, &importer, exporting);
    add_tensors(g, &importer, exporting);
    for (size_t k = 0; k < model_.nodes.size(); ++k) {
      if (roles_.needed[k]) importer.add(model_.nodes[k]);
    }
    for (const std::string& name : roles_.outputs) g.output(name.c_str(), importer.value(name));
    if (!exporting) add_objective(g, settings_, importer.value(roles_.loss_value), context.data);
  }

  const void* get_extension(std::string_view id) {
    if (id == GR_EXT_MODEL_WEIGHTS) {
      weights_ = {sizeof weights_, 0, this, read_weight};
      return &weights_;
    }
    if (id == GR_EXT_MODEL_FACTS) {
      fact_table_ = {sizeof fact_table_, 0, this, read_fact};
      return &fact_table_;
    }
    return nullptr;
  }

 private:
  // Dims that are fixed must be there.
  void check_dims() const {
    std::set<std::string> known;
    for (const ValueMessage& input : model_.inputs) {
      for (size_t k = 0; k < input.dims.size(); ++k) {
        known.insert(sdk::text(input.name, ":", k));
        if (!input.dims[k].symbol.empty()) known.insert(input.dims[k].symbol);
      }
    }
    std::string all;
    for (const std::string& name : known) all += (all.empty() ? "" : ", ") + name;
    for (const auto& [name, size] : settings_.dims) {
      sdk::require(known.count(name) > 0, GR_INVALID_ARGUMENT, "dims", "no input of ", model_.path,
                   " has a dim '", name, "'; there are ", all);
    }
    for (const auto& [name, data_name] : settings_.inputs) {
      const bool there =
          std::any_of(model_.inputs.begin(), model_.inputs.end(),
                      [&name = name](const auto& input) { return input.name == name; });
      sdk::require(there, GR_INVALID_ARGUMENT, "inputs", model_.path, " has no input '", name, "'");
    }
  }

  sdk::Dim dim_of(const ValueMessage& input, size_t axis, std::vector<std::string>* texts) const {
    const DimMessage& dim = input.dims[axis];
    const auto by_place = settings_.dims.find(sdk::text(input.name, ":", axis));
    if (by_place != settings_.dims.end()) return by_place->second;
    const auto by_symbol = settings_.dims.find(dim.symbol);
    if (!dim.has_value && by_symbol != settings_.dims.end()) return by_symbol->second;
    if (axis == 0 && settings_.free_batch) return "batch";
    if (dim.has_value && dim.value >= 0) return dim.value;  // some write -1 for an open one
    texts->push_back(
        identifier(dim.symbol.empty() ? sdk::text(input.name, "_", axis) : dim.symbol));
    return texts->back().c_str();
  }

  void add_inputs(GraphBuilder& g, Importer* importer, bool exporting) const {
    for (const ValueMessage& input : model_.inputs) {
      if (roles_.inputs.count(input.name) == 0) continue;
      sdk::require(
          input.kind == "tensor" && input.has_shape, GR_UNSUPPORTED, "file", "input '", input.name,
          "' is ",
          input.kind == "tensor" ? "a tensor of unknown rank" : "no tensor but: " + input.kind);
      std::vector<std::string> texts;
      texts.reserve(input.dims.size());  // dims point to them
      std::vector<sdk::Dim> dims;
      for (size_t k = 0; k < input.dims.size(); ++k) dims.push_back(dim_of(input, k, &texts));
      // A file that is written has the names of the one that was read.
      const auto renamed = exporting ? settings_.inputs.end() : settings_.inputs.find(input.name);
      const std::string& name = renamed == settings_.inputs.end() ? input.name : renamed->second;
      importer->define(
          input.name,
          g.input(name.c_str(), host_dtype(input.type, "input '" + input.name + "'"), dims));
    }
  }

  void add_tensors(GraphBuilder& g, Importer* importer, bool exporting) const {
    for (const std::string& name : model_.tensor_names) {
      const Tensor& tensor = model_.tensors.at(name);
      switch (roles_.of.at(name)) {
        case Role::kUnused:
          break;
        case Role::kConstant:
          importer->define(name, tensor);
          break;
        case Role::kParameter: {
          const auto purpose = roles_.purpose.find(name);
          const int32_t role = purpose == roles_.purpose.end() ? GR_ROLE_WEIGHT : purpose->second;
          importer->define(name, g.parameter(name, tensor.dims(), first_content(tensor), role,
                                             host_dtype(tensor.type(), name)));
          break;
        }
        case Role::kBuffer:
          importer->define(name, add_buffer(g, name, tensor));
          break;
        case Role::kAdapted:
          add_adapted(g, importer, name, tensor, exporting);
          break;
      }
    }
  }

  /// What does not stand in the file begins by an initialiser; the rest is read (read_weight).
  static gr_init_t first_content(const Tensor& tensor) {
    return sdk::init_constant(tensor.is_filled() ? tensor.fill() : 0);
  }

  static Value add_buffer(GraphBuilder& g, const std::string& name, const Tensor& tensor) {
    return g.buffer(name, tensor.dims(), first_content(tensor), host_dtype(tensor.type(), name));
  }

  /// W stays as it is; x W becomes x W + s (x A) B. Source: Hu et al., "LoRA", equation 3. B begins
  /// with zeros, so that the first step starts from the file's model.
  void add_adapted(GraphBuilder& g, Importer* importer, const std::string& name,
                   const Tensor& tensor, bool exporting) const {
    const Value weight = add_buffer(g, name, tensor);
    const bool turned = is_turned(name);
    const int64_t in = tensor.dims()[turned ? 1 : 0], out = tensor.dims()[turned ? 0 : 1];
    const gr_dtype_t dtype = host_dtype(tensor.type(), name);
    const int64_t rank = settings_.lora_rank;
    const double spread = 1.0 / std::sqrt(static_cast<double>(in));
    Adapter adapter;
    adapter.down = g.parameter(name + ".lora_A", {in, rank}, {GR_INIT_UNIFORM, 0, -spread, spread},
                               GR_ROLE_WEIGHT, dtype);
    adapter.up =
        g.parameter(name + ".lora_B", {rank, out}, sdk::init_constant(0), GR_ROLE_WEIGHT, dtype);
    adapter.scale = settings_.lora_alpha / static_cast<double>(rank);
    if (!exporting) {
      importer->define(name, weight);
      importer->adapt(name, adapter);
      return;
    }
    Value change = g.matmul(adapter.down, adapter.up);
    if (turned) change = g.transpose(change, {1, 0});
    importer->define(name, g.add(weight, g.mul(change, g.scalar(adapter.scale, dtype))));
  }

  /// Does a Gemm multiply by that weight's transpose?
  bool is_turned(const std::string& name) const {
    for (size_t k = 0; k < model_.nodes.size(); ++k) {
      const Node& node = model_.nodes[k];
      if (!roles_.needed[k] || node.inputs.size() < 2 || node.inputs[1] != name) continue;
      const AttributeMessage* const turned = node.find("transB");
      return node.op == "Gemm" && turned != nullptr && turned->i != 0;
    }
    return false;
  }

  static int32_t read_weight(void* self, const char* name, DLTensor* out,
                             gr_error_t* err) noexcept {
    return sdk::guarded(err, [&] {
      const Model& model = static_cast<OnnxModel*>(self)->model_;
      const auto tensor = model.tensors.find(std::string_view(name));
      sdk::require(tensor != model.tensors.end() && !tensor->second.is_filled(), GR_NOT_FOUND, "",
                   model.path, " has no content for '", name, "'");
      const std::string_view content = tensor->second.content();
      const auto bytes = static_cast<size_t>(sdk::byte_count(*out));
      sdk::require(bytes == content.size(), GR_INVALID_ARGUMENT, "", "tensor '", name, "' has ",
                   content.size(), " bytes, ", bytes, " were asked for");
      if (bytes > 0) std::memcpy(out->data, content.data(), bytes);
    });
  }

  static int32_t read_fact(void* self, uint64_t index, gr_model_fact_t* out,
                           gr_error_t* err) noexcept {
    const std::vector<Fact>& facts = static_cast<OnnxModel*>(self)->facts_;
    if (index >= facts.size()) return gr_fail(err, GR_OUT_OF_RANGE, "", "no such fact");
    const Fact& fact = facts[index];
    *out = {fact.topic, fact.key.c_str(), fact.value.c_str()};
    return GR_OK;
  }

  Settings settings_;
  Model model_;
  Roles roles_;
  std::vector<Fact> facts_;
  gr_model_weights_t weights_ = {};
  gr_model_facts_t fact_table_ = {};
};

const void* library_extension(const char* id) noexcept {
  return std::strcmp(id, GR_EXT_MODEL_WRITER) == 0 ? writer_table() : nullptr;
}

}  // namespace

}  // namespace gradrack::onnx

GRADRACK_PLUGIN_WITH_EXTENSIONS("gradrack.onnx", "1.0.0", gradrack::onnx::library_extension,
                                gradrack::sdk::Model<gradrack::onnx::OnnxModel>)
