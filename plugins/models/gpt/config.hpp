// SPDX-License-Identifier: Apache-2.0
// Options of the `gpt` model: their declaration, and a checked Config made from them and the data.
//
// Invariant: a Config fits itself and the data, so that building the graph has no case to refuse.
#pragma once

#include <cstdint>

#include "gradrack/model.h"
#include "gradrack/options.hpp"

namespace gpt {

constexpr gr_option_t kOptions[] = {
    GR_OPT_INT("vocab", "0", 0, INFINITY, "token ids; 0: as many as the data has"),
    GR_OPT_INT("block", "0", 0, INFINITY, "most tokens a row; 0: the data's block"),
    GR_OPT_INT("layers", "4", 1, 1000, "transformer blocks"),
    GR_OPT_INT("heads", "4", 1, INFINITY, "attention heads"),
    GR_OPT_INT("kv_heads", "0", 0, INFINITY, "key/value heads; 0: as many as heads"),
    GR_OPT_INT("dim", "128", 1, INFINITY, "width of the residual stream"),
    GR_OPT_CHOICE("ffn", "swiglu", "gelu|gelu_tanh|swiglu", "kind of the feed-forward part"),
    GR_OPT_INT(
        "ffn_dim", "0", 0, INFINITY,
        "its hidden width; 0: 4 dim (gelu, gelu_tanh), 8/3 dim up to a multiple of 8 (swiglu)"),
    GR_OPT_CHOICE("norm", "rms", "rms|layer", "kind of normalisation"),
    GR_OPT_CHOICE("positions", "rope", "rope|learned", "how tokens know their place"),
    GR_OPT_BOOL("documents", "false",
                "the data's documents and positions keep the documents of a row apart"),
    GR_OPT_BOOL("tied", "true", "the head's weight is the embedding's"),
    GR_OPT_BOOL("bias", "false", "biases in the linear layers of the blocks"),
    GR_OPT_FLOAT("dropout", "0", 0, 0.99, "share of activations dropped in training"),
    GR_OPT_BOOL("residual_scaling", "false",
                "initial std of attn.proj and mlp.down divided by sqrt(2 layers)"),
    GR_OPT_FLOAT("init_std", "0.02", 0, INFINITY, "standard deviation of initial weights"),
    GR_OPT_FLOAT("norm_eps", "1e-5", 0, INFINITY, "added to the variance or mean square"),
    GR_OPT_FLOAT("rope_theta", "10000", 1, INFINITY, "base of the rotary angles"),
};

struct Config {
  int64_t vocab, block, layers, heads, kv_heads, dim, ffn_dim;
  int64_t tokens;  // in a row: the data's block, at most `block`
  bool swiglu, gelu_tanh, rms, rope, documents, tied, bias, residual_scaling;
  double dropout, init_std, norm_eps, rope_theta;

  int64_t head_dim() const { return dim / heads; }
};

/// Reads the options; sizes of 0 that do not depend on the data are filled in. Throws
/// GR_INVALID_ARGUMENT, with the option's name, when they do not fit each other. [main]
Config read_config(const gradrack::sdk::Options& options);

/// Fills in what comes from the data (may be NULL) and checks that they fit. Throws as above.
/// [plan]
Config fit_to_data(Config config, const gr_data_info_t* data);

}  // namespace gpt
