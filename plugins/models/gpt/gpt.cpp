// SPDX-License-Identifier: Apache-2.0
// Model `gpt`: a decoder-only transformer with pre-norm residual blocks.
//
// Reads top to bottom as the forward pass: embed, blocks, head, loss. Weights are [in, out]:
// y = x @ W. Invariant: names, shapes and order of the parameters depend on the options alone.
// tests/golden/gpt_twin.py is the same model in PyTorch.
// Dims: B batch, T tokens, D dim, H heads, KV key/value heads, hd = D / H, F ffn_dim, V vocab.
#include <cmath>

#include "config.hpp"
#include "gradrack/model.hpp"

namespace {

namespace gr = gradrack::sdk;
using gpt::Config;
using gr::Value;

/// One forward graph while it is built.
class Net {
 public:
  Net(gr::GraphBuilder& g, const Config& config, bool training)
      : g_(g), c_(config), drop_(training ? config.dropout : 0) {}

  void build() {
    const Value tokens = g_.input("tokens", GR_INT64, {"batch", c_.tokens}, c_.vocab);
    const Value targets = g_.input("targets", GR_INT64, {"batch", c_.tokens}, c_.vocab);
    if (c_.documents) keep_documents_apart();
    Value x = embed(tokens);
    for (int64_t i = 0; i < c_.layers; ++i) {
      const std::string name = gr::text("blocks.", i);
      const gr::GraphBuilder::Stage stage(g_, name);
      x = g_.add(x, attention(name + ".attn", norm(name + ".norm1", x)));
      x = g_.add(x, mlp(name + ".mlp", norm(name + ".norm2", x)));
    }
    head(x, targets);
  }

 private:
  /// A token sees those of its own document alone, and its place counts from there.
  void keep_documents_apart() {
    const Value documents = g_.input("documents", GR_INT64, {"batch", c_.tokens});
    places_ = g_.input("positions", GR_INT64, {"batch", c_.tokens}, c_.tokens);
    mask_ = g_.node("Equal", {g_.reshape(documents, {-1, 1, c_.tokens, 1}),
                              g_.reshape(documents, {-1, 1, 1, c_.tokens})});  // [B, 1, T, T]
  }

  /// tokens [B, T] -> [B, T, D]; prepares the rotary tables.
  Value embed(Value tokens) {
    const gr::GraphBuilder::Stage stage(g_, "embed");
    table_ = g_.parameter("tok_emb.weight", {c_.vocab, c_.dim}, weight_init(), GR_ROLE_EMBEDDING);
    Value x = g_.gather(table_, tokens);
    if (c_.rope) {
      make_rotary_tables();
    } else {
      const Value places =
          g_.parameter("pos_emb.weight", {c_.block, c_.dim}, weight_init(), GR_ROLE_EMBEDDING);
      x = g_.add(x, c_.documents ? g_.gather(places, places_) : first_rows(places));
    }
    return dropout(x);
  }

  /// The first T rows of the position table: all of them unless the data's rows are shorter.
  Value first_rows(Value places) {
    if (c_.tokens == c_.block) return places;
    return g_.node("Slice", {places, g_.ints({0}), g_.ints({c_.tokens}), g_.ints({0})});
  }

  /// cos and sin of pos * theta^(-2j/hd), taken in double: [1, T, hd/2] for all sequences, or
  /// [T, hd/2] where tokens say their positions.
  /// Source: Su et al., "RoFormer", equation 15, with pairs (j, j + hd/2).
  void make_rotary_tables() {
    const int64_t half = c_.head_dim() / 2;
    std::vector<double> cosines, sines;
    for (int64_t position = 0; position < c_.tokens; ++position) {
      for (int64_t j = 0; j < half; ++j) {
        const double frequency = std::pow(
            c_.rope_theta, -2.0 * static_cast<double>(j) / static_cast<double>(c_.head_dim()));
        cosines.push_back(std::cos(static_cast<double>(position) * frequency));
        sines.push_back(std::sin(static_cast<double>(position) * frequency));
      }
    }
    const std::vector<int64_t> dims = c_.documents ? std::vector<int64_t>{c_.tokens, half}
                                                   : std::vector<int64_t>{1, c_.tokens, half};
    cos_ = g_.reals(cosines, dims);
    sin_ = g_.reals(sines, dims);
  }

  /// Causal attention with grouped key/value heads, x [B, T, D] -> [B, T, D].
  Value attention(const std::string& name, Value x) {
    Value q = linear(name + ".q", x, c_.dim, c_.dim);
    Value k = linear(name + ".k", x, c_.dim, kv_dim());
    const Value v = linear(name + ".v", x, c_.dim, kv_dim());
    if (c_.rope) {
      q = rotate(q, c_.heads);
      k = rotate(k, c_.kv_heads);
    }
    // [B, T, H*hd] all along: heads lie side by side, and nothing is transposed.
    std::vector<Value> inputs = {q, k, v};
    if (c_.documents) inputs.push_back(mask_);
    const Value joined =
        g_.node("Attention", inputs,
                {{"is_causal", 1}, {"q_num_heads", c_.heads}, {"kv_num_heads", c_.kv_heads}});
    return dropout(linear(name + ".proj", joined, c_.dim, c_.dim, residual_init()));
  }

  Value mlp(const std::string& name, Value x) {
    Value hidden;
    if (c_.swiglu) {
      const Value gate = g_.node("Swish", {linear(name + ".gate", x, c_.dim, c_.ffn_dim)});
      hidden = g_.mul(gate, linear(name + ".up", x, c_.dim, c_.ffn_dim));
    } else {
      hidden = g_.node("Gelu", {linear(name + ".up", x, c_.dim, c_.ffn_dim)},
                       {{"approximate", c_.gelu_tanh ? "tanh" : "none"}});
    }
    return dropout(linear(name + ".down", hidden, c_.ffn_dim, c_.dim, residual_init()));
  }

  /// Logits and loss. Rows of all sequences become one matrix [B*T, D] for the widest product.
  void head(Value x, Value targets) {
    const gr::GraphBuilder::Stage stage(g_, "head");
    const Value rows = g_.reshape(norm("norm_f", x), {-1, c_.dim});
    Value scores;  // [B*T, V]
    if (c_.tied) {
      scores = g_.node("Gemm", {rows, table_}, {{"transB", 1}});
    } else {
      scores = g_.matmul(rows, g_.parameter("head.weight", {c_.dim, c_.vocab}, weight_init()));
    }
    g_.output("logits", g_.reshape(scores, {-1, c_.tokens, c_.vocab}));
    g_.softmax_cross_entropy("loss", scores, g_.reshape(targets, {-1}));
  }

  Value norm(const std::string& name, Value x) {
    const Value weight =
        g_.parameter(name + ".weight", {c_.dim}, gr::init_constant(1), GR_ROLE_NORM);
    if (c_.rms) return g_.rms_norm(x, weight, c_.norm_eps);
    const Value bias = g_.parameter(name + ".bias", {c_.dim}, gr::init_constant(0), GR_ROLE_BIAS);
    return g_.layer_norm(x, weight, bias, c_.norm_eps);
  }

  Value linear(const std::string& name, Value x, int64_t in, int64_t out) {
    return linear(name, x, in, out, weight_init());
  }
  Value linear(const std::string& name, Value x, int64_t in, int64_t out, gr_init_t init) {
    const Value y = g_.matmul(x, g_.parameter(name + ".weight", {in, out}, init));
    if (!c_.bias) return y;
    return g_.add(y, g_.parameter(name + ".bias", {out}, gr::init_constant(0), GR_ROLE_BIAS));
  }

  /// [B, T, heads*hd] -> [B, heads, T, hd]
  Value rotate(Value x, int64_t heads) {
    std::vector<Value> inputs = {x, cos_, sin_};
    if (c_.documents) inputs.push_back(places_);
    return g_.node("RotaryEmbedding", inputs, {{"num_heads", heads}});
  }
  Value dropout(Value x) { return drop_ > 0 ? g_.dropout(x, drop_) : x; }

  int64_t kv_dim() const { return c_.kv_heads * c_.head_dim(); }
  gr_init_t weight_init() const { return gr::init_normal(0, c_.init_std); }
  /// For the last layers before a residual sum: 2 * layers of them add up (GPT-2, section 2.3).
  gr_init_t residual_init() const {
    const double sums = c_.residual_scaling ? 2.0 * static_cast<double>(c_.layers) : 1.0;
    return gr::init_normal(0, c_.init_std / std::sqrt(sums));
  }

  gr::GraphBuilder& g_;
  const Config& c_;
  double drop_;
  Value table_, cos_, sin_;
  Value places_, mask_;  // of documents that are kept apart
};

class Gpt {
 public:
  static constexpr const char* kName = "gpt";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "Decoder-only transformer for next-token prediction.";
  static constexpr auto& kOptions = gpt::kOptions;

  explicit Gpt(const gr::Options& options) : config_(gpt::read_config(options)) {}

  void build(gr::GraphBuilder& g, const gr_model_context_t& context) const {
    const Config config = gpt::fit_to_data(config_, context.data);
    Net(g, config, context.training != 0).build();
  }

 private:
  Config config_;
};

}  // namespace

GRADRACK_PLUGIN("gradrack.gpt", "1.0.0", gr::Model<Gpt>)
