// SPDX-License-Identifier: Apache-2.0
// Manifests: what is read, and the place in every refusal.
#include "core/plugin/manifest.hpp"

#include <gtest/gtest.h>

#include "core/base/exit_codes.hpp"
#include "core/plugin/library.hpp"

namespace gradrack {
namespace {

constexpr const char* kDigest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

std::string text_with(const std::string& line, const std::string& instead_of = "") {
  std::string text =
      "id: org.acme.lion\n"
      "version: 1.2.0\n"
      "abi: {major: 1, min: 0, max: 0}\n"
      "library: lion.so\n"
      "sha256: " +
      std::string(kDigest) +
      "\n"
      "threading: own\n"
      "needs: [opencl]\n"
      "kinds:\n"
      "  - {kind: optimizer, name: lion, version: 1.2.0, help: Sign of momentum.}\n";
  const size_t at = instead_of.empty() ? text.size() : text.find(instead_of);
  const size_t end = instead_of.empty() ? text.size() : text.find('\n', at) + 1;
  return text.replace(at, end - at, line.empty() ? "" : line + "\n");
}

Result<Manifest> parsed(const std::string& text) {
  return parse_manifest(text, "/p/lion.plugin.yaml");
}

std::string refusal(const std::string& line, const std::string& instead_of = "") {
  return parsed(text_with(line, instead_of)).status().message();
}

TEST(Manifest, IsRead) {
  const Result<Manifest> manifest = parsed(text_with(""));
  ASSERT_TRUE(manifest.ok()) << manifest.status().message();
  EXPECT_EQ(manifest->id, "org.acme.lion");
  EXPECT_EQ(manifest->library_path(), "/p/lion.so");
  EXPECT_EQ(manifest->sha256, kDigest);
  EXPECT_EQ(manifest->threading, "own");
  EXPECT_EQ(manifest->needs, std::vector<std::string>{"opencl"});
  ASSERT_EQ(manifest->kinds.size(), 1u);
  EXPECT_EQ(manifest->kinds[0].name, "lion");
  EXPECT_EQ(manifest->kinds[0].help, "Sign of momentum.");
}

TEST(Manifest, ReadsBackWhatIsWritten) {
  Manifest manifest = *parsed(text_with(""));
  manifest.kinds.push_back({"model", "m", "", "quotes \" and ${HOME}, \\ and : # too"});
  const Result<Manifest> again = parsed(manifest_text(manifest));
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(manifest_text(*again), manifest_text(manifest));
  EXPECT_EQ(again->kinds[1].help, manifest.kinds[1].help);
}

TEST(Manifest, LibraryInAnotherFolderIsRefused) {
  for (const char* path : {"../lion.so", "/tmp/lion.so", "sub/lion.so", ".."}) {
    const std::string text = refusal("library: " + std::string(path), "library");
    EXPECT_EQ(text.find("/p/lion.plugin.yaml:4:10: library: got '"), 0u) << text;
    EXPECT_NE(text.find("bare name of a file beside this manifest"), std::string::npos) << text;
  }
}

TEST(Manifest, MissingKeyIsNamed) {
  EXPECT_EQ(refusal("", "sha256"), "/p/lion.plugin.yaml:1:1: sha256: missing");
}

TEST(Manifest, WrongDigestIsNamedWithItsPlace) {
  EXPECT_EQ(refusal("sha256: abc", "sha256"),
            "/p/lion.plugin.yaml:5:9: sha256: wanted 64 lower-case hexadecimal digits");
}

TEST(Manifest, UnknownKeyNamesTheNearest) {
  const Status status = parsed(text_with("shaa256: x")).status();
  EXPECT_EQ(status.message().find("/p/lion.plugin.yaml:10:1: shaa256: unknown key (did you mean "
                                  "'sha256'?)"),
            0u)
      << status.message();
  EXPECT_EQ(status.area(), Area::kPlugin);
}

TEST(Manifest, UnknownKindNamesTheNearest) {
  const std::string text = refusal("  - {kind: optimiser, name: x}");
  EXPECT_EQ(text.find("/p/lion.plugin.yaml:10:12: kinds.1.kind: unknown kind 'optimiser' (did you "
                      "mean 'optimizer'?)"),
            0u)
      << text;
}

TEST(Manifest, RepeatedOfferIsRefused) {
  EXPECT_EQ(refusal("  - {kind: optimizer, name: lion}"),
            "/p/lion.plugin.yaml:10:29: kinds.1.name: optimizer 'lion' is listed twice");
}

TEST(Manifest, WrongTypesAreRefused) {
  EXPECT_EQ(refusal("abi: 1", "abi"),
            "/p/lion.plugin.yaml:3:6: abi: wanted a map of keys and "
            "values");
  EXPECT_EQ(refusal("abi: {major: 1, min: -1, max: 0}", "abi"),
            "/p/lion.plugin.yaml:3:22: abi.min: got '-1', wanted a whole number");
  EXPECT_EQ(refusal("threading: many", "threading"),
            "/p/lion.plugin.yaml:6:12: threading: got 'many', wanted none, own or openmp");
  EXPECT_FALSE(parsed("- a list\n").ok());
  EXPECT_FALSE(parsed("").ok());
}

TEST(Manifest, OfANewerMinorMayHoldKeysAndKindsOfLater) {
  std::string text = text_with("abi: {major: 1, min: 0, max: 9}", "abi");
  text += "  - {kind: tokenizer, name: bpe, later: 1}\nisa: [avx512]\n";
  const Result<Manifest> manifest = parsed(text);
  ASSERT_TRUE(manifest.ok()) << manifest.status().message();
  EXPECT_EQ(manifest->kinds.size(), 1u);
}

TEST(Manifest, KnowsItsFileNames) {
  EXPECT_TRUE(is_manifest_name("plugin.yaml"));
  EXPECT_TRUE(is_manifest_name("lion.plugin.yaml"));
  EXPECT_FALSE(is_manifest_name(".plugin.yaml"));
  EXPECT_FALSE(is_manifest_name("lion.yaml"));
}

TEST(Manifest, PromisesAreHeldAgainstTheLibrary) {
  const Manifest manifest = *parsed(text_with(""));
  Library library;
  library.id = "org.acme.lion";
  EXPECT_NE(library_meets(library, manifest)
                .message()
                .find("promises optimizer 'lion', which the "
                      "library does not offer"),
            std::string::npos);
  Factory factory;
  factory.kind = "optimizer";
  factory.name = "lion";
  library.factories.push_back(factory);
  EXPECT_TRUE(library_meets(library, manifest).ok());
  library.id = "org.acme.tiger";
  EXPECT_EQ(exit_code(library_meets(library, manifest)), kExitPlugin);
}

}  // namespace
}  // namespace gradrack
