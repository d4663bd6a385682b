// SPDX-License-Identifier: Apache-2.0
// The registry: what is found, and what the error says when something is not.
#include "core/plugin/registry.hpp"

#include <gtest/gtest.h>

#include "core/base/exit_codes.hpp"
#include "tests/unit/plugin/plugin_folder.hpp"

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

TEST(PluginRegistry, LoadsALibraryWithAManifestOnlyWhenItIsAskedFor) {
  const PluginFolder plugins;
  plugins.add("good", "good.so");
  plugins.describe("good.so", good_verdict());
  EventSink events;
  const EventRecorder recorder(events);
  PluginRegistry registry({{plugins.path(), "test"}}, events);
  ASSERT_EQ(registry.catalogue().size(), 1u);
  EXPECT_EQ(registry.catalogue()[0]->offers().size(), 2u);
  EXPECT_FALSE(registry.find("model", "good").ok());
  EXPECT_EQ(registry.catalogue()[0]->library(), nullptr);
  EXPECT_TRUE(recorder.of_kind("probe").empty());
  const Result<const Factory*> found = registry.find("lr_schedule", "good");
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_NE(registry.catalogue()[0]->library(), nullptr);
}

TEST(PluginRegistry, FindsManifestsInDirectSubfoldersAndNoBareLibraryThere) {
  const PluginFolder plugins;
  plugins.add("good", "own/good.so");
  plugins.add("helper_one", "own/bare.so");
  const Manifest manifest = plugins.describe("own/good.so", good_verdict());
  std::filesystem::rename(manifest.file, plugins.path("own/plugin.yaml"));
  EventSink events;
  PluginRegistry registry({{plugins.path(), "test"}}, events);
  ASSERT_EQ(registry.catalogue().size(), 1u);
  EXPECT_TRUE(registry.find("lr_schedule", "good").ok());
  EXPECT_FALSE(registry.find("optimizer", "helper_one").ok());
}

TEST(PluginRegistry, RefusedLibraryNamesItselfAndWhoWantsIt) {
  const PluginFolder plugins;
  const std::string path = plugins.add("missing_library", "lion.so");
  Verdict promised = good_verdict();
  promised.offers = {{"optimizer", "lion", "", ""}};
  plugins.describe("lion.so", promised);
  EventSink events;
  const EventRecorder recorder(events);
  PluginRegistry registry({{plugins.path(), "test"}}, events);
  for (int round = 0; round < 2; ++round) {
    const Status status = registry.find("optimizer", "lion").status();
    EXPECT_EQ(status.code(), GR_UNSUPPORTED);
    EXPECT_EQ(exit_code(status), kExitPlugin);
    EXPECT_EQ(status.message().find("optimizer plugin 'lion': " + path +
                                    ": it needs libfault_needed.so, which was not found"),
              0u)
        << status.message();
  }
  EXPECT_EQ(recorder.of_kind("plugin_refused").size(), 1u);
}

TEST(PluginRegistry, ChangedLibraryIsNoCaseForTheNextOfAChain) {
  const PluginFolder plugins;
  const std::string path = plugins.add("good", "good.so");
  plugins.describe("good.so", good_verdict());
  std::ofstream(path, std::ios::app) << "x";
  EventSink events;
  PluginRegistry registry({{plugins.path(), "test"}}, events);
  const Status status = registry.find("lr_schedule", "good").status();
  EXPECT_EQ(status.code(), GR_FAILED_PRECONDITION);
  EXPECT_EQ(exit_code(status), kExitPlugin);
}

TEST(PluginRegistry, OneBadFactoryKeepsTheWholeLibraryOut) {
  EventSink events;
  PluginRegistry registry({{folder("null_create"), "test"}}, events);
  EXPECT_TRUE(registry.catalogue().empty());
  const Status status = registry.find("optimizer", "plain").status();
  EXPECT_EQ(status.code(), GR_NOT_FOUND);
  EXPECT_NE(status.message().find("null_create.so: optimizer 'twin': create is NULL"),
            std::string::npos)
      << status.message();
}

TEST(PluginRegistry, WritableFolderIsNotSearched) {
  const PluginFolder plugins;
  plugins.add("good", "good.so");
  ASSERT_EQ(::chmod(plugins.path().c_str(), 0777), 0);
  EventSink events;
  PluginRegistry registry({{plugins.path(), "test"}}, events);
  const Status status = registry.find("lr_schedule", "good").status();
  EXPECT_NE(status.message().find("not searched: it can be written by its group and all others"),
            std::string::npos)
      << status.message();
  LoadPolicy trusting;
  trusting.allow_writable = true;
  PluginRegistry other({{plugins.path(), "test"}}, events, trusting);
  EXPECT_TRUE(other.find("lr_schedule", "good").ok());
}

TEST(PluginRegistry, OneIdOfTwoLibrariesNamesBoth) {
  const PluginFolder plugins;
  plugins.add("helper_one", "a.so");
  plugins.add("helper_two", "b.so");
  Verdict one;
  one.id = "test.same";
  one.offers = {{"optimizer", "helper_one", "", ""}};
  Verdict two = one;
  two.offers[0].name = "helper_two";
  plugins.describe("a.so", one);
  plugins.describe("b.so", two);
  EventSink events;
  PluginRegistry registry({{plugins.path(), "test"}}, events);
  EXPECT_EQ(registry.find("optimizer", "helper_two").status().message(),
            "optimizer plugin 'helper_two' has the library id 'test.same', as have both " +
                plugins.path("a.so") + " and " + plugins.path("b.so") + ": remove or rename one");
}

TEST(PluginRegistry, BrokenManifestKeepsItsLibraryOut) {
  const PluginFolder plugins;
  plugins.add("good", "good.so");
  PluginFolder::write(plugins.path("good.plugin.yaml"), "id: 1\n");
  EventSink events;
  PluginRegistry registry({{plugins.path(), "test"}}, events);
  EXPECT_TRUE(registry.catalogue().empty());
  ASSERT_EQ(registry.failures().size(), 1u);
  const std::string file = plugins.path("good.plugin.yaml");
  EXPECT_EQ(registry.failures()[0].path, file);
  EXPECT_EQ(registry.failures()[0].text(), file + ":1:1: library: missing");
}

TEST(PluginRegistry, LoadsNothingBeforeTheFirstQuestion) {
  EventSink events;
  const EventRecorder recorder(events);
  PluginRegistry registry({{"/none", "--plugin-path"}}, events);
  EXPECT_TRUE(recorder.events().empty());
}

}  // namespace
}  // namespace gradrack
