// SPDX-License-Identifier: Apache-2.0
// Model `towers`: independent perceptrons side by side on the same features, for classifiers.
//
// Each tower is a stage, so that what a scheduler can do at once is easy to see: all towers, or
// with one tower nothing but weight gradients. Their sum goes to one linear layer; with `heads`
// each tower has a layer and an objective of its own. Invariant: towers meet in the head alone.
// Dims: B batch, F features, W width, K classes.
#include <algorithm>
#include <cmath>
#include <string_view>

#include "gradrack/model.hpp"

namespace {

namespace gr = gradrack::sdk;
using gr::Value;

constexpr int64_t kMostTowers = 64;  // as many as a model may have objectives

constexpr gr_option_t kTowersOptions[] = {
    GR_OPT_INT("towers", "8", 1, kMostTowers, "perceptrons side by side; 1: a plain chain"),
    GR_OPT_INT("depth", "3", 1, 10000, "linear layers of each"),
    GR_OPT_INT("width", "64", 1, INFINITY, "outputs of each of these layers"),
    GR_OPT_BOOL("heads", "false", "a head and an objective for each tower instead of one for all"),
    GR_OPT_INT("classes", "0", 0, INFINITY, "classes; 0: as many as the data has"),
};

/// The data's output `images`, of any rank, or an Error that says what is missing.
const gr_data_output_t& find_features(const gr_data_info_t* data) {
  gr::require(data != nullptr, GR_INVALID_ARGUMENT, "data",
              "the model takes the number of features from the data: give a data source");
  const gr_data_output_t* const output = gr::find_output(data, "images");
  gr::require(output != nullptr, GR_INVALID_ARGUMENT, "data",
              "the data has no output named `images`: name its features so");
  gr::require(output->rank >= 2, GR_INVALID_ARGUMENT, "data", "images have rank ", output->rank,
              ", wanted [batch, features] or more dims");
  return *output;
}

class Towers {
 public:
  static constexpr const char* kName = "towers";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "Independent perceptrons whose sum is classified.";
  static constexpr auto& kOptions = kTowersOptions;

  explicit Towers(const gr::Options& options)
      : towers_(options.get<int64_t>("towers")),
        depth_(options.get<int64_t>("depth")),
        width_(options.get<int64_t>("width")),
        classes_(options.get<int64_t>("classes")),
        heads_(options.get<bool>("heads")) {}

  void build(gr::GraphBuilder& g, const gr_model_context_t& context) const {
    const gr_data_output_t& images = find_features(context.data);
    const int64_t classes = fit_classes(context.data->classes);
    std::vector<gr::Dim> dims = {"batch"};
    int64_t features = 1;
    for (uint32_t k = 1; k < images.rank; ++k) {
      dims.push_back(images.dims[k].size);
      features *= images.dims[k].size;
    }
    const Value input = g.input("images", GR_FLOAT32, dims);
    const Value labels = g.input("labels", GR_INT64, {"batch"}, classes);
    const Value x = images.rank == 2 ? input : g.reshape(input, {0, features});

    std::vector<Value> tops;
    for (int64_t k = 0; k < towers_; ++k) {
      const gr::GraphBuilder::Stage stage(g, gr::text("towers.", k));
      tops.push_back(tower(g, gr::text("towers.", k), x, features));
      if (heads_)
        head(g, gr::text("heads.", k), gr::text("tower", k), tops.back(), classes, labels);
    }
    if (heads_) return;
    const gr::GraphBuilder::Stage stage(g, "head");
    Value sum = tops[0];
    for (size_t k = 1; k < tops.size(); ++k) sum = g.add(sum, tops[k]);
    head(g, "head", "loss", sum, classes, labels);
  }

 private:
  int64_t fit_classes(int64_t data_classes) const {
    const int64_t classes = classes_ == 0 ? data_classes : classes_;
    gr::require(classes > 0, GR_INVALID_ARGUMENT, "classes",
                "the data has no classes to count: give `classes`");
    gr::require(data_classes <= classes, GR_INVALID_ARGUMENT, "classes", "the data has ",
                data_classes, " classes, the model ", classes,
                ": raise it, or set 0 to follow the data");
    return classes;
  }

  /// x [B, F] -> [B, W].
  Value tower(gr::GraphBuilder& g, const std::string& name, Value x, int64_t features) const {
    int64_t in = features;
    for (int64_t layer = 0; layer < depth_; ++layer) {
      // Relu halves the variance: He et al., "Delving deep into rectifiers", equation 10.
      x = linear(g, gr::text(name, ".", layer), x, in, width_, std::sqrt(2.0 / double(in)));
      x = g.node("Relu", {x});
      in = width_;
    }
    return x;
  }

  /// top [B, W] -> logits [B, K] and their loss, objective `objective`.
  void head(gr::GraphBuilder& g, const std::string& name, const std::string& objective, Value top,
            int64_t classes, Value labels) const {
    const int64_t added = heads_ ? 1 : towers_;  // that many towers, each of variance 1
    const double spread = 1 / std::sqrt(double(width_) * double(added));
    const Value logits = linear(g, name, top, width_, classes, spread);
    g.output(heads_ ? gr::text("logits.", objective).c_str() : "logits", logits);
    g.softmax_cross_entropy(objective.c_str(), logits, labels);
  }

  static Value linear(gr::GraphBuilder& g, const std::string& name, Value x, int64_t in,
                      int64_t out, double spread) {
    const Value weight = g.parameter(name + ".weight", {in, out}, gr::init_normal(0, spread));
    const Value bias = g.parameter(name + ".bias", {out}, gr::init_constant(0), GR_ROLE_BIAS);
    return g.add(g.matmul(x, weight), bias);
  }

  int64_t towers_, depth_, width_, classes_;
  bool heads_;
};

}  // namespace

GRADRACK_PLUGIN("gradrack.towers", "1.0.0", gr::Model<Towers>)
