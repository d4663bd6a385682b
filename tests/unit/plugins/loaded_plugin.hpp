// SPDX-License-Identifier: Apache-2.0
// For tests of plugins: loads a built .so by its header symbol and makes instances from option
// texts.
//
// A stand-in for the host that shares no code with it, so that a plugin is tested against the C ABI
// alone. Invariant: options go through the plugin's own declaration, as in the host. It checks no
// ranges and reports nothing nicely: a broken test is a failed expectation.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "gradrack/gradrack.h"

namespace gradrack::testing {

using OptionTexts = std::map<std::string, std::string>;

/// The host table that tests hand to plugins.
const gr_host_t& test_host();

/// The factory of that kind and name in library GRADRACK_PLUGIN_DIR/<library>.so, or NULL with a
/// failed expectation.
const gr_factory_t* load_factory(const std::string& library, const char* kind, const char* name);

/// The values of a factory's options: its defaults, overridden by texts as they stand in YAML.
class OptionValues {
 public:
  OptionValues(const gr_factory_t& factory, const OptionTexts& texts);
  OptionValues(const OptionValues&) = delete;
  OptionValues& operator=(const OptionValues&) = delete;

  const gr_options_t* get() const { return &options_; }

 private:
  gr_option_value_t parse(const gr_option_t& option, const std::string& text);

  std::deque<std::string> strings_;
  std::deque<std::vector<int64_t>> int_lists_;
  std::deque<std::vector<double>> float_lists_;
  std::deque<std::vector<const char*>> text_lists_;
  std::vector<gr_option_value_t> values_;
  gr_options_t options_ = {};
};

/// An instance of kind table `Table`; `status()` tells how creation went.
template <typename Table>
class Instance {
 public:
  Instance(const gr_factory_t* factory, const OptionTexts& texts) : options_(*factory, texts) {
    table_.struct_size = sizeof table_;
    status_ = factory->create(&test_host(), options_.get(), &table_, &error_);
  }
  ~Instance() {
    if (status_ == GR_OK) table_.destroy(table_.self);
  }
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  int32_t status() const { return status_; }
  std::string message() const { return error_.message; }
  std::string field() const { return error_.field; }
  const Table* operator->() const { return &table_; }
  void* self() const { return table_.self; }

 private:
  OptionValues options_;
  Table table_ = {};
  gr_error_t error_ = {};
  int32_t status_ = GR_INTERNAL;
};

/// A file in a folder of the test's own, removed with it.
class TempFile {
 public:
  TempFile(const std::string& name, const std::string& content);
  ~TempFile();
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string folder_;
  std::string path_;
};

}  // namespace gradrack::testing
