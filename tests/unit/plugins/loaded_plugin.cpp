// SPDX-License-Identifier: Apache-2.0
// Loading plugins for tests: see loaded_plugin.hpp.
#include "tests/unit/plugins/loaded_plugin.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

namespace gradrack::testing {

namespace {

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> items;
  std::istringstream in(text.substr(1, text.size() - 2));
  for (std::string item; std::getline(in, item, ',');) items.push_back(item);
  return items;
}

}  // namespace

const gr_host_t& test_host() {
  static const gr_host_t kHost = {sizeof(gr_host_t),
                                  0,
                                  GR_ABI_MAJOR,
                                  GR_ABI_MIN_MINOR,
                                  GR_ABI_MAX_MINOR,
                                  0,
                                  "test",
                                  "1.0.0",
                                  nullptr,
                                  [](void*, int32_t, const char*) {},
                                  [](void*, const char*) -> const void* { return nullptr; }};
  return kHost;
}

const gr_factory_t* load_factory(const std::string& library, const char* kind, const char* name) {
  const std::string path = std::string(GRADRACK_PLUGIN_DIR "/") + library + ".so";
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(handle, nullptr) << dlerror();
  if (handle == nullptr) return nullptr;
  const auto* header = static_cast<const gr_plugin_header_t*>(dlsym(handle, GR_ENTRY_SYMBOL));
  EXPECT_NE(header, nullptr);
  EXPECT_EQ(header->magic, GR_PLUGIN_MAGIC);
  gr_plugin_t plugin = {};
  plugin.struct_size = sizeof plugin;
  gr_error_t err = {};
  EXPECT_EQ(header->entry(&test_host(), &plugin, &err), GR_OK) << err.message;
  for (uint32_t k = 0; k < plugin.factory_count; ++k) {
    const gr_factory_t* factory = plugin.factories[k];
    if (std::string_view(factory->kind) == kind && std::string_view(factory->name) == name) {
      return factory;
    }
  }
  ADD_FAILURE() << path << " has no " << kind << " " << name;
  return nullptr;
}

OptionValues::OptionValues(const gr_factory_t& factory, const OptionTexts& texts) {
  size_t used = 0;
  for (uint32_t k = 0; k < factory.option_count; ++k) {
    const gr_option_t& option = factory.options[k];
    const auto given = texts.find(option.name);
    const bool is_given = given != texts.end();
    if (is_given) ++used;
    EXPECT_TRUE(is_given || option.default_text != nullptr) << option.name << " is required";
    values_.push_back(parse(option, is_given ? given->second : option.default_text));
    values_.back().is_default = is_given ? 0 : 1;
  }
  EXPECT_EQ(used, texts.size()) << "the test gives an option that is not declared";
  options_ = {sizeof options_, sizeof(gr_option_value_t), values_.data(), values_.size()};
}

gr_option_value_t OptionValues::parse(const gr_option_t& option, const std::string& text) {
  gr_option_value_t value = {};
  value.name = option.name;
  value.type = option.type;
  switch (option.type) {
    case GR_OPTION_BOOL:
      value.i = text == "true" ? 1 : 0;
      break;
    case GR_OPTION_INT:
    case GR_OPTION_FLOAT:
      value.f = std::stod(text);
      value.i = static_cast<int64_t>(value.f);
      break;
    case GR_OPTION_INT_LIST:
      for (auto& list = int_lists_.emplace_back(); const auto& item : split_list(text)) {
        list.push_back(std::stoll(item));
      }
      value.ints = int_lists_.back().data();
      value.count = int_lists_.back().size();
      break;
    case GR_OPTION_FLOAT_LIST:
      for (auto& list = float_lists_.emplace_back(); const auto& item : split_list(text)) {
        list.push_back(std::stod(item));
      }
      value.floats = float_lists_.back().data();
      value.count = float_lists_.back().size();
      break;
    case GR_OPTION_STRING_LIST:
      for (auto& list = text_lists_.emplace_back(); std::string item : split_list(text)) {
        while (!item.empty() && (item.front() == ' ' || item.front() == '"')) item.erase(0, 1);
        while (!item.empty() && (item.back() == ' ' || item.back() == '"')) item.pop_back();
        list.push_back(strings_.emplace_back(item).c_str());
      }
      value.strings = text_lists_.back().data();
      value.count = text_lists_.back().size();
      break;
    default:
      value.s = strings_.emplace_back(text).c_str();
  }
  return value;
}

TempFile::TempFile(const std::string& name, const std::string& content) {
  folder_ = (std::filesystem::temp_directory_path() / "gradrack_test_XXXXXX").string();
  EXPECT_NE(mkdtemp(folder_.data()), nullptr);
  path_ = folder_ + "/" + name;
  std::ofstream(path_, std::ios::binary) << content;
}

TempFile::~TempFile() { std::filesystem::remove_all(folder_); }

}  // namespace gradrack::testing
