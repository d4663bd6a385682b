// SPDX-License-Identifier: Apache-2.0
// Attention and gradrack.AttentionGrad on float32, without a matrix of all scores.
//
// A block of queries sees its keys at once: scores of [kBlock, S] live in the workspace of the
// piece, keys that no query of the block may see are never touched, and the softmax of a row is the
// exact one. Backward takes the weights again. Memory grows with the length, not with its square.
// Bits: each block, and each key head in backward, is worked on in one order by one thread.
// Masks and softcap are left to the decomposition.
#include <atomic>
#include <cmath>
#include <memory>

#include "backends/common/tensor_access.hpp"
#include "backends/cpu/gemm.hpp"
#include "backends/cpu/kernels.hpp"

namespace gradrack::cpu {
namespace {

using host::Dims;
using host::Kernel;
using host::NodeSpec;

constexpr int64_t kBlock = 64;  // queries

/// Where the rows of one head lie: [B, H, T, n], or [B, T, H * n] when packed.
struct HeadLayout {
  HeadLayout(const Dims& dims, int64_t packed_heads) {
    const bool packed = dims.size() == 3;
    batch = dims[0];
    heads = packed ? packed_heads : dims[1];
    length = packed ? dims[1] : dims[2];
    size = packed ? dims[2] / heads : dims[3];
    row = packed ? dims[2] : size;
    head = packed ? size : length * size;
  }
  int64_t at(int64_t b, int64_t h) const { return b * heads * length * size + h * head; }

  int64_t batch, heads, length, size;
  int64_t row, head;  // elements from one row, one head to the next
};

/// What both kernels share: sizes, and the block's scores and weights.
class FlashKernel : public Kernel {
 public:
  /// `q`: position of Q among the inputs.
  FlashKernel(const NodeSpec& node, const Context& context, size_t q)
      : context_(context),
        q_(node.inputs[q].dims, node.get_int("q_num_heads", 1)),
        k_(node.inputs[q + 1].dims, node.get_int("kv_num_heads", 1)),
        v_(node.inputs[q + 2].dims, node.get_int("kv_num_heads", 1)),
        group_(q_.heads / k_.heads),
        causal_(node.get_int("is_causal") != 0),
        scale_(static_cast<float>(
            node.get_float("scale", 1.0 / std::sqrt(static_cast<double>(q_.size))))) {}

 protected:
  /// Queries [begin, begin + rows) and the keys [0, keys) that the last of them sees.
  struct Block {
    int64_t begin, rows, keys;
  };
  int64_t blocks() const { return (q_.length + kBlock - 1) / kBlock; }
  Block block(int64_t index) const {
    const int64_t begin = index * kBlock, end = std::min(q_.length, begin + kBlock);
    return {begin, end - begin, causal_ ? std::min(k_.length, end) : k_.length};
  }
  /// Bytes of one block's scores.
  int64_t scores_bytes() const {
    return (std::min(kBlock, q_.length) * k_.length * int64_t{sizeof(float)} + 63) / 64 * 64;
  }
  /// p [rows, keys] = softmax(scale q k^T); what a query may not see is 0.
  bool weights(const Block& b, const float* q, const float* k, float* p) const {
    const GemmShape product{false,  true, b.rows, b.keys, q_.size,
                            scale_, 0.0f, q_.row, k_.row, b.keys};
    if (!gemm(product, q + b.begin * q_.row, k, p)) return false;
    for (int64_t r = 0; r < b.rows; ++r) {
      float* row = p + r * b.keys;
      const int64_t seen = causal_ ? std::min(b.keys, b.begin + r + 1) : b.keys;
      context_.loops.softmax(row, row, seen);
      std::fill(row + seen, row + b.keys, 0.0f);
    }
    return true;
  }
  /// body(piece, item) for all items, spread so that each piece gets early and late ones alike.
  template <class Body>
  void each_item(int64_t items, const Body& body) const {
    const int64_t count = pieces(items);
    context_.pool.run_pieces(count, [&](int64_t piece) {
      for (int64_t item = piece; item < items; item += count) body(piece, item);
    });
  }
  int64_t pieces(int64_t items) const {
    return std::min<int64_t>(items, int64_t{2} * context_.pool.threads());
  }
  static int32_t answer(bool ok, gr_error_t* err) {
    return ok ? int32_t{GR_OK} : gr_fail(err, GR_INTERNAL, "Attention", "oneDNN's sgemm refused");
  }

  const Context& context_;
  HeadLayout q_, k_, v_;
  int64_t group_;  // query heads of a key head
  bool causal_;
  float scale_;
};

class AttentionForward final : public FlashKernel {
 public:
  AttentionForward(const NodeSpec& node, const Context& context)
      : FlashKernel(node, context, 0), y_(node.outputs[0].dims, node.get_int("q_num_heads", 1)) {}

  int64_t workspace_bytes() const override { return pieces(items()) * scores_bytes(); }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void* workspace,
              gr_error_t* err) const override {
    const float *q = host::data<float>(in[0]), *k = host::data<float>(in[1]);
    const float* v = host::data<float>(in[2]);
    float* y = host::data<float>(out[0]);
    std::atomic<bool> ok{true};
    each_item(items(), [&](int64_t piece, int64_t item) {
      float* p = reinterpret_cast<float*>(static_cast<char*>(workspace) + piece * scores_bytes());
      // The longest blocks of a head first.
      const Block b = block(blocks() - 1 - item % blocks());
      const int64_t head = item / blocks() % q_.heads, sample = item / blocks() / q_.heads;
      const bool good =
          weights(b, q + q_.at(sample, head), k + k_.at(sample, head / group_), p) &&
          gemm({false, false, b.rows, v_.size, b.keys, 1.0f, 0.0f, b.keys, v_.row, y_.row}, p,
               v + v_.at(sample, head / group_), y + y_.at(sample, head) + b.begin * y_.row);
      if (!good) ok = false;
    });
    return answer(ok, err);
  }

 private:
  int64_t items() const { return q_.batch * q_.heads * blocks(); }
  HeadLayout y_;
};

/// gy, Q, K, V -> gQ, gK, gV. One item is a key head with its query heads, so that the sums over
/// queries have one order.
class AttentionBackward final : public FlashKernel {
 public:
  AttentionBackward(const NodeSpec& node, const Context& context)
      : FlashKernel(node, context, 1), gy_(node.inputs[0].dims, node.get_int("q_num_heads", 1)) {}

  int64_t workspace_bytes() const override { return pieces(items()) * 2 * scores_bytes(); }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void* workspace,
              gr_error_t* err) const override {
    std::atomic<bool> ok{true};
    each_item(items(), [&](int64_t piece, int64_t item) {
      char* mine = static_cast<char*>(workspace) + piece * 2 * scores_bytes();
      const int64_t sample = item / k_.heads, head = item % k_.heads;
      if (!key_head(in, out, sample, head, reinterpret_cast<float*>(mine),
                    reinterpret_cast<float*>(mine + scores_bytes()))) {
        ok = false;
      }
    });
    return answer(ok, err);
  }

 private:
  int64_t items() const { return k_.batch * k_.heads; }

  static void clear(const HeadLayout& layout, float* x) {
    for (int64_t t = 0; t < layout.length; ++t) std::fill_n(x + t * layout.row, layout.size, 0.0f);
  }

  bool key_head(const DLTensor* const* in, DLTensor* const* out, int64_t sample, int64_t kv,
                float* p, float* gs) const {
    const float* k = host::data<float>(in[2]) + k_.at(sample, kv);
    const float* v = host::data<float>(in[3]) + v_.at(sample, kv);
    float* gk = host::data<float>(out[1]) + k_.at(sample, kv);
    float* gv = host::data<float>(out[2]) + v_.at(sample, kv);
    clear(k_, gk);
    clear(v_, gv);
    bool ok = true;
    for (int64_t head = kv * group_; head < (kv + 1) * group_; ++head) {
      const float* gy = host::data<float>(in[0]) + gy_.at(sample, head);
      const float* q = host::data<float>(in[1]) + q_.at(sample, head);
      float* gq = host::data<float>(out[0]) + q_.at(sample, head);
      for (int64_t index = 0; index < blocks(); ++index) {
        const Block b = block(index);
        const float* gy_rows = gy + b.begin * gy_.row;
        const float* q_rows = q + b.begin * q_.row;
        ok = ok && weights(b, q, k, p);
        // gV += P^T gy; dP = gy V^T; dS = P (dP - sum(dP P)); gQ = scale dS K; gK += scale dS^T Q.
        ok = ok && gemm({true, false, b.keys, v_.size, b.rows, 1.0f, 1.0f, b.keys, gy_.row, v_.row},
                        p, gy_rows, gv);
        ok = ok && gemm({false, true, b.rows, b.keys, v_.size, 1.0f, 0.0f, gy_.row, v_.row, b.keys},
                        gy_rows, v, gs);
        for (int64_t r = 0; r < b.rows; ++r) {
          float* row = gs + r * b.keys;
          context_.loops.softmax_grad(row, p + r * b.keys, row, b.keys);
        }
        ok = ok &&
             gemm({false, false, b.rows, q_.size, b.keys, scale_, 0.0f, b.keys, k_.row, q_.row}, gs,
                  k, gq + b.begin * q_.row) &&
             gemm({true, false, b.keys, q_.size, b.rows, scale_, 1.0f, b.keys, q_.row, k_.row}, gs,
                  q_rows, gk);
      }
    }
    return ok;
  }

  HeadLayout gy_;
};

/// `q`: position of Q among the inputs.
std::string claim_attention(const NodeSpec& node, size_t q) {
  std::string reason = claim_float32(node);
  if (!reason.empty()) return reason;
  if (node.has_input(q + 3)) return "attn_mask is decomposed";
  if (node.get_float("softcap") != 0) return "softcap is decomposed";
  if (node.inputs[q + 1].count == 0) return "no keys";
  return "";
}

}  // namespace

void add_flash_attention_kernels(host::KernelTable& table, const Context& context) {
  table.add({"Attention", [](const NodeSpec& node) { return claim_attention(node, 0); },
             [&context](const NodeSpec& node) {
               return std::make_unique<AttentionForward>(node, context);
             }});
  table.add({"gradrack.AttentionGrad",
             [](const NodeSpec& node) { return claim_attention(node, 1); },
             [&context](const NodeSpec& node) {
               return std::make_unique<AttentionBackward>(node, context);
             }});
}

}  // namespace gradrack::cpu
