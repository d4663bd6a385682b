// SPDX-License-Identifier: Apache-2.0
// Options: typed reading of the values that the host has checked.
//
// Sits between the factory's declaration (kOptions) and the constructor of a plugin class. The
// values live as long as the instance. Invariant: what is read was declared; a name or type that
// was not is a bug of the plugin, reported as GR_INTERNAL with the name. It checks no ranges: the
// host did.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include "gradrack/error.hpp"
#include "gradrack/options.h"

namespace gradrack::sdk {

class Options {
 public:
  explicit Options(const gr_options_t* raw) : raw_(raw) {}

  /// The value of option `name`. T: bool, int64_t, double (also of an int), std::string,
  /// std::span<const int64_t>, std::span<const double>, std::span<const char* const>. [any]
  template <typename T>
  T get(const char* name) const {
    const gr_option_value_t& v = find(name);
    if constexpr (std::is_same_v<T, bool>) {
      return expect(v, v.type == GR_OPTION_BOOL, "bool").i != 0;
    } else if constexpr (std::is_same_v<T, int64_t>) {
      return expect(v, v.type == GR_OPTION_INT, "int").i;
    } else if constexpr (std::is_same_v<T, double>) {
      return expect(v, v.type == GR_OPTION_FLOAT || v.type == GR_OPTION_INT, "float").f;
    } else if constexpr (std::is_same_v<T, std::string>) {
      return expect(v, v.type == GR_OPTION_STRING || v.type == GR_OPTION_PATH, "text").s;
    } else if constexpr (std::is_same_v<T, std::span<const int64_t>>) {
      return {expect(v, v.type == GR_OPTION_INT_LIST, "list of ints").ints, v.count};
    } else if constexpr (std::is_same_v<T, std::span<const char* const>>) {
      return {expect(v, v.type == GR_OPTION_STRING_LIST, "list of texts").strings, v.count};
    } else {
      static_assert(std::is_same_v<T, std::span<const double>>, "no option has this type");
      return {expect(v, v.type == GR_OPTION_FLOAT_LIST, "list of floats").floats, v.count};
    }
  }

  /// True when the YAML does not give the option, so that its default stands. [any]
  bool is_default(const char* name) const { return find(name).is_default != 0; }

 private:
  const gr_option_value_t& find(const char* name) const {
    const gr_option_value_t* value = gr_options_find(raw_, name);
    require(value != nullptr, GR_INTERNAL, name, "the plugin reads an option it never declared");
    return *value;
  }

  static const gr_option_value_t& expect(const gr_option_value_t& value, bool ok,
                                         const char* type) {
    require(ok, GR_INTERNAL, value.name, "the plugin reads its option as ", type,
            ", which is not how it declared it");
    return value;
  }

  const gr_options_t* raw_;
};

}  // namespace gradrack::sdk
