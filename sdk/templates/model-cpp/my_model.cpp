// SPDX-License-Identifier: Apache-2.0
// Model `my_model`: an image classifier with one hidden layer, for data such as the 8x8 digits.
//
//   h = relu(flatten(images) W1 + b1);   logits = h W2 + b2;   loss = cross entropy with labels
//
// Invariant: `build` declares the same parameters in the same order whether it builds the graph for
// training or for evaluation; what differs between the two is context.training. It runs nothing.
// Change first: the options, then the layers in `build`. Dims: B batch, F features, K classes.
#include <cmath>
#include <string_view>

#include "gradrack/model.hpp"
#include "toy_images.hpp"

namespace {

namespace gr = gradrack::sdk;

constexpr gr_option_t kOptionTable[] = {
    GR_OPT_INT("hidden", "64", 1, 65536, "width of the hidden layer"),
};

class MyModel {
 public:
  static constexpr const char* kName = "my_model";  // `plugin: my_model`
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "Image classifier with one hidden layer.";
  static constexpr auto& kOptions = kOptionTable;

  explicit MyModel(const gr::Options& options) : hidden_(options.get<int64_t>("hidden")) {}

  void build(gr::GraphBuilder& g, const gr_model_context_t& context) const {
    const gr_data_output_t& source = find_images(context.data);
    const int64_t classes = context.data->classes;
    gr::require(classes > 0, GR_INVALID_ARGUMENT, "data",
                "the data has no classes to tell apart: use a classifier's data");

    // Inputs have the names of the data's outputs. "batch" is bound when a plan is made.
    std::vector<gr::Dim> dims = {"batch"};
    int64_t features = 1;
    for (uint32_t k = 1; k < source.rank; ++k) {
      dims.emplace_back(source.dims[k].size);
      features *= source.dims[k].size;
    }
    const gr::Value images = g.input("images", GR_FLOAT32, dims);
    const gr::Value labels = g.input("labels", GR_INT64, {"batch"}, classes);

    gr::Value x = g.reshape(images, {-1, features});                  // [B, F]
    x = g.node("Relu", {linear(g, "hidden", x, features, hidden_)});  // [B, hidden]
    const gr::Value logits = linear(g, "head", x, hidden_, classes);  // [B, K]
    g.output("logits", logits);
    g.softmax_cross_entropy("loss", logits, labels);
  }

 private:
  /// The data's output "images", or an error that says what is missing.
  static const gr_data_output_t& find_images(const gr_data_info_t* data) {
    gr::require(data != nullptr, GR_INVALID_ARGUMENT, "data",
                "the model takes the size of the images from the data: give a data source");
    const gr_data_output_t* const images = gr::find_output(data, "images");
    gr::require(images != nullptr, GR_INVALID_ARGUMENT, "data",
                "the data has no output named `images`");
    return *images;
  }

  /// x [B, in] -> x W + b [B, out], as a stage of its own. Weights are [in, out].
  static gr::Value linear(gr::GraphBuilder& g, const std::string& name, gr::Value x, int64_t in,
                          int64_t out) {
    const gr::GraphBuilder::Stage stage(g, name);
    const double deviation = std::sqrt(2.0 / static_cast<double>(in));
    const gr::Value weight =
        g.parameter(name + ".weight", {in, out}, gr::init_normal(0, deviation));
    const gr::Value bias = g.parameter(name + ".bias", {out}, gr::init_constant(0), GR_ROLE_BIAS);
    return g.add(g.matmul(x, weight), bias);
  }

  int64_t hidden_;
};

}  // namespace

// The one exported symbol. The id is yours: reverse DNS. A library may offer several plugins; drop
// ToyImages when you train on data of your own.
GRADRACK_PLUGIN("org.example.my_model", "1.0.0", gr::Model<MyModel>, gr::Data<ToyImages>)
