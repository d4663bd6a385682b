// SPDX-License-Identifier: Apache-2.0
// Wire format: see wire.hpp. Little-endian machines alone, as all that Gradrack runs on.
#include "wire.hpp"

#include <bit>
#include <cstring>

#include "gradrack/error.hpp"

namespace gradrack::onnx {

namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint32_t kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5;

}  // namespace

void WireReader::fail(const char* why) const {
  throw sdk::Error(GR_INVALID_ARGUMENT, "file",
                   sdk::text("not a whole ONNX file: ", why, " in ", what_, " (field ", field_,
                             "): is it cut, or of another kind?"));
}

std::string_view WireReader::take(uint64_t count) {
  if (count > rest_.size()) fail("bytes are missing");
  const std::string_view taken = rest_.substr(0, count);
  rest_.remove_prefix(count);
  return taken;
}

uint64_t WireReader::varint() {
  uint64_t number = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(take(1)[0]);
    number |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return number;
  }
  fail("a number has no end");
}

void WireReader::skip() {
  switch (wire_type_) {
    case kVarint:
      varint();
      return;
    case kFixed64:
      take(8);
      return;
    case kBytes:
      take(varint());
      return;
    case kFixed32:
      take(4);
      return;
    default:
      fail("unknown encoding");
  }
}

bool WireReader::next() {
  if (pending_) skip();
  pending_ = false;
  if (rest_.empty()) return false;
  const uint64_t tag = varint();
  if (tag >> 3 == 0 || tag >> 3 >= (1u << 29)) fail("bad field number");
  field_ = static_cast<int32_t>(tag >> 3);
  wire_type_ = static_cast<uint32_t>(tag & 7);
  pending_ = true;
  return true;
}

int64_t WireReader::integer() {
  if (wire_type_ != kVarint) fail("no integer");
  pending_ = false;
  return static_cast<int64_t>(varint());
}

float WireReader::real() {
  if (wire_type_ != kFixed32) fail("no float");
  pending_ = false;
  float number = 0;
  std::memcpy(&number, take(4).data(), 4);
  return number;
}

std::string_view WireReader::bytes() {
  if (wire_type_ != kBytes) fail("no bytes");
  pending_ = false;
  return take(varint());
}

void WireReader::append_to(std::vector<int64_t>* out) {
  if (wire_type_ == kVarint) {
    out->push_back(integer());
    return;
  }
  WireReader packed(bytes(), what_);
  while (!packed.rest_.empty()) out->push_back(static_cast<int64_t>(packed.varint()));
}

template <typename T>
void WireReader::append_fixed(uint32_t wire_type, std::vector<T>* out) {
  pending_ = false;
  const std::string_view all = wire_type_ == wire_type ? take(sizeof(T)) : bytes();
  if (all.size() % sizeof(T) != 0) fail("a list of numbers is cut");
  const size_t before = out->size();
  out->resize(before + all.size() / sizeof(T));
  if (!all.empty()) std::memcpy(out->data() + before, all.data(), all.size());
}

void WireReader::append_to(std::vector<float>* out) { append_fixed(kFixed32, out); }
void WireReader::append_to(std::vector<double>* out) { append_fixed(kFixed64, out); }

void WireWriter::varint(uint64_t number) {
  while (number >= 0x80) {
    bytes_.push_back(static_cast<char>(number | 0x80));
    number >>= 7;
  }
  bytes_.push_back(static_cast<char>(number));
}

void WireWriter::integer(int32_t field, int64_t number) {
  varint(static_cast<uint64_t>(field) << 3 | kVarint);
  varint(static_cast<uint64_t>(number));
}

void WireWriter::real(int32_t field, float number) {
  varint(static_cast<uint64_t>(field) << 3 | kFixed32);
  char raw[4];
  std::memcpy(raw, &number, 4);
  bytes_.append(raw, 4);
}

void WireWriter::head(int32_t field, uint64_t size) {
  varint(static_cast<uint64_t>(field) << 3 | kBytes);
  varint(size);
}

void WireWriter::text(int32_t field, std::string_view text) {
  head(field, text.size());
  bytes_.append(text);
}

void WireWriter::integers(int32_t field, const std::vector<int64_t>& numbers) {
  WireWriter packed;
  for (const int64_t number : numbers) packed.varint(static_cast<uint64_t>(number));
  text(field, packed.bytes_);
}

}  // namespace gradrack::onnx
