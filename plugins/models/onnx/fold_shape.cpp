// SPDX-License-Identifier: Apache-2.0
// Folding of what moves elements: Gather, Concat, Slice, Squeeze, Unsqueeze, Reshape, Transpose,
// Expand, Range, ConstantOfShape, NonZero. See fold.hpp.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "fields.hpp"
#include "fold.hpp"

namespace gradrack::onnx {

namespace {

template <typename... Parts>
void check(bool good, const Parts&... parts) {
  sdk::require(good, GR_INVALID_ARGUMENT, "file", parts...);
}

int64_t product(const std::vector<int64_t>& dims, size_t from, size_t to) {
  int64_t count = 1;
  for (size_t k = from; k < to; ++k) count *= dims[k];
  return count;
}

/// May a result have these dims? Too many elements, or dims, are left to the run.
bool fits(const std::vector<int64_t>& dims) {
  const int64_t count = element_count(dims);
  check(count >= 0, "would make a tensor of dims ", dims_text(dims),
        ", wanted numbers from 0 that leave 63 bits together");
  return count <= kMostFolded && dims.size() <= GR_MAX_RANK;
}

bool gather(NodeImport& n, const std::vector<Numbers>& in, Numbers* out) {
  const Numbers &data = in[0], &indices = in[1];
  const size_t axis = axis_of(n.attr("axis", int64_t{0}), data.dims.size());
  std::vector<int64_t> dims(data.dims.begin(), data.dims.begin() + long(axis));
  dims.insert(dims.end(), indices.dims.begin(), indices.dims.end());
  dims.insert(dims.end(), data.dims.begin() + long(axis) + 1, data.dims.end());
  if (!fits(dims)) return false;
  *out = data.empty_like(dims);
  const int64_t width = data.dims[axis];
  for (const int64_t index : places_of(indices)) {
    check(index >= -width && index < width, "index ", index, " of a dim of ", width);
  }
  const int64_t outer = element_count(dims) == 0 ? 0 : product(data.dims, 0, axis);
  const int64_t inner = product(data.dims, axis + 1, data.dims.size());
  for (int64_t o = 0; o < outer; ++o) {
    for (const int64_t index : indices.ints) {
      const int64_t row = o * width + (index < 0 ? index + width : index);
      for (int64_t k = 0; k < inner; ++k) out->append(data, size_t(row * inner + k));
    }
  }
  return true;
}

bool concat(NodeImport& n, const std::vector<Numbers>& in, Numbers* out) {
  const size_t rank = in[0].dims.size(), axis = axis_of(n.attr("axis", int64_t{0}), rank);
  std::vector<int64_t> dims = in[0].dims;
  dims[axis] = 0;
  for (const Numbers& part : in) {
    check(part.dims.size() == rank && part.type == in[0].type, "its inputs differ in rank or type");
    for (size_t k = 0; k < rank; ++k) {
      check(k == axis || part.dims[k] == dims[k], "its inputs differ in dim ", k);
    }
    const bool wraps = __builtin_add_overflow(dims[axis], part.dims[axis], &dims[axis]);
    check(!wraps, "its inputs have more than 63 bits of dim ", axis);
  }
  if (!fits(dims)) return false;
  *out = in[0].empty_like(dims);
  const int64_t outer = element_count(dims) == 0 ? 0 : product(dims, 0, axis);
  for (int64_t o = 0; o < outer; ++o) {
    for (const Numbers& part : in) {
      const int64_t run = product(part.dims, axis, rank);
      for (int64_t k = 0; k < run; ++k) out->append(part, size_t(o * run + k));
    }
  }
  return true;
}

/// Starts, counts and steps by axis.
struct Cut {
  std::vector<int64_t> start, count, step;
};

Cut cut_of(NodeImport& n, const std::vector<Numbers>& in) {
  const std::vector<int64_t>& dims = in[0].dims;
  const bool by_input = n.version() >= 10;
  const auto part = [&](size_t k, const char* name) {
    if (!by_input) return n.attr_ints(name);
    return k < in.size() ? places_of(in[k]) : std::vector<int64_t>();
  };
  const std::vector<int64_t> starts = part(1, "starts"), ends = part(2, "ends");
  std::vector<int64_t> axes = part(3, "axes"), steps = by_input ? part(4, "") : starts;
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (!by_input || steps.empty()) steps.assign(starts.size(), 1);
  check(
      ends.size() == starts.size() && axes.size() == starts.size() && steps.size() == starts.size(),
      "starts, ends, axes and steps differ in number");
  Cut cut{std::vector<int64_t>(dims.size(), 0), dims, std::vector<int64_t>(dims.size(), 1)};
  for (size_t k = 0; k < starts.size(); ++k) {
    const size_t axis = axis_of(axes[k], dims.size());
    const int64_t dim = dims[axis], step = steps[k];
    check(step != 0, "a step of 0");
    const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? dim : dim - 1;
    const auto place = [&](int64_t at) {
      return std::clamp<int64_t>(at < 0 ? std::max(at, -dim - 1) + dim : at, low, high);
    };
    const int64_t from = place(starts[k]), to = place(ends[k]);
    const int64_t span = from < 0 ? 0 : step > 0 ? to - from : from - to;
    const int64_t width = step > 0 ? step : step < -dim ? dim + 1 : -step;
    cut.start[axis] = std::max<int64_t>(from, 0);
    cut.step[axis] = step;
    cut.count[axis] = span <= 0 ? 0 : (span - 1) / width + 1;
  }
  return cut;
}

/// out[i...] = in[start + i * step, ...] by axis.
Numbers strided(const Numbers& in, const std::vector<int64_t>& dims,
                const std::vector<int64_t>& start, const std::vector<int64_t>& stride) {
  Numbers out = in.empty_like(dims);
  std::vector<int64_t> at(dims.size(), 0);
  const int64_t count = element_count(dims);
  for (int64_t k = 0; k < count; ++k) {
    int64_t place = 0;
    for (size_t d = 0; d < dims.size(); ++d) place += start[d] + at[d] * stride[d];
    out.append(in, static_cast<size_t>(place));
    for (size_t d = dims.size(); d-- > 0;) {
      if (++at[d] < dims[d]) break;
      at[d] = 0;
    }
  }
  return out;
}

std::vector<int64_t> strides_of(const std::vector<int64_t>& dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t k = dims.size(); k-- > 1;) strides[k - 1] = strides[k] * dims[k];
  return strides;
}

bool slice(NodeImport& n, const std::vector<Numbers>& in, Numbers* out) {
  const Cut cut = cut_of(n, in);
  std::vector<int64_t> start = strides_of(in[0].dims), stride = start;
  for (size_t k = 0; k < start.size(); ++k) {
    start[k] *= cut.start[k];
    stride[k] *= cut.count[k] > 1 ? cut.step[k] : 1;
  }
  *out = strided(in[0], cut.count, start, stride);
  return true;
}

bool transpose(NodeImport& n, const std::vector<Numbers>& in, Numbers* out) {
  const size_t rank = in[0].dims.size();
  std::vector<int64_t> perm = n.attr_ints("perm");
  if (!n.has_attr("perm")) {
    for (size_t k = rank; k-- > 0;) perm.push_back(static_cast<int64_t>(k));
  }
  check(perm.size() == rank, "perm has ", perm.size(), " entries for rank ", rank);
  const std::vector<int64_t> strides = strides_of(in[0].dims);
  std::vector<int64_t> dims, stride;
  std::vector<bool> seen(rank, false);
  for (const int64_t entry : perm) {
    const size_t axis = axis_of(entry, rank);
    check(!seen[axis], "perm names an axis twice");
    seen[axis] = true;
    dims.push_back(in[0].dims[axis]);
    stride.push_back(strides[axis]);
  }
  *out = strided(in[0], dims, std::vector<int64_t>(rank, 0), stride);
  return true;
}

bool expand(const Numbers& in, std::vector<int64_t> dims, Numbers* out) {
  const size_t rank = std::max(dims.size(), in.dims.size());
  dims.insert(dims.begin(), rank - dims.size(), 1);
  std::vector<int64_t> own = in.dims;
  own.insert(own.begin(), rank - own.size(), 1);
  std::vector<int64_t> stride = strides_of(own);
  for (size_t k = 0; k < rank; ++k) {
    check(own[k] == dims[k] || own[k] == 1 || dims[k] == 1, dims_text(in.dims),
          " does not broadcast with ", dims_text(dims));
    if (dims[k] == 1) dims[k] = own[k];
    if (own[k] == 1) stride[k] = 0;
  }
  if (!fits(dims)) return false;
  *out = strided(in, dims, std::vector<int64_t>(rank, 0), stride);
  return true;
}

/// What Reshape makes of `own` dims: 0 copies one, -1 is what is left.
std::vector<int64_t> reshaped(const std::vector<int64_t>& own, std::vector<int64_t> dims,
                              bool allow_zero) {
  int64_t* open = nullptr;
  std::vector<int64_t> given;
  for (size_t k = 0; k < dims.size(); ++k) {
    if (dims[k] == 0 && !allow_zero) {
      check(k < own.size(), "0 at place ", k, " copies a dim that is not there");
      dims[k] = own[k];
    }
    check(dims[k] != -1 || open == nullptr, "-1 stands there twice");
    if (dims[k] == -1)
      open = &dims[k];
    else
      given.push_back(dims[k]);
  }
  (void)fits(given);
  const int64_t rest = element_count(given);
  if (open != nullptr) *open = rest == 0 ? 0 : element_count(own) / rest;
  return dims;
}

/// Squeeze, Unsqueeze, Reshape: the same elements under other dims.
bool redim(NodeImport& n, const std::vector<Numbers>& in, Numbers* out) {
  const std::string& op = n.node().op;
  const std::vector<int64_t>& own = in[0].dims;
  std::vector<int64_t> dims;
  const bool has_axes = in.size() > 1 && n.has(1);
  std::vector<int64_t> axes = n.version() < 13 ? n.attr_ints("axes")
                              : has_axes       ? places_of(in[1])
                                               : std::vector<int64_t>();
  if (op == "Squeeze") {
    std::vector<bool> drop(own.size(), false);
    for (const int64_t axis : axes) drop[axis_of(axis, own.size())] = true;
    for (size_t k = 0; k < own.size(); ++k) {
      const bool dropped = axes.empty() ? own[k] == 1 : drop[k];
      check(!dropped || own[k] == 1, "dim ", k, " is ", own[k], ", only 1 can be squeezed");
      if (!dropped) dims.push_back(own[k]);
    }
  } else if (op == "Unsqueeze") {
    std::vector<bool> is_new(own.size() + axes.size(), false);
    for (const int64_t axis : axes) is_new[axis_of(axis, is_new.size())] = true;
    size_t next = 0;
    for (const bool added : is_new) {
      check(added || next < own.size(), "axes name one place twice");
      dims.push_back(added ? 1 : own[next++]);
    }
  } else {
    dims = reshaped(own, places_of(in[1]), n.attr("allowzero", int64_t{0}) != 0);
  }
  if (!fits(dims)) return false;
  check(element_count(dims) == element_count(own), "dims ", dims_text(own), " become ",
        dims_text(dims));
  *out = in[0];
  out->dims = dims;
  return true;
}

bool range(const std::vector<Numbers>& in, Numbers* out) {
  check(in[1].type == in[0].type && in[2].type == in[0].type,
        "start, limit and delta differ in type");
  bool exact = true;  // in 53 bits
  const auto number = [&](size_t k) {
    check(in[k].size() == 1, "start, limit and delta must be one number each");
    const double real = in[k].real ? in[k].reals[0] : static_cast<double>(in[k].ints[0]);
    exact = exact && (in[k].real || std::abs(real) <= 0x1p53);
    return real;
  };
  const double start = number(0), limit = number(1), delta = number(2);
  check(delta != 0, "a delta of 0");
  const double count = std::max(0.0, std::ceil((limit - start) / delta));
  if (!exact || !(count <= static_cast<double>(kMostFolded))) return false;
  *out = in[0].empty_like({static_cast<int64_t>(count)});
  for (int64_t k = 0; k < out->dims[0]; ++k) {
    if (out->real) {
      out->reals.push_back(start + static_cast<double>(k) * delta);
    } else {
      out->ints.push_back(in[0].ints[0] + k * in[2].ints[0]);
    }
  }
  return true;
}

bool constant_of_shape(NodeImport& n, const std::vector<Numbers>& in, Numbers* out) {
  if (!fits(places_of(in[0]))) return false;
  const AttributeMessage* const value = n.node().find("value");
  Numbers one{true, TensorDataType::FLOAT, {}, {}, {0.0}};
  if (value != nullptr && value->tensors.size() == 1) {
    one = numbers_of(read_tensor(value->tensors[0], *n.importer().model().files));
  }
  check(one.size() == 1, "its value holds ", one.size(), " elements, wanted 1");
  *out = one.empty_like(in[0].ints);
  for (int64_t k = 0; k < element_count(out->dims); ++k) out->append(one, 0);
  return true;
}

bool non_zero(const Numbers& in, Numbers* out) {
  const std::vector<int64_t> strides = strides_of(in.dims);
  std::vector<size_t> found;
  for (size_t k = 0; k < in.size(); ++k) {
    if (in.real ? in.reals[k] != 0 : in.ints[k] != 0) found.push_back(k);
  }
  *out = {false, TensorDataType::INT64, {int64_t(in.dims.size()), int64_t(found.size())}, {}, {}};
  for (size_t d = 0; d < in.dims.size(); ++d) {
    for (const size_t k : found) {
      out->ints.push_back(static_cast<int64_t>(k) / strides[d] % in.dims[d]);
    }
  }
  return true;
}

}  // namespace

bool fold_shape(NodeImport& n, std::vector<Numbers>& in, Numbers* out) {
  const std::string& op = n.node().op;
  if (op == "Gather" && in.size() == 2) return gather(n, in, out);
  if (op == "Concat") return concat(n, in, out);
  if (op == "Slice") return slice(n, in, out);
  if (op == "Transpose") return transpose(n, in, out);
  if (op == "Expand" && in.size() == 2) return expand(in[0], places_of(in[1]), out);
  if (op == "Squeeze" || (op == "Unsqueeze" && (n.version() < 13 || in.size() == 2))) {
    return redim(n, in, out);
  }
  if (op == "Reshape" && in.size() == 2) return redim(n, in, out);
  if (op == "Range" && in.size() == 3) return range(in, out);
  if (op == "ConstantOfShape") return constant_of_shape(n, in, out);
  if (op == "NonZero") return non_zero(in[0], out);
  return false;
}

}  // namespace gradrack::onnx
