// SPDX-License-Identifier: Apache-2.0
// The registry: what is found, and what the error says when something is not.
#include "core/plugin/registry.hpp"

#include <gtest/gtest.h>

#include "core/base/exit_codes.hpp"

namespace gradrack {
namespace {

std::string folder(const std::string& name) { return std::string(GRADRACK_FAULT_DIR) + "/" + name; }

TEST(PluginRegistry, FindsByKindAndName) {
  EventSink events;
  PluginRegistry registry({{folder("good"), "test"}}, events);
  const Result<const Factory*> found = registry.find("lr_schedule", "good");
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ((*found)->version, "1.0.0");
  EXPECT_FALSE(registry.find("optimizer", "good").ok());
}

TEST(PluginRegistry, MissingNameShowsFoldersNamesAndFailures) {
  EventSink events;
  PluginRegistry registry(
      {{folder("good"), "--plugin-path"}, {folder("magic"), "plugins.path"}, {"/none", "bundled"}},
      events);
  const Result<const Factory*> found = registry.find("lr_schedule", "goud");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(exit_code(found.status()), kExitPlugin);
  const std::string& text = found.status().message();
  EXPECT_EQ(
      text.find("lr_schedule plugin 'goud' not found (did you mean 'good'?); found of this "
                "kind: absent, complaining, counter, good, half, odd, refusing, sick; folders "
                "searched: " +
                folder("good") + " (--plugin-path; 1 libraries), " + folder("magic") +
                " (plugins.path; 1 libraries), /none (bundled; no such folder); libraries that "
                "failed to load: " +
                folder("magic") + "/magic.so: its gradrack_plugin_v1"),
      0u)
      << text;
}

TEST(PluginRegistry, OneFileByTwoWaysIsOneLibrary) {
  EventSink events;
  PluginRegistry registry({{folder("good"), "test"}, {folder("magic/../good"), "test"}}, events);
  EXPECT_EQ(registry.libraries().size(), 1u);
  EXPECT_TRUE(registry.clashes().empty());
}

TEST(PluginRegistry, NamedFolderThatIsMissingIsAWarning) {
  EventSink events;
  const EventRecorder recorder(events);
  PluginRegistry registry({{"/none", "--plugin-path"}}, events);
  EXPECT_TRUE(registry.libraries().empty());
  ASSERT_EQ(recorder.of_kind("plugin_folder").size(), 1u);
  EXPECT_EQ(recorder.of_kind("plugin_folder")[0].level, Level::kWarn);
}

TEST(PluginRegistry, LoadsNothingBeforeTheFirstQuestion) {
  EventSink events;
  const EventRecorder recorder(events);
  PluginRegistry registry({{"/none", "--plugin-path"}}, events);
  EXPECT_TRUE(recorder.events().empty());
}

}  // namespace
}  // namespace gradrack
