// SPDX-License-Identifier: Apache-2.0
// The shelves of segments: see segment_cache.hpp.
#include "core/plan/segment_cache.hpp"

namespace gradrack {

namespace {

/// The entry, made where none lives. Those that ended are swept on the way to a new one.
template <typename Shelf, typename Make>
auto find_or_make(Shelf* shelf, const Digest& content, const Make& make, bool* made)
    -> Result<decltype(shelf->begin()->second.lock())> {
  auto found = (*shelf)[content].lock();
  if (made != nullptr) *made = found == nullptr;
  if (found != nullptr) return found;
  std::erase_if(*shelf, [](const auto& entry) { return entry.second.expired(); });
  auto result = make();
  if (!result.ok()) return result.status();
  using Entry = std::remove_reference_t<decltype(*result)>;
  found = std::make_shared<const Entry>(std::move(*result));
  (*shelf)[content] = found;
  return found;
}

}  // namespace

Result<std::shared_ptr<const Lowered>> SegmentCache::lowered(const Digest& content,
                                                             const MakeLowered& make, bool* made) {
  const std::lock_guard lock(mutex_);
  return find_or_make(&lowered_, content, make, made);
}

Result<std::shared_ptr<const Segment>> SegmentCache::kernels(const Digest& content,
                                                             const MakeSegment& make, bool* made) {
  const std::lock_guard lock(mutex_);
  bool fresh = false;
  auto found = find_or_make(&kernels_, content, make, &fresh);
  if (made != nullptr) *made = fresh;
  if (!found.ok()) return found;
  ++(fresh ? statistics_.built : statistics_.reused);
  if (fresh) statistics_.kernels += static_cast<int64_t>((*found)->kernels.size());
  return found;
}

SegmentStatistics SegmentCache::statistics() const {
  const std::lock_guard lock(mutex_);
  SegmentStatistics out = statistics_;
  for (const auto& [content, segment] : kernels_) out.live += segment.expired() ? 0 : 1;
  out.retired = out.built - static_cast<int64_t>(out.live);
  return out;
}

}  // namespace gradrack
