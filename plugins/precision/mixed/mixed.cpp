// SPDX-License-Identifier: Apache-2.0
// Precisions `bf16`, `fp16` and `auto`: products in 16 bits, what is kept in float32. `bf16_pure`:
// the same products, and what is kept in bfloat16 too.
//
// bfloat16 has float32's range; float16 has not, so its gradients are scaled (dynamic_scale.hpp).
// `auto` is whichever of the two the device computes in natively, bfloat16 first, else float32.
#include "dynamic_scale.hpp"
#include "policy.hpp"

namespace {

namespace gr = gradrack::sdk;
using gradrack::mixed::DynamicScale;
using gradrack::mixed::kScaleOptions;
using gradrack::mixed::MixedPolicy;

/// What every policy of this file says; T has a member `policy`.
template <typename T>
class Mixed : public gr::ByInputs<T> {
 public:
  static constexpr const char* kVersion = "1.0.0";
  static constexpr gr_dtype_t kStorage = GR_FLOAT32;

  gr_dtype_t storage_dtype() const { return T::kStorage; }
  gr_dtype_t node_dtype(const gr_precision_node_t& node) const { return node_dtype(node, {}); }
  gr_dtype_t node_dtype(const gr_precision_node_t& node, std::span<const gr_dtype_t> inputs) const {
    return static_cast<const T*>(this)->policy.node_dtype(node, inputs);
  }
};

class Bfloat16 : public Mixed<Bfloat16> {
 public:
  static constexpr const char* kName = "bf16";
  static constexpr const char* kHelp =
      "Products in bfloat16, the rest and what is kept in float32.";

  explicit Bfloat16(const gr::Options&) {}
  MixedPolicy policy{GR_BFLOAT16};
};

/// A step is far smaller than the distance of two bfloat16, so it moves a weight by chance: right
/// on average, where rounding to nearest would leave the weight where it is for ever.
class PureBfloat16 : public Mixed<PureBfloat16> {
 public:
  static constexpr const char* kName = "bf16_pure";
  static constexpr const char* kHelp =
      "As bf16, and weights, gradients and state kept in bfloat16, updated by stochastic rounding.";
  static constexpr gr_dtype_t kStorage = GR_BFLOAT16;

  explicit PureBfloat16(const gr::Options&) {}
  MixedPolicy policy{GR_BFLOAT16};
  gr_update_rounding_t update_rounding = {sizeof update_rounding, GR_ROUND_STOCHASTIC, GR_FLOAT32,
                                          0};
};

/// A loss scale by options of its own.
template <typename T>
class Scaled : public Mixed<T>, public gr::LossScaled<T> {
 public:
  static constexpr auto& kOptions = kScaleOptions;

  explicit Scaled(const gr::Options& options) : scale_(options) {}
  gr_loss_scale_state_t first_scale() const { return scale_.first(); }
  gr_loss_scale_state_t next_scale(const gr_loss_scale_state_t& state, bool finite) const {
    return scale_.next(state, finite);
  }
  int64_t most_skipped() const { return scale_.most_skipped(); }

 private:
  DynamicScale scale_;
};

class Float16 : public Scaled<Float16> {
 public:
  static constexpr const char* kName = "fp16";
  static constexpr const char* kHelp =
      "Products in float16 with a dynamic loss scale, the rest and what is kept in float32.";

  using Scaled::Scaled;
  MixedPolicy policy{GR_FLOAT16};
};

class Automatic : public Scaled<Automatic>, public gr::ChosenByDevice<Automatic> {
 public:
  static constexpr const char* kName = "auto";
  static constexpr const char* kHelp =
      "bf16, fp16 or fp32: the first in which the device computes products natively.";

  using Scaled::Scaled;

  std::string choose(const gr::DeviceProducts& products) {
    std::string passed_over;
    for (const auto& [dtype, name] : {std::pair{GR_BFLOAT16, "bf16"}, {GR_FLOAT16, "fp16"}}) {
      const gr::DtypeSupport support = products(static_cast<gr_dtype_t>(dtype));
      const std::string words = support.reason.empty() ? "" : " (" + support.reason + ")";
      if (support.how == GR_SUPPORT_NATIVE) {
        policy = MixedPolicy(static_cast<gr_dtype_t>(dtype));
        return passed_over + name + ": the device computes such products natively" + words;
      }
      const bool no = support.how == GR_SUPPORT_NO;
      passed_over += std::string("not ") + name + (no ? ": not at all" : ": by conversion alone") +
                     words + "; ";
    }
    return passed_over + "fp32";
  }

  /// Only float16 needs a scale.
  bool offers(std::string_view id) const {
    return id != GR_EXT_LOSS_SCALE || policy.narrow() == GR_FLOAT16;
  }
  MixedPolicy policy{GR_FLOAT32};
};

}  // namespace

GRADRACK_PLUGIN("gradrack.mixed_precision", "1.0.0", gr::Precision<Bfloat16>,
                gr::Precision<PureBfloat16>, gr::Precision<Float16>, gr::Precision<Automatic>)
