// SPDX-License-Identifier: Apache-2.0
// What the host says of each faulty library, and that no fault costs more than a reason.
#include "core/plugin/library.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/base/exit_codes.hpp"
#include "core/plugin/instance.hpp"
#include "core/plugin/registry.hpp"

namespace gradrack {
namespace {

std::string path_of(const std::string& name) {
  return std::string(GRADRACK_FAULT_DIR) + "/" + name + "/" + name + ".so";
}

Status refusal(const std::string& name) {
  const Result<Library> library = load_library(path_of(name));
  return library.ok() ? Status() : library.status();
}

TEST(FaultyLibrary, GoodOneLoads) {
  const Result<Library> library = load_library(path_of("good"));
  ASSERT_TRUE(library.ok()) << library.status().message();
  EXPECT_EQ(library->id, "test.good");
  EXPECT_EQ(library->factories.size(), 10u);
  EXPECT_TRUE(library->factories[0].declares("factor"));
}

TEST(FaultyLibrary, WrongMagic) {
  EXPECT_EQ(refusal("magic").message(),
            "its gradrack_plugin_v1 does not begin with the magic number: define it with GR_PLUGIN "
            "of the SDK");
}

TEST(FaultyLibrary, OtherAbiMajorNamesBothVersions) {
  const Status status = refusal("major");
  EXPECT_EQ(status.code(), GR_VERSION);
  EXPECT_EQ(exit_code(status), kExitPlugin);
  EXPECT_EQ(status.message(),
            "it speaks plugin ABI 2.0..3, gradrack 1.0.0 speaks 1.0..1: upgrade gradrack");
}

TEST(FaultyLibrary, NewerMinorIsAcceptedAndItsLaterKindsAreLeft) {
  const Result<Library> library = load_library(path_of("newer_minor"));
  ASSERT_TRUE(library.ok()) << library.status().message();
  ASSERT_EQ(library->factories.size(), 1u);
  EXPECT_EQ(library->factories[0].name, "plain");
}

TEST(FaultyLibrary, RangeBeyondTheHostIsRefused) {
  EXPECT_EQ(refusal("too_new").code(), GR_VERSION);
  EXPECT_EQ(refusal("too_new").message(),
            "it speaks plugin ABI 1.4..5, gradrack 1.0.0 speaks 1.0..1: upgrade gradrack");
}

TEST(FaultyLibrary, PLG03_LibraryWithoutAVersionLoadsAndHasNone) {
  for (const char* name : {"empty_version", "null_version"}) {
    const Result<Library> library = load_library(path_of(name));
    ASSERT_TRUE(library.ok()) << name << ": " << library.status().message();
    EXPECT_EQ(library->version, "") << name;
    EXPECT_EQ(library->factories.size(), 2u) << name;
  }
}

TEST(FaultyLibrary, ShortHeader) {
  EXPECT_NE(refusal("short_header").message().find("its header has 8 bytes"), std::string::npos);
}

TEST(FaultyLibrary, NoEntry) {
  EXPECT_EQ(refusal("null_entry").message(), "its header has no entry function");
}

TEST(FaultyLibrary, NoHeaderSymbol) {
  EXPECT_NE(refusal("no_header").message().find("it has no symbol gradrack_plugin_v1"),
            std::string::npos);
}

TEST(FaultyLibrary, EntryThatRefuses) {
  EXPECT_EQ(refusal("entry_refuses").message(), "its entry refused: licence: expired");
}

TEST(FaultyLibrary, FactoryWithoutCreate) {
  EXPECT_EQ(refusal("null_create").message(), "optimizer 'twin': create is NULL");
}

TEST(FaultyLibrary, UnknownKindNamesTheNearest) {
  EXPECT_NE(refusal("unknown_kind").message().find("unknown kind (did you mean 'optimizer'?)"),
            std::string::npos);
}

TEST(FaultyLibrary, NameOutsideItsAlphabet) {
  EXPECT_EQ(refusal("bad_name").message(), "factory 0: name 'Two Words' is not made of [a-z0-9_]");
}

TEST(FaultyLibrary, DefaultThatBreaksItsOwnRange) {
  EXPECT_EQ(refusal("bad_default").message(),
            "optimizer 'twin': option 0 ('layers'): its default is not allowed by itself: got the "
            "number 0, wanted a whole number >= 1 and <= 64");
}

TEST(FaultyLibrary, MissingSymbolIsNamed) {
  const Status status = refusal("missing_symbol");
  EXPECT_EQ(status.code(), GR_UNSUPPORTED);
  EXPECT_NE(status.message().find("it uses the symbol 'gradrack_test_nobody_has_this'"),
            std::string::npos)
      << status.message();
}

TEST(FaultyLibrary, MissingLibraryIsNamed) {
  const Status status = refusal("missing_library");
  EXPECT_EQ(status.code(), GR_UNSUPPORTED);
  EXPECT_NE(status.message().find("it needs libfault_needed.so, which was not found"),
            std::string::npos)
      << status.message();
}

TEST(FaultyLibrary, TextFileIsNoLibrary) {
  const std::string path = std::string(GRADRACK_FAULT_DIR) + "/text.so";
  std::ofstream(path)
      << "this is no library at all, however long the text may be; 64 bytes of it\n";
  const Result<Library> library = load_library(path);
  ASSERT_FALSE(library.ok());
  EXPECT_NE(library.status().message().find("it is not a shared library for this machine"),
            std::string::npos)
      << library.status().message();
}

const Factory* factory_named(const Library& library, const std::string& name) {
  for (const Factory& factory : library.factories) {
    if (factory.name == name) return &factory;
  }
  return nullptr;
}

TEST(FaultyLibrary, ExceptionFromCreateEndsAtTheWall) {
  const Result<Library> library = load_library(path_of("throws"));
  ASSERT_TRUE(library.ok()) << library.status().message();
  const auto made =
      Instance<gr_model_t>::create(*factory_named(*library, "thrower"), OptionValues());
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), GR_INTERNAL);
  EXPECT_NE(made.status().message().find("create threw an exception"), std::string::npos);
}

TEST(FaultyFolder, TwoLibrariesWithOneNameAreBothNamed) {
  EventSink events;
  PluginRegistry registry({{std::string(GRADRACK_FAULT_DIR) + "/twins", "test"}}, events);
  const Result<const Factory*> found = registry.find("optimizer", "twin");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(exit_code(found.status()), kExitPlugin);
  EXPECT_EQ(found.status().message(),
            "optimizer plugin 'twin' is offered twice, by " + std::string(GRADRACK_FAULT_DIR) +
                "/twins/other.so and by " + std::string(GRADRACK_FAULT_DIR) +
                "/twins/twins.so: remove or rename one");
}

TEST(FaultyFolder, BrokenNeighboursCostAReasonEach) {
  EventSink events;
  const EventRecorder recorder(events);
  std::vector<SearchFolder> folders;
  for (const char* name : {"magic", "missing_library", "good"}) {
    folders.push_back({std::string(GRADRACK_FAULT_DIR) + "/" + name, "test"});
  }
  PluginRegistry registry(folders, events);
  EXPECT_TRUE(registry.find("lr_schedule", "good").ok());
  EXPECT_EQ(registry.failures().size(), 2u);
  EXPECT_EQ(recorder.of_kind("plugin_refused").size(), 2u);
}

}  // namespace
}  // namespace gradrack
