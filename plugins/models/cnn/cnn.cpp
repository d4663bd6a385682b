// SPDX-License-Identifier: Apache-2.0
// Model `cnn`: a small image classifier of convolutions with batch normalisation.
//
// Each stage conv1, conv2, ... is convolution 3x3, normalisation, Relu, and 2x2 pooling except
// after the last; then the mean over the image and a linear head. Invariant: training normalises by
// the batch and moves the running statistics when the step commits; evaluation reads them. Dims: B
// batch, C channels, H, W height and width, K classes.
#include <algorithm>
#include <cmath>
#include <string_view>

#include "gradrack/model.hpp"

namespace {

namespace gr = gradrack::sdk;
using gr::Value;

constexpr double kBatchNormEpsilon = 1e-5;

constexpr gr_option_t kCnnOptions[] = {
    GR_OPT_INT("classes", "0", 0, INFINITY, "classes; 0: as many as the data has"),
    GR_OPT_INTS("channels", "[16, 32]", 0, 1, INFINITY, "channels of each convolution"),
    GR_OPT_FLOAT("momentum", "0.9", 0, 1, "share of the running statistics kept at each step"),
};

/// The data's image output, or an Error that says what is missing.
const gr_data_output_t& find_images(const gr_data_info_t* data) {
  gr::require(data != nullptr, GR_INVALID_ARGUMENT, "data",
              "the model takes the size of the images from the data: give a data source");
  const gr_data_output_t* const output = gr::find_output(data, "images");
  gr::require(output != nullptr, GR_INVALID_ARGUMENT, "data",
              "the data has no output named `images`: name its features so");
  gr::require(output->rank == 4, GR_INVALID_ARGUMENT, "data", "images have rank ", output->rank,
              ", wanted [batch, channels, height, width]");
  return *output;
}

class Cnn {
 public:
  static constexpr const char* kName = "cnn";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "Small convolutional image classifier.";
  static constexpr auto& kOptions = kCnnOptions;

  explicit Cnn(const gr::Options& options)
      : classes_(options.get<int64_t>("classes")), momentum_(options.get<double>("momentum")) {
    const auto channels = options.get<std::span<const int64_t>>("channels");
    gr::require(!channels.empty(), GR_INVALID_ARGUMENT, "channels",
                "got an empty list, wanted the channels of at least one convolution");
    channels_.assign(channels.begin(), channels.end());
  }

  void build(gr::GraphBuilder& g, const gr_model_context_t& context) const {
    const gr_data_output_t& images = find_images(context.data);
    const int64_t classes = fit_classes(context.data->classes);
    check_size(images.dims[2].size, images.dims[3].size);

    Value x = g.input("images", GR_FLOAT32,
                      {"batch", images.dims[1].size, images.dims[2].size, images.dims[3].size});
    const Value labels = g.input("labels", GR_INT64, {"batch"}, classes);
    int64_t in = images.dims[1].size;
    for (size_t k = 0; k < channels_.size(); ++k) {
      x = convolution(g, k, x, in, context.training != 0);
      in = channels_[k];
    }
    head(g, x, in, classes, labels);
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

  void check_size(int64_t height, int64_t width) const {
    const int64_t side = std::min(height, width);
    const size_t halvings = channels_.size() - 1;
    gr::require(halvings < 62 && (side >> halvings) >= 1, GR_INVALID_ARGUMENT, "channels",
                "images of ", height, "x", width, " cannot be halved ", halvings,
                " times: use fewer convolutions");
  }

  /// x [B, in, H, W] -> [B, channels, H/2, W/2], or [B, channels, H, W] for the last.
  Value convolution(gr::GraphBuilder& g, size_t k, Value x, int64_t in, bool training) const {
    const std::string name = gr::text("conv", k + 1);
    const gr::GraphBuilder::Stage stage(g, name);
    const Value weight = g.parameter(name + ".weight", {channels_[k], in, 3, 3}, he_normal(9 * in));
    x = g.node("Conv", {x, weight}, {{"pads", {1, 1, 1, 1}}});
    x = g.node("Relu", {batch_norm(g, gr::text("bn", k + 1), x, channels_[k], training)});
    if (k + 1 == channels_.size()) return x;
    return g.node("MaxPool", {x}, {{"kernel_shape", {2, 2}}, {"strides", {2, 2}}});
  }

  /// ONNX's rule: running = momentum * running + (1 - momentum) * batch, population variance.
  Value batch_norm(gr::GraphBuilder& g, const std::string& name, Value x, int64_t channels,
                   bool training) const {
    const Value weight =
        g.parameter(name + ".weight", {channels}, gr::init_constant(1), GR_ROLE_NORM);
    const Value bias = g.parameter(name + ".bias", {channels}, gr::init_constant(0), GR_ROLE_BIAS);
    const Value mean = g.buffer(name + ".running_mean", {channels}, gr::init_constant(0));
    const Value var = g.buffer(name + ".running_var", {channels}, gr::init_constant(1));
    const auto out = g.nodes("BatchNormalization", {x, weight, bias, mean, var},
                             {{"epsilon", kBatchNormEpsilon},
                              {"momentum", momentum_},
                              {"training_mode", training ? 1 : 0}},
                             training ? 3 : 1);
    if (training) {
      g.update_buffer(mean, out[1]);
      g.update_buffer(var, out[2]);
    }
    return out[0];
  }

  /// x [B, C, H, W] -> logits [B, K] and the loss.
  void head(gr::GraphBuilder& g, Value x, int64_t in, int64_t classes, Value labels) const {
    const gr::GraphBuilder::Stage stage(g, "head");
    const Value features = g.reshape(g.node("GlobalAveragePool", {x}), {0, in});
    const Value weight = g.parameter("fc.weight", {in, classes}, he_normal(in));
    const Value bias = g.parameter("fc.bias", {classes}, gr::init_constant(0), GR_ROLE_BIAS);
    const Value logits = g.add(g.matmul(features, weight), bias);
    g.output("logits", logits);
    g.softmax_cross_entropy("loss", logits, labels);
  }

  /// Source: He et al., "Delving deep into rectifiers", equation 10.
  static gr_init_t he_normal(int64_t fan_in) {
    return gr::init_normal(0, std::sqrt(2.0 / static_cast<double>(fan_in)));
  }

  int64_t classes_;
  double momentum_;
  std::vector<int64_t> channels_;
};

}  // namespace

GRADRACK_PLUGIN("gradrack.cnn", "1.0.0", gr::Model<Cnn>)
