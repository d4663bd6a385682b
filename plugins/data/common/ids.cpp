// SPDX-License-Identifier: Apache-2.0
// Token ids: see ids.hpp.
#include "plugins/data/common/ids.hpp"

#include <algorithm>
#include <cstring>

namespace corpus {

namespace {

template <typename E>
E load(const std::byte* data, int64_t position) {
  E value;  // a header may leave ids unaligned
  std::memcpy(&value, data + position * static_cast<int64_t>(sizeof(E)), sizeof value);
  return value;
}

/// Calls `body` with a value of the type of that width.
template <typename Body>
auto by_width(int width, Body body) {
  if (width == 1) return body(uint8_t{});
  return width == 2 ? body(uint16_t{}) : body(uint32_t{});
}

}  // namespace

int id_width(int64_t vocab) {
  if (vocab <= 1 << 8) return 1;
  return vocab <= 1 << 16 ? 2 : 4;
}

int64_t IdView::at(int64_t position) const {
  return by_width(width_, [&](auto type) {
    return static_cast<int64_t>(load<decltype(type)>(data_, position));
  });
}

void IdView::copy(int64_t first, std::span<int64_t> out) const {
  by_width(width_, [&](auto type) {
    for (size_t k = 0; k < out.size(); ++k) {
      out[k] = load<decltype(type)>(data_, first + static_cast<int64_t>(k));
    }
  });
}

int64_t IdView::find_beyond(int64_t limit, int64_t first, int64_t count) const {
  return by_width(width_, [&](auto type) -> int64_t {
    for (int64_t k = first; k < first + count; ++k) {
      if (static_cast<int64_t>(load<decltype(type)>(data_, k)) >= limit) return k;
    }
    return -1;
  });
}

int64_t IdView::largest(int64_t first, int64_t count) const {
  return by_width(width_, [&](auto type) {
    int64_t found = -1;
    for (int64_t k = first; k < first + count; ++k) {
      found = std::max<int64_t>(found, load<decltype(type)>(data_, k));
    }
    return found;
  });
}

void IdList::append(std::span<const int32_t> ids) {
  const size_t before = bytes_.size();
  bytes_.resize(before + ids.size() * static_cast<size_t>(width_));
  by_width(width_, [&](auto type) {
    std::byte* to = bytes_.data() + before;
    for (const int32_t id : ids) {
      const auto narrow = static_cast<decltype(type)>(id);
      std::memcpy(to, &narrow, sizeof narrow);
      to += sizeof narrow;
    }
  });
}

}  // namespace corpus
