// SPDX-License-Identifier: Apache-2.0
// StridedCopy: the loops. All strides here are in bytes.
#include "backends/cpu/strided_copy.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

namespace gradrack::cpu {
namespace {

template <class T>
void copy_element(const char* from, char* to) {
  T value;
  std::memcpy(&value, from, sizeof value);
  std::memcpy(to, &value, sizeof value);
}

/// rows x n elements; in blocks, so that both sides stay in cache when their fast dims differ.
template <class T>
void copy_plane(const char* from, char* to, int64_t rows, int64_t n, int64_t from_row,
                int64_t to_row, int64_t from_step, int64_t to_step) {
  constexpr int64_t kBlock = 16;
  for (int64_t r0 = 0; r0 < rows; r0 += kBlock) {
    const int64_t r1 = std::min(rows, r0 + kBlock);
    for (int64_t i0 = 0; i0 < n; i0 += kBlock) {
      const int64_t i1 = std::min(n, i0 + kBlock);
      for (int64_t r = r0; r < r1; ++r) {
        const char* source = from + r * from_row;
        char* target = to + r * to_row;
        for (int64_t i = i0; i < i1; ++i) {
          copy_element<T>(source + i * from_step, target + i * to_step);
        }
      }
    }
  }
}

template <class T>
void fill_row(const char* from, char* to, int64_t n) {
  T value;
  std::memcpy(&value, from, sizeof value);
  for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * int64_t{sizeof(T)}, &value, sizeof value);
}

template <class Body>
void dispatch_bytes(int64_t bytes, Body body) {
  switch (bytes) {
    case 1:
      return body(uint8_t{});
    case 2:
      return body(uint16_t{});
    case 4:
      return body(uint32_t{});
    default:
      return body(uint64_t{});
  }
}

}  // namespace

StridedCopy::StridedCopy(const host::Dims& dims, View from, View to, int64_t bytes)
    : from_offset_(from.offset * bytes), to_offset_(to.offset * bytes), bytes_(bytes) {
  std::vector<Dim> merged;  // innermost first
  int64_t total = 1;
  for (size_t k = dims.size(); k-- > 0;) {
    total *= dims[k];
    if (dims[k] == 1) continue;
    const Dim dim{dims[k], from.strides[k] * bytes, to.strides[k] * bytes};
    if (!merged.empty()) {
      Dim& in = merged.back();
      if (dim.from == in.from * in.size && dim.to == in.to * in.size) {
        in.size *= dim.size;
        continue;
      }
    }
    merged.push_back(dim);
  }
  inner_ = {1, bytes, bytes};
  if (total == 0) {
    outer_count_ = 0;
    return;
  }
  if (!merged.empty()) {
    inner_ = merged.front();
    merged.erase(merged.begin());
  }
  // Beside the inner dim goes the one that the source walks fastest, if the inner one is not that.
  if (!merged.empty()) {
    auto at = merged.begin();
    if (std::abs(inner_.from) != bytes && inner_.from != 0) {
      at = std::min_element(merged.begin(), merged.end(), [](const Dim& a, const Dim& b) {
        return std::abs(a.from) < std::abs(b.from);
      });
    }
    rows_ = *at;
    merged.erase(at);
  }
  std::reverse(merged.begin(), merged.end());
  outer_ = std::move(merged);
  for (const Dim& dim : outer_) outer_count_ *= dim.size;
}

void StridedCopy::run_range(const char* from, char* to, int64_t begin, int64_t end) const {
  // Work is counted in rows; one outer index holds rows_.size of them.
  while (begin < end) {
    int64_t rest = begin / rows_.size, source = from_offset_, target = to_offset_;
    for (size_t d = outer_.size(); d-- > 0; rest /= outer_[d].size) {
      source += rest % outer_[d].size * outer_[d].from;
      target += rest % outer_[d].size * outer_[d].to;
    }
    const int64_t first = begin % rows_.size;
    const int64_t rows = std::min(rows_.size - first, end - begin);
    const char* s = from + source + first * rows_.from;
    char* t = to + target + first * rows_.to;
    if (inner_.from == bytes_ && inner_.to == bytes_) {
      for (int64_t r = 0; r < rows; ++r) {
        std::memcpy(t + r * rows_.to, s + r * rows_.from,
                    static_cast<size_t>(inner_.size * bytes_));
      }
    } else {
      dispatch_bytes(bytes_, [&](auto zero) {
        using T = decltype(zero);
        if (inner_.from == 0 && inner_.to == bytes_) {
          for (int64_t r = 0; r < rows; ++r) {
            fill_row<T>(s + r * rows_.from, t + r * rows_.to, inner_.size);
          }
        } else {
          copy_plane<T>(s, t, rows, inner_.size, rows_.from, rows_.to, inner_.from, inner_.to);
        }
      });
    }
    begin += rows;
  }
}

void StridedCopy::run(Pool& pool, const void* from, void* to) const {
  constexpr int64_t kGrainBytes = 1 << 16;
  const int64_t grain = std::max<int64_t>(1, kGrainBytes / (inner_.size * bytes_));
  if (outer_count_ * rows_.size == 1 && inner_.from == bytes_ && inner_.to == bytes_) {
    const char* s = static_cast<const char*>(from) + from_offset_;
    char* t = static_cast<char*>(to) + to_offset_;
    pool.parallel(inner_.size * bytes_, kGrainBytes, [&](int64_t begin, int64_t end) {
      std::memcpy(t + begin, s + begin, static_cast<size_t>(end - begin));
    });
    return;
  }
  pool.parallel(outer_count_ * rows_.size, grain, [&](int64_t begin, int64_t end) {
    run_range(static_cast<const char*>(from), static_cast<char*>(to), begin, end);
  });
}

}  // namespace gradrack::cpu
