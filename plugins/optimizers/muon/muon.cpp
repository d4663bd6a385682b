// SPDX-License-Identifier: Apache-2.0
// Optimizers `muon` and `muon_plus`: momentum made orthogonal, for the matrices of hidden layers.
//
// muon: the step is lr * scale * NS(momentum); muon_plus divides rows and columns by their lengths
// after that. Both refuse what is no hidden matrix (embeddings, norms, biases): the next optimizer
// of the chain takes it, `plugin: [muon, adamw]`. Decay is decoupled, by the unscaled lr.
// Invariant: a parameter without gradient is skipped by the host, so its momentum cannot move it.
// Sources: see orthogonal.hpp; muon_plus: "Muon+" (arXiv 2602.21545).
#include "orthogonal.hpp"

namespace {

using muon::Config;
using muon::Matrix;
namespace gr = gradrack::sdk;
using gr::Value;

#define MUON_OPTIONS(default_scale)                                                            \
  GR_OPT_FLOAT("lr", "0.02", 0, INFINITY, "learning rate, before the schedule"),               \
      GR_OPT_FLOAT("momentum", "0.95", 0, 1, "decay of the gradient's average, below 1"),      \
      GR_OPT_BOOL("nesterov", "true", "look ahead by one momentum step"),                      \
      GR_OPT_FLOAT("weight_decay", "0", 0, INFINITY, "decoupled decay, times lr"),             \
      GR_OPT_INT("ns_steps", "5", 1, 20, "rounds of the Newton-Schulz iteration"),             \
      GR_OPT_CHOICE("scale", default_scale, "original|match_rms_adamw|ratio|none",             \
                    "times sqrt(max(1, out/in)), 0.2 sqrt(max(out, in)), sqrt(out/in), or 1"), \
      GR_OPT_BOOL("flatten_kernels", "false", "take kernels [out, in, ...] as matrices too"),  \
      GR_OPT_CHOICE("layout", "in_out", "in_out|out_in", "which dim of a matrix is its outputs")

constexpr gr_option_t kMuonOptions[] = {MUON_OPTIONS("original")};
constexpr gr_option_t kMuonPlusOptions[] = {
    MUON_OPTIONS("ratio"), GR_OPT_CHOICE("normalize", "row_col", "none|row|col|row_col|col_row",
                                         "what is divided by its lengths, in that order")};

double scale_of(const std::string& rule, const Matrix& m) {
  const auto rows = static_cast<double>(m.rows()), columns = static_cast<double>(m.columns());
  if (rule == "original") return std::sqrt(std::max(1.0, rows / columns));
  if (rule == "match_rms_adamw") return 0.2 * std::sqrt(std::max(rows, columns));
  return rule == "ratio" ? std::sqrt(rows / columns) : 1.0;
}

/// What both do; `T` finishes the orthogonal matrix.
template <typename T>
class Orthogonal : public gr::Directed<T> {
 public:
  explicit Orthogonal(const gr::Options& options)
      : config_(options), scale_(options.get<std::string>("scale")) {}

  std::vector<gr_state_t> declare_state(const gr_parameter_info_t& info) const {
    (void)muon::matrix_of(info, config_);
    return {gr::state_like(info, "momentum_buffer")};
  }

  gr::Direction direction(gr::GraphBuilder& g, gr_update_t& u, const gr::MomentumHook& hook) const {
    const Matrix matrix = muon::matrix_of(*u.info, config_);
    const Value step = hook(muon::momentum_step(g, u, config_));
    Value x = muon::orthogonalize(g, u.info->dtype, muon::as_matrix(g, *u.info, matrix, step),
                                  matrix.stored, config_.steps);
    x = static_cast<const T*>(this)->finish(g, *u.info, x, matrix);
    x = gr::Arithmetic(g, u.info->dtype).times(x, scale_of(scale_, matrix));
    return {muon::as_parameter(g, *u.info, x), config_.weight_decay};
  }

 private:
  Config config_;
  std::string scale_;
};

class Muon : public Orthogonal<Muon> {
 public:
  static constexpr const char* kName = "muon";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "Orthogonal momentum, for the matrices of hidden layers.";
  static constexpr auto& kOptions = kMuonOptions;

  explicit Muon(const gr::Options& options) : Orthogonal(options) {}
  Value finish(gr::GraphBuilder&, const gr_parameter_info_t&, Value x, const Matrix&) const {
    return x;
  }
};

class MuonPlus : public Orthogonal<MuonPlus> {
 public:
  static constexpr const char* kName = "muon_plus";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "Muon with its rows and columns brought to one length.";
  static constexpr auto& kOptions = kMuonPlusOptions;

  explicit MuonPlus(const gr::Options& options)
      : Orthogonal(options), order_(options.get<std::string>("normalize")) {}
  Value finish(gr::GraphBuilder& g, const gr_parameter_info_t& info, Value x,
               const Matrix& matrix) const {
    const auto by = [&](bool rows) { x = muon::normalize(g, info.dtype, x, matrix, rows); };
    if (order_ == "row" || order_ == "row_col") by(true);
    if (order_ == "col" || order_ == "row_col" || order_ == "col_row") by(false);
    if (order_ == "col_row") by(true);
    return x;
  }

 private:
  std::string order_;
};

}  // namespace

GRADRACK_PLUGIN("gradrack.muon", "1.0.0", gr::Optimizer<Muon>, gr::Optimizer<MuonPlus>)
