// SPDX-License-Identifier: Apache-2.0
// Conv's weight gradient on float32: for each tap the sum over pixels of what it reads times gy.
//
// gy is turned first, so that the filters of a pixel lie side by side; then pieces of the taps are
// spread over the pool, each with a padded copy (conv_plan.hpp) of the channels it needs. A tap's
// sum adds the sums of bands, in the order of samples and bands: its bits do not depend on the
// pieces.
#include <memory>

#include "backends/cpu/conv_plan.hpp"
#include "backends/cpu/conv_shape.hpp"
#include "backends/cpu/kernels.hpp"
#include "backends/cpu/loop_plan.hpp"

namespace gradrack::cpu {
namespace {

using host::Kernel;
using host::NodeSpec;

/// gy, X, shape -> gw.
class ConvWeightGrad final : public Kernel {
 public:
  ConvWeightGrad(const Context& context, const ConvShape& shape)
      : context_(context),
        loops_(context.loops.conv),
        shape_(shape),
        plan_(ConvPlan::forward(shape.window, kBandPlaces)) {
    constexpr int64_t kWorthwhile = 1 << 18;  // multiply-adds
    vectors_ = (shape.filters + loops_.lanes - 1) / loops_.lanes;
    tiles_ = (shape.depth + loops_.taps - 1) / loops_.taps;
    const int64_t most = std::max<int64_t>(
        1, std::min(int64_t{2} * context.pool.threads(), shape.work() / kWorthwhile));
    pieces_ = std::min(tiles_, std::max<int64_t>(1, most / std::max<int64_t>(1, shape.group)));
    piece_channels_ = std::min(
        shape.channels,
        1 + (tiles_ / std::max<int64_t>(1, pieces_) + 1) * loops_.taps / shape.window.kernel_count +
            1);
  }

  int64_t workspace_bytes() const override {
    return turned_bytes() + sums_bytes() + shape_.group * pieces_ * copy_bytes();
  }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void* workspace,
              gr_error_t*) const override {
    const float *gy = host::data<float>(in[0]), *x = host::data<float>(in[1]);
    char* const base = static_cast<char*>(workspace);
    auto* const turned = static_cast<float*>(workspace);
    turn(gy, turned);
    context_.pool.run_pieces(shape_.group * pieces_, [&](int64_t k) {
      const int64_t g = k / pieces_, piece = k % pieces_;
      const Piece part = {g, tiles_ * piece / pieces_, tiles_ * (piece + 1) / pieces_};
      auto* const sums = reinterpret_cast<float*>(base + turned_bytes());
      auto* const copy =
          reinterpret_cast<float*>(base + turned_bytes() + sums_bytes() + k * copy_bytes());
      sum_piece(part, x, turned, sums + g * sums_count(), copy);
      put(part, sums + g * sums_count(), host::data<float>(out[0]));
    });
    return GR_OK;
  }

 private:
  // gy of a band and the sums' registers stay in the first cache.
  static constexpr int64_t kBandPlaces = 128;

  /// Tiles of taps [first, end) of a group.
  struct Piece {
    int64_t group, first, end;
  };

  int64_t width() const { return vectors_ * loops_.lanes; }
  int64_t turned_bytes() const {
    return float_bytes(shape_.batch * shape_.group * shape_.window.out_count * width());
  }
  int64_t sums_count() const { return tiles_ * loops_.taps * width(); }
  int64_t sums_bytes() const { return float_bytes(shape_.group * sums_count()); }
  int64_t copy_bytes() const {
    return float_bytes(piece_channels_ * plan_.plane() + ConvPlan::kSlack);
  }

  /// [sample][group][pixel][filter], with zeros up to whole vectors.
  void turn(const float* gy, float* turned) const {
    const int64_t count = shape_.window.out_count;
    constexpr int64_t kPixels = 256;
    const int64_t blocks = (count + kPixels - 1) / kPixels;
    const int64_t grain =
        std::max<int64_t>(1, kPlainGrain / (kPixels * std::max<int64_t>(1, width())));
    context_.pool.parallel(
        shape_.batch * shape_.group * blocks, grain, [&](int64_t begin, int64_t end) {
          for (int64_t k = begin; k < end; ++k) {
            const int64_t ng = k / blocks, first = k % blocks * kPixels;
            const int64_t pixels = std::min(kPixels, count - first);
            float* to = turned + (ng * count + first) * width();
            loops_.turn(gy + ng * shape_.y_group() + first, count, shape_.filters, pixels, to,
                        width());
            for (int64_t p = 0; p < pixels; ++p) {
              std::fill(to + p * width() + shape_.filters, to + (p + 1) * width(), 0.0f);
            }
          }
        });
  }

  void sum_piece(const Piece& piece, const float* x, const float* turned, float* sums,
                 float* copy) const {
    const int64_t kernel = shape_.window.kernel_count;
    const int64_t first = piece.first * loops_.taps / kernel;  // channel
    const int64_t end = (std::min(piece.end * loops_.taps, shape_.depth) + kernel - 1) / kernel;
    const int64_t step = loops_.taps * width();
    std::fill(sums + piece.first * step, sums + piece.end * step, 0.0f);
    for (int64_t n = 0; n < shape_.batch; ++n) {
      const int64_t ng = n * shape_.group + piece.group;
      for (int64_t b = 0; b < plan_.bands(); ++b) {
        const Band band = plan_.band(b);
        for (int64_t c = first; c < end; ++c) {
          plan_.copy(loops_, x + ng * shape_.x_group() + c * shape_.window.in_count, band,
                     copy + (c - first) * plan_.plane());
        }
        std::fill_n(copy + (end - first) * plan_.plane(), ConvPlan::kSlack, 0.0f);
        sum_band(piece, band, copy - first * plan_.plane(),
                 turned + ng * shape_.window.out_count * width(), sums);
      }
    }
  }

  /// `copy`: as of channel 0.
  void sum_band(const Piece& piece, Band band, const float* copy, const float* gy,
                float* sums) const {
    const auto& offsets = plan_.phases()[0].offsets;
    const auto size = plan_.extent(plan_.phases()[0], band), start = plan_.start(band);
    const auto& out = shape_.window.out;
    const PixelRun run = {size[1], size[2], plan_.row(), width()};
    for (int64_t v = 0; v < vectors_;) {
      const int64_t left = vectors_ - v;
      const int64_t vectors = left == 4 ? 2 : std::min<int64_t>(loops_.vectors, left);
      for (int64_t t = piece.first; t < piece.end; ++t) {
        int64_t at[kMostTaps];
        for (int64_t k = 0; k < loops_.taps; ++k) {
          const int64_t tap = std::min(t * loops_.taps + k, shape_.depth - 1);
          at[k] = tap / shape_.window.kernel_count * plan_.plane() +
                  offsets[static_cast<size_t>(tap % shape_.window.kernel_count)];
        }
        for (int64_t i = 0; i < size[0]; ++i) {
          const int64_t pixel = ((i + start[0]) * out[1] + start[1]) * out[2] + start[2];
          loops_.pixel_product(run, static_cast<int>(vectors), copy + i * plan_.slice(), at,
                               gy + pixel * width() + v * loops_.lanes,
                               sums + t * loops_.taps * width() + v * loops_.lanes, width());
        }
      }
      v += vectors;
    }
  }

  void put(const Piece& piece, const float* sums, float* gw) const {
    const int64_t first = piece.first * loops_.taps;
    const int64_t count = std::min(piece.end * loops_.taps, shape_.depth) - first;
    loops_.turn(sums + first * width(), width(), count, shape_.filters,
                gw + piece.group * shape_.w_group() + first, shape_.depth);
  }

  static constexpr int64_t kMostTaps = 8;

  const Context& context_;
  const ConvLoops& loops_;
  ConvShape shape_;
  ConvPlan plan_;
  int64_t vectors_ = 0;  // of filters
  int64_t tiles_ = 0;    // of taps
  int64_t pieces_ = 0;   // of a group
  int64_t piece_channels_ = 0;
};

}  // namespace

void add_conv_weight_grad_kernels(host::KernelTable& table, const Context& context) {
  table.add({"gradrack.ConvWeightGrad", claim_conv, [&context](const NodeSpec& node) {
               std::string why;
               return std::make_unique<ConvWeightGrad>(context, ConvShape(node, &why));
             }});
}

}  // namespace gradrack::cpu
