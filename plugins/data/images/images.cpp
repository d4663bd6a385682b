// SPDX-License-Identifier: Apache-2.0
// Data source `images`: a folder of PNG and JPEG files per class, for classifiers.
//
// Files are read and decoded batch by batch, by as many threads as the host uses. Outputs `images`
// float32 [batch, channels, height, width] and `labels` int64 [batch]. Invariant: what a row holds
// is a function of (options, the files, seed, split, index, row): order and mirroring are drawn by
// number. Nothing is normalised beyond the range.
#include <algorithm>

#include "decode.hpp"
#include "gradrack/data.hpp"
#include "labelled_files.hpp"
#include "plugins/data/common/cancel.hpp"
#include "plugins/data/common/digest.hpp"
#include "plugins/data/common/mapped_file.hpp"
#include "plugins/data/common/path_option.hpp"
#include "plugins/data/common/windows.hpp"
#include "resize.hpp"

namespace {

namespace gr = gradrack::sdk;

constexpr uint32_t kMirrorTag = 0x6d697272;  // "mirr"

constexpr gr_option_t kImagesOptions[] = {
    GR_OPT_PATH_REQUIRED("folder", "a folder with a folder for each class"),
    corpus::optional_path("validation_folder", "another one, for evaluation; none: see the next"),
    GR_OPT_FLOAT("validation_fraction", "0.1", 0, 0.9,
                 "files kept for evaluation, by a hash of their names, where no folder is"),
    GR_OPT_INTS("size", "[32, 32]", 2, 1, 8192, "height and width of what the model gets"),
    GR_OPT_CHOICE("channels", "3", "1|3", "1: grey; 3: red, green, blue"),
    GR_OPT_CHOICE("fit", "crop", "crop|stretch",
                  "crop: the middle, in the right ratio; stretch: all of the picture"),
    GR_OPT_BOOL("mirror", "false", "training: left and right change places in every other row"),
    GR_OPT_FLOAT("white", "1", 0, 65536, "value of white; black is 0"),
    corpus::order_option("permuted"),
};

class Images {
 public:
  static constexpr const char* kName = "images";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "PNG and JPEG files, a folder for each class.";
  static constexpr auto& kOptions = kImagesOptions;
  static constexpr bool kConcurrent = true;

  Images(const gr::Options& options, const gr_host_t& host)
      : height_(options.get<std::span<const int64_t>>("size")[0]),
        width_(options.get<std::span<const int64_t>>("size")[1]),
        channels_(options.get<std::string>("channels") == "1" ? 1 : 3),
        crop_(options.get<std::string>("fit") == "crop"),
        mirror_(options.get<bool>("mirror")),
        white_(static_cast<float>(options.get<double>("white"))),
        order_(options.get<std::string>("order")),
        all_(list(options, corpus::cancel_tick(host))),
        rows_(split(options)) {
    describe(options.get<std::string>("folder"));
  }

  const gr_data_info_t& info() const { return info_; }
  int64_t rows(const gr_batch_request_t& request) const { return rows_.rows(request); }

  void batch(const gr_batch_request_t& request, std::span<DLTensor* const> outputs) const {
    const int64_t count = rows(request);
    check_outputs(outputs, count);
    for (int64_t row = 0; row < count; ++row) {
      const LabelledFile& file = all_.files[rows_.window(request, row).part];
      fill(file, mirror_ && is_mirrored(request, row), gr::row_of<float>(*outputs[0], row));
      static_cast<int64_t*>(outputs[1]->data)[row] = file.label;
    }
  }

 private:
  /// Those that train first.
  LabelledFiles list(const gr::Options& options, const std::function<void()>& tick) {
    LabelledFiles all = list_labelled(options.get<std::string>("folder"), "folder", tick);
    const auto other = options.get<std::string>("validation_folder");
    const auto fraction = options.get<double>("validation_fraction");
    if (other.empty()) {
      const auto first =
          std::stable_partition(all.files.begin(), all.files.end(), [&](const LabelledFile& file) {
            return !corpus::validates_by_hash(file.name, fraction);
          });
      train_ = static_cast<size_t>(first - all.files.begin());
      return all;
    }
    gr::require(options.is_default("validation_fraction"), GR_INVALID_ARGUMENT,
                "validation_fraction", "there is a validation_folder: leave the fraction out");
    LabelledFiles validation = list_labelled(other, "validation_folder", tick);
    gr::require(validation.classes == all.classes, GR_INVALID_ARGUMENT, "validation_folder", other,
                ": has other classes than the folder to train on: ", validation.classes.size(),
                " beside ", all.classes.size());
    train_ = all.files.size();
    std::move(validation.files.begin(), validation.files.end(), std::back_inserter(all.files));
    return all;
  }

  /// A file is a range of one window: the orders are those of text.
  corpus::Windows split(const gr::Options& options) const {
    std::vector<corpus::Range> train, validation;
    for (size_t k = 0; k < all_.files.size(); ++k) {
      (k < train_ ? train : validation).push_back({k, 0, 2});
    }
    const bool wanted = !options.get<std::string>("validation_folder").empty() ||
                        corpus::keeps_some(options.get<double>("validation_fraction"));
    gr::require(!train.empty() && (!wanted || !validation.empty()), GR_OUT_OF_RANGE,
                "validation_fraction", options.get<std::string>("folder"), ": of ",
                all_.files.size(), " files ", train.size(), " are to train on and ",
                validation.size(), " to validate: take more files or another fraction");
    return {std::move(train), std::move(validation), 1, corpus::window_order(order_)};
  }

  void describe(const std::string& folder) {
    outputs_[0] = {"images",
                   GR_FLOAT32,
                   4,
                   {{0, "batch"}, {channels_, nullptr}, {height_, nullptr}, {width_, nullptr}},
                   0};
    outputs_[1] = {"labels", GR_INT64, 1, {{0, "batch"}}, classes()};
    summary_ =
        gr::text("images ", folder, ": ", all_.files.size(), " files of ", classes(), " classes, ",
                 train_, " to train on, ", all_.files.size() - train_, " to validate");
    // Reading every file would take as long as an epoch: names and sizes stand for them.
    corpus::Digest digest;
    for (const LabelledFile& file : all_.files) {
      digest.add_text(gr::text(file.name, ' ', file.bytes));
    }
    digest.add_text(gr::text(height_, ' ', width_, ' ', channels_, ' ', crop_, ' ', mirror_, ' ',
                             white_, ' ', train_, ' ', order_));
    identity_ = digest.hex();
    info_.struct_size = sizeof info_;
    info_.outputs = outputs_;
    info_.output_count = 2;
    info_.output_stride = sizeof outputs_[0];
    info_.classes = classes();
    info_.train_items = rows_.train_items();
    info_.validation_items = rows_.validation_items();
    info_.summary = summary_.c_str();
    info_.identity = identity_.c_str();
  }

  int64_t classes() const { return static_cast<int64_t>(all_.classes.size()); }

  static bool is_mirrored(const gr_batch_request_t& request, int64_t row) {
    if (request.split != GR_SPLIT_TRAIN) return false;
    return (corpus::draw_for_row(request, row, kMirrorTag)[0] & 1) != 0;
  }

  void fill(const LabelledFile& file, bool mirrored, std::span<float> out) const {
    const corpus::MappedFile bytes(file.path, "folder");
    const Picture picture = decode_picture(bytes.bytes(), channels_, file.path);
    const Crop whole{0, 0, static_cast<double>(picture.height), static_cast<double>(picture.width)};
    resize(picture, crop_ ? centre_crop(picture, height_, width_) : whole, height_, width_,
           mirrored, white_, out);
  }

  void check_outputs(std::span<DLTensor* const> outputs, int64_t rows) const {
    const bool ok = outputs.size() == 2 && outputs[0]->shape[0] == rows &&
                    outputs[1]->shape[0] == rows && gr_dtype_of(outputs[0]->dtype) == GR_FLOAT32 &&
                    gr_dtype_of(outputs[1]->dtype) == GR_INT64 &&
                    static_cast<int64_t>(gr::row_of<float>(*outputs[0], 0).size()) ==
                        channels_ * height_ * width_;
    gr::require(ok, GR_INVALID_ARGUMENT, "outputs", "wanted float32 [", rows, ", ", channels_, ", ",
                height_, ", ", width_, "] and int64 [", rows, "]");
  }

  int64_t height_, width_, channels_;
  bool crop_, mirror_;
  float white_;
  std::string order_;
  size_t train_ = 0;
  LabelledFiles all_;
  corpus::Windows rows_;
  gr_data_output_t outputs_[2] = {};
  std::string summary_, identity_;
  gr_data_info_t info_ = {};
};

}  // namespace

GRADRACK_PLUGIN("gradrack.images", "1.0.0", gr::Data<Images>)
