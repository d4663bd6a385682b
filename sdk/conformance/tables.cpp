// SPDX-License-Identifier: Apache-2.0
// Tables of a chosen size: see tables.hpp.
#include "sdk/conformance/tables.hpp"

namespace gradrack::conform {
namespace {

constexpr unsigned char kCanary = 0xA5;
constexpr size_t kCanaries = 512;  // more than any table that a plugin may take for the host's

}  // namespace

RawTable::RawTable(size_t announced) : announced_(announced), bytes_(announced + kCanaries, 0) {
  std::fill(bytes_.begin() + static_cast<std::ptrdiff_t>(announced), bytes_.end(), kCanary);
  const auto size = static_cast<uint32_t>(announced);
  std::memcpy(bytes_.data(), &size, sizeof size);
}

RawTable::~RawTable() {
  if (made_ && head().destroy != nullptr) head().destroy(head().self);
}

TableHead RawTable::head() const {
  TableHead head;
  std::memcpy(&head, bytes_.data(), sizeof head);
  return head;
}

bool RawTable::filled(const Slot& slot) const {
  if (slot.offset + sizeof(void*) > announced_) return false;
  void* pointer = nullptr;
  std::memcpy(&pointer, bytes_.data() + slot.offset, sizeof pointer);
  return pointer != nullptr;
}

int64_t RawTable::first_changed(size_t from) const {
  for (size_t k = from; k < bytes_.size(); ++k) {
    if (bytes_[k] != (k < announced_ ? 0 : kCanary)) return static_cast<int64_t>(k);
  }
  return -1;
}

}  // namespace gradrack::conform
