// SPDX-License-Identifier: Apache-2.0
// Files of tokenizers that are damaged or of another kind: each is refused with its reason.
#include "plugins/data/common/bpe_files.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "gradrack/error.hpp"
#include "tests/unit/plugins/loaded_plugin.hpp"

namespace corpus {
namespace {

using gradrack::testing::TempFile;
using nlohmann::json;

json golden() {
  std::ifstream file(GRADRACK_SOURCE_DIR "/tests/golden/tokenizers/bpe.json");
  return json::parse(file);
}

/// What is said of a tokenizer.json with that content; "" when it is taken.
std::string refusal(const std::string& content) {
  const TempFile file("tokenizer.json", content);
  try {
    const Bpe tokenizer(read_bpe(file.path(), ""), false, false);
    return "";
  } catch (const gradrack::sdk::Error& error) {
    EXPECT_EQ(error.code(), GR_INVALID_ARGUMENT) << error.what();
    return error.what();
  }
}

std::string refusal_of(const std::function<void(json&)>& change) {
  json root = golden();
  change(root);
  return refusal(root.dump());
}

void expect_refused(const std::string& said, const std::string& part) {
  EXPECT_NE(said.find(part), std::string::npos) << said;
}

TEST(BpeFiles, TakesTheGolden) { EXPECT_EQ(refusal(golden().dump()), ""); }

TEST(BpeFiles, TakesMergesAsTexts) {
  EXPECT_EQ(refusal_of([](json& root) {
              json texts = json::array();
              for (const json& merge : root["model"]["merges"]) {
                texts.push_back(merge[0].get<std::string>() + " " + merge[1].get<std::string>());
              }
              root["model"]["merges"] = texts;
            }),
            "");
}

TEST(BpeFiles, RefusesWhatIsNoTokenizer) {
  expect_refused(refusal(""), "no JSON object");
  expect_refused(refusal("[1]"), "no JSON object");
  expect_refused(refusal("{}"), "has no 'model'");
  expect_refused(refusal(golden().dump().substr(0, 900)), "no JSON object");
  expect_refused(refusal("{\"model\": 3, \"pre_tokenizer\": {\"type\": \"ByteLevel\"}}"),
                 "has no 'vocab'");
}

TEST(BpeFiles, NamesWhatItDoesNotUnderstand) {
  expect_refused(refusal_of([](json& r) { r["model"]["type"] = "WordPiece"; }), "WordPiece");
  expect_refused(refusal_of([](json& r) { r["pre_tokenizer"]["type"] = "Whitespace"; }),
                 "Whitespace");
  expect_refused(refusal_of([](json& r) { r["pre_tokenizer"] = nullptr; }), "pre_tokenizer");
  expect_refused(refusal_of([](json& r) { r["normalizer"] = {{"type", "NFC"}}; }), "NFC");
  expect_refused(refusal_of([](json& r) { r["model"]["dropout"] = 0.1; }), "model.dropout");
  expect_refused(refusal_of([](json& r) { r["added_tokens"][0]["lstrip"] = true; }), "lstrip");
  expect_refused(refusal_of([](json& r) { r["model"]["end_of_word_suffix"] = "</w>"; }), "</w>");
}

TEST(BpeFiles, RefusesAModelThatContradictsItself) {
  expect_refused(refusal_of([](json& r) { r["model"]["vocab"].erase("A"); }), "byte 65");
  expect_refused(refusal_of([](json& r) { r["model"]["vocab"]["zz"] = 70; }), "both");
  expect_refused(refusal_of([](json& r) { r["model"]["vocab"]["zz"] = -1; }), "id -1");
  expect_refused(refusal_of([](json& r) { r["model"]["vocab"]["zz"] = 1 << 30; }), "wanted 0 to");
  expect_refused(refusal_of([](json& r) { r["model"]["vocab"]["zz"] = 1.5; }), "whole number");
  expect_refused(refusal_of([](json& r) { r["model"]["vocab"]["\xE4\xBD\xA0"] = 500; }),
                 "neither written in GPT-2's letters");
  expect_refused(refusal_of([](json& r) {
                   r["model"]["merges"].push_back({"q", "q"});
                 }),
                 "needs the token 'qq'");
  expect_refused(
      refusal_of([](json& r) { r["model"]["merges"].push_back(r["model"]["merges"][0]); }),
      "is there twice");
  expect_refused(refusal_of([](json& r) { r["model"]["merges"].push_back(7); }), "no pair");
  expect_refused(refusal_of([](json& r) { r["added_tokens"][0].erase("id"); }), "has no 'id'");
}

TEST(BpeFiles, NamesAMissingFile) {
  try {
    (void)read_bpe("no/such/tokenizer.json", "");
    ADD_FAILURE();
  } catch (const gradrack::sdk::Error& error) {
    EXPECT_EQ(error.code(), GR_NOT_FOUND);
    EXPECT_EQ(error.field(), "tokenizer_file");
  }
}

}  // namespace
}  // namespace corpus
