// SPDX-License-Identifier: Apache-2.0
// Config of the `gpt` model: see config.hpp.
#include "config.hpp"

namespace gpt {

namespace gr = gradrack::sdk;

namespace {

void check_heads(const Config& c) {
  gr::require(c.dim % c.heads == 0, GR_INVALID_ARGUMENT, "heads", "dim ", c.dim,
              " cannot be split into ", c.heads, " heads: make dim a multiple of heads");
  gr::require(c.heads % c.kv_heads == 0, GR_INVALID_ARGUMENT, "kv_heads", c.heads,
              " heads cannot share ", c.kv_heads,
              " key/value heads evenly: make heads a multiple of kv_heads");
  gr::require(!c.rope || c.head_dim() % 2 == 0, GR_INVALID_ARGUMENT, "heads", "a head is ",
              c.head_dim(), " wide (dim / heads); rotary positions need an even width: change dim ",
              "or heads, or set positions: learned");
}

int64_t default_ffn_dim(const Config& c) {
  return c.swiglu ? (8 * c.dim + 23) / 24 * 8 : 4 * c.dim;
}

}  // namespace

Config read_config(const gr::Options& o) {
  Config c{};
  c.vocab = o.get<int64_t>("vocab");
  c.block = o.get<int64_t>("block");
  c.layers = o.get<int64_t>("layers");
  c.heads = o.get<int64_t>("heads");
  c.kv_heads = o.get<int64_t>("kv_heads");
  c.dim = o.get<int64_t>("dim");
  c.ffn_dim = o.get<int64_t>("ffn_dim");
  c.swiglu = o.get<std::string>("ffn") == "swiglu";
  c.gelu_tanh = o.get<std::string>("ffn") == "gelu_tanh";
  c.rms = o.get<std::string>("norm") == "rms";
  c.rope = o.get<std::string>("positions") == "rope";
  c.documents = o.get<bool>("documents");
  c.tied = o.get<bool>("tied");
  c.bias = o.get<bool>("bias");
  c.residual_scaling = o.get<bool>("residual_scaling");
  c.dropout = o.get<double>("dropout");
  c.init_std = o.get<double>("init_std");
  c.norm_eps = o.get<double>("norm_eps");
  c.rope_theta = o.get<double>("rope_theta");
  if (c.kv_heads == 0) c.kv_heads = c.heads;
  if (c.ffn_dim == 0) c.ffn_dim = default_ffn_dim(c);
  check_heads(c);
  return c;
}

Config fit_to_data(Config c, const gr_data_info_t* data) {
  const int64_t data_vocab = data != nullptr ? data->vocab : 0;
  const int64_t data_block = data != nullptr ? data->block : 0;
  if (c.vocab == 0) c.vocab = data_vocab;
  if (c.block == 0) c.block = data_block;
  gr::require(c.vocab > 0, GR_INVALID_ARGUMENT, "vocab",
              "the data has no vocabulary to take it from: use a text source, or give `vocab`");
  gr::require(c.block > 0, GR_INVALID_ARGUMENT, "block",
              "the data has no block to take it from: use a text source, or give `block`");
  gr::require(data_vocab <= c.vocab, GR_INVALID_ARGUMENT, "vocab", "the data has ", data_vocab,
              " token ids, the model's vocab is ", c.vocab,
              ": raise it, or set 0 to follow the data");
  gr::require(data_block <= c.block, GR_INVALID_ARGUMENT, "block", "the data has rows of ",
              data_block, " tokens, the model's block is ", c.block,
              ": raise it, or set 0 to follow the data");
  c.tokens = data_block > 0 ? data_block : c.block;
  return c;
}

}  // namespace gpt
