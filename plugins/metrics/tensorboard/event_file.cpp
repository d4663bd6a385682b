// SPDX-License-Identifier: Apache-2.0
// Event files: see event_file.hpp.
#include "event_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "gradrack/error.hpp"

namespace gradrack::tensorboard {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kPolynomial = 0x82f63b78;  // Castagnoli, bits reversed
constexpr uint32_t kMaskDelta = 0xa282ead8;
constexpr const char* kPrefix = "events.out.tfevents.";
enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
enum : uint64_t { kDtString = 7, kSessionStart = 1 };

constexpr std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table = {};
  for (uint32_t k = 0; k < table.size(); ++k) {
    uint32_t crc = k;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    table[k] = crc;
  }
  return table;
}

template <typename T>
void put_fixed(std::string* out, T value) {
  for (size_t k = 0; k < sizeof value; ++k) *out += static_cast<char>(value >> (8 * k));
}

void put_varint(std::string* out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) *out += static_cast<char>(value | 0x80);
  *out += static_cast<char>(value);
}

void put_tag(std::string* out, uint32_t field, WireType type) {
  put_varint(out, field << 3 | type);
}

void put_number(std::string* out, uint32_t field, uint64_t value) {
  put_tag(out, field, kVarint);
  put_varint(out, value);
}

void put_bytes(std::string* out, uint32_t field, std::string_view bytes) {
  put_tag(out, field, kBytes);
  put_varint(out, bytes.size());
  out->append(bytes);
}

std::string event_head(double time_s, int64_t step) {
  std::string event;
  uint64_t bits = 0;
  std::memcpy(&bits, &time_s, sizeof bits);
  put_tag(&event, 1, kFixed64);
  put_fixed(&event, bits);
  put_number(&event, 2, static_cast<uint64_t>(step));
  return event;
}

// SummaryMetadata {plugin_data 1 {plugin_name 1}}: which page of TensorBoard shows the value.
std::string page(std::string_view name) {
  std::string plugin, metadata;
  put_bytes(&plugin, 1, name);
  put_bytes(&metadata, 1, plugin);
  return metadata;
}

// TensorProto {dtype 1, tensor_shape 2, string_val 8} of one string.
std::string text_tensor(std::string_view text) {
  std::string dim, shape, tensor;
  put_number(&dim, 1, 1);
  put_bytes(&shape, 2, dim);
  put_number(&tensor, 1, kDtString);
  put_bytes(&tensor, 2, shape);
  put_bytes(&tensor, 8, text);
  return tensor;
}

[[noreturn]] void fail(const char* action, const std::string& path, int reason) {
  throw sdk::Error(GR_IO, "folder",
                   sdk::text("cannot ", action, " '", path, "': ", std::strerror(reason)));
}

// The number in the names of event files is seconds, and readers take files in the order of their
// names: also when the clock went backwards since.
int64_t last_number(const std::string& folder) {
  int64_t last = -1;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    const std::string name = at->path().filename().string();
    long long number = 0;
    if (name.rfind(kPrefix, 0) != 0) continue;
    if (std::sscanf(name.c_str() + std::strlen(kPrefix), "%lld", &number) != 1) continue;
    last = std::max<int64_t>(last, number);
  }
  return last;
}

// CRC32C (Castagnoli), as masked for a frame.
uint32_t masked_crc(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = crc_table();
  uint32_t crc = 0xffffffff;
  for (const char c : bytes)
    crc = kTable[(crc ^ static_cast<unsigned char>(c)) & 0xff] ^ (crc >> 8);
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + kMaskDelta;
}

// `message` with length and check sums around it.
std::string framed(std::string_view message) {
  std::string frame;
  put_fixed(&frame, static_cast<uint64_t>(message.size()));
  put_fixed(&frame, masked_crc(frame));
  frame.append(message);
  put_fixed(&frame, masked_crc(message));
  return frame;
}

}  // namespace

void Summary::add_scalar(std::string_view tag, double value) {
  std::string item;
  put_bytes(&item, 1, tag);
  const auto narrow = static_cast<float>(value);
  uint32_t bits = 0;
  std::memcpy(&bits, &narrow, sizeof bits);
  put_tag(&item, 2, kFixed32);
  put_fixed(&item, bits);
  put_bytes(&bytes_, 1, item);
}

void Summary::add_text(std::string_view tag, std::string_view text) {
  std::string item;
  put_bytes(&item, 1, tag);
  put_bytes(&item, 8, text_tensor(text));
  put_bytes(&item, 9, page("text"));
  put_bytes(&bytes_, 1, item);
}

std::string version_event(double time_s) {
  std::string event = event_head(time_s, 0);
  put_bytes(&event, 3, "brain.Event:2");
  return event;
}

std::string summary_event(double time_s, int64_t step, const Summary& summary) {
  std::string event = event_head(time_s, step);
  put_bytes(&event, 5, summary.bytes());
  return event;
}

std::string restart_event(double time_s, int64_t step) {
  std::string event = event_head(time_s, step), session;
  put_number(&session, 1, kSessionStart);
  put_bytes(&event, 7, session);
  return event;
}

void EventFile::create(const std::string& folder, double time_s, bool* earlier) {
  close();
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) fail("make folder", folder, failed.value());
  const int64_t last = last_number(folder);
  *earlier = last >= 0;
  const int64_t number = std::max(static_cast<int64_t>(time_s), last + 1);
  char name[64];
  (void)std::snprintf(name, sizeof name, "/%s%010lld.gradrack.%ld", kPrefix,
                      static_cast<long long>(number), static_cast<long>(::getpid()));
  path_ = folder + name;
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail("write", path_, errno);
}

void EventFile::append(std::string_view message) {
  sdk::require(is_open(), GR_FAILED_PRECONDITION, "folder", "no event file is open");
  const std::string frame = framed(message);
  const off_t before = ::lseek(descriptor_, 0, SEEK_END);
  ssize_t written = 0;
  do {
    written = ::write(descriptor_, frame.data(), frame.size());
  } while (written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(frame.size())) return;
  const int reason = written < 0 ? errno : ENOSPC;
  // A reader stops at half a frame for good: take it back.
  if (written > 0 && before >= 0) (void)!::ftruncate(descriptor_, before);
  fail("write", path_, reason);
}

void EventFile::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

}  // namespace gradrack::tensorboard
