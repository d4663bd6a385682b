// SPDX-License-Identifier: Apache-2.0
// Private to config/option*.cpp: turns one YAML value into one gr_option_value_t.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "core/config/options.hpp"

namespace gradrack {

/// What the values point to. Deques never move an element, so pointers into them stay good.
struct OptionValues::Storage {
  std::vector<gr_option_value_t> items;
  std::deque<std::string> strings;
  std::deque<std::vector<int64_t>> ints;
  std::deque<std::vector<double>> floats;
  std::deque<std::vector<const char*>> pointers;
  gr_options_t abi = {};
};

class OptionReader {
 public:
  explicit OptionReader(OptionValues& values) : storage_(*values.storage_) {}

  /// Appends the value of `option`. The error has no place and no key: "got text 'x', wanted ...".
  Status read(const gr_option_t& option, const YamlNode& node, bool is_default);
  /// Appends the option's default.
  Status read_default(const gr_option_t& option);
  void finish();

 private:
  Status read_scalar(const gr_option_t& option, const YamlNode& node, gr_option_value_t* value);
  Status read_list(const gr_option_t& option, const std::vector<const YamlNode*>& items,
                   gr_option_value_t* value);
  const char* keep(std::string_view text);

  OptionValues::Storage& storage_;
};

}  // namespace gradrack
