// SPDX-License-Identifier: Apache-2.0
// Writing ONNX files: see writer.hpp. Small messages are made in memory; the content of tensors
// goes from the host's memory to the file. Operators of the host's own that ONNX has no word for
// are said by several nodes: their decompositions bring them.
#include "writer.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fields.hpp"
#include "gradrack/error.hpp"
#include "tensor.hpp"
#include "wire.hpp"

namespace gradrack::onnx {

namespace {

constexpr uint64_t kMostBytes = (uint64_t{1} << 31) - 1;  // of a protocol buffer
constexpr int64_t kIrVersion = 9;                         // what every reader of opset 20 knows

/// Operators that came after kOldestWritten.
struct Since {
  const char* op;
  int64_t version;
};
constexpr Since kSince[] = {{"Gelu", 20},
                            {"AffineGrid", 20},
                            {"GroupNormalization", 21},
                            {"RMSNormalization", 23},
                            {"Attention", 23},
                            {"Swish", 24},
                            // ONNX's wants a row of angles for each of the batch: parts say it
                            {"RotaryEmbedding", kNewestWritten + 1}};
/// Operators of the host that are written as nodes of ONNX.
constexpr const char* kRewritten[] = {"FusedMatMul", "Copy", "CausalMask", "After"};

WireWriter attribute(const gr_attr_t& from) {
  namespace F = AttributeField;
  namespace K = AttributeAttributeType;
  WireWriter out;
  out.text(F::name, from.name);
  switch (from.type) {
    case GR_ATTR_INT:
      out.integer(F::type, K::INT);
      out.integer(F::i, from.i);
      break;
    case GR_ATTR_FLOAT:
      out.integer(F::type, K::FLOAT);
      out.real(F::f, static_cast<float>(from.f));
      break;
    case GR_ATTR_STRING:
      out.integer(F::type, K::STRING);
      out.text(F::s, from.s);
      break;
    case GR_ATTR_INTS:
      out.integer(F::type, K::INTS);
      for (uint64_t k = 0; k < from.count; ++k) out.integer(F::ints, from.ints[k]);
      break;
    default:
      out.integer(F::type, K::FLOATS);
      for (uint64_t k = 0; k < from.count; ++k) {
        out.real(F::floats, static_cast<float>(from.floats[k]));
      }
  }
  return out;
}

gr_attr_t int_attr(const char* name, int64_t value) {
  gr_attr_t attr = {};
  attr.name = name;
  attr.type = GR_ATTR_INT;
  attr.i = value;
  return attr;
}

class ModelWriter {
 public:
  ModelWriter(const gr_written_model_t& model, int64_t version)
      : model_(model), version_(version) {}

  /// Makes all messages; then size() and write() know what the file holds.
  void compose() {
    for (uint64_t k = 0; k < model_.node_count; ++k) add_node(*model_.nodes[k]);
    graph_.text(GraphField::name, model_.name);
    for (uint64_t k = 0; k < model_.value_count; ++k) {
      const gr_written_value_t& value = *model_.values[k];
      if (value.source == GR_WRITTEN_INPUT) {
        graph_.message(GraphField::input, value_info(value, value.name));
      }
      if (value.data != nullptr) tensors_.push_back(tensor_head(value));
    }
    for (uint64_t k = 0; k < model_.output_count; ++k) add_output(model_.outputs[k]);
    head_.integer(ModelField::ir_version, version_ >= 23 ? 11 : version_ >= 21 ? 10 : kIrVersion);
    head_.text(ModelField::producer_name, "gradrack");
    WireWriter opset;
    opset.text(OperatorSetIdField::domain, "");
    opset.integer(OperatorSetIdField::version, version_);
    head_.message(ModelField::opset_import, opset);
    add_metadata();
  }

  uint64_t graph_bytes() const {
    uint64_t bytes = graph_.bytes().size();
    for (const TensorPart& part : tensors_) bytes += part.outer.bytes().size() + part.inner_bytes();
    return bytes;
  }

  void write(std::FILE* file, const char* path) const {
    const auto put = [&](const void* data, uint64_t bytes) {
      sdk::require(bytes == 0 || std::fwrite(data, 1, bytes, file) == bytes, GR_IO, "path", path,
                   ": ", std::strerror(errno));
    };
    const auto put_text = [&](const WireWriter& part) {
      put(part.bytes().data(), part.bytes().size());
    };
    put_text(head_);
    WireWriter graph_head;
    graph_head.head(ModelField::graph, graph_bytes());
    put_text(graph_head);
    put_text(graph_);
    for (const TensorPart& part : tensors_) {
      put_text(part.outer);
      put_text(part.inner);
      put(part.value->data, part.value->bytes);
    }
  }

 private:
  /// outer: the field of the graph; inner: all but the content, whose tag comes last.
  struct TensorPart {
    const gr_written_value_t* value;
    WireWriter outer, inner;
    uint64_t inner_bytes() const { return inner.bytes().size() + value->bytes; }
  };

  TensorPart tensor_head(const gr_written_value_t& value) const {
    TensorPart part{&value, {}, {}};
    for (uint32_t k = 0; k < value.rank; ++k) {
      part.inner.integer(TensorField::dims, value.dims[k].size);
    }
    part.inner.integer(TensorField::data_type, onnx_type(value.dtype));
    part.inner.text(TensorField::name, value.name);
    part.inner.head(TensorField::raw_data, value.bytes);
    part.outer.head(GraphField::initializer, part.inner_bytes());
    return part;
  }

  WireWriter value_info(const gr_written_value_t& value, const char* name) const {
    WireWriter shape;
    for (uint32_t k = 0; k < value.rank; ++k) {
      WireWriter dim;
      if (value.dims[k].symbol != nullptr) {
        dim.text(TensorShapeDimensionField::dim_param, value.dims[k].symbol);
      } else {
        dim.integer(TensorShapeDimensionField::dim_value, value.dims[k].size);
      }
      shape.message(TensorShapeField::dim, dim);
    }
    WireWriter tensor, type, info;
    tensor.integer(TypeTensorField::elem_type, onnx_type(value.dtype));
    tensor.message(TypeTensorField::shape, shape);
    type.message(TypeField::tensor_type, tensor);
    info.text(ValueInfoField::name, name);
    info.message(ValueInfoField::type, type);
    return info;
  }

  /// An output is a value under its own name; another name of it is an Identity.
  void add_output(const gr_written_output_t& output) {
    const gr_written_value_t& value = *model_.values[output.value];
    if (std::string_view(value.name) != output.name) {
      add("Identity", {value.name}, {output.name}, {}, output.name);
    }
    graph_.message(GraphField::output, value_info(value, output.name));
  }

  void add_metadata() {
    for (uint64_t k = 0; k < model_.fact_count; ++k) {
      const gr_model_fact_t& fact = model_.facts[k];
      const std::string_view topic = fact.topic, key = fact.key;
      if (topic == "metadata") {
        WireWriter entry;
        entry.text(StringStringEntryField::key, fact.key);
        entry.text(StringStringEntryField::value, fact.value);
        head_.message(ModelField::metadata_props, entry);
      }
      if (topic == "file" && key == "documentation" && *fact.value != '\0') {
        head_.text(ModelField::doc_string, fact.value);
      }
    }
  }

  std::string name_of(gr_value_t id) const { return id < 0 ? "" : model_.values[id]->name; }

  void add(const char* op, const std::vector<std::string>& inputs,
           const std::vector<std::string>& outputs, const std::vector<gr_attr_t>& attrs,
           const std::string& name) {
    WireWriter node;
    for (const std::string& input : inputs) node.text(NodeField::input, input);
    for (const std::string& output : outputs) node.text(NodeField::output, output);
    node.text(NodeField::name, name);
    node.text(NodeField::op_type, op);
    for (const gr_attr_t& attr : attrs) {
      node.message(NodeField::attribute, attribute(attr));
    }
    graph_.message(GraphField::node, node);
  }

  void add_node(const gr_written_node_t& written) {
    const gr_node_t& node = *written.node;
    std::vector<std::string> inputs, outputs;
    for (uint32_t k = 0; k < node.input_count; ++k) inputs.push_back(name_of(node.inputs[k]));
    for (uint32_t k = 0; k < node.output_count; ++k) outputs.push_back(name_of(written.outputs[k]));
    std::vector<gr_attr_t> attrs(node.attrs, node.attrs + node.attr_count);
    const std::string_view op = node.op;
    if (std::string_view(node.domain) == "gradrack") {
      return add_own(op, inputs, outputs, attrs, written);
    }
    for (gr_attr_t& attr : attrs) {
      const bool dtype = std::string_view(attr.name) == "to" && op == "Cast";
      if (dtype) attr.i = onnx_type(static_cast<gr_dtype_t>(attr.i));
    }
    if (op == "Split") {
      const bool sized = inputs.size() > 1 && !inputs[1].empty();
      if (!sized) attrs.push_back(int_attr("num_outputs", node.output_count));
    }
    add(node.op, inputs, outputs, attrs, written.name);
  }

  int64_t int_of(const std::vector<gr_attr_t>& attrs, const char* name) const {
    for (const gr_attr_t& attr : attrs) {
      if (std::string_view(attr.name) == name) return attr.i;
    }
    return 0;
  }

  double real_of(const std::vector<gr_attr_t>& attrs, const char* name, double otherwise) const {
    for (const gr_attr_t& attr : attrs) {
      if (std::string_view(attr.name) == name) return attr.f;
    }
    return otherwise;
  }

  /// A small constant beside the model's own.
  std::string constant(const std::string& name, gr_dtype_t dtype, const std::vector<double>& reals,
                       const std::vector<int64_t>& ints, std::vector<int64_t> dims) {
    const int32_t type = onnx_type(dtype);
    const Tensor tensor =
        reals.empty() ? Tensor::of_ints(ints, dims, type) : Tensor::of_reals(reals, dims, type);
    WireWriter out;
    for (const int64_t dim : tensor.dims()) out.integer(TensorField::dims, dim);
    out.integer(TensorField::data_type, type);
    out.text(TensorField::name, name);
    out.text(TensorField::raw_data, tensor.content());
    graph_.message(GraphField::initializer, out);
    return name;
  }

  const gr_written_value_t& value_at(const gr_written_node_t& written, uint32_t input) const {
    return *model_.values[written.node->inputs[input]];
  }

  std::string turned(const std::string& input, uint32_t rank, const std::string& name) {
    std::vector<int64_t> perm;
    for (uint32_t k = 0; k < rank; ++k) perm.push_back(k);
    std::swap(perm[rank - 1], perm[rank - 2]);
    gr_attr_t attr = {};
    attr.name = "perm";
    attr.type = GR_ATTR_INTS;
    attr.ints = perm.data();
    attr.count = perm.size();
    add("Transpose", {input}, {name}, {attr}, name);
    return name;
  }

  void add_own(std::string_view op, std::vector<std::string> inputs,
               const std::vector<std::string>& outputs, const std::vector<gr_attr_t>& attrs,
               const gr_written_node_t& written) {
    const std::string name = written.name;
    if (op == "Copy" || op == "After") {
      return add("Identity", {inputs[0]}, outputs, {}, name);
    }
    if (op == "CausalMask") return add_causal_mask(inputs[0], outputs[0], written);
    for (uint32_t k = 0; k < 2; ++k) {
      if (int_of(attrs, k == 0 ? "transA" : "transB") == 0) continue;
      inputs[k] = turned(inputs[k], value_at(written, k).rank, name + (k == 0 ? "/a" : "/b"));
    }
    const double alpha = real_of(attrs, "alpha", 1.0);
    if (alpha == 1.0) return add("MatMul", {inputs[0], inputs[1]}, outputs, {}, name);
    add("MatMul", {inputs[0], inputs[1]}, {name + "/product"}, {}, name + "/product");
    const gr_dtype_t dtype = value_at(written, 0).dtype;
    add("Mul", {name + "/product", constant(name + "/alpha", dtype, {alpha}, {}, {})}, outputs, {},
        name);
  }

  /// scores + (-inf above the diagonal): Where over a triangle of ones.
  void add_causal_mask(const std::string& scores, const std::string& output,
                       const gr_written_node_t& written) {
    const std::string name = written.name;
    const gr_written_value_t& value = value_at(written, 0);
    const std::string minus =
        constant(name + "/minus", value.dtype, {-std::numeric_limits<double>::infinity()}, {}, {});
    const std::string zero = constant(name + "/zero", value.dtype, {0.0}, {}, {});
    add("Shape", {scores}, {name + "/shape"}, {int_attr("start", -2)}, name + "/shape");
    add("Expand", {minus, name + "/shape"}, {name + "/full"}, {}, name + "/full");
    const std::string one = constant(name + "/one", GR_INT64, {}, {1}, {});
    add("Trilu", {name + "/full", one}, {name + "/upper"}, {int_attr("upper", 1)}, name + "/upper");
    add("Equal", {name + "/upper", minus}, {name + "/masked"}, {}, name + "/masked");
    add("Where", {name + "/masked", minus, zero}, {name + "/mask"}, {}, name + "/mask");
    add("Add", {scores, name + "/mask"}, {output}, {}, name);
  }

  const gr_written_model_t& model_;
  int64_t version_;
  WireWriter head_, graph_;
  std::vector<TensorPart> tensors_;
};

int32_t takes(const char* domain, const char* op, int64_t version, gr_error_t* err) noexcept {
  return sdk::guarded(err, [&] {
    sdk::require(version >= kOldestWritten && version <= kNewestWritten, GR_OUT_OF_RANGE, "opset",
                 "opset ", version, " is not written, wanted ", kOldestWritten, " to ",
                 kNewestWritten);
    const std::string_view name = op;
    if (domain != nullptr && *domain != '\0') {
      const bool known =
          std::find(std::begin(kRewritten), std::end(kRewritten), name) != std::end(kRewritten);
      sdk::require(known && std::string_view(domain) == "gradrack", GR_UNSUPPORTED, "operator",
                   "ONNX has no ", domain, ".", op);
      return;
    }
    for (const Since& each : kSince) {
      sdk::require(name != each.op || version >= each.version, GR_UNSUPPORTED, "operator", op,
                   " came with opset ", each.version);
    }
  });
}

int32_t write(const gr_written_model_t* model, int64_t version, const char* path,
              gr_error_t* err) noexcept {
  return sdk::guarded(err, [&] {
    ModelWriter writer(*model, version);
    writer.compose();
    sdk::require(writer.graph_bytes() <= kMostBytes - (uint64_t{1} << 20), GR_UNSUPPORTED, "path",
                 "the model takes ", writer.graph_bytes(),
                 " bytes, an ONNX file holds 2 GiB: export its weights as safetensors");
    const auto close = [](std::FILE* file) { (void)std::fclose(file); };
    std::unique_ptr<std::FILE, decltype(close)> file(std::fopen(path, "wbx"), close);
    sdk::require(file != nullptr, GR_IO, "path", path, ": ", std::strerror(errno));
    try {
      writer.write(file.get(), path);
      const bool flushed = std::fflush(file.get()) == 0;
      sdk::require(flushed, GR_IO, "path", path, ": ", std::strerror(errno));
    } catch (const sdk::Error&) {
      (void)std::remove(path);
      throw;
    }
  });
}

}  // namespace

const gr_model_writer_t* writer_table() {
  static const gr_model_writer_t kTable = {sizeof(gr_model_writer_t),
                                           0,
                                           "onnx",
                                           "ONNX files, opset 18 to 24 (20 unless --opset says)",
                                           kUsuallyWritten,
                                           takes,
                                           write};
  return &kTable;
}

}  // namespace gradrack::onnx
