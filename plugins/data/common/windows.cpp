// SPDX-License-Identifier: Apache-2.0
// Windows: see windows.hpp.
#include "plugins/data/common/windows.hpp"

#include <algorithm>

#include "gradrack/philox.h"
#include "plugins/data/common/digest.hpp"
#include "plugins/data/common/permutation.hpp"

namespace corpus {

namespace gr = gradrack::sdk;

namespace {

constexpr uint32_t kDrawTag = 0x64617461;  // "data"
constexpr int64_t kMillion = 1000000;

int64_t millionths(double fraction) { return static_cast<int64_t>(fraction * kMillion + 0.5); }

/// index * batch_size + row, the running number of a row.
int64_t running(const gr_batch_request_t& request, int64_t row) {
  int64_t number = 0;
  const bool fits = !__builtin_mul_overflow(request.index, request.batch_size, &number) &&
                    !__builtin_add_overflow(number, row, &number);
  gr::require(fits, GR_INVALID_ARGUMENT, "index", "batch ", request.index, " of ",
              request.batch_size, " rows is beyond what can be counted");
  return number;
}

}  // namespace

WindowOrder window_order(const std::string& name) {
  if (name == "permuted") return WindowOrder::kPermuted;
  return name == "sequential" ? WindowOrder::kSequential : WindowOrder::kRandom;
}

int64_t training_part(int64_t tokens, double validation_fraction) {
  const int64_t trains = kMillion - millionths(validation_fraction);
  return tokens / kMillion * trains + tokens % kMillion * trains / kMillion;
}

bool keeps_some(double validation_fraction) { return millionths(validation_fraction) > 0; }

bool validates_by_hash(std::string_view text, double validation_fraction) {
  if (!keeps_some(validation_fraction)) return false;
  Digest digest;
  digest.add_text(text);
  const int64_t draw = std::stoll(digest.hex().substr(0, 15), nullptr, 16) % kMillion;
  return draw < millionths(validation_fraction);
}

std::array<uint32_t, 4> draw_for_row(const gr_batch_request_t& request, int64_t row, uint32_t tag) {
  const auto index = static_cast<uint64_t>(request.index);
  const uint32_t counter[4] = {static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
                               static_cast<uint32_t>(row), tag};
  std::array<uint32_t, 4> draw;
  gr_philox4x32(counter, request.seed, draw.data());
  return draw;
}

Windows::Index::Index(std::vector<Range> ranges, int64_t block, int64_t step, bool partial)
    : ranges_(std::move(ranges)), block_(block), step_(step) {
  int64_t total = 0;
  for (const Range& range : ranges_) {
    // A window needs one token more than it has: the last target.
    const int64_t places = range.count - (partial ? 1 : block);
    if (places > 0) total += (places - 1) / step + 1;
    ends_.push_back(total);
  }
}

Window Windows::Index::at(int64_t number) const {
  const auto k =
      static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), number) - ends_.begin());
  const Range& range = ranges_[k];
  const int64_t offset = (number - (k == 0 ? 0 : ends_[k - 1])) * step_;
  return {range.part, range.first + offset, std::min(block_, range.count - 1 - offset)};
}

std::string Windows::Index::text() const {
  std::string text = gr::text("every ", step_, " of ", block_);
  for (const Range& r : ranges_) text += gr::text(' ', r.part, ':', r.first, '+', r.count);
  return text;
}

std::string Windows::identity() const {
  return gr::text("block ", block_, " order ", static_cast<int>(order_), " train ", train_.text(),
                  " validation ", validation_.text());
}

Windows::Windows(std::vector<Range> train, std::vector<Range> validation, int64_t block,
                 WindowOrder order, bool partial)
    : block_(block),
      order_(order),
      train_(std::move(train), block, order == WindowOrder::kRandom && !partial ? 1 : block,
             partial),
      validation_(std::move(validation), block, block, partial) {}

int64_t Windows::rows(const gr_batch_request_t& request) const {
  gr::require(request.index >= 0 && request.batch_size > 0, GR_INVALID_ARGUMENT, "index", "batch ",
              request.index, " of ", request.batch_size, " rows does not exist");
  if (request.split == GR_SPLIT_TRAIN) return request.batch_size;
  const int64_t batches = validation_items() / request.batch_size;
  if (request.index > batches) return 0;  // before the product below can overflow
  return std::min(request.batch_size, validation_items() - request.index * request.batch_size);
}

Window Windows::window(const gr_batch_request_t& request, int64_t row) const {
  if (request.split != GR_SPLIT_TRAIN) return validation_.at(running(request, row));
  return train_.at(train_number(request, row));
}

int64_t Windows::train_number(const gr_batch_request_t& request, int64_t row) const {
  if (order_ == WindowOrder::kRandom) {
    const std::array<uint32_t, 4> draw = draw_for_row(request, row, kDrawTag);
    return static_cast<int64_t>(gr::scale_draw(draw.data(), static_cast<uint64_t>(train_items())));
  }
  const int64_t number = running(request, row);
  const int64_t place = number % train_items();
  if (order_ == WindowOrder::kSequential) return place;
  return Permutation(train_items(), request.seed, number / train_items()).at(place);
}

}  // namespace corpus
