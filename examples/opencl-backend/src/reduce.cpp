// SPDX-License-Identifier: Apache-2.0
// ReduceSum, ReduceMax and ArgMax.
//
// A long reduction to few results is cut into parts, whose results are reduced again. How it is cut
// depends on the shape alone, so that equal launches give equal bits.
#include <algorithm>

#include "operators.hpp"

namespace opencl_backend {
namespace {

/// Input dims, split into those that stay and those that go, with their strides.
struct Reduction {
  Space kept, gone;
};

Reduction split(const Dims& dims, const std::vector<bool>& goes) {
  const Dims strides = dense_strides(dims);
  Dims kept, kept_strides, gone, gone_strides;
  for (size_t k = 0; k < dims.size(); ++k) {
    (goes[k] ? gone : kept).push_back(dims[k]);
    (goes[k] ? gone_strides : kept_strides).push_back(strides[k]);
  }
  return {Space(kept, {{kept_strides, 0}}), Space(gone, {{gone_strides, 0}})};
}

Reduction reduction_of(const gr::Node& node) {
  const Dims dims = dims_of(node.input(0));
  std::vector<int64_t> axes;
  (void)node.known_ints(1, &axes);
  std::vector<bool> goes(dims.size(), axes.empty() && node.get_int("noop_with_empty_axes") == 0);
  for (const int64_t axis : axes) {
    goes[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(dims.size()) : axis)] = true;
  }
  return split(dims, goes);
}

/// Text before the kernel: where a sum starts and how it goes on.
struct Rule {
  std::string start, join;
  bool carry = false;
};

Rule sum_rule(bool real, const std::string& wide) {
  if (!real) return {"0", "(long)((ulong)(a) + (ulong)(b))"};
  return {"0", "(a) + (b)", wide == "float"};
}

Rule max_rule(gr_dtype_t dtype) {
  if (is_real(dtype)) return {"-INFINITY", "(isnan(a) || (a) >= (b) ? (a) : (b))"};
  const bool byte = dtype == GR_UINT8 || dtype == GR_BOOL;
  const char* least = byte                ? "0"
                      : dtype == GR_INT8  ? "-128"
                      : dtype == GR_INT32 ? "(-2147483647 - 1)"
                                          : "LONG_MIN";
  return {least, "max(a, b)"};
}

struct Types {
  std::string to, from, accumulator;
};

/// One pass from `x` to `y`: every result of `r` in `parts` parts.
void add_pass(Builder& b, const Reduction& r, int64_t parts, const Port& x, const Port& y,
              const Types& types, const Rule& rule) {
  const int64_t results = r.kept.count() * parts, count = r.gone.count();
  const int64_t length = (count + parts - 1) / parts;
  std::string source = define_type("T", types.to) + define_type("F", types.from) +
                       define_type("ACC", types.accumulator) + "#define START (ACC)" + rule.start +
                       "\n#define JOIN(a, b) " + rule.join + "\n" +
                       (rule.carry ? "#define CARRY\n" : "") + r.kept.text("K") + r.gone.text("R") +
                       kernel_text("reduce");
  b.range(source, "reduce")
      .tensor(y)
      .tensor(x)
      .index(r.kept.count())
      .index(parts)
      .index(length)
      .index(count)
      .indices(r.kept.arguments())
      .indices(r.gone.arguments())
      .items(results);
}

/// Parts of each result: 1, unless there are few results of many elements.
int64_t parts_of(const Reduction& r) {
  constexpr int64_t kEnoughItems = 4096, kLeast = 512;
  const int64_t results = r.kept.count(), count = r.gone.count();
  const int64_t parts = std::min(count / kLeast, kEnoughItems / std::max<int64_t>(results, 1));
  if (parts <= 1) return 1;
  const int64_t length = (count + parts - 1) / parts;
  return (count + length - 1) / length;
}

void build_reduce(Builder& b, const Rule& rule, const std::string& wide) {
  const Reduction r = reduction_of(b.node());
  if (r.kept.count() == 0) return;
  const std::string type = type_name(b.node().input(0).dtype);
  const int64_t parts = parts_of(r);
  if (parts == 1) return add_pass(b, r, 1, b.input(0), b.output(0), {type, type, wide}, rule);
  const int64_t item = wide == "double" || wide == "long" ? 8 : 4;
  const Port partial = b.workspace(r.kept.count() * parts * item);
  add_pass(b, r, parts, b.input(0), partial, {wide, type, wide}, rule);
  const Reduction again = split({r.kept.count(), parts}, {false, true});
  add_pass(b, again, 1, partial, b.output(0), {type, wide, wide}, rule);
}

void build_sum(Builder& b) {
  const gr_dtype_t dtype = b.node().input(0).dtype;
  const std::string wide = wide_name(dtype, b.device());
  build_reduce(b, sum_rule(is_real(dtype), wide), wide);
}

void build_max(Builder& b) {
  const gr_dtype_t dtype = b.node().input(0).dtype;
  build_reduce(b, max_rule(dtype), is_real(dtype) ? type_name(dtype) : "long");
}

void build_arg_max(Builder& b) {
  const Dims dims = dims_of(b.node().input(0));
  const int64_t axis = b.node().get_int("axis");
  const auto at = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(dims.size()) : axis);
  std::vector<bool> goes(dims.size(), false);
  goes[at] = true;
  const Reduction r = split(dims, goes);
  if (r.kept.count() == 0) return;
  const std::string type = type_name(b.node().input(0).dtype);
  // The rest of the file is compiled too, so its words need a meaning.
  const std::string source = define_type("T", type) + define_type("F", type) +
                             define_type("ACC", type) +
                             "#define START 0\n#define JOIN(a, b) (a)\n" + r.kept.text("K") +
                             r.gone.text("R") + kernel_text("reduce");
  b.range(source, "arg_max")
      .tensor(b.output(0))
      .tensor(b.input(0))
      .index(r.kept.count())
      .index(dims[at])
      .index(dense_strides(dims)[at])
      .scalar(static_cast<cl_int>(b.node().get_int("select_last_index") != 0))
      .indices(r.kept.arguments())
      .items(r.kept.count());
}

}  // namespace

void add_reduce_operators(OperatorTable& table) {
  const auto refuse = [](const gr::Node& node, const Device& device) {
    const std::string reason = refuse_unknown(node, 1);
    return reason.empty() ? refuse_dtypes(node, device) : reason;
  };
  table["ReduceSum"] = {refuse, build_sum};
  table["ReduceMax"] = {refuse, build_max};
  table["ArgMax"] = {refuse_dtypes, build_arg_max};
}

}  // namespace opencl_backend
