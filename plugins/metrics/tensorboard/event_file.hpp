// SPDX-License-Identifier: Apache-2.0
// An event file as TensorBoard reads it: frames with check sums, each holding one Event message.
//
// Frame: length (8 bytes), masked CRC32C of these, the message, masked CRC32C of it; numbers are
// little-endian. Messages are protocol buffers, of which only the few fields used here are written:
// Event {wall_time 1, step 2, file_version 3, summary 5, session_log 7}, Summary {value 1},
// Value {tag 1, simple_value 2, tensor 8, metadata 9}. Invariant: the file holds whole frames.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gradrack::tensorboard {

/// Summary message under construction: scalars, or one text.
class Summary {
 public:
  void add_scalar(std::string_view tag, double value);
  void add_text(std::string_view tag, std::string_view text);
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

std::string version_event(double time_s);
std::string summary_event(double time_s, int64_t step, const Summary& summary);
/// Whoever reads drops what earlier files say of `step` and later ones.
std::string restart_event(double time_s, int64_t step);

/// Owns the open file.
class EventFile {
 public:
  EventFile() = default;
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;
  ~EventFile() { close(); }

  /// Makes a file in `folder`, made if missing, under a name that sorts behind those there.
  /// `earlier`: whether there were any. Throws sdk::Error, GR_IO.
  void create(const std::string& folder, double time_s, bool* earlier);
  /// One frame, by one write. Throws sdk::Error, GR_IO; then the file is as before.
  void append(std::string_view message);
  void close();
  bool is_open() const { return descriptor_ >= 0; }

 private:
  std::string path_;
  int descriptor_ = -1;
};

}  // namespace gradrack::tensorboard
