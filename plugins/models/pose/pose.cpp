// SPDX-License-Identifier: Apache-2.0
// Model `pose`: finds people in an image, each with a box and the places of its joints.
//
// A convolutional backbone gives features at strides 8, 16 and 32 (p3, p4, p5). Each scale has
// three branches of its own (box, class, point), each of two 3x3 stems and a 1x1 projection: 18
// stems that share nothing but the features they read. Every stem is a stage, so that an objective
// that is not active leaves the backward of its six stems out, and one stem can be frozen alone.
// Invariant: no branch reads another; objectives meet only in the backbone.
#include <string_view>

#include "layers.hpp"
#include "objectives.hpp"

namespace {

namespace gr = gradrack::sdk;
using gr::Value;

constexpr size_t kDowns = 4;         // units of stride 2 after the first: strides 4, 8, 16, 32
constexpr size_t kFirstScale = 1;    // the second of them, stride 8, is p3
constexpr double kRareLogit = -4.6;  // logit of 1 %: nearly every cell is empty (Lin et al. 2017)

constexpr gr_option_t kPoseOptions[] = {
    GR_OPT_INTS("channels", "[16, 32, 64, 128, 256]", 5, 2, INFINITY,
                "channels at strides 2, 4, 8, 16 and 32; all but the first even"),
    GR_OPT_INTS("stems", "[64, 64, 48]", 3, 1, INFINITY,
                "channels of the stems of the box, class and point branches"),
    GR_OPT_INT("joints", "17", 1, 1000, "joints of a figure"),
    GR_OPT_INT("classes", "0", 0, 100000, "classes of figures; 0: as many as the data has"),
    GR_OPT_FLOAT("momentum", "0.97", 0, 1, "share of the running statistics kept at each step"),
};

/// The data's output `name` [batch, C, H, W], or an Error that says what is missing.
const gr_data_output_t& find_output(const gr_data_info_t* data, std::string_view name) {
  gr::require(data != nullptr, GR_INVALID_ARGUMENT, "data",
              "the model takes the size of the images from the data: give a data source");
  const gr_data_output_t* const output = gr::find_output(data, name);
  gr::require(output != nullptr, GR_INVALID_ARGUMENT, "data", "the data has no output named `",
              name, "`, the model needs it");
  gr::require(output->rank == 4, GR_INVALID_ARGUMENT, "data", name, " has rank ", output->rank,
              ", wanted [batch, channels, height, width]");
  return *output;
}

/// Features of one scale.
struct Scale {
  std::string name;  ///< "p3"
  Value features;    ///< [B, channels, h, w]
  int64_t channels, height, width;
};

class Pose {
 public:
  static constexpr const char* kName = "pose";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "People with boxes and joints, by 18 independent stems.";
  static constexpr auto& kOptions = kPoseOptions;

  explicit Pose(const gr::Options& options)
      : joints_(options.get<int64_t>("joints")),
        classes_(options.get<int64_t>("classes")),
        momentum_(options.get<double>("momentum")) {
    const auto channels = options.get<std::span<const int64_t>>("channels");
    const auto stems = options.get<std::span<const int64_t>>("stems");
    channels_.assign(channels.begin(), channels.end());
    stems_.assign(stems.begin(), stems.end());
    for (size_t k = 1; k < channels_.size(); ++k) {
      gr::require(channels_[k] % 2 == 0, GR_INVALID_ARGUMENT, "channels", "got ", channels_[k],
                  " at position ", k, ", wanted an even number: residual blocks halve it");
    }
  }

  void build(gr::GraphBuilder& g, const gr_model_context_t& context) const {
    const gr_data_output_t& images = find_output(context.data, "images");
    const MapLayout layout{fit_classes(context.data->classes), joints_};
    const LayerContext c{g, context.training != 0, momentum_};
    std::vector<ScaleOutputs> outputs;
    for (const Scale& scale : backbone(c, images)) {
      outputs.push_back(heads(c, scale, layout));
      outputs.back().target = target_map(c.g, context.data, scale, layout);
    }
    box_objective(g, outputs, layout);
    class_objective(g, outputs, layout);
    point_objective(g, outputs, layout);
  }

 private:
  int64_t fit_classes(int64_t data_classes) const {
    const int64_t classes = classes_ == 0 ? data_classes : classes_;
    gr::require(classes > 0, GR_INVALID_ARGUMENT, "classes",
                "the data has no classes to count: give `classes`");
    return classes;
  }

  /// images [B, C, H, W] -> features of p3, p4, p5.
  std::vector<Scale> backbone(const LayerContext& c, const gr_data_output_t& images) const {
    gr::GraphBuilder& g = c.g;
    const int64_t in = images.dims[1].size;
    int64_t height = (images.dims[2].size + 1) / 2, width = (images.dims[3].size + 1) / 2;
    Value x =
        g.input("images", GR_FLOAT32, {"batch", in, images.dims[2].size, images.dims[3].size});
    x = staged_unit(c, "backbone.stem", x, {in, channels_[0], 3, 2});
    std::vector<Scale> scales;
    for (size_t k = 0; k < kDowns; ++k) {
      const int64_t channels = channels_[k + 1];
      x = staged_unit(c, gr::text("backbone.down", k + 1), x, {channels_[k], channels, 3, 2});
      height = (height + 1) / 2;
      width = (width + 1) / 2;
      const std::string name = gr::text("backbone.block", k + 1);
      const gr::GraphBuilder::Stage stage(g, name);
      x = residual(c, name, x, channels);
      if (k < kFirstScale) continue;
      scales.push_back({gr::text("p", k + 2), x, channels, height, width});
    }
    return scales;
  }

  /// Input "targets.pN", which must have a column for every cell of the scale.
  static Value target_map(gr::GraphBuilder& g, const gr_data_info_t* data, const Scale& scale,
                          const MapLayout& layout) {
    const std::string name = "targets." + scale.name;
    const gr_dim_t* dims = find_output(data, name).dims;
    const bool fits = dims[1].size == layout.channels() && dims[2].size == scale.height &&
                      dims[3].size == scale.width;
    gr::require(fits, GR_INVALID_ARGUMENT, "data", name, " is [batch, ", dims[1].size, ", ",
                dims[2].size, ", ", dims[3].size,
                "], wanted [batch, 4 + classes + 3 joints = ", layout.channels(), ", ",
                scale.height, ", ", scale.width, "]");
    return g.input(name.c_str(), GR_FLOAT32,
                   {"batch", layout.channels(), scale.height, scale.width});
  }

  /// The three branches of a scale.
  ScaleOutputs heads(const LayerContext& c, const Scale& scale, const MapLayout& layout) const {
    ScaleOutputs out;
    out.box = branch(c, scale, "box", stems_[0], MapLayout::kBox, 0);
    out.classes = branch(c, scale, "class", stems_[1], layout.classes, kRareLogit);
    out.point = branch(c, scale, "point", stems_[2], 3 * layout.joints, 0);
    return out;
  }

  /// Stages heads.pN.NAME.0, .1 (the stems) and .out; output "NAME.pN".
  static Value branch(const LayerContext& c, const Scale& scale, const char* name, int64_t width,
                      int64_t outputs, double bias) {
    const std::string path = gr::text("heads.", scale.name, ".", name);
    Value x = staged_unit(c, path + ".0", scale.features, {scale.channels, width});
    x = staged_unit(c, path + ".1", x, {width, width});
    const gr::GraphBuilder::Stage stage(c.g, path + ".out");
    x = projection(c, path + ".out", x, width, outputs, bias);
    c.g.output(gr::text(name, ".", scale.name).c_str(), x);
    return x;
  }

  /// A unit in a stage of its own name.
  static Value staged_unit(const LayerContext& c, const std::string& name, Value x, UnitSize size) {
    const gr::GraphBuilder::Stage stage(c.g, name);
    return unit(c, name, x, size);
  }

  int64_t joints_, classes_;
  double momentum_;
  std::vector<int64_t> channels_, stems_;
};

}  // namespace

GRADRACK_PLUGIN("gradrack.pose", "1.0.0", gr::Model<Pose>)
