// SPDX-License-Identifier: Apache-2.0
// Plugin `stems`, for tests alone: a model of a trunk and three independent stems, each with its
// objective, and data some of whose batches have no target for the last, or another length.
//
// Dims: B batch, T time, F features, H hidden. Stems are stages heads.box, heads.kind and
// heads.point; the point stem ends in a batch normalisation, so there are buffers too.
#include <cmath>

#include "gradrack/data.hpp"
#include "gradrack/model.hpp"
#include "gradrack/philox.h"

namespace {

namespace gr = gradrack::sdk;
using gr::Value;

constexpr int64_t kFeatures = 4, kHidden = 8;
constexpr const char* kObjectives[] = {"box", "kind", "point"};

class StemsModel {
 public:
  static constexpr const char* kName = "stems";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "A trunk with three stems.";

  explicit StemsModel(const gr::Options&) {}

  void build(gr::GraphBuilder& g, const gr_model_context_t& context) const {
    const Value x = g.input("x", GR_FLOAT32, {"batch", "time", kFeatures});
    Value trunk;
    {
      const gr::GraphBuilder::Stage stage(g, "trunk");
      trunk = g.node("Tanh", {linear(g, "trunk", x, kFeatures, kHidden)});
      trunk = g.node("ReduceMean", {trunk, g.ints({1})}, {{"keepdims", 0}});
    }
    const gr::GraphBuilder::Stage heads(g, "heads");
    for (const std::string name : kObjectives) {
      const gr::GraphBuilder::Stage stage(g, name);
      Value y = linear(g, "heads." + name, trunk, kHidden, 2);
      if (name == "point") y = normalised(g, y, context.training != 0);
      const Value wanted = g.input(name.c_str(), GR_FLOAT32, {"batch", 2});
      const Value has = g.input((name + "_has").c_str(), GR_FLOAT32, {"batch", 1});
      const Value error = g.sub(y, wanted);
      const Value square = g.mul(g.mul(error, error), has);
      const Value axes = g.ints({0, 1});
      g.objective(name.c_str(), g.node("ReduceSum", {square, axes}, {{"keepdims", 0}}),
                  g.node("ReduceSum", {has, axes}, {{"keepdims", 0}}));
    }
  }

 private:
  static Value linear(gr::GraphBuilder& g, const std::string& name, Value x, int64_t in,
                      int64_t out) {
    const double spread = 1 / std::sqrt(static_cast<double>(in));
    const Value weight = g.parameter(name + ".weight", {in, out}, gr::init_normal(0, spread));
    const Value bias = g.parameter(name + ".bias", {out}, gr::init_constant(0), GR_ROLE_BIAS);
    return g.add(g.matmul(x, weight), bias);
  }

  static Value normalised(gr::GraphBuilder& g, Value x, bool training) {
    const Value weight = g.parameter("bn.weight", {2}, gr::init_constant(1), GR_ROLE_NORM);
    const Value bias = g.parameter("bn.bias", {2}, gr::init_constant(0), GR_ROLE_BIAS);
    const Value mean = g.buffer("bn.mean", {2}, gr::init_constant(0));
    const Value var = g.buffer("bn.var", {2}, gr::init_constant(1));
    const auto out = g.nodes("BatchNormalization", {x, weight, bias, mean, var},
                             {{"training_mode", training ? 1 : 0}}, training ? 3 : 1);
    if (training) {
      g.update_buffer(mean, out[1]);
      g.update_buffer(var, out[2]);
    }
    return out[0];
  }
};

constexpr gr_option_t kDataOptions[] = {
    GR_OPT_INT("point_every", "1", 0, INFINITY, "batches from one with points to the next; 0: all"),
    GR_OPT_INT("validation_items", "5", 0, INFINITY, "rows of the validation split"),
    GR_OPT_INTS("lengths", "[]", 0, 1, 1000, "T of batch 0, 1, ..., then from the first again"),
    GR_OPT_BOOL("undeclared", "false", "describe a batch as of a set that is not declared"),
};

class StemsData : public gr::Batches<StemsData> {
 public:
  static constexpr const char* kName = "stems";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "Random batches, some without points.";
  static constexpr auto& kOptions = kDataOptions;

  explicit StemsData(const gr::Options& options)
      : point_every_(options.get<int64_t>("point_every")),
        undeclared_(options.get<bool>("undeclared")) {
    const auto lengths = options.get<std::span<const int64_t>>("lengths");
    lengths_.assign(lengths.begin(), lengths.end());
    static constexpr const char* kNames[] = {"x",        "box",   "box_has",  "kind",
                                             "kind_has", "point", "point_has"};
    for (size_t k = 0; k < std::size(kNames); ++k) {
      outputs_[k].name = kNames[k];
      outputs_[k].dtype = GR_FLOAT32;
      outputs_[k].rank = 2;
      outputs_[k].dims[0] = {0, "batch"};
      outputs_[k].dims[1] = {k % 2 == 1 ? 2 : 1, nullptr};
    }
    outputs_[0].rank = 3;
    outputs_[0].dims[1] = {1, lengths_.empty() ? nullptr : "time"};
    outputs_[0].dims[2] = {kFeatures, nullptr};
    info_.struct_size = sizeof info_;
    info_.outputs = outputs_;
    info_.output_count = std::size(outputs_);
    info_.output_stride = sizeof outputs_[0];
    info_.train_items = 1 << 20;
    info_.validation_items = options.get<int64_t>("validation_items");
    info_.summary = "random numbers for three stems";
    batches_.struct_size = sizeof batches_;
    batches_.sets = kSets;
    batches_.set_count = point_every_ == 0 ? 0 : point_every_ == 1 ? 1 : 2;
    if (lengths_.empty()) return;
    time_ = {"time", *std::max_element(lengths_.begin(), lengths_.end())};
    batches_.symbols = &time_;
    batches_.symbol_count = 1;
  }

  const gr_data_info_t& info() const { return info_; }
  const gr_batch_info_t& batch_info() const { return batches_; }

  int64_t rows(const gr_batch_request_t& request) const {
    if (request.split == GR_SPLIT_TRAIN) return request.batch_size;
    const int64_t left = info_.validation_items - request.index * request.batch_size;
    return std::clamp<int64_t>(left, 0, request.batch_size);
  }

  void describe(const gr_batch_request_t& request, gr_batch_description_t& out) const {
    out.objective_set = undeclared_ ? 7 : has_points(request) ? 0 : 1;
    if (!lengths_.empty()) out.sizes[0] = lengths_[size_t(request.index) % lengths_.size()];
  }

  void batch(const gr_batch_request_t& request, std::span<DLTensor* const> outputs) const {
    for (size_t k = 0; k < outputs.size(); ++k) {
      for (int64_t row = 0; row < outputs[k]->shape[0]; ++row) {
        const auto to = gr::row_of<float>(*outputs[k], row);
        for (size_t d = 0; d < to.size(); ++d) to[d] = draw(request, k, row, d);
      }
    }
  }

 private:
  static constexpr const char* kWithout[] = {"box", "kind"};
  static constexpr gr_objective_set_t kSets[] = {{kObjectives, 3}, {kWithout, 2}};

  bool has_points(const gr_batch_request_t& request) const {
    return point_every_ < 2 || request.index % point_every_ == 0;
  }

  float draw(const gr_batch_request_t& request, size_t output, int64_t row, size_t d) const {
    const uint32_t counter[4] = {static_cast<uint32_t>(request.index),
                                 static_cast<uint32_t>(output), static_cast<uint32_t>(row),
                                 static_cast<uint32_t>(d * 2 + size_t(request.split))};
    uint32_t random[4];
    gr_philox4x32(counter, request.seed, random);
    const auto uniform = static_cast<float>(gr_uniform24(random[0]));
    const bool has = output > 0 && output % 2 == 0;
    if (has && output == 6 && !has_points(request)) return 0;
    return has ? (row == 0 || uniform < 0.7f ? 1.0f : 0.0f) : 2 * uniform - 1;
  }

  int64_t point_every_;
  bool undeclared_;
  std::vector<int64_t> lengths_;
  gr_batch_symbol_t time_ = {};
  gr_data_output_t outputs_[7] = {};
  gr_data_info_t info_ = {};
  gr_batch_info_t batches_ = {};
};

}  // namespace

GRADRACK_PLUGIN("gradrack.test.stems", "1.0.0", gr::Model<StemsModel>, gr::Data<StemsData>)
