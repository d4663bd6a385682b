// SPDX-License-Identifier: Apache-2.0
// What a library can do to the process that tries it, and what the host makes of it; and how long a
// verdict is believed.
#include "core/plugin/probe.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "core/plugin/cache_folder.hpp"
#include "core/plugin/verdict_cache.hpp"

namespace gradrack {
namespace {

namespace fs = std::filesystem;

class Probe : public ::testing::Test {
 protected:
  Probe() : recorder_(events_) {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() /
              ("gradrack_probe_" + std::string(info->name()) + std::to_string(getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    settings_.cache_folder = (folder_ / "cache").string();
  }
  ~Probe() override { fs::remove_all(folder_); }

  static std::string path_of(const std::string& name) {
    return std::string(GRADRACK_FAULT_DIR) + "/" + name + "/" + name + ".so";
  }

  /// A copy that a test may change.
  std::string copy_of(const std::string& name) {
    const fs::path to = folder_ / (name + ".so");
    fs::copy_file(path_of(name), to, fs::copy_options::overwrite_existing);
    return to.string();
  }

  Verdict probe(const std::string& path) { return probe_library(path, "", settings_, events_); }
  std::string refusal(const std::string& name) { return probe(path_of(name)).status.message(); }
  size_t runs() const { return recorder_.of_kind("probe").size(); }

  std::string cache_file() const {
    for (const auto& entry : fs::directory_iterator(settings_.cache_folder)) return entry.path();
    return "";
  }

  EventSink events_;
  EventRecorder recorder_;
  ProbeSettings settings_;
  fs::path folder_;
};

TEST_F(Probe, TellsWhatAGoodLibraryOffers) {
  const Verdict verdict = probe(path_of("good"));
  ASSERT_TRUE(verdict.status.ok()) << verdict.status.message();
  EXPECT_EQ(verdict.id, "test.good");
  EXPECT_EQ(verdict.version, "1.0.0");
  ASSERT_EQ(verdict.offers.size(), 10u);
  EXPECT_EQ(verdict.offers[0].kind, "lr_schedule");
  EXPECT_EQ(verdict.offers[0].name, "good");
  EXPECT_EQ(verdict.offers[0].help, "for tests");
  EXPECT_FALSE(verdict.cached);
}

TEST_F(Probe, NamesTheSignalAndTheInstructionSet) {
  EXPECT_EQ(refusal("constructor_sigill"),
            "it died of SIGILL (an instruction that this CPU lacks) while it was loaded (its "
            "constructors run then): build it for this machine's instruction set, or choose "
            "another one");
}

TEST_F(Probe, SaysInWhichCallALibraryDied) {
  EXPECT_NE(refusal("entry_segv").find("it died of SIGSEGV (a wrong address) in its entry"),
            std::string::npos);
  EXPECT_NE(refusal("probe_segv")
                .find("SIGSEGV (a wrong address) in the probe of optimizer "
                      "'deadly'"),
            std::string::npos);
}

TEST_F(Probe, QuotesTheLastWords) {
  EXPECT_NE(refusal("constructor_aborts")
                .find("; it wrote \"[libprotobuf FATAL] file already exists in database\""),
            std::string::npos);
}

TEST_F(Probe, EndsOneThatHangs) {
  settings_.time_limit_ms = 300;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_NE(refusal("entry_hangs").find("it did not return within 1 s in its entry"),
            std::string::npos);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST_F(Probe, NoticesExitInsideEntry) {
  EXPECT_NE(refusal("entry_exits").find("it ended the process with exit code 7 in its entry"),
            std::string::npos);
  EXPECT_NE(refusal("entry_exits_0").find("it ended the process with exit code 0 in its entry"),
            std::string::npos);
}

TEST_F(Probe, NoiseOnStdoutIsNoReport) {
  const Verdict verdict = probe(path_of("noisy"));
  ASSERT_TRUE(verdict.status.ok()) << verdict.status.message();
  EXPECT_EQ(verdict.id, "test.deadly");
}

TEST_F(Probe, RefusesThreadsStartedInEntry) {
  EXPECT_EQ(refusal("entry_starts_thread"),
            "its entry started 1 thread ('early-bird'): start threads in create, and join them in "
            "stop");
}

TEST_F(Probe, ChildrenOfALibraryDelayNobody) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(probe(path_of("entry_leaves_child")).status.ok());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(8));
}

TEST_F(Probe, InheritsNoDescriptor) {
  const std::string held = (folder_ / "held").string();
  const int low = open(held.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  const int number = fcntl(low, F_DUPFD, 40);  // without O_CLOEXEC, on purpose
  ASSERT_GE(number, 40);
  settings_.program = (folder_ / "list").string();
  std::ofstream(settings_.program)
      << "#!/bin/sh\nls -l /proc/$$/fd | grep -q held && exit 9\nexit 8\n";
  fs::permissions(settings_.program, fs::perms::owner_all);
  const std::string text = refusal("good");
  ASSERT_EQ(write(number, "x", 1), 1);
  close(number);
  close(low);
  EXPECT_NE(text.find("exit code 8"), std::string::npos) << text << " (9: it was inherited)";
}

TEST_F(Probe, MissingProgramIsSaid) {
  settings_.program = "/none/gradrack-probe";
  EXPECT_NE(refusal("good").find("looked for /none/gradrack-probe"), std::string::npos);
}

TEST_F(Probe, MissingFileIsSaid) {
  EXPECT_EQ(probe("/none/at/all.so").status.code(), GR_NOT_FOUND);
}

// The cache.

TEST_F(Probe, SecondAnswerStartsNoProcess) {
  ASSERT_TRUE(probe(path_of("good")).status.ok());
  const Verdict again = probe(path_of("good"));
  EXPECT_TRUE(again.cached);
  EXPECT_EQ(again.offers.size(), 10u);
  EXPECT_EQ(runs(), 1u);
}

TEST_F(Probe, RefusalsAreKeptToo) {
  const std::string first = refusal("entry_segv");
  EXPECT_EQ(refusal("entry_segv"), first);
  EXPECT_EQ(refusal("magic"), refusal("magic"));
  EXPECT_EQ(runs(), 2u);
}

TEST_F(Probe, ChangedLibraryIsTriedAgain) {
  const std::string path = copy_of("magic");
  EXPECT_FALSE(probe(path).status.ok());
  fs::copy_file(path_of("good"), path, fs::copy_options::overwrite_existing);
  EXPECT_TRUE(probe(path).status.ok());
  EXPECT_EQ(runs(), 2u);
}

TEST_F(Probe, OtherHashIsTriedAgain) {
  const std::string path = path_of("good");
  (void)probe_library(path, "aa", settings_, events_);
  (void)probe_library(path, "bb", settings_, events_);
  EXPECT_EQ(runs(), 2u);
}

TEST_F(Probe, MissingLibraryThatComesIsFoundAtOnce) {
  const fs::path searched = folder_ / "needed";
  fs::create_directories(searched);
  const std::string path = copy_of("needs_neighbour");
  EXPECT_NE(probe(path).status.message().find("libfault_neighbour.so"), std::string::npos);
  fs::copy_file(std::string(GRADRACK_FAULT_DIR) + "/not_searched/libfault_neighbour.so",
                searched / "libfault_neighbour.so");
  EXPECT_TRUE(probe(path).status.ok());
}

TEST_F(Probe, ChangedNeighbourIsTriedAgain) {
  const fs::path neighbour = folder_ / "needed" / "libfault_neighbour.so";
  fs::create_directories(neighbour.parent_path());
  fs::copy_file(std::string(GRADRACK_FAULT_DIR) + "/not_searched/libfault_neighbour.so", neighbour);
  const std::string path = copy_of("needs_neighbour");
  ASSERT_TRUE(probe(path).status.ok());
  ASSERT_TRUE(probe(path).cached);
  fs::last_write_time(neighbour, fs::file_time_type::clock::now() + std::chrono::seconds(5));
  EXPECT_FALSE(probe(path).cached);
}

TEST_F(Probe, CacheIsPrivate) {
  ASSERT_TRUE(probe(path_of("good")).status.ok());
  const auto mode = [](const std::string& path) {
    return fs::status(path).permissions() & fs::perms::mask;
  };
  EXPECT_EQ(mode(settings_.cache_folder), fs::perms::owner_all);
  EXPECT_EQ(mode(cache_file()), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(Probe, FileThatOthersCanWriteIsNotBelieved) {
  ASSERT_TRUE(probe(path_of("good")).status.ok());
  fs::permissions(cache_file(), fs::perms::others_write, fs::perm_options::add);
  EXPECT_FALSE(probe(path_of("good")).cached);
  ASSERT_EQ(recorder_.of_kind("verdict_cache").size(), 1u);
  EXPECT_NE(recorder_.of_kind("verdict_cache")[0].message.find("others can write it"),
            std::string::npos);
  EXPECT_TRUE(probe(path_of("good")).cached) << "the new file is private again";
}

TEST_F(Probe, FolderThatOthersCanWriteIsNotUsed) {
  fs::create_directories(settings_.cache_folder);
  fs::permissions(settings_.cache_folder, fs::perms::all);
  ASSERT_TRUE(probe(path_of("good")).status.ok());
  EXPECT_FALSE(probe(path_of("good")).cached);
  EXPECT_EQ(cache_file(), "");
  EXPECT_EQ(recorder_.of_kind("verdict_cache").size(), 2u);
}

TEST_F(Probe, DamagedFileMeansANewProbeAndAnEvent) {
  for (const char* damage : {"", "{", "[]", "{\"format\":1,\"key\":3}", "\xff\xfe garbage"}) {
    ASSERT_TRUE(probe(path_of("good")).status.ok());
    std::ofstream(cache_file(), std::ios::trunc) << damage;
    const size_t said = recorder_.of_kind("verdict_cache").size();
    EXPECT_FALSE(probe(path_of("good")).cached) << damage;
    EXPECT_EQ(recorder_.of_kind("verdict_cache").size(), said + 1) << damage;
    EXPECT_TRUE(probe(path_of("good")).cached) << damage;
  }
}

TEST_F(Probe, CacheFolderComesFromTheEnvironment) {
  ASSERT_EQ(setenv("GRADRACK_CACHE_DIR", (folder_ / "named").c_str(), 1), 0);
  settings_.cache_folder = "";
  EXPECT_EQ(default_cache_folder(), folder_ / "named");
  ASSERT_TRUE(probe(path_of("good")).status.ok());
  ASSERT_EQ(unsetenv("GRADRACK_CACHE_DIR"), 0);
  EXPECT_FALSE(fs::is_empty(folder_ / "named"));
}

}  // namespace
}  // namespace gradrack
