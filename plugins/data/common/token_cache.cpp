// SPDX-License-Identifier: Apache-2.0
// TokenCache: see token_cache.hpp.
#include "plugins/data/common/token_cache.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "gradrack/error.hpp"
#include "gradrack/extensions.h"
#include "plugins/data/common/digest.hpp"

namespace corpus {

namespace gr = gradrack::sdk;

namespace {

constexpr char kMagic[8] = {'G', 'R', 'T', 'O', 'K', 'E', 'N', '1'};

/// The file: this, the ends as int64, the ids.
struct Header {
  char magic[8];
  char key[64];
  char checksum[64];  // SHA-256 of what follows the header
  int64_t width, count, documents;
};

std::string checksum_of(std::span<const std::byte> ends, std::span<const std::byte> ids) {
  Digest digest;
  digest.add(ends);
  digest.add(ids);
  return digest.hex();
}

/// Why a file is not to be believed; "" when it is.
std::string fault_of(std::span<const std::byte> bytes, const std::string& key, int width,
                     Header* header) {
  if (bytes.size() < sizeof *header) return "it ends within its header";
  std::memcpy(header, bytes.data(), sizeof *header);
  const auto is = [](const char* field, std::string_view wanted) {
    return std::string_view(field, wanted.size()) == wanted;
  };
  if (!is(header->magic, {kMagic, sizeof kMagic})) return "it is of another format";
  if (!is(header->key, key)) return "it is of another text";
  const auto rest = static_cast<int64_t>(bytes.size() - sizeof *header);
  const bool sane = header->width == width && header->count >= 0 && header->documents >= 0 &&
                    header->documents <= rest / 8 && header->count <= rest / width &&
                    header->documents * 8 + header->count * width == rest;
  if (!sane) return "its sizes contradict each other";
  const auto body = bytes.subspan(sizeof *header);
  const auto ends = body.first(static_cast<size_t>(header->documents) * 8);
  if (!is(header->checksum, checksum_of(ends, body.subspan(ends.size())))) {
    return "its checksum does not hold";
  }
  return "";
}

bool write_all(int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return true;
}

}  // namespace

TokenCache::TokenCache(const gr_host_t& host) : host_(host) {
  const auto* cache =
      static_cast<const gr_cache_t*>(host.get_extension(host.context, GR_EXT_CACHE));
  const char* folder = cache == nullptr ? nullptr : cache->folder(cache->context);
  if (folder != nullptr) folder_ = folder;
}

std::string TokenCache::path_of(const std::string& key) const {
  return folder_ + "/tokens-" + key + ".bin";
}

void TokenCache::warn(const std::string& what) const {
  host_.log(host_.context, GR_LOG_WARN, what.c_str());
}

std::optional<Tokenized> TokenCache::find(const std::string& key, int64_t vocab) const {
  if (folder_.empty() || ::access(path_of(key).c_str(), F_OK) != 0) return {};
  try {
    Tokenized found;
    found.kept = std::make_unique<MappedFile>(path_of(key), "cache");
    const std::span<const std::byte> bytes = found.kept->bytes();
    Header header;
    const std::string fault = fault_of(bytes, key, id_width(vocab), &header);
    if (!fault.empty()) {
      warn("tokens kept in " + path_of(key) + " are made anew: " + fault);
      return {};
    }
    found.ends.resize(static_cast<size_t>(header.documents));
    const std::byte* body = bytes.data() + sizeof header;
    std::memcpy(found.ends.data(), body, found.ends.size() * 8);
    found.ids = IdView(body + found.ends.size() * 8, static_cast<int>(header.width), header.count);
    return found;
  } catch (const gr::Error& error) {
    warn(gr::text("tokens kept are made anew: ", error.what()));
    return {};
  }
}

void TokenCache::keep(const std::string& key, const Tokenized& tokens) const {
  if (folder_.empty()) return;
  const auto ends = std::as_bytes(std::span(tokens.ends));
  Header header = {};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  std::memcpy(header.key, key.data(), sizeof header.key);
  std::memcpy(header.checksum, checksum_of(ends, tokens.ids.bytes()).data(),
              sizeof header.checksum);
  header.width = tokens.ids.width();
  header.count = tokens.ids.size();
  header.documents = static_cast<int64_t>(tokens.ends.size());
  std::string aside = path_of(key) + ".XXXXXX";
  const int file = ::mkstemp(aside.data());
  const auto failed = [&](const char* what) {
    const int reason = errno;
    if (file >= 0) ::unlink(aside.c_str());
    warn(gr::text("tokens are not kept: cannot ", what, " ", aside, ": ", std::strerror(reason)));
  };
  if (file < 0) return failed("make");
  const bool whole = write_all(file, std::as_bytes(std::span(&header, 1))) &&
                     write_all(file, ends) && write_all(file, tokens.ids.bytes()) &&
                     ::fsync(file) == 0;
  const int reason = errno;
  ::close(file);
  errno = reason;
  if (!whole) return failed("write");
  if (std::rename(aside.c_str(), path_of(key).c_str()) != 0) failed("rename");
}

}  // namespace corpus
