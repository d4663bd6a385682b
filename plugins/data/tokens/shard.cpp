// SPDX-License-Identifier: Apache-2.0
// Shard: see shard.hpp.
#include "shard.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "gradrack/error.hpp"
#include "plugins/data/common/digest.hpp"

namespace gr = gradrack::sdk;

namespace {

constexpr size_t kHeaderBytes = 1024;
constexpr int64_t kStretch = 1 << 22;  // ids looked at between two ticks

struct Variant {
  int32_t magic, version;
  int width;
};
constexpr Variant kVariants[] = {{20240520, 1, 2}, {20240801, 7, 4}};

const char* dtype_name(int width) { return width == 2 ? "uint16" : "uint32"; }

const Variant* variant_of(int32_t magic) {
  for (const Variant& variant : kVariants) {
    if (variant.magic == magic) return &variant;
  }
  return nullptr;
}

}  // namespace

Shard::Shard(std::string path, const ShardFormat& format) : file_(std::move(path), "files") {
  std::array<int32_t, 3> head = {};
  const std::span<const std::byte> bytes = file_.bytes();
  if (!bytes.empty()) {
    std::memcpy(head.data(), bytes.data(), std::min(bytes.size(), sizeof head));
  }
  const Variant* variant = bytes.size() >= sizeof head ? variant_of(head[0]) : nullptr;
  if (format.form == "plain" || (format.form == "auto" && variant == nullptr)) {
    read_plain(format);
    return;
  }
  gr::require(variant != nullptr, GR_INVALID_ARGUMENT, "files", file_.path(), ": begins with ",
              head[0], ", wanted one of llm.c's numbers, 20240520 or 20240801: set `form: plain`");
  gr::require(head[1] == variant->version, GR_INVALID_ARGUMENT, "files", file_.path(),
              ": is llm.c's format ", head[0], " of version ", head[1], ", wanted ",
              variant->version, ": set `form: plain` if that is a token");
  read_header(head[2], variant->width, format);
}

void Shard::read_header(int64_t count, int width, const ShardFormat& format) {
  const auto size = static_cast<int64_t>(file_.bytes().size());
  const int64_t wanted = static_cast<int64_t>(kHeaderBytes) + count * width;
  gr::require(count >= 0 && size == wanted, GR_INVALID_ARGUMENT, "files", file_.path(), ": has ",
              size, " bytes, its header speaks of ", count, " tokens of ", width, " bytes, so ",
              wanted, " with the header: the file is damaged");
  gr::require(format.dtype == "auto" || format.dtype == dtype_name(width), GR_INVALID_ARGUMENT,
              "dtype", file_.path(), ": its header says ", dtype_name(width), ", `dtype` is ",
              format.dtype, ": leave it out");
  ids_ = corpus::IdView(file_.bytes().data() + kHeaderBytes, width, count);
  form_ = gr::text(dtype_name(width), " of llm.c");
}

void Shard::read_plain(const ShardFormat& format) {
  const int width = format.dtype == "uint32" ? 4 : 2;
  const size_t size = file_.bytes().size();
  gr::require(size % static_cast<size_t>(width) == 0, GR_INVALID_ARGUMENT, "files", file_.path(),
              ": has ", size, " bytes, which are no whole number of ", dtype_name(width),
              " tokens: the file is cut, or `dtype` is another");
  ids_ = corpus::IdView(file_.bytes().data(), width, static_cast<int64_t>(size) / width);
  form_ = gr::text("plain ", dtype_name(width));
}

ShardContent Shard::look(int64_t vocab, const std::function<void()>& tick) const {
  const std::span<const std::byte> file = file_.bytes(), body = ids_.bytes();
  const auto width = static_cast<size_t>(ids_.width());
  ShardContent content;
  corpus::Digest digest;
  digest.add(file.first(file.size() - body.size()));
  for (int64_t first = 0; first < ids_.size(); first += kStretch) {
    const int64_t count = std::min(kStretch, ids_.size() - first);
    tick();
    digest.add(
        body.subspan(static_cast<size_t>(first) * width, static_cast<size_t>(count) * width));
    content.largest = std::max(content.largest, ids_.largest(first, count));
    if (vocab == 0 || content.largest < vocab) continue;
    const int64_t position = ids_.find_beyond(vocab, first, count);
    throw gr::Error(
        GR_OUT_OF_RANGE, "vocab",
        gr::text(file_.path(), ": token outside the vocabulary: id ", ids_.at(position),
                 " at position ", position, ", vocab is ", vocab, ", the file is read as ", form_));
  }
  const std::string& path = file_.path();
  content.identity =
      gr::text(path.substr(path.rfind('/') + 1), ' ', file.size(), ' ', form_, ' ', digest.hex());
  return content;
}
