// SPDX-License-Identifier: Apache-2.0
// The order in which a library is judged, and that each step refuses what it is there for.
#include "core/plugin/candidate.hpp"

#include <dlfcn.h>

#include "core/base/exit_codes.hpp"
#include "core/plugin/digest.hpp"
#include "tests/unit/plugin/plugin_folder.hpp"

namespace gradrack {
namespace {

class CandidateTest : public ::testing::Test {
 protected:
  CandidateTest() : recorder_(events_) { policy_.probe.cache_folder = folder_.root("cache"); }

  Status loaded(const std::string& path) {
    Result<std::unique_ptr<Candidate>> named = named_library(path, policy_);
    if (!named.ok()) return named.status();
    candidate_ = std::move(*named);
    return candidate_->load(policy_, events_);
  }
  /// Did any code of a library run, here or in the probe?
  bool ran(const std::string& path) const {
    return !recorder_.of_kind("probe").empty() ||
           dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD) != nullptr;
  }

  PluginFolder folder_;
  EventSink events_;
  EventRecorder recorder_;
  LoadPolicy policy_;
  std::unique_ptr<Candidate> candidate_;
};

TEST_F(CandidateTest, LoadsWithoutAManifest) {
  const Status status = loaded(folder_.add("good", "good.so"));
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(candidate_->id(), "test.good");
  EXPECT_TRUE(candidate_->offers("lr_schedule", "good"));
  ASSERT_NE(candidate_->library(), nullptr);
  EXPECT_EQ(candidate_->library()->factories.size(), 10u);
}

TEST_F(CandidateTest, LoadsByItsManifest) {
  const std::string path = folder_.add("good", "good.so");
  folder_.describe("good.so", good_verdict());
  const Status status = loaded(path);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(candidate_->manifest().has_value());
}

TEST_F(CandidateTest, WritableLibraryIsRefusedBeforeAnyOfItsCodeRuns) {
  const std::string path = folder_.add("good", "good.so");
  ASSERT_EQ(::chmod(path.c_str(), 0777), 0);
  const Status status = loaded(path);
  EXPECT_EQ(exit_code(status), kExitPlugin);
  EXPECT_EQ(status.message().find("it can be written by its group and all others"), 0u)
      << status.message();
  EXPECT_FALSE(ran(path));
  policy_.allow_writable = true;
  EXPECT_TRUE(loaded(path).ok());
}

TEST_F(CandidateTest, OtherBytesThanTheManifestsAreRefusedBeforeAnyOfTheirCodeRuns) {
  const std::string path = folder_.add("good", "good.so");
  folder_.describe("good.so", good_verdict());
  std::ofstream(path, std::ios::binary | std::ios::app) << "x";
  const Status status = loaded(path);
  EXPECT_EQ(exit_code(status), kExitPlugin);
  EXPECT_NE(status.message().find("as in its manifest " + folder_.path("good.plugin.yaml")),
            std::string::npos)
      << status.message();
  EXPECT_FALSE(ran(path));
}

TEST_F(CandidateTest, OtherBytesThanTheLocksAreRefusedBeforeAnyOfTheirCodeRuns) {
  const std::string path = folder_.add("good", "good.so");
  policy_.lock = LockFile{"plugins.lock", {{"test.good", "good.so", sha256_hex("x"), "1.0.0"}}};
  EXPECT_EQ(loaded(path).message().find("its SHA-256 is "), 0u);
  EXPECT_FALSE(ran(path));
}

TEST_F(CandidateTest, LockedLibraryLoads) {
  const std::string path = folder_.add("good", "good.so");
  const std::string digest = sha256_hex(*read_trusted(path, true));
  policy_.lock = LockFile{"plugins.lock", {{"test.good", "good.so", digest, "1.0.0"}}};
  EXPECT_TRUE(loaded(path).ok());
  policy_.lock->plugins[0].id = "other";
  EXPECT_EQ(loaded(path).message().find("its id is 'test.good', "), 0u);
}

TEST_F(CandidateTest, PLG03_OtherMajorIsRefusedBeforeAnyOfItsCodeRuns) {
  const std::string path = folder_.add("major", "major.so");
  const Status status = loaded(path);
  EXPECT_EQ(status.code(), GR_VERSION);
  EXPECT_FALSE(ran(path));
}

TEST_F(CandidateTest, DeadlyLibraryIsTriedElsewhereEvenWithAManifest) {
  const std::string path = folder_.add("constructor_aborts", "deadly.so");
  folder_.describe("deadly.so", good_verdict());
  const Status status = loaded(path);  // without the probe this process would be gone
  EXPECT_EQ(status.code(), GR_UNSUPPORTED);
  EXPECT_EQ(status.message().find("it died of SIGABRT"), 0u) << status.message();
}

TEST_F(CandidateTest, BrokenPromiseOfAManifestKeepsTheLibraryOut) {
  const std::string path = folder_.add("good", "good.so");
  Verdict promised = good_verdict();
  promised.offers.push_back({"model", "nobody", "", ""});
  folder_.describe("good.so", promised);
  EXPECT_NE(loaded(path).message().find("promises model 'nobody', which the library does not"),
            std::string::npos);
  EXPECT_EQ(candidate_->library(), nullptr);
}

TEST_F(CandidateTest, OtherIdThanTheManifestsIsRefused) {
  const std::string path = folder_.add("good", "good.so");
  Verdict promised = good_verdict();
  promised.id = "someone.else";
  folder_.describe("good.so", promised);
  EXPECT_EQ(loaded(path).message().find("its id is 'test.good', not 'someone.else' as in"), 0u);
}

TEST_F(CandidateTest, ManifestWithoutItsLibrarySaysSo) {
  folder_.add("good", "good.so");
  folder_.describe("good.so", good_verdict());
  std::filesystem::remove(folder_.path("good.so"));
  const Status status = read_manifest(folder_.path("good.plugin.yaml"), policy_).status();
  EXPECT_NE(status.message().find("its library 'good.so' is not beside it"), std::string::npos);
}

TEST_F(CandidateTest, PLG01_MissingLibraryIsNamedWithWhereItWasLookedFor) {
  const std::string path = folder_.add("missing_library", "a.so");
  const Status status = loaded(path);
  EXPECT_EQ(status.code(), GR_UNSUPPORTED);
  EXPECT_NE(status.message().find("it needs libfault_needed.so, which was not found (looked for "
                                  "in "),
            std::string::npos)
      << status.message();
  EXPECT_NE(status.message().find("the system's folders)"), std::string::npos);
}

TEST_F(CandidateTest, PLG01_SymbolsAreBoundAtLoad) {
  const Status status = loaded(folder_.add("missing_symbol", "a.so"));
  EXPECT_NE(status.message().find("it uses the symbol 'gradrack_test_nobody_has_this'"),
            std::string::npos)
      << status.message();
}

TEST_F(CandidateTest, PLG04_AStaleLoaderErrorDoesNotSpoilAGoodLibrary) {
  const std::string path = folder_.add("good", "good.so");
  ASSERT_EQ(dlopen("/nowhere/at/all.so", RTLD_NOW), nullptr);  // its error is not read
  const Result<Library> library = load_library(path);
  EXPECT_TRUE(library.ok()) << library.status().message();
  ASSERT_EQ(dlsym(RTLD_DEFAULT, "gradrack_test_no_such_symbol"), nullptr);
  EXPECT_TRUE(load_library(path).ok());
}

TEST_F(CandidateTest, PLG10_PathsWithBlanksAndOtherLettersLoad) {
  const PluginFolder folder("plug ins");
  const std::string path = folder.add("good", "m\u00f6del \u6a21.so");
  const Status status = loaded(path);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(candidate_->library()->path, std::filesystem::canonical(path));
  folder.describe("m\u00f6del \u6a21.so", good_verdict());
  EXPECT_TRUE(loaded(path).ok());
}

int64_t answer(const Library& library) {
  gr_error_t err = {};
  gr_options_t options = {};
  const Factory& factory = library.factories.front();
  EXPECT_EQ(factory.create(factory.host, &options, nullptr, &err), GR_FAILED_PRECONDITION);
  return err.message[0] - '0';
}

TEST_F(CandidateTest, PLG06_EqualSymbolsOfTwoLibrariesStayApart) {
  for (const bool reversed : {false, true}) {
    const std::string names[] = {reversed ? "helper_two" : "helper_one",
                                 reversed ? "helper_one" : "helper_two"};
    const std::string suffix = reversed ? "_again.so" : ".so";
    const Result<Library> first = load_library(folder_.add(names[0], names[0] + suffix));
    const Result<Library> second = load_library(folder_.add(names[1], names[1] + suffix));
    ASSERT_TRUE(first.ok() && second.ok());
    EXPECT_EQ(answer(*first), reversed ? 2 : 1);
    EXPECT_EQ(answer(*second), reversed ? 1 : 2);
  }
}

TEST_F(CandidateTest, PLG06_ASecondLoadGivesTheSameLibrary) {
  const std::string path = folder_.add("good", "twice.so");
  const Result<Library> first = load_library(path);
  const Result<Library> second = load_library(path);
  ASSERT_TRUE(first.ok() && second.ok());
  ASSERT_EQ(first->factories.size(), second->factories.size());
  EXPECT_EQ(first->factories[0].host, second->factories[0].host);  // entry was not called again
}

}  // namespace
}  // namespace gradrack
