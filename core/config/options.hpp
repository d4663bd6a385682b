// SPDX-License-Identifier: Apache-2.0
// Declared options against what the YAML says: the one check for host keys and plugins' options.
//
// Declarations are gr_option_t rows (gradrack/options.h). Invariant: OptionValues holds exactly one
// value per declared option, of the declared type and within its range, so nobody checks again.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/config/yaml.hpp"
#include "gradrack/options.h"

namespace gradrack {

using OptionTable = std::vector<gr_option_t>;

/// The words of gr_option_t.choices, "a|b|c".
std::vector<std::string> split_choices(const char* choices);

/// Checked values of one section or plugin instance; owns what its gr_options_t points to. The
/// addresses stay the same when it is moved.
class OptionValues {
 public:
  OptionValues();
  OptionValues(OptionValues&&) noexcept;
  OptionValues& operator=(OptionValues&&) noexcept;
  ~OptionValues();

  /// In declared order; valid until this object is destroyed.
  const gr_options_t& abi() const;

  /// The value of a declared option; asking for another name or type is a bug and ends the program.
  bool flag(const char* name) const;
  int64_t integer(const char* name) const;
  double number(const char* name) const;
  std::string text(const char* name) const;
  std::vector<std::string> texts(const char* name) const;
  /// True when the config gave it, false when it is the default.
  bool given(const char* name) const;

  /// "lr: 0.001", one per option, for `explain`.
  std::vector<std::string> lines() const;

 private:
  friend class OptionReader;
  struct Storage;
  const gr_option_value_t& at(const char* name, int32_t type) const;
  std::unique_ptr<Storage> storage_;
};

/// Which rows, and how to speak of them in messages.
struct OptionScope {
  std::string path;                     ///< full key of the map: "optimizer"
  std::string owner;                    ///< "plugin 'adamw' of kind optimizer", or "the host"
  std::vector<std::string> other_keys;  ///< keys that others check: known, but not read here
  bool ignore_unknown = false;          ///< another table of a chain may know them
};

/// Checks `entries` against `table` and fills in defaults. Keys listed in `other_keys` are passed
/// over. GR_INVALID_ARGUMENT, one line: place, full key, got, wanted, nearest known key. `where` is
/// the place to name for a missing key.
Result<OptionValues> check_options(const OptionScope& scope, const OptionTable& table,
                                   const std::vector<YamlEntry>& entries, const Place& where);

/// "optimizer.learning_rat: unknown key (did you mean 'lr'?); known: ...", without the place.
std::string unknown_key_text(const std::string& path, const std::string& key,
                             const std::vector<std::string>& known, const std::string& owner);

/// Copies the rows of a plugin's table by its stride and checks that they are well-formed: names
/// and types known, defaults that parse and lie in their own range. The error names row and fault.
Result<OptionTable> read_option_table(const gr_option_t* first, uint32_t count, uint32_t stride);

/// "a number > 0", "one of gelu, swiglu", "a list of 2 numbers from 0 to 1".
std::string option_wish(const gr_option_t& option);
/// A list of texts whose default is true or false: one of these may stand for it, without quotes.
bool is_switch_or_list(const gr_option_t& option);

/// "float", "int list": a type's short name for tables.
const char* option_type_name(int32_t type);

}  // namespace gradrack
