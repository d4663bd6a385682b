// SPDX-License-Identifier: Apache-2.0
// SHA-256 of parts that follow each other.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace corpus {

class Digest {
 public:
  Digest();
  ~Digest();
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;

  void add(std::span<const std::byte> bytes);
  /// A text with its length, so that parts cannot run into each other.
  void add_text(std::string_view text);
  /// 64 hexadecimal digits; call once.
  std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace corpus
