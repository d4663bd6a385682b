// SPDX-License-Identifier: Apache-2.0
// Merging dims, and writing the text that finds places.
#include "space.hpp"

namespace opencl_backend {
namespace {

std::string name(const std::string& prefix, const char* what, size_t k) {
  return prefix + what + std::to_string(k);
}
std::string stride_name(const std::string& prefix, size_t layout, size_t dim) {
  return prefix + "s" + std::to_string(layout) + "_" + std::to_string(dim);
}

/// Dims k and k + 1 are one for every layout: the outer step is a whole run of the inner.
bool mergeable(const Dims& dims, const std::vector<Layout>& layouts, size_t k) {
  for (const Layout& layout : layouts) {
    if (layout.strides[k] != layout.strides[k + 1] * dims[k + 1]) return false;
  }
  return true;
}

void erase(Dims* dims, std::vector<Layout>* layouts, size_t k) {
  dims->erase(dims->begin() + static_cast<std::ptrdiff_t>(k));
  for (Layout& layout : *layouts) {
    layout.strides.erase(layout.strides.begin() + static_cast<std::ptrdiff_t>(k));
  }
}

}  // namespace

int64_t product(const Dims& dims, size_t first, size_t last) {
  int64_t count = 1;
  for (size_t k = first; k < last; ++k) count *= dims[k];
  return count;
}

Dims dense_strides(const Dims& dims) {
  Dims strides(dims.size());
  int64_t stride = 1;
  for (size_t k = dims.size(); k-- > 0; stride *= dims[k]) strides[k] = stride;
  return strides;
}

Dims broadcast_strides(const Dims& from, const Dims& to) {
  const Dims dense = dense_strides(from);
  Dims strides(to.size(), 0);
  const size_t lead = to.size() - from.size();
  for (size_t k = 0; k < from.size(); ++k) {
    if (from[k] != 1) strides[lead + k] = dense[k];
  }
  return strides;
}

Space::Space(Dims dims, std::vector<Layout> layouts)
    : dims_(std::move(dims)), layouts_(std::move(layouts)), count_(product(dims_)) {
  for (size_t k = dims_.size(); k-- > 0;) {
    if (dims_[k] == 1) erase(&dims_, &layouts_, k);
  }
  for (size_t k = dims_.size(); k-- > 1;) {
    if (!mergeable(dims_, layouts_, k - 1)) continue;
    dims_[k] *= dims_[k - 1];
    erase(&dims_, &layouts_, k - 1);
  }
  if (dims_.empty()) {
    dims_ = {1};
    for (Layout& layout : layouts_) layout.strides = {0};
  }
}

std::string Space::text(const std::string& prefix) const {
  const size_t rank = dims_.size();
  std::string params = "#define " + prefix + "_PARAMS", next = "#define " + prefix + "_NEXT ++";
  std::string index = "#define " + prefix + "_INDEX(i) IDX " + prefix + "r = (i);";
  for (size_t k = rank; k-- > 1;) {
    const std::string at = name(prefix, "i", k), size = name(prefix, "d", k);
    params += ", const IDX " + size;
    index += " IDX " + at + " = " + prefix + "r % " + size + "; " + prefix + "r /= " + size + ";";
    next += at + "; if (" + at + " == " + size + ") { " + at + " = 0; ++";
  }
  index += " IDX " + name(prefix, "i", 0) + " = " + prefix + "r;\n";
  next += name(prefix, "i", 0) + ";";
  for (size_t k = 1; k < rank; ++k) next += " }";
  std::string places;
  for (size_t t = 0; t < layouts_.size(); ++t) {
    std::string sum;
    if (layouts_[t].base != 0) {
      sum = name(prefix, "b", t);
      params += ", const IDX " + sum;
    }
    for (size_t k = 0; k < rank; ++k) {
      const int64_t stride = layouts_[t].strides[k];
      if (stride == 0) continue;
      sum += (sum.empty() ? "" : " + ") + name(prefix, "i", k);
      if (stride == 1) continue;
      params += ", const IDX " + stride_name(prefix, t, k);
      sum += " * " + stride_name(prefix, t, k);
    }
    places +=
        "#define " + prefix + "_AT" + std::to_string(t) + " (" + (sum.empty() ? "0" : sum) + ")\n";
  }
  return params + "\n" + index + places + next + "\n";
}

std::vector<int64_t> Space::arguments() const {
  std::vector<int64_t> values;
  for (size_t k = dims_.size(); k-- > 1;) values.push_back(dims_[k]);
  for (const Layout& layout : layouts_) {
    if (layout.base != 0) values.push_back(layout.base);
    for (const int64_t stride : layout.strides) {
      if (stride != 0 && stride != 1) values.push_back(stride);
    }
  }
  return values;
}

}  // namespace opencl_backend
