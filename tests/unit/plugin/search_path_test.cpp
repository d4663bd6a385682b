// SPDX-License-Identifier: Apache-2.0
// Which folders are searched, in which order, and which never.
#include "core/plugin/search_path.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace gradrack {
namespace {

std::vector<std::string> origins(const std::vector<SearchFolder>& folders) {
  std::vector<std::string> names;
  for (const SearchFolder& folder : folders) names.push_back(folder.origin);
  return names;
}

TEST(SearchPath, KeepsTheOrderOfWhoNamedWhat) {
  ASSERT_EQ(setenv("GRADRACK_PLUGIN_PATH", "/tmp/e1:/tmp/e2", 1), 0);
  EventSink events;
  const auto folders = search_folders({"/tmp/c"}, {"/tmp/y"}, events);
  ASSERT_EQ(unsetenv("GRADRACK_PLUGIN_PATH"), 0);
  EXPECT_EQ(origins(folders),
            (std::vector<std::string>{"--plugin-path", "plugins.path", "GRADRACK_PLUGIN_PATH",
                                      "GRADRACK_PLUGIN_PATH", "bundled"}));
  EXPECT_EQ(folders[3].path, "/tmp/e2");
}

TEST(SearchPath, NeverHoldsTheCurrentFolderByItself) {
  ASSERT_EQ(setenv("GRADRACK_PLUGIN_PATH", "::", 1), 0);
  EventSink events;
  const auto folders = search_folders({}, {""}, events);
  ASSERT_EQ(unsetenv("GRADRACK_PLUGIN_PATH"), 0);
  EXPECT_EQ(origins(folders), std::vector<std::string>{"bundled"});
}

TEST(SearchPath, RepeatedFolderStandsOnce) {
  EventSink events;
  const auto folders = search_folders({"/tmp/c", "/tmp/./c"}, {"/tmp/c/"}, events);
  EXPECT_EQ(folders.size(), 2u);
}

TEST(SearchPath, RaisedPrivilegesIgnoreTheEnvironmentAndSaySo) {
  ASSERT_EQ(setenv("GRADRACK_PLUGIN_PATH", "/tmp/e1", 1), 0);
  EventSink events;
  const EventRecorder recorder(events);
  const auto folders = search_folders({"/tmp/c"}, {}, events, true);
  ASSERT_EQ(unsetenv("GRADRACK_PLUGIN_PATH"), 0);
  EXPECT_EQ(origins(folders), (std::vector<std::string>{"--plugin-path", "bundled"}));
  EXPECT_EQ(recorder.of_kind("plugin_path_ignored").size(), 1u);
}

TEST(SearchPath, RelativeFolderBecomesAbsolute) {
  EventSink events;
  const auto folders = search_folders({"some/folder"}, {}, events);
  EXPECT_EQ(folders[0].path, (std::filesystem::current_path() / "some/folder").string());
}

TEST(LibraryFiles, TakesSharedLibrariesInOrder) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / "gradrack_library_files_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  for (const char* name : {"b.so", "a.so", "a.so.1", "readme.txt"})
    std::ofstream(folder / name) << "x";
  const auto files = library_files(folder.string());
  ASSERT_TRUE(files.ok());
  EXPECT_EQ(*files, (std::vector<std::string>{folder / "a.so", folder / "b.so"}));
  std::filesystem::remove_all(folder);
  EXPECT_EQ(library_files(folder.string()).status().code(), GR_NOT_FOUND);
}

}  // namespace
}  // namespace gradrack
