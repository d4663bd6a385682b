// SPDX-License-Identifier: Apache-2.0
// The model's branches, its gradients and updates: see backend_model.hpp.
#include "sdk/conformance/backend_model.hpp"

#include "core/autodiff/autodiff.hpp"
#include "core/graph/emitter.hpp"
#include "core/rewrite/simplify.hpp"

namespace gradrack::conform {
namespace {

using Ints = std::vector<int64_t>;

class TinyModel {
 public:
  explicit TinyModel(const TinyShape& shape) : s_(shape), e_(graph_) {}

  Result<Graph> build() {
    const ValueId language = language_loss();
    const ValueId image = image_loss();
    const double targets = static_cast<double>(s_.batch * s_.time + s_.batch);
    const ValueId total = e_.add(language, image);
    const ValueId count = e_.constant(GR_FLOAT32, targets);
    GR_TRY(e_.status());
    GR_TRY(graph_.add_objective("loss", total, count));
    GR_TRY(graph_.add_output("loss", e_.div(total, count)));
    GR_TRY(e_.status());
    GR_TRY(update(targets));
    return simplify(graph_);
  }

 private:
  ValueId source(Source kind, const std::string& name, const Ints& dims, gr_dtype_t dtype,
                 gr_init_t init = {}, int64_t limit = 0) {
    Value value;
    value.source = kind;
    value.name = name;
    value.type = {dtype, Shape(dims.begin(), dims.end())};
    value.init = init;
    value.limit = limit;
    auto made = graph_.add_source(std::move(value));
    if (!made.ok()) e_.fail(made.status());
    return made.ok() ? *made : ValueId{GR_NO_VALUE};
  }

  ValueId weight(const std::string& name, const Ints& dims, double deviation = 0.3) {
    names_.push_back(name);
    return source(Source::kParameter, name, dims, GR_FLOAT32, {GR_INIT_NORMAL, 0, 0.0, deviation});
  }

  ValueId constant_weight(const std::string& name, const Ints& dims, double number) {
    names_.push_back(name);
    return source(Source::kParameter, name, dims, GR_FLOAT32, {GR_INIT_CONSTANT, 0, number, 0});
  }

  ValueId loss(ValueId scores, ValueId labels) {
    const Attrs sum{{"reduction", std::string("sum")}};
    return e_.op("SoftmaxCrossEntropyLoss", {scores, labels}, sum);
  }

  ValueId attention(ValueId x) {
    const int64_t c = s_.channels;
    const ValueId h = e_.op("LayerNormalization", {x, constant_weight("norm1.weight", {c}, 1.0),
                                                   constant_weight("norm1.bias", {c}, 0.1)});
    const ValueId q = e_.op("MatMul", {h, weight("query", {c, c})});
    const ValueId k = e_.op("MatMul", {h, weight("key", {c, c})});
    const ValueId v = e_.op("MatMul", {h, weight("value", {c, c})});
    const Attrs heads{
        {"q_num_heads", int64_t{2}}, {"kv_num_heads", int64_t{2}}, {"is_causal", int64_t{1}}};
    const ValueId seen = e_.op("Attention", {q, k, v}, heads);
    return e_.add(x, e_.op("MatMul", {seen, weight("out", {c, c})}));
  }

  ValueId feed_forward(ValueId x) {
    const int64_t c = s_.channels;
    const ValueId h = e_.op("RMSNormalization", {x, constant_weight("norm2.weight", {c}, 1.0)});
    const ValueId wide = e_.add(e_.op("MatMul", {h, weight("wide", {c, 2 * c})}),
                                constant_weight("wide.bias", {2 * c}, 0.05));
    const ValueId bent = e_.op("Gelu", {wide});
    const Attrs drop{{"ratio", 0.1}, {"stream", graph_.next_random_stream()}};
    const ValueId kept = e_.own("Dropout", {bent, graph_.rng()}, drop);
    return e_.add(x, e_.op("MatMul", {kept, weight("narrow", {2 * c, c})}));
  }

  ValueId language_loss() {
    const Ints grid = {s_.batch, s_.time};
    const ValueId tokens = source(Source::kInput, "tokens", grid, GR_INT64, {}, s_.vocabulary);
    const ValueId labels = source(Source::kInput, "labels", grid, GR_INT64, {}, s_.vocabulary);
    const ValueId words = e_.op("Gather", {weight("words", {s_.vocabulary, s_.channels}), tokens});
    ValueId x = e_.add(words, weight("places", {s_.time, s_.channels}));
    x = feed_forward(attention(x));
    const ValueId scores = e_.op("MatMul", {x, weight("scores", {s_.channels, s_.vocabulary})});
    const int64_t rows = s_.batch * s_.time;
    return loss(e_.reshape(scores, Ints{rows, s_.vocabulary}), e_.reshape(labels, Ints{rows}));
  }

  ValueId image_loss() {
    const int64_t maps = 4, half = s_.image / 2;
    const ValueId images =
        source(Source::kInput, "images", {s_.batch, 1, s_.image, s_.image}, GR_FLOAT32);
    const ValueId classes = source(Source::kInput, "classes", {s_.batch}, GR_INT64, {}, s_.classes);
    ValueId x =
        e_.op("Conv", {images, weight("conv", {maps, 1, 3, 3})}, {{"pads", Ints{1, 1, 1, 1}}});
    x = batch_norm(x, maps);
    x = e_.op("MaxPool", {e_.op("Relu", {x})},
              {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}});
    const int64_t flat = maps * half * half;
    return loss(
        e_.op("Gemm", {e_.reshape(x, Ints{s_.batch, flat}), weight("head", {flat, s_.classes}),
                       constant_weight("head.bias", {s_.classes}, 0.0)}),
        classes);
  }

  ValueId batch_norm(ValueId x, int64_t maps) {
    const ValueId mean =
        source(Source::kBuffer, "running.mean", {maps}, GR_FLOAT32, {GR_INIT_CONSTANT, 0, 0, 0});
    const ValueId variance =
        source(Source::kBuffer, "running.var", {maps}, GR_FLOAT32, {GR_INIT_CONSTANT, 0, 1, 0});
    const auto out = e_.multi("", "BatchNormalization",
                              {x, constant_weight("bn.weight", {maps}, 1.0),
                               constant_weight("bn.bias", {maps}, 0.2), mean, variance},
                              {{"training_mode", int64_t{1}}}, 3);
    buffers_ = {{"running.mean", "new.mean"}, {"running.var", "new.var"}};
    add_output("new.mean", out[1]);
    add_output("new.var", out[2]);
    return out[0];
  }

  void add_output(const std::string& name, ValueId id) {
    if (!e_.status().ok()) return;
    const Status added = graph_.add_output(name, id);
    if (!added.ok()) e_.fail(added);
  }

  /// Gradients, their norm, AdamW and all writes. Ids change, so all is found again by name.
  Status update(double targets) {
    std::vector<ValueId> wrt;
    for (const std::string& name : names_) wrt.push_back(graph_.find_source(name));
    GR_ASSIGN(const Gradients gradients, differentiate(graph_, wrt));
    graph_.set_kind(GR_KIND_UPDATE);
    const ValueId rate = source(Source::kScalar, "lr", {}, GR_FLOAT64);
    const ValueId number = source(Source::kScalar, "step", {}, GR_FLOAT64);
    ValueId squares = e_.constant(GR_FLOAT64, 0.0);
    for (size_t k = 0; k < names_.size(); ++k) {
      if (gradients.of[k] == GR_NO_VALUE) return internal_error(names_[k] + " has no gradient");
      const ValueId mean_gradient = e_.mul(gradients.of[k], 1.0 / targets);
      squares = e_.add(squares, e_.own("SumSquares", {mean_gradient}));
      GR_TRY(step(names_[k], mean_gradient, rate, number));
    }
    for (const auto& [buffer, fresh] : buffers_) {
      GR_TRY(graph_.add_write(graph_.find_source(buffer), graph_.find_output(fresh)));
    }
    const ValueId norm = e_.op("Sqrt", {squares});
    GR_TRY(e_.status());
    return graph_.add_output("grad_norm", norm);
  }

  Status step(const std::string& name, ValueId gradient, ValueId rate, ValueId number) {
    const ValueId parameter = graph_.find_source(name);
    const Value& declared = graph_.value(parameter);
    Ints dims;
    for (const Dim& dim : declared.type.shape) dims.push_back(dim.number());
    const ValueId mean = source(Source::kState, name + ".mean", dims, GR_FLOAT32);
    const ValueId square = source(Source::kState, name + ".square", dims, GR_FLOAT32);
    const auto fresh =
        e_.multi("gradrack", "AdamW", {parameter, gradient, mean, square, rate, number},
                 {{"weight_decay", 0.01}, {"eps", 1e-6}}, 3);
    GR_TRY(e_.status());
    GR_TRY(graph_.add_write(parameter, fresh[0]));
    GR_TRY(graph_.add_write(mean, fresh[1]));
    return graph_.add_write(square, fresh[2]);
  }

  TinyShape s_;
  Graph graph_;
  Emitter e_;
  std::vector<std::string> names_;                            // of parameters
  std::vector<std::pair<std::string, std::string>> buffers_;  // and the outputs they take
};

}  // namespace

Result<Graph> tiny_step_graph(const TinyShape& shape) { return TinyModel(shape).build(); }

}  // namespace gradrack::conform
