// SPDX-License-Identifier: Apache-2.0
// ConvPlan: see conv_plan.hpp.
#include "backends/cpu/conv_plan.hpp"

#include <algorithm>
#include <cstring>

namespace gradrack::cpu {
namespace {

using Sizes = Window::Sizes;

int64_t product(const Sizes& s) { return s[0] * s[1] * s[2]; }

template <class Body>
void each_place(const Sizes& size, const Body& body) {
  for (int64_t a = 0; a < size[0]; ++a) {
    for (int64_t b = 0; b < size[1]; ++b) {
      for (int64_t c = 0; c < size[2]; ++c) body(Sizes{a, b, c});
    }
  }
}

/// A 1x1 kernel with nothing around it as one long row.
bool is_direct(const Window& w) {
  return w.kernel_count == 1 && w.in == w.out && w.pad == Sizes{} && w.stride == Sizes{1, 1, 1};
}
Window as_row(const Window& w) {
  Window row;
  row.in[2] = row.out[2] = row.in_count = row.out_count = w.in_count;
  return row;
}

}  // namespace

ConvPlan ConvPlan::forward(const Window& given, int64_t pixels) {
  const bool direct = is_direct(given);
  const Window w = direct ? as_row(given) : given;
  ConvPlan plan;
  plan.direct_ = direct;
  plan.source_.in = w.in;
  plan.source_.step = w.stride;
  plan.output_size_ = w.out;
  // Tap k of an axis reads stride * (place + index) + phase.
  const auto split = [&w](const Sizes& k, Sizes* index, Sizes* phase) {
    for (size_t d = 0; d < Window::kAxes; ++d) {
      const int64_t at = k[d] * w.dilation[d] - w.pad[d];
      (*index)[d] = floor_div(at, w.stride[d]);
      (*phase)[d] = at - (*index)[d] * w.stride[d];
    }
  };
  Sizes high{INT64_MIN, INT64_MIN, INT64_MIN};
  plan.source_.low = {INT64_MAX, INT64_MAX, INT64_MAX};
  each_place(w.kernel, [&](const Sizes& k) {
    Sizes index, phase;
    split(k, &index, &phase);
    for (size_t d = 0; d < Window::kAxes; ++d) {
      plan.source_.low[d] = std::min(plan.source_.low[d], index[d]);
      high[d] = std::max(high[d], index[d]);
    }
    if (std::find(plan.copies_.begin(), plan.copies_.end(), phase) == plan.copies_.end()) {
      plan.copies_.push_back(phase);
    }
  });
  plan.span_to(high);
  plan.lay_out(w.out, pixels);
  Phase all{{}, w.out, {}, {}};
  each_place(w.kernel, [&](const Sizes& k) {
    Sizes index, phase;
    split(k, &index, &phase);
    const auto copy = std::find(plan.copies_.begin(), plan.copies_.end(), phase);
    all.kernel.push_back(static_cast<int64_t>(all.kernel.size()));
    all.offsets.push_back((copy - plan.copies_.begin()) * plan.copy_size_[0] * plan.slice_ +
                          plan.offset(index));
  });
  plan.phases_.push_back(std::move(all));
  return plan;
}

ConvPlan ConvPlan::input_grad(const Window& given, int64_t pixels) {
  const bool direct = is_direct(given);
  const Window w = direct ? as_row(given) : given;
  ConvPlan plan;
  plan.direct_ = direct;
  plan.source_.in = w.out;
  plan.output_size_ = w.in;
  plan.output_step_ = w.stride;
  plan.copies_.push_back({});
  // Output stride * place + phase meets tap k in source place + index, where that is whole.
  const auto meets = [&w](const Sizes& phase, const Sizes& k, Sizes* index) {
    for (size_t d = 0; d < Window::kAxes; ++d) {
      const int64_t at = phase[d] + w.pad[d] - k[d] * w.dilation[d];
      (*index)[d] = floor_div(at, w.stride[d]);
      if ((*index)[d] * w.stride[d] != at) return false;
    }
    return true;
  };
  Sizes high{INT64_MIN, INT64_MIN, INT64_MIN}, length;
  plan.source_.low = {INT64_MAX, INT64_MAX, INT64_MAX};
  each_place(w.stride, [&](const Sizes& phase) {
    each_place(w.kernel, [&](const Sizes& k) {
      Sizes index;
      if (!meets(phase, k, &index)) return;
      for (size_t d = 0; d < Window::kAxes; ++d) {
        plan.source_.low[d] = std::min(plan.source_.low[d], index[d]);
        high[d] = std::max(high[d], index[d]);
      }
    });
  });
  for (size_t d = 0; d < Window::kAxes; ++d) {
    length[d] = (w.in[d] + w.stride[d] - 1) / w.stride[d];
  }
  plan.span_to(high);
  plan.lay_out(length, pixels);
  each_place(w.stride, [&](const Sizes& phase) {
    Phase made{phase, {}, {}, {}};
    for (size_t d = 0; d < Window::kAxes; ++d) {
      made.size[d] = std::max<int64_t>(0, (w.in[d] - phase[d] + w.stride[d] - 1) / w.stride[d]);
    }
    int64_t place = 0;
    each_place(w.kernel, [&](const Sizes& k) {
      Sizes index;
      if (meets(phase, k, &index)) {
        made.kernel.push_back(place);
        made.offsets.push_back(plan.offset(index));
      }
      ++place;
    });
    plan.phases_.push_back(std::move(made));
  });
  return plan;
}

/// Completes source_ where the last tap of each axis reads place + high.
void ConvPlan::span_to(Sizes high) {
  for (size_t d = 0; d < Window::kAxes; ++d) {
    if (source_.low[d] > high[d]) source_.low[d] = high[d] = 0;  // no taps at all
    source_.span[d] = high[d] - source_.low[d];
  }
}

/// Places at the end of a row of the copy that are 0 in every phase, as are as many at the
/// beginning of the next: one stands for both.
int64_t ConvPlan::free_ends(int64_t size) const {
  int64_t before = size, after = size;
  for (const Sizes& phase : copies_) {
    const int64_t step = source_.step[2], low = source_.low[2];
    const int64_t first = std::clamp<int64_t>(-floor_div(phase[2], step) - low, 0, size);
    const int64_t last = floor_div(source_.in[2] - 1 - phase[2], step) - low + 1;
    before = std::min(before, first);
    after = std::min(after, size - std::clamp<int64_t>(last, 0, size));
  }
  // Rows stay as long as those of outputs, which may not overlap.
  return std::min({before, after, source_.span[2], kSlack / 4});
}

void ConvPlan::lay_out(const Sizes& length, int64_t pixels) {
  axis_ = length[0] > 1 ? 0 : length[1] > 1 ? 1 : 2;
  length_ = length[axis_];
  const int64_t each = std::max<int64_t>(1, product(length) / std::max<int64_t>(1, length_));
  const int64_t least = axis_ == 2 ? kSlack : 1;  // no slivers of a row
  band_size_ = std::clamp<int64_t>(pixels / each, std::min(least, std::max<int64_t>(1, length_)),
                                   std::max<int64_t>(1, length_));
  bands_ = (length_ + band_size_ - 1) / band_size_;
  for (size_t d = 0; d < Window::kAxes; ++d) {
    copy_size_[d] = (d == axis_ ? band_size_ : length[d]) + source_.span[d];
  }
  row_ = copy_size_[2] - (axis_ == 2 ? 0 : free_ends(copy_size_[2]));
  slice_ = copy_size_[1] * row_;
  plane_ = static_cast<int64_t>(copies_.size()) * copy_size_[0] * slice_;
}

ConvPlan::Sizes ConvPlan::extent(const Phase& phase, Band band) const {
  Sizes size = phase.size;
  size[axis_] = std::clamp<int64_t>(phase.size[axis_] - band.first, 0, band.count);
  return size;
}

int64_t ConvPlan::places(const Phase& phase, Band band) const {
  const Sizes size = extent(phase, band);
  if (product(size) == 0) return 0;
  return (size[0] - 1) * slice_ + (size[1] - 1) * row_ + size[2];
}

ConvPlan::Sizes ConvPlan::start(Band band) const {
  Sizes start{};
  start[axis_] = band.first;
  return start;
}

int ConvPlan::runs(const Phase& phase, Band band, int64_t first, int64_t count, Runs& out) const {
  const Sizes size = extent(phase, band), start = this->start(band);
  size_t found = 0;
  for (int64_t at = 0; at < count;) {
    const int64_t place = first + at, slice = place / slice_, row = place % slice_ / row_;
    const int64_t from = place % slice_ % row_;
    const int64_t here = std::min(count - at, row_ - from);  // of this row of the copy
    const int64_t outputs = std::min(here, size[2] - from);
    if (outputs > 0 && row < size[1] && slice < size[0]) {
      out[found++] = {at, outputs, slice + start[0], row + start[1], from + start[2]};
    }
    at += here;
  }
  return static_cast<int>(found);
}

void ConvPlan::copy(const ConvLoops& loops, const float* channel, Band band, float* to) const {
  Sizes low = source_.low;
  low[axis_] += band.first;
  const Sizes &in = source_.in, &step = source_.step;
  for (const Sizes& phase : copies_) {
    const int64_t first = std::clamp<int64_t>(-floor_div(phase[2], step[2]) - low[2], 0, row_);
    const int64_t last =
        std::clamp<int64_t>(floor_div(in[2] - 1 - phase[2], step[2]) - low[2] + 1, first, row_);
    for (int64_t i = 0; i < copy_size_[0]; ++i) {
      const int64_t y = (i + low[0]) * step[0] + phase[0];
      for (int64_t j = 0; j < copy_size_[1]; ++j, to += row_) {
        const int64_t z = (j + low[1]) * step[1] + phase[1];
        if (y < 0 || y >= in[0] || z < 0 || z >= in[1]) {
          std::fill_n(to, row_, 0.0f);
          continue;
        }
        const float* row =
            channel + (y * in[1] + z) * in[2] + (first + low[2]) * step[2] + phase[2];
        std::fill_n(to, first, 0.0f);
        if (step[2] == 1) {
          std::memcpy(to + first, row, static_cast<size_t>(last - first) * sizeof(float));
        } else if (step[2] == 2) {
          loops.every_second(row, to + first, last - first);
        } else {
          for (int64_t k = first; k < last; ++k) to[k] = row[(k - first) * step[2]];
        }
        std::fill_n(to + last, row_ - last, 0.0f);
      }
    }
  }
}

}  // namespace gradrack::cpu
