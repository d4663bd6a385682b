// SPDX-License-Identifier: Apache-2.0
// Tokenizers beside the Python packages: tests/golden/tokenizers, made by
// tests/golden/make_tokenizer_golden.py.
#include "plugins/data/common/tokenizer.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "gradrack/error.hpp"
#include "plugins/data/common/utf8.hpp"

namespace corpus {
namespace {

const std::string kFolder = GRADRACK_SOURCE_DIR "/tests/golden/tokenizers/";

struct Case {
  std::string text;
  nlohmann::json ids;
};

std::vector<Case> read_cases() {
  std::ifstream file(kFolder + "cases.json");
  const nlohmann::json root = nlohmann::json::parse(file);
  std::vector<Case> cases;
  for (const nlohmann::json& entry : root.at("cases")) {
    const auto hex = entry.at("text").get<std::string>();
    Case one{"", entry};
    for (size_t k = 0; k < hex.size(); k += 2) {
      one.text.push_back(static_cast<char>(std::stoi(hex.substr(k, 2), nullptr, 16)));
    }
    cases.push_back(one);
  }
  EXPECT_GE(cases.size(), 16u);
  return cases;
}

TokenizerChoice choice_of(const std::string& kind, const std::string& file) {
  TokenizerChoice choice;
  choice.kind = kind;
  choice.file = kFolder + file;
  choice.replace_ill_formed = true;
  return choice;
}

void expect_agreement(const TokenizerChoice& choice, const char* key) {
  const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(choice);
  for (const Case& one : read_cases()) {
    const std::vector<int32_t> ids = tokenizer->encode(one.text, [] {});
    EXPECT_EQ(ids, one.ids.at(key).get<std::vector<int32_t>>()) << key << ": " << one.text;
  }
}

TEST(Tokenizer, BpeAgreesWithThePythonPackage) {
  expect_agreement(choice_of("bpe", "bpe.json"), "bpe");
}

TEST(Tokenizer, BpeOfTwoFilesIsTheSame) {
  TokenizerChoice choice = choice_of("bpe", "bpe_vocab.json");
  choice.merges = kFolder + "bpe_merges.txt";
  const std::unique_ptr<Tokenizer> two = load_tokenizer(choice);
  const std::unique_ptr<Tokenizer> one = load_tokenizer(choice_of("bpe", "bpe.json"));
  for (const Case& text : read_cases()) {
    if (text.text.find("<|pad|>") != std::string::npos) continue;  // added, so not in the two
    EXPECT_EQ(two->encode(text.text, [] {}), one->encode(text.text, [] {})) << text.text;
  }
  EXPECT_EQ(two->end_id(), one->end_id());
}

// TOK-03: text of a control token is text, unless the source says otherwise.
TEST(Tokenizer, TOK03_ControlTokensComeFromTextOnDemandAlone) {
  TokenizerChoice choice = choice_of("bpe", "bpe.json");
  const std::unique_ptr<Tokenizer> plain = load_tokenizer(choice);
  const auto count = [](const Tokenizer& tokenizer) {
    const std::vector<int32_t> ids = tokenizer.encode("a <|endoftext|> b", [] {});
    return std::count(ids.begin(), ids.end(), static_cast<int32_t>(tokenizer.end_id()));
  };
  EXPECT_EQ(plain->end_id(), 0);
  EXPECT_EQ(count(*plain), 0);
  choice.special_tokens = true;
  EXPECT_EQ(count(*load_tokenizer(choice)), 1);
  expect_agreement(choice, "bpe_special");
}

TEST(Tokenizer, SentencePieceAgreesWithThePythonPackage) {
  expect_agreement(choice_of("sentencepiece", "unigram.model"), "unigram");
  expect_agreement(choice_of("sentencepiece", "merges.model"), "merges");
}

TEST(Tokenizer, BpeGivesTheTextBack) {
  const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(choice_of("bpe", "bpe.json"));
  for (const Case& one : read_cases()) {
    const std::vector<int32_t> ids = tokenizer->encode(one.text, [] {});
    const std::vector<int64_t> wide(ids.begin(), ids.end());
    EXPECT_EQ(tokenizer->decode(wide), replace_ill_formed(one.text));
  }
}

TEST(Tokenizer, RefusesIllFormedTextUnlessToldToReplaceIt) {
  TokenizerChoice choice = choice_of("bpe", "bpe.json");
  choice.replace_ill_formed = false;
  for (const char* kind : {"bpe", "sentencepiece"}) {
    choice.kind = kind;
    if (choice.kind == "sentencepiece") choice.file = kFolder + "unigram.model";
    try {
      (void)load_tokenizer(choice)->encode("abc\xFF", [] {});
      ADD_FAILURE() << kind;
    } catch (const gradrack::sdk::Error& error) {
      EXPECT_EQ(error.code(), GR_OUT_OF_RANGE);
      EXPECT_NE(std::string(error.what()).find("byte 255 at position 3"), std::string::npos)
          << error.what();
    }
  }
}

TEST(Tokenizer, RefusesIdsThatStandForNothing) {
  for (const auto& [kind, file] :
       {std::pair{"bpe", "bpe.json"}, {"sentencepiece", "merges.model"}}) {
    const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(choice_of(kind, file));
    for (const int64_t id : {int64_t{-1}, tokenizer->vocab()}) {
      EXPECT_THROW((void)tokenizer->decode({&id, 1}), gradrack::sdk::Error) << kind << id;
    }
  }
}

TEST(Tokenizer, TakesALongWordInAMoment) {
  const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(choice_of("bpe", "bpe.json"));
  const std::string word(1 << 20, 's');
  const std::vector<int32_t> ids = tokenizer->encode(word, [] {});
  EXPECT_FALSE(ids.empty());
}

}  // namespace
}  // namespace corpus
