// SPDX-License-Identifier: Apache-2.0
// Data source `figures`: pictures of stick people, drawn as they are asked for, with boxes and the
// places of their 17 joints.
//
// Every image is drawn from random numbers of its own (Draws). Some images come without points, and
// whole training batches too, by a rule on their number. Invariant: a batch is a pure function of
// (options, seed, split, index); the validation images are the same for every seed.
#include <algorithm>

#include "gradrack/data.hpp"
#include "preview.hpp"

namespace {

namespace gr = gradrack::sdk;

constexpr gr_option_t kFiguresOptions[] = {
    GR_OPT_INT("size", "96", 32, 4096, "height and width of an image: a multiple of 32"),
    GR_OPT_FLOATS("heights", "[0.25, 0.9]", 2, 0.05, 2,
                  "least and most upright height of a figure, as a share of the image's"),
    GR_OPT_INT("most_figures", "2", 1, 16, "an image shows 1 to this many figures"),
    GR_OPT_FLOAT("point_share", "0.8", 0, 1,
                 "share of images whose joints are labelled, where a batch has points at all; its "
                 "first image always is"),
    GR_OPT_INT("points_every", "1", 0, INFINITY,
               "training batches whose number is a multiple of this have points; 0: none has"),
    GR_OPT_INT("validation_items", "64", 0, 1000000, "images kept for evaluation"),
};

constexpr const char* kObjectives[] = {"box", "class", "point"};
constexpr gr_objective_set_t kObjectiveSets[] = {{kObjectives, 3}, {kObjectives, 2}};
constexpr int64_t kTrainItems = int64_t{1} << 40;  // drawn on demand: there is no end to them
constexpr uint64_t kValidationSeed = 1;

class Figures : public gr::Batches<Figures> {
 public:
  static constexpr const char* kName = "figures";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "Drawn stick people with boxes and joints.";
  static constexpr auto& kOptions = kFiguresOptions;

  explicit Figures(const gr::Options& options)
      : point_share_(options.get<double>("point_share")),
        points_every_(options.get<int64_t>("points_every")) {
    rules_.side = options.get<int64_t>("size");
    gr::require(rules_.side % kStrides.back() == 0, GR_INVALID_ARGUMENT, "size", "got ",
                rules_.side, ", wanted a multiple of ", kStrides.back());
    const auto heights = options.get<std::span<const double>>("heights");
    gr::require(heights[0] <= heights[1], GR_INVALID_ARGUMENT, "heights", "got [", heights[0], ", ",
                heights[1], "], wanted the least first");
    rules_.least = heights[0];
    rules_.most = heights[1];
    rules_.most_figures = options.get<int64_t>("most_figures");
    declare(options.get<int64_t>("validation_items"));
    declare_batches();
  }

  const gr_data_info_t& info() const { return info_; }

  int64_t rows(const gr_batch_request_t& request) const {
    gr::require(request.index >= 0 && request.batch_size > 0, GR_INVALID_ARGUMENT, "index",
                "batch ", request.index, " of ", request.batch_size, " rows does not exist");
    if (request.split == GR_SPLIT_TRAIN) {
      gr::require(request.index < kTrainItems / request.batch_size, GR_OUT_OF_RANGE, "index",
                  "there are ", kTrainItems, " images, batch ", request.index, " is beyond them");
      return request.batch_size;
    }
    if (request.index > info_.validation_items / request.batch_size) return 0;
    return std::min(request.batch_size,
                    info_.validation_items - request.index * request.batch_size);
  }

  void batch(const gr_batch_request_t& request, std::span<DLTensor* const> outputs) const {
    const int64_t count = rows(request);
    check_outputs(outputs, count);
    const bool train = request.split == GR_SPLIT_TRAIN;
    const bool points = has_points(request);
    for (int64_t row = 0; row < count; ++row) {
      const int64_t image = request.index * request.batch_size + row;
      Draws draws(train ? request.seed : kValidationSeed, request.split, image);
      const bool labelled = draws.chance(point_share_) || row == 0;
      const Scene scene = make_scene(rules_, draws, gr::row_of<float>(*outputs[0], row));
      encode(scene, rules_.side, points && labelled,
             {gr::row_of<float>(*outputs[1], row), gr::row_of<float>(*outputs[2], row),
              gr::row_of<float>(*outputs[3], row)});
    }
  }

  /// Objectives: all, or all but `point`; whatever a batch can be.
  const gr_batch_info_t& batch_info() const { return batch_info_; }
  void describe(const gr_batch_request_t& request, gr_batch_description_t& out) const {
    out.objective_set = batch_info_.set_count == 2 && !has_points(request) ? 1 : 0;
  }

  const void* get_extension(const char* id) const noexcept {
    return std::string_view(id) == GR_EXT_PREVIEW ? &preview_ : nullptr;
  }

 private:
  bool has_points(const gr_batch_request_t& request) const {
    if (points_every_ == 0) return false;
    return request.split != GR_SPLIT_TRAIN || request.index % points_every_ == 0;
  }

  void declare(int64_t validation_items) {
    const int64_t side = rules_.side;
    outputs_[0] = {"images", GR_FLOAT32, 4, {{0, "batch"}, {3, nullptr}}, 0};
    for (size_t k = 0; k < kStrides.size(); ++k) {
      outputs_[k + 1] = {kMapNames[k], GR_FLOAT32, 4, {{0, "batch"}, {kMapChannels, nullptr}}, 0};
      outputs_[k + 1].dims[2] = outputs_[k + 1].dims[3] = {side / kStrides[k], nullptr};
    }
    outputs_[0].dims[2] = outputs_[0].dims[3] = {side, nullptr};
    summary_ = gr::text("figures ", side, "x", side, ": 1 to ", rules_.most_figures,
                        " people an image, drawn on demand; ", validation_items, " to validate");
    info_.struct_size = sizeof info_;
    info_.outputs = outputs_;
    info_.output_count = static_cast<uint32_t>(std::size(outputs_));
    info_.output_stride = sizeof outputs_[0];
    info_.classes = 1;
    info_.train_items = kTrainItems;
    info_.validation_items = validation_items;
    info_.summary = summary_.c_str();
  }

  void declare_batches() {
    batch_info_.struct_size = sizeof batch_info_;
    batch_info_.sets = points_every_ == 0 ? &kObjectiveSets[1] : kObjectiveSets;
    batch_info_.set_count = points_every_ <= 1 ? 1 : 2;
  }

  void check_outputs(std::span<DLTensor* const> outputs, int64_t count) const {
    bool ok = outputs.size() == std::size(outputs_);
    for (size_t k = 0; ok && k < outputs.size(); ++k) {
      const DLTensor& got = *outputs[k];
      ok = gr_dtype_of(got.dtype) == GR_FLOAT32 && got.ndim == 4 && got.shape[0] == count;
      for (int d = 1; ok && d < 4; ++d) ok = got.shape[d] == outputs_[k].dims[d].size;
    }
    gr::require(ok, GR_INVALID_ARGUMENT, "outputs", "wanted float32 tensors of ", count,
                " rows with the dims that info() declares");
  }

  static int32_t size_of_preview(void* self, int64_t* height, int64_t* width,
                                 gr_error_t* err) noexcept {
    return gr::guarded(err, [&] {
      const PreviewSize size = preview_size(static_cast<Figures*>(self)->rules_.side);
      *height = size.height;
      *width = size.width;
    });
  }
  static int32_t preview(void* self, const gr_preview_request_t* request, DLTensor* image,
                         gr_error_t* err) noexcept {
    return gr::guarded(
        err, [&] { draw_preview(*request, static_cast<Figures*>(self)->rules_.side, *image); });
  }

  SceneRules rules_ = {};
  double point_share_;
  int64_t points_every_;
  std::string summary_;
  gr_data_output_t outputs_[4] = {};
  gr_data_info_t info_ = {};
  gr_batch_info_t batch_info_ = {};
  gr_preview_t preview_ = {sizeof(gr_preview_t), 0, this, size_of_preview, preview};
};

}  // namespace

GRADRACK_PLUGIN("gradrack.figures", "1.0.0", gr::Data<Figures>)
