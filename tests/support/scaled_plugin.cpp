// SPDX-License-Identifier: Apache-2.0
// Precision `scaled`: float32 throughout, with the loss scale of fp16 all the same.
//
// For tests of what a loss scale must not change: here no number is narrow enough to show it.
#include "plugins/precision/mixed/dynamic_scale.hpp"

namespace {

namespace gr = gradrack::sdk;

class ScaledFloat32 : public gr::LossScaled<ScaledFloat32> {
 public:
  static constexpr const char* kName = "scaled";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "float32 with a loss scale, for tests.";
  static constexpr auto& kOptions = gradrack::mixed::kScaleOptions;

  explicit ScaledFloat32(const gr::Options& options) : scale_(options) {}
  gr_dtype_t storage_dtype() const { return GR_FLOAT32; }
  gr_dtype_t node_dtype(const gr_precision_node_t&) const { return GR_FLOAT32; }
  gr_loss_scale_state_t first_scale() const { return scale_.first(); }
  gr_loss_scale_state_t next_scale(const gr_loss_scale_state_t& state, bool finite) const {
    return scale_.next(state, finite);
  }
  int64_t most_skipped() const { return scale_.most_skipped(); }

 private:
  gradrack::mixed::DynamicScale scale_;
};

}  // namespace

GRADRACK_PLUGIN("gradrack.test.scaled", "1.0.0", gr::Precision<ScaledFloat32>)
