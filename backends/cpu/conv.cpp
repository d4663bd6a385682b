// SPDX-License-Identifier: Apache-2.0
// Conv and its input gradient on float32: sums over taps, straight from a padded copy of the source
// (conv_plan.hpp), with the weights of a few filters side by side.
//
// The input gradient is the same sum with gy as its source and the channels as its filters. Bands
// of samples are spread over the pool; each piece has a copy of its own, which stays in the cache.
#include <memory>

#include "backends/cpu/conv_plan.hpp"
#include "backends/cpu/conv_shape.hpp"
#include "backends/cpu/kernels.hpp"
#include "backends/cpu/loop_plan.hpp"

namespace gradrack::cpu {
namespace {

using host::Kernel;
using host::NodeSpec;
using Phase = ConvPlan::Phase;

/// Where the sum finds its operands: of a group, in floats.
struct Sides {
  int64_t sources, targets;            // channels of the source and of the output
  int64_t source_count, target_count;  // of a channel
  int64_t source_step, target_step;    // in the weights
};

class TapConv : public Kernel {
 public:
  int64_t workspace_bytes() const override {
    return float_bytes(packed_count()) + pieces_ * piece_bytes();
  }

 protected:
  TapConv(const Context& context, const ConvShape& shape, ConvPlan plan, Sides sides)
      : context_(context),
        loops_(context.loops.conv),
        shape_(shape),
        plan_(std::move(plan)),
        sides_(sides) {
    constexpr int64_t kWorthwhile = 1 << 18;  // multiply-adds
    units_ = shape.batch * shape.group * plan_.bands();
    pieces_ = std::min({units_, int64_t{4} * context.pool.threads(),
                        std::max<int64_t>(1, shape.work() / kWorthwhile)});
  }

  void convolve(const float* source, const float* weights, const float* bias, float* target,
                void* workspace) const {
    auto* packed = static_cast<float*>(workspace);
    auto* copies = reinterpret_cast<char*>(workspace) + float_bytes(packed_count());
    pack(weights, packed);
    context_.pool.run_pieces(pieces_, [&](int64_t k) {
      auto* copy = reinterpret_cast<float*>(copies + k * piece_bytes());
      for (int64_t u = units_ * k / pieces_; u < units_ * (k + 1) / pieces_; ++u) {
        const int64_t ng = u / plan_.bands(), g = ng % shape_.group;
        const int64_t targets = g * sides_.targets;
        const Unit unit = {plan_.band(u % plan_.bands()),
                           source + ng * sides_.sources * sides_.source_count,
                           packed + targets * sides_.sources * shape_.window.kernel_count,
                           bias == nullptr ? nullptr : bias + targets,
                           target + ng * sides_.targets * sides_.target_count,
                           copy};
        run_unit(unit);
      }
    });
  }

 private:
  /// A band of one sample and group.
  struct Unit {
    Band band;
    const float* source;
    const float* packed;
    const float* bias;
    float* target;
    float* copy;
  };
  /// Places of one tile, and where they read.
  struct Tile {
    int64_t first, count;
    const float* source;
    int64_t plane;  // from one channel of the source to the next
  };

  int64_t packed_count() const { return shape_.group * shape_.w_group(); }
  int64_t piece_bytes() const {
    return float_bytes(sides_.sources * (plan_.direct() ? tile_places() : plan_.plane()) +
                       ConvPlan::kSlack);
  }
  int64_t tile_places() const { return int64_t{loops_.lanes} * loops_.vectors; }
  /// Filters of the tile that starts at filter `f`: a power of two, so that few loops do.
  int tile_filters(int64_t f) const {
    int count = loops_.filters;
    while (count > sides_.targets - f) count /= 2;
    return count;
  }

  /// Weights as tiles read them: [group][phase][tile of filters][channel][tap][filter of the tile].
  void pack(const float* weights, float* packed) const {
    const int64_t tiles = (sides_.targets + loops_.filters - 1) / loops_.filters;
    const int64_t each = loops_.filters * shape_.w_group() / std::max<int64_t>(1, sides_.targets);
    const int64_t grain = std::max<int64_t>(1, kPlainGrain / std::max<int64_t>(1, each));
    context_.pool.parallel(shape_.group * tiles, grain, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        const int64_t group = k / tiles * shape_.w_group();
        pack_tile(weights + group, k % tiles * loops_.filters, packed + group);
      }
    });
  }
  void pack_tile(const float* weights, int64_t first, float* packed) const {
    const int64_t end = std::min(sides_.targets, first + loops_.filters);
    for (const Phase& phase : plan_.phases()) {
      const auto taps = static_cast<int64_t>(phase.kernel.size());
      for (int64_t f = first; f < end; f += tile_filters(f)) {
        const int count = tile_filters(f);
        float* to = packed + f * sides_.sources * taps;
        for (int64_t c = 0; c < sides_.sources; ++c) {
          const float* from = weights + f * sides_.target_step + c * sides_.source_step;
          for (const int64_t place : phase.kernel) {
            for (int m = 0; m < count; ++m) *to++ = from[m * sides_.target_step + place];
          }
        }
      }
      packed += sides_.targets * sides_.sources * taps;
    }
  }

  void run_unit(const Unit& unit) const {
    const auto& phases = plan_.phases();
    if (!plan_.direct()) {
      for (int64_t c = 0; c < sides_.sources; ++c) {
        plan_.copy(loops_, unit.source + c * sides_.source_count, unit.band,
                   unit.copy + c * plan_.plane());
      }
      std::fill_n(unit.copy + sides_.sources * plan_.plane(), ConvPlan::kSlack, 0.0f);
    }
    // Neighbours along the innermost axis are made together where outputs alternate between two.
    const size_t together = plan_.output_step()[2] == 2 ? 2 : 1;
    const float* packed = unit.packed;
    for (size_t k = 0; k < phases.size(); k += together) {
      const int64_t places = plan_.places(phases[k], unit.band);
      for (int64_t q = 0; q < places; q += tile_places()) {
        const int64_t count = std::min(places - q, tile_places());
        run_tile(unit, &phases[k], together, packed, tile(unit, q, count));
      }
      for (size_t m = k; m < k + together; ++m) {
        packed += sides_.targets * sides_.sources * static_cast<int64_t>(phases[m].kernel.size());
      }
    }
  }

  Tile tile(const Unit& unit, int64_t first, int64_t count) const {
    if (!plan_.direct()) return {first, count, unit.copy + first, plan_.plane()};
    const float* source = unit.source + unit.band.first + first;
    if (count % loops_.lanes == 0) return {first, count, source, sides_.source_count};
    // Whole vectors would read beyond the tensor.
    for (int64_t c = 0; c < sides_.sources; ++c) {
      std::copy_n(source + c * sides_.source_count, count, unit.copy + c * tile_places());
    }
    return {first, count, unit.copy, tile_places()};
  }

  void run_tile(const Unit& unit, const Phase* phases, size_t together, const float* packed,
                const Tile& tile) const {
    ConvPlan::Runs runs;
    const int run_count = plan_.runs(phases[0], unit.band, tile.first, tile.count, runs);
    const int vectors = static_cast<int>((tile.count + loops_.lanes - 1) / loops_.lanes);
    // Rows of outputs as long as the vectors need no stop on their way to the tensor.
    const bool straight = run_count == 1 && plan_.output_step()[2] == 1 && runs[0].at == 0 &&
                          runs[0].count == int64_t{vectors} * loops_.lanes;
    float made[2][8 * ConvPlan::kMostPlaces];
    for (int64_t f = 0; f < sides_.targets; f += tile_filters(f)) {
      const int filters = tile_filters(f);
      const float* bias = unit.bias == nullptr ? nullptr : unit.bias + f;
      float* target = unit.target + f * sides_.target_count;
      const float* weights = packed;
      for (size_t m = 0; m < together; ++m) {
        const auto taps = static_cast<int64_t>(phases[m].kernel.size());
        const TapProduct sum = {sides_.sources, tile.plane, taps, phases[m].offsets.data()};
        float* to = straight ? target + place(phases[0], runs[0]) : made[m];
        loops_.tap_product(sum, filters, vectors, tile.source, weights + f * sides_.sources * taps,
                           bias, to, straight ? sides_.target_count : ConvPlan::kMostPlaces);
        weights += sides_.targets * sides_.sources * taps;
      }
      for (int r = 0; r < run_count && !straight; ++r) {
        for (int m = 0; m < filters; ++m) {
          const int64_t from = m * ConvPlan::kMostPlaces + runs[static_cast<size_t>(r)].at;
          put(phases, runs[static_cast<size_t>(r)], made[0] + from, made[1] + from,
              target + m * sides_.target_count);
        }
      }
    }
  }

  /// Of the first output of a run in its channel.
  int64_t place(const Phase& phase, const ConvPlan::Run& run) const {
    const auto &step = plan_.output_step(), &size = plan_.output_size();
    return ((run.slice * step[0] + phase.first[0]) * size[1] + run.row * step[1] + phase.first[1]) *
               size[2] +
           run.from * step[2] + phase.first[2];
  }
  /// Writes a run; `b` holds the neighbours of `a` where two phases were made together.
  void put(const Phase* phases, const ConvPlan::Run& run, const float* a, const float* b,
           float* channel) const {
    const int64_t step = plan_.output_step()[2];
    float* to = channel + place(phases[0], run);
    if (step == 1) {
      std::copy_n(a, run.count, to);
    } else if (step == 2) {
      const int64_t pairs = std::clamp<int64_t>(phases[1].size[2] - run.from, 0, run.count);
      loops_.interleave(a, b, to, pairs);
      for (int64_t k = pairs; k < run.count; ++k) to[2 * k] = a[k];
    } else {
      for (int64_t k = 0; k < run.count; ++k) to[k * step] = a[k];
    }
  }

  const Context& context_;
  const ConvLoops& loops_;
  ConvShape shape_;
  ConvPlan plan_;
  Sides sides_;
  int64_t units_ = 0, pieces_ = 0;
};

// Enough places for the copy of a row or two around a band to be little beside it, few enough to
// stay in the second cache.
constexpr int64_t kBandPlaces = 768;

class ConvForward final : public TapConv {
 public:
  ConvForward(const NodeSpec& node, const Context& context, const ConvShape& s)
      : TapConv(context, s, ConvPlan::forward(s.window, kBandPlaces),
                {s.channels, s.filters, s.window.in_count, s.window.out_count,
                 s.window.kernel_count, s.depth}),
        bias_(node.has_input(2)) {}

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void* workspace,
              gr_error_t*) const override {
    convolve(host::data<float>(in[0]), host::data<float>(in[1]),
             bias_ ? host::data<float>(in[2]) : nullptr, host::data<float>(out[0]), workspace);
    return GR_OK;
  }

 private:
  bool bias_;
};

/// gy, W, shape -> gx.
class ConvInputGrad final : public TapConv {
 public:
  ConvInputGrad(const NodeSpec&, const Context& context, const ConvShape& s)
      : TapConv(context, s, ConvPlan::input_grad(s.window, kBandPlaces),
                {s.filters, s.channels, s.window.out_count, s.window.in_count, s.depth,
                 s.window.kernel_count}) {}

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void* workspace,
              gr_error_t*) const override {
    convolve(host::data<float>(in[0]), host::data<float>(in[1]), nullptr, host::data<float>(out[0]),
             workspace);
    return GR_OK;
  }
};

template <class K>
void add(host::KernelTable& table, const Context& context, const char* op) {
  table.add({op, claim_conv, [&context](const NodeSpec& node) {
               std::string why;
               return std::make_unique<K>(node, context, ConvShape(node, &why));
             }});
}

}  // namespace

std::string claim_conv(const NodeSpec& node) {
  std::string reason = claim_float32(node);
  if (!reason.empty()) return reason;
  const ConvShape shape(node, &reason);
  if (reason.empty() && shape.window.kernel_count == 0) reason = "a kernel without places";
  return reason;
}

void add_conv_kernels(host::KernelTable& table, const Context& context) {
  add<ConvForward>(table, context, "Conv");
  add<ConvInputGrad>(table, context, "gradrack.ConvInputGrad");
}

}  // namespace gradrack::cpu
