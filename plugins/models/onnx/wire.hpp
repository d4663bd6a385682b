// SPDX-License-Identifier: Apache-2.0
// The wire format of protocol buffers: tags, varints, fixed numbers, bytes.
//
// Lowest part of the ONNX reader and writer. Invariant: a reader never looks outside the bytes it
// was given and throws GR_INVALID_ARGUMENT instead; what it hands out points into them. It knows no
// message: message.cpp and write_file.cpp do.
// Source: the protocol buffers encoding, wire types 0 (varint), 1 (64 bits), 2 (bytes), 5 (32
// bits).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gradrack::onnx {

/// Walks the fields of one message. `what` names it in errors.
class WireReader {
 public:
  WireReader(std::string_view bytes, const char* what) : rest_(bytes), what_(what) {}

  /// Goes to the next field, past what was not read of the current one; false at the end.
  bool next();
  int32_t field() const { return field_; }

  // The current field's content; an error when it is of another wire type.
  int64_t integer();
  float real();
  std::string_view bytes();
  std::string text() { return std::string(bytes()); }
  // A repeated number: one more, or a packed list of them.
  void append_to(std::vector<int64_t>* out);
  void append_to(std::vector<float>* out);
  void append_to(std::vector<double>* out);

 private:
  uint64_t varint();
  std::string_view take(uint64_t count);
  template <typename T>
  void append_fixed(uint32_t wire_type, std::vector<T>* out);
  void skip();
  [[noreturn]] void fail(const char* why) const;

  std::string_view rest_;
  const char* what_;
  int32_t field_ = 0;
  uint32_t wire_type_ = 0;
  bool pending_ = false;  // the current field was not read yet
};

/// Appends the fields of one message to a text of bytes.
class WireWriter {
 public:
  const std::string& bytes() const { return bytes_; }

  void integer(int32_t field, int64_t number);
  void real(int32_t field, float number);
  void text(int32_t field, std::string_view text);
  void message(int32_t field, const WireWriter& message) { text(field, message.bytes_); }
  void integers(int32_t field, const std::vector<int64_t>& numbers);  ///< packed
  /// Tag and length of a field whose `size` bytes the caller writes itself.
  void head(int32_t field, uint64_t size);

 private:
  void varint(uint64_t number);

  std::string bytes_;
};

}  // namespace gradrack::onnx
