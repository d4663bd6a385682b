// SPDX-License-Identifier: Apache-2.0
// Work of a node: see work.hpp.
#include "core/plan/work.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string_view>

namespace gradrack {

namespace {

using Dims = std::vector<int64_t>;

int64_t count(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

class Counter {
 public:
  Counter(const Node& node, const BoundGraph& bound) : node_(node), bound_(bound) {}

  Work work() const {
    Work work;
    for (const auto* ids : {&node_.inputs, &node_.outputs}) {
      for (const ValueId id : *ids) {
        if (id == GR_NO_VALUE || !bound_.at(id).used) continue;
        work.bytes += bound_.at(id).bytes;
        work.flops = std::max(work.flops, count(bound_.at(id).dims));
      }
    }
    const int64_t known = product_flops();
    if (known > 0) work.flops = known;
    return work;
  }

 private:
  Dims in(size_t k) const { return bound_.at(node_.inputs[k]).dims; }
  Dims out(size_t k) const { return bound_.at(node_.outputs[k]).dims; }

  int64_t product_flops() const {
    const std::string name = node_.op->full_name();
    if (name == "MatMul" || name == "Gemm" || name == "gradrack.FusedMatMul") return matmul();
    if (name == "Conv") return convolution(out(0), in(1));
    if (name == "gradrack.ConvInputGrad") return convolution(in(0), in(1));
    if (name == "gradrack.ConvWeightGrad") return convolution(in(0), out(0));
    if (name == "Attention") return attention(0, 1, 1);
    if (name == "gradrack.AttentionGrad") return attention(1, 3, 2);
    return 0;
  }

  /// Each element of Y is a sum over the axis that A and B share.
  int64_t matmul() const {
    const Dims a = in(0);
    if (a.empty()) return 0;
    const bool swapped = a.size() > 1 && node_.attrs.get_int("transA") != 0;
    return 2 * count(out(0)) * (swapped ? a[a.size() - 2] : a.back());
  }

  /// Each element of Y is a sum over the channels of a group and the places of the kernel.
  int64_t convolution(const Dims& y, const Dims& w) const {
    return w.empty() || w[0] == 0 ? 0 : 2 * count(y) * (count(w) / w[0]);
  }

  /// So many products of each query and key that it sees over the size of a query, and over the
  /// size of a value. With a causal mask query t sees t + 1 keys. `q`: position of Q.
  int64_t attention(size_t q, int64_t over_q, int64_t over_v) const {
    const Dims x = in(q), k = in(q + 1), v = in(q + 2);
    const bool packed = x.size() == 3;
    const int64_t heads = packed ? node_.attrs.get_int("q_num_heads", 1) : x[1];
    const int64_t kv_heads = packed ? node_.attrs.get_int("kv_num_heads", 1) : v[1];
    const int64_t size = packed ? x[2] / heads : x[3], width = packed ? v[2] / kv_heads : v[3];
    const int64_t length = packed ? x[1] : x[2], keys = packed ? k[1] : k[2];
    int64_t pairs = length * keys;
    if (node_.attrs.get_int("is_causal") != 0) {
      const int64_t rising = std::min(length, keys);
      pairs = rising * (rising + 1) / 2 + (length - rising) * keys;
    }
    return 2 * x[0] * heads * pairs * (over_q * size + over_v * width);
  }

  const Node& node_;
  const BoundGraph& bound_;
};

}  // namespace

Work work_of(const Node& node, const BoundGraph& bound) { return Counter(node, bound).work(); }

}  // namespace gradrack
