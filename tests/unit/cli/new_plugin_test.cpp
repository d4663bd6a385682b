// SPDX-License-Identifier: Apache-2.0
// `plugins new`: what it writes from each template, and what it refuses.
#include "core/cli/new_plugin.hpp"

#include <map>
#include <sstream>

#include "tests/unit/cli/cli_run.hpp"

namespace gradrack {
namespace {

namespace fs = std::filesystem;

/// A folder of this test alone, gone when the test ends.
class NewPlugin : public ::testing::Test {
 protected:
  NewPlugin() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() / (std::string("gradrack_new_") + info->name());
    fs::remove_all(folder_);
    fs::create_directory(folder_);
  }
  ~NewPlugin() override { fs::remove_all(folder_); }

  CliRun make(const std::string& kind, const std::string& name,
              const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"plugins", "new", kind, name, "--into", into(name)};
    words.insert(words.end(), more.begin(), more.end());
    return run_words(words);
  }
  std::string into(const std::string& name) const { return (folder_ / name).string(); }
  bool nothing_written() const { return fs::is_empty(folder_); }

  fs::path folder_;
};

std::string content(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

/// The table of --help: languages by kind.
std::map<std::string, std::vector<std::string>> offered() {
  std::map<std::string, std::vector<std::string>> table;
  std::istringstream lines(template_table());
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string kind, language;
    for (words >> kind; words >> language;) {
      if (language.back() == ',') language.pop_back();
      table[kind].push_back(language);
    }
  }
  return table;
}

TEST_F(NewPlugin, OffersEveryKindInCppAndSomeInOtherLanguages) {
  const std::map<std::string, std::vector<std::string>> wanted = {
      {"backend", {"c", "cpp"}}, {"data", {"cpp"}},          {"lr_schedule", {"cpp"}},
      {"metrics", {"cpp"}},      {"model", {"cpp"}},         {"optimizer", {"c", "cpp", "rust"}},
      {"precision", {"cpp"}},    {"scheduler", {"c", "cpp"}}};
  EXPECT_EQ(offered(), wanted);
  const CliRun help = run_words({"plugins", "new", "--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_NE(help.out.find(template_table()), std::string::npos) << help.out;
}

TEST_F(NewPlugin, WritesEachTemplateUnderItsNewName) {
  for (const auto& [kind, languages] : offered()) {
    for (const std::string& language : languages) {
      const std::string name = "grey_" + kind + "_2" + language;
      const CliRun run = make(kind, name, {"--lang", language});
      ASSERT_EQ(run.code, 0) << run.err;
      EXPECT_NE(run.out.find("train run.yaml"), std::string::npos) << run.out;
      for (const char* file : {"CMakeLists.txt", "README.md", "run.yaml", "test"}) {
        EXPECT_TRUE(fs::exists(fs::path(into(name)) / file)) << kind << language << file;
      }
      EXPECT_NE(content(fs::path(into(name)) / "CMakeLists.txt").find("NAME " + name),
                std::string::npos);
      for (const auto& entry : fs::directory_iterator(into(name))) {
        const std::string text = content(entry.path()) + entry.path().filename().string();
        EXPECT_EQ(text.find("my_" + kind), std::string::npos) << entry.path();
        EXPECT_EQ(text.find("My"), std::string::npos) << entry.path();
      }
      const auto test = fs::status(fs::path(into(name)) / "test").permissions();
      EXPECT_NE(test & fs::perms::owner_exec, fs::perms::none);
    }
  }
}

TEST_F(NewPlugin, RenamesIdentifiersInBothSpellings) {
  EXPECT_EQ(rename_template("class MyLrSchedule; // my_lr_schedule.cpp", "lr_schedule", "cos_2x"),
            "class Cos2x; // cos_2x.cpp");
  EXPECT_EQ(rename_template("my_model_toy", "model", "my_model"), "my_model_toy");
}

TEST_F(NewPlugin, RefusesNamesThatNothingCanBear) {
  for (const char* name : {"Signum", "li-on", "2lion", "_signum", "", "li/on", "l\u00e9on"}) {
    const CliRun run = run_words({"plugins", "new", "optimizer", name, "--into", into("x")});
    EXPECT_EQ(run.code, 2) << name;
    EXPECT_NE(run.err.find("wanted a letter, then letters, digits and _"), std::string::npos)
        << run.err;
  }
  EXPECT_EQ(make("optimizer", std::string(65, 'a')).code, 2);
  EXPECT_TRUE(nothing_written());
}

TEST_F(NewPlugin, RefusesTheNameOfABundledPlugin) {
  const CliRun run = make("optimizer", "adamw");
  EXPECT_EQ(run.code, 2);
  EXPECT_NE(run.err.find("optimizer plugin 'adamw' is there already ("), std::string::npos)
      << run.err;
  EXPECT_TRUE(nothing_written());
}

TEST_F(NewPlugin, UnknownKindOrLanguageListsWhatThereIs) {
  const CliRun kind = make("optimiser", "signum");
  EXPECT_EQ(kind.code, 2);
  EXPECT_NE(kind.err.find("no template for kind 'optimiser' (did you mean 'optimizer'?)"),
            std::string::npos)
      << kind.err;
  EXPECT_NE(kind.err.find("optimizer    c, cpp, rust"), std::string::npos) << kind.err;
  const CliRun language = make("backend", "signum", {"--lang", "rust"});
  EXPECT_EQ(language.code, 2);
  EXPECT_NE(language.err.find("no template for kind 'backend' in 'rust'; there are: c, cpp"),
            std::string::npos)
      << language.err;
  EXPECT_TRUE(nothing_written());
}

TEST_F(NewPlugin, LeavesAFolderThatIsNotEmptyAlone) {
  fs::create_directory(into("signum"));
  std::ofstream(into("signum") + "/mine.txt") << "mine";
  const CliRun run = make("optimizer", "signum");
  EXPECT_EQ(run.code, 2);
  EXPECT_NE(run.err.find("is there and not an empty folder; nothing was written"),
            std::string::npos)
      << run.err;
  EXPECT_EQ(std::distance(fs::directory_iterator(into("signum")), fs::directory_iterator()), 1);
}

TEST_F(NewPlugin, FillsAnEmptyFolderAndMakesThoseAbove) {
  fs::create_directory(into("signum"));
  EXPECT_EQ(make("optimizer", "signum").code, 0);
  const CliRun deep = run_words({"plugins", "new", "data", "grey", "--into", into("a/b/c")});
  EXPECT_EQ(deep.code, 0) << deep.err;
  EXPECT_TRUE(fs::exists(into("a/b/c/grey.cpp")));
}

TEST_F(NewPlugin, AFolderThatCannotBeMadeIsAFileError) {
  std::ofstream(into("file")) << "";
  const CliRun run = run_words({"plugins", "new", "data", "grey", "--into", into("file/x")});
  EXPECT_EQ(run.code, 4) << run.err;
}

}  // namespace
}  // namespace gradrack
