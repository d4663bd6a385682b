// SPDX-License-Identifier: Apache-2.0
// Previews: see previews.hpp.
#include "core/train/previews.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sdk/checked/thread_role.hpp"

namespace gradrack {

namespace {

constexpr int64_t kMostPixels = 1 << 13;  // a side of a picture

/// The batch and the outputs of a program that has just run, by name.
struct Shown {
  std::vector<gr_named_tensor_t> batch, outputs;
};

Result<Shown> collect(Program& program, const Feed& feed) {
  Shown shown;
  for (size_t k = 0; k < feed.names().size(); ++k) {
    shown.batch.push_back({feed.names()[k].c_str(), program.inputs[k]});
  }
  for (const PlanPort& port : program.executor->plan().outputs) {
    GR_ASSIGN(const TensorHandle handle, program.executor->output(port.name));
    shown.outputs.push_back({port.name.c_str(), program.executor->tensor(handle)});
  }
  return shown;
}

}  // namespace

Result<Previews> Previews::make(const Instance<gr_data_t>& data, int64_t count) {
  Previews previews;
  if (count == 0) return previews;
  const gr_data_t& table = data.table();
  const void* found = nullptr;
  if (table.get_extension != nullptr) found = table.get_extension(table.self, GR_EXT_PREVIEW);
  if (found == nullptr) {
    return unsupported(fmt::format("metrics.previews is {}, but data plugin '{}' draws none ({}): "
                                   "set it to 0",
                                   count, data.name(), GR_EXT_PREVIEW))
        .in_area(Area::kPlugin);
  }
  previews.table_ = static_cast<const gr_preview_t*>(found);
  previews.name_ = data.name();
  previews.count_ = count;
  gr_error_t err = {};
  const int32_t code =
      previews.table_->size(previews.table_->self, &previews.height_, &previews.width_, &err);
  GR_TRY(status_from(code, err).with_context("data '" + data.name() + "'"));
  const auto sane = [](int64_t side) { return side > 0 && side <= kMostPixels; };
  if (!sane(previews.height_) || !sane(previews.width_)) {
    return internal_error(
        fmt::format("data '{}' draws previews of {} rows of {} pixels, wanted 1 "
                    "to {} of each: a bug of the plugin",
                    data.name(), previews.height_, previews.width_, kMostPixels));
  }
  previews.pixels_.resize(static_cast<size_t>(previews.height_ * previews.width_ * 3));
  return previews;
}

Status Previews::write(Programs& programs, const RunFolder& folder, int64_t step) {
  const ThreadRole role(GR_THREAD_EXEC);
  Feed& feed = programs.feed();
  const int64_t size = programs.run().batch_size;
  GR_ASSIGN(const int64_t rows, feed.rows(GR_SPLIT_VALIDATION, 0, size));
  if (rows == 0) return {};
  GR_ASSIGN(const BatchDescription batch, feed.describe(GR_SPLIT_VALIDATION, 0, size));
  GR_ASSIGN(Program* const program, programs.evaluation(rows, batch.sizes));
  GR_TRY(feed.fill(GR_SPLIT_VALIDATION, 0, size, rows, program->inputs, batch.sizes));
  GR_TRY(program->executor->run());
  GR_ASSIGN(const Shown shown, collect(*program, feed));
  int64_t dims[] = {height_, width_, 3}, strides[] = {width_ * 3, 3, 1};
  DLTensor image = {pixels_.data(), {kDLCPU, 0}, 3, gr_dl_dtype(GR_UINT8), dims, strides, 0};
  gr_preview_request_t request = {};
  request.struct_size = sizeof request;
  request.batch = shown.batch.data();
  request.batch_count = static_cast<uint32_t>(shown.batch.size());
  request.outputs = shown.outputs.data();
  request.output_count = static_cast<uint32_t>(shown.outputs.size());
  for (request.row = 0; request.row < std::min(rows, count_); ++request.row) {
    gr_error_t err = {};
    const int32_t code = table_->draw(table_->self, &request, &image, &err);
    GR_TRY(status_from(code, err).with_context("data '" + name_ + "', metrics.previews"));
    GR_TRY(folder.save_preview(step, request.row, height_, width_, pixels_));
  }
  return {};
}

}  // namespace gradrack
