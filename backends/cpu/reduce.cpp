// SPDX-License-Identifier: Apache-2.0
// ReduceSum, ReduceMean, ReduceMax and ReduceMin over any axes, on float32, float64 and int64.
//
// Dims are merged into alternating kept and reduced groups, which leaves two loops: sums of rows (a
// reduced group stands last) or of columns (a kept one does). Invariant: sums of float32 are taken
// in double and every sum in one order, whatever the number of threads.
#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>

#include "backends/common/tensor_access.hpp"
#include "backends/cpu/kernels.hpp"
#include "backends/cpu/loop_plan.hpp"

namespace gradrack::cpu {
namespace {

using host::Dims;
using host::Kernel;
using host::NodeSpec;

enum class Kind { kSum, kMean, kMax, kMin };

struct Group {
  int64_t size, stride;
};

/// The kept and the reduced groups, outermost first; `last` is the innermost group of all.
struct ReducePlan {
  std::vector<Group> kept, reduced;
  Group last{1, 1};
  bool last_reduced = true;
  int64_t outputs = 1, each = 1;  // outputs; elements behind one output
};

ReducePlan make_plan(const Dims& dims, const std::vector<bool>& reduce) {
  ReducePlan plan;
  int64_t stride = 1;
  std::vector<std::pair<Group, bool>> groups;  // innermost first
  for (size_t k = dims.size(); k-- > 0; stride *= dims[k]) {
    (reduce[k] ? plan.each : plan.outputs) *= dims[k];
    if (dims[k] == 1) continue;
    if (!groups.empty() && groups.back().second == reduce[k]) {
      groups.back().first.size *= dims[k];
    } else {
      groups.push_back({{dims[k], stride}, reduce[k]});
    }
  }
  if (!groups.empty()) {
    plan.last = groups.front().first;
    plan.last_reduced = groups.front().second;
    groups.erase(groups.begin());
  }
  for (auto at = groups.rbegin(); at != groups.rend(); ++at) {
    (at->second ? plan.reduced : plan.kept).push_back(at->first);
  }
  return plan;
}

/// Offset of the `index`-th combination of `groups` in row-major order.
int64_t offset_of(const std::vector<Group>& groups, int64_t index) {
  int64_t offset = 0;
  for (size_t k = groups.size(); k-- > 0; index /= groups[k].size) {
    offset += index % groups[k].size * groups[k].stride;
  }
  return offset;
}

template <class T>
using Wide = std::conditional_t<std::is_same_v<T, float>, double, T>;

template <class T>
class ReduceKernel final : public Kernel {
 public:
  ReduceKernel(const NodeSpec& node, const Context& context, Kind kind, ReducePlan plan)
      : context_(context), kind_(kind), plan_(std::move(plan)) {
    (void)node;
    outer_reduced_ =
        plan_.last_reduced ? plan_.each / std::max<int64_t>(1, plan_.last.size) : plan_.each;
    if (plan_.each == 0) outer_reduced_ = 0;
  }

  bool cannot_fail() const override { return true; }
  int64_t workspace_bytes() const override {
    return std::max(plan_.outputs, kBlocks) * int64_t{sizeof(Wide<T>)};
  }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void* workspace,
              gr_error_t*) const override {
    const T* x = host::data<T>(in[0]);
    T* y = host::data<T>(out[0]);
    auto* sums = static_cast<Wide<T>*>(workspace);
    if (plan_.outputs == 0) return GR_OK;
    if (plan_.last_reduced) {
      reduce_rows(x, y, sums);
    } else {
      reduce_columns(x, y, sums);
    }
    return GR_OK;
  }

 private:
  static constexpr int64_t kBlocks = 64;  // of one long sum

  bool is_sum() const { return kind_ == Kind::kSum || kind_ == Kind::kMean; }
  Wide<T> start() const {
    if (is_sum()) return 0;
    using Limits = std::numeric_limits<Wide<T>>;
    const Wide<T> low = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    const Wide<T> high = Limits::has_infinity ? Limits::infinity() : Limits::max();
    return kind_ == Kind::kMax ? low : high;
  }
  Wide<T> join(Wide<T> a, Wide<T> b) const {
    if (is_sum()) return a + b;
    if (kind_ == Kind::kMax) return b > a || b != b ? b : a;
    return b < a || b != b ? b : a;
  }
  Wide<T> row(const T* x, int64_t n) const {
    if constexpr (std::is_same_v<T, float>) {
      if (is_sum()) return context_.loops.sum(x, n);
      if (kind_ == Kind::kMax) return context_.loops.max(x, n);
    }
    Wide<T> total = start();
    for (int64_t i = 0; i < n; ++i) total = join(total, static_cast<Wide<T>>(x[i]));
    return total;
  }
  T finish(Wide<T> total) const {
    if (kind_ == Kind::kMean) total /= static_cast<Wide<T>>(plan_.each);
    return static_cast<T>(total);
  }

  void reduce_rows(const T* x, T* y, Wide<T>* sums) const {
    const int64_t n = plan_.last.size;
    if (plan_.outputs == 1 && outer_reduced_ == 1 && n >= kBlocks * 256) {
      // One long sum: blocks that depend on its length alone, joined in order.
      context_.pool.run_pieces(kBlocks, [&](int64_t k) {
        const int64_t begin = n * k / kBlocks, end = n * (k + 1) / kBlocks;
        sums[k] = row(x + begin, end - begin);
      });
      Wide<T> total = start();
      for (int64_t k = 0; k < kBlocks; ++k) total = join(total, sums[k]);
      *y = finish(total);
      return;
    }
    const int64_t grain = std::max<int64_t>(1, kPlainGrain / std::max<int64_t>(1, plan_.each));
    context_.pool.parallel(plan_.outputs, grain, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        const T* at = x + offset_of(plan_.kept, k);
        Wide<T> total = start();
        for (int64_t r = 0; r < outer_reduced_; ++r) {
          total = join(total, row(at + offset_of(plan_.reduced, r), n));
        }
        y[k] = finish(total);
      }
    });
  }

  void reduce_columns(const T* x, T* y, Wide<T>* sums) const {
    const int64_t n = plan_.last.size, rows = plan_.outputs / n;
    // Cut along columns as well when there are few rows of outputs.
    const int64_t cut = rows >= context_.pool.threads() ? n : std::max<int64_t>(16, (n + 3) / 4);
    const int64_t cuts = (n + cut - 1) / cut;
    const int64_t work = std::max<int64_t>(1, plan_.each * cut);
    context_.pool.parallel(
        rows * cuts, std::max<int64_t>(1, kPlainGrain / work), [&](int64_t begin, int64_t end) {
          for (int64_t k = begin; k < end; ++k) {
            const int64_t from = k % cuts * cut, width = std::min(cut, n - from);
            const int64_t to = k / cuts * n + from;
            columns(x + offset_of(plan_.kept, k / cuts) + from, sums + to, width);
            for (int64_t j = 0; j < width; ++j) y[to + j] = finish(sums[to + j]);
          }
        });
  }

  void columns(const T* x, Wide<T>* sums, int64_t width) const {
    for (int64_t j = 0; j < width; ++j) sums[j] = start();
    for (int64_t r = 0; r < outer_reduced_; ++r) {
      const T* at = x + offset_of(plan_.reduced, r);
      if constexpr (std::is_same_v<T, float>) {
        if (is_sum()) {
          context_.loops.add_to_columns(at, sums, width);
          continue;
        }
      }
      for (int64_t j = 0; j < width; ++j) sums[j] = join(sums[j], static_cast<Wide<T>>(at[j]));
    }
  }

  const Context& context_;
  Kind kind_;
  ReducePlan plan_;
  int64_t outer_reduced_ = 1;  // combinations of the reduced groups but the last
};

/// Which axes go: those of input 1 or of the attribute; without any, all or none.
std::string reduced_axes(const NodeSpec& node, std::vector<bool>* reduce) {
  const size_t rank = node.inputs[0].rank();
  std::vector<int64_t> axes = node.get_ints("axes");
  if (node.has_input(1) && !node.known_ints(1, &axes)) return "axes are not a constant";
  reduce->assign(rank, axes.empty() && node.get_int("noop_with_empty_axes", 0) == 0);
  for (const int64_t axis : axes) {
    const int64_t at = axis < 0 ? axis + static_cast<int64_t>(rank) : axis;
    if (at < 0 || at >= static_cast<int64_t>(rank)) return "an axis outside the rank";
    (*reduce)[static_cast<size_t>(at)] = true;
  }
  return {};
}

std::string claim_reduce(const NodeSpec& node) {
  const gr_dtype_t dtype = node.inputs[0].dtype;
  if (dtype != GR_FLOAT32 && dtype != GR_FLOAT64 && dtype != GR_INT64) {
    return "input 0 is " + host::dtype_text(dtype);
  }
  std::vector<bool> reduce;
  return reduced_axes(node, &reduce);
}

std::unique_ptr<Kernel> make_reduce(const NodeSpec& node, const Context& context, Kind kind) {
  std::vector<bool> reduce;
  reduced_axes(node, &reduce);
  ReducePlan plan = make_plan(node.inputs[0].dims, reduce);
  switch (node.inputs[0].dtype) {
    case GR_FLOAT32:
      return std::make_unique<ReduceKernel<float>>(node, context, kind, std::move(plan));
    case GR_FLOAT64:
      return std::make_unique<ReduceKernel<double>>(node, context, kind, std::move(plan));
    default:
      return std::make_unique<ReduceKernel<int64_t>>(node, context, kind, std::move(plan));
  }
}

}  // namespace

void add_reduce_kernels(host::KernelTable& table, const Context& context) {
  const std::pair<const char*, Kind> ops[] = {{"ReduceSum", Kind::kSum},
                                              {"ReduceMean", Kind::kMean},
                                              {"ReduceMax", Kind::kMax},
                                              {"ReduceMin", Kind::kMin}};
  for (const auto& [op, kind] : ops) {
    table.add({op, claim_reduce, [&context, kind = kind](const NodeSpec& node) {
                 return make_reduce(node, context, kind);
               }});
  }
}

}  // namespace gradrack::cpu
