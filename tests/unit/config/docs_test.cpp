// SPDX-License-Identifier: Apache-2.0
// docs/run-file.md names every key of the table of host keys, with its default.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "core/config/schema.hpp"

namespace gradrack {
namespace {

std::string page() {
  std::ifstream file(std::string(GRADRACK_SOURCE_DIR) + "/docs/run-file.md");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(RunFilePage, HasARowForEveryHostKey) {
  const std::string text = page();
  for (const SectionSchema& section : section_schemas()) {
    for (const gr_option_t& option : section.keys) {
      // "| run | seed | 1 |"; an empty default is told in words, and `lr` shares its row.
      std::string row = std::string("| ") + section.name + " | " + option.name + " | ";
      if (option.default_text == nullptr) {
        row += "required";
      } else {
        row += option.default_text;
      }
      if (std::string_view(option.name) == "lr") row = "| optimizer | plugin, lr | required |";
      EXPECT_NE(text.find(row), std::string::npos) << row;
    }
  }
}

TEST(RunFilePage, HasARowForEveryPluginSection) {
  const std::string text = page();
  for (const SectionSchema& section : section_schemas()) {
    if (!section.plugin || section.default_plugin == nullptr) continue;
    const std::string row = std::string("| ") + section.name + " | plugin | ";
    EXPECT_NE(text.find(row), std::string::npos) << row;
  }
}

}  // namespace
}  // namespace gradrack
