// SPDX-License-Identifier: Apache-2.0
// Files of byte-level BPE: see bpe_files.hpp.
#include "plugins/data/common/bpe_files.hpp"

#include <nlohmann/json.hpp>
#include <optional>

#include "plugins/data/common/digest.hpp"
#include "plugins/data/common/mapped_file.hpp"
#include "plugins/data/common/utf8.hpp"

namespace corpus {

namespace gr = gradrack::sdk;
using nlohmann::json;

namespace {

[[noreturn]] void bad(const std::string& path, const std::string& what) {
  throw gr::Error(GR_INVALID_ARGUMENT, "tokenizer_file", path + ": " + what);
}
[[noreturn]] void unknown(const std::string& path, const std::string& what) {
  throw gr::Error(GR_INVALID_ARGUMENT, "tokenizer_file",
                  path + ": " + what +
                      ", which is not understood here: only byte-level BPE as of "
                      "GPT-2 is (or a SentencePiece model, by `tokenizer: sentencepiece`)");
}

/// GPT-2 writes a byte as a letter that can be seen: itself where it is one, else the next code
/// point from 256 on. Source: bytes_to_unicode in encoder.py of openai/gpt-2.
class ByteLetters {
 public:
  ByteLetters() {
    int32_t next = 256;
    for (int32_t byte = 0; byte < 256; ++byte) {
      const bool seen =
          (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      byte_of_[static_cast<size_t>(seen ? byte : next++)] = byte;
    }
  }

  /// The bytes that letters stand for; nothing when one stands for none.
  std::optional<std::string> bytes(std::string_view letters) const {
    std::string out;
    for (size_t at = 0; at < letters.size();) {
      const CodePoint point = read_code_point(letters, at);
      if (point.value < 0 || point.value >= static_cast<int32_t>(byte_of_.size())) return {};
      const int32_t byte = byte_of_[static_cast<size_t>(point.value)];
      if (byte < 0) return {};
      out.push_back(static_cast<char>(byte));
      at += point.bytes;
    }
    return out;
  }

 private:
  std::array<int32_t, 324> byte_of_ = [] {
    std::array<int32_t, 324> none;
    none.fill(-1);
    return none;
  }();
};

class Reader {
 public:
  Reader(BpeModel* out, const std::string& path) : out_(*out), path_(path) { out_.path = path; }

  static json parse(const MappedFile& file) {
    json root = json::parse(file.text(), nullptr, false);
    if (root.is_discarded() || !root.is_object()) bad(file.path(), "is no JSON object");
    return root;
  }

  void tokenizer_json(const json& root) {
    const json& model = member(root, "model");
    const bool has_type = model.is_object() && model.contains("type");
    if (has_type && model["type"] != "BPE") unknown(path_, "the model is " + model["type"].dump());
    pre_tokenizer(member(root, "pre_tokenizer"));
    if (root.contains("normalizer") && !root["normalizer"].is_null()) {
      unknown(path_, "there is a normalizer " + root["normalizer"].dump().substr(0, 80));
    }
    no_value(model, "continuing_subword_prefix");
    no_value(model, "end_of_word_suffix");
    no_value(model, "dropout");
    out_.ignore_merges = flag(model, "ignore_merges", false);
    added(root);
    vocabulary(member(model, "vocab"));
    merges(member(model, "merges"));
  }

  void vocabulary(const json& vocab) {
    if (!vocab.is_object() || vocab.empty()) bad(path_, "the vocabulary is no object with entries");
    for (const auto& [token, id] : vocab.items()) {
      if (!id.is_number_integer()) bad(path_, "token '" + token + "' has no whole number as id");
      const auto number = id.get<int64_t>();
      if (number < 0 || number > INT32_MAX)
        bad(path_, gr::text("token '", token, "' has id ", number));
      if (std::optional<std::string> bytes = letters_.bytes(token)) {
        out_.vocab.emplace(std::move(*bytes), static_cast<int32_t>(number));
      } else {
        control(token, static_cast<int32_t>(number));
      }
    }
  }

  void merge(std::string_view left, std::string_view right, size_t line) {
    auto first = letters_.bytes(left), second = letters_.bytes(right);
    if (!first || !second || first->empty() || second->empty()) {
      bad(path_, gr::text("merge ", line, " ('", left, "', '", right, "') is not of two tokens"));
    }
    out_.merges.emplace_back(std::move(*first), std::move(*second));
  }

 private:
  const json& member(const json& object, const char* key) const {
    if (!object.is_object() || !object.contains(key)) bad(path_, gr::text("has no '", key, "'"));
    return object[key];
  }
  void no_value(const json& model, const char* key) const {
    if (!model.contains(key) || model[key].is_null() || model[key] == "" || model[key] == 0.0)
      return;
    unknown(path_, gr::text("model.", key, " is ", model[key].dump()));
  }
  bool flag(const json& object, const char* key, bool standard) const {
    if (!object.contains(key) || object[key].is_null()) return standard;
    if (!object[key].is_boolean()) bad(path_, gr::text("'", key, "' is neither true nor false"));
    return object[key].get<bool>();
  }

  void pre_tokenizer(const json& pre) {
    if (!pre.is_object() || !pre.contains("type") || pre["type"] != "ByteLevel") {
      unknown(path_, "the pre_tokenizer is " + pre.dump().substr(0, 80));
    }
    out_.prefix_space = flag(pre, "add_prefix_space", true);
    out_.split_words = flag(pre, "use_regex", true);
  }

  void added(const json& root) {
    if (!root.contains("added_tokens") || root["added_tokens"].is_null()) return;
    if (!root["added_tokens"].is_array()) bad(path_, "'added_tokens' is no list");
    for (const json& entry : root["added_tokens"]) {
      const json& id = member(entry, "id");
      const json& content = member(entry, "content");
      if (!id.is_number_integer() || !content.is_string() || content.get<std::string>().empty()) {
        bad(path_, "an added token lacks an id or its text: " + entry.dump().substr(0, 80));
      }
      for (const char* key : {"single_word", "lstrip", "rstrip"}) {
        if (flag(entry, key, false)) {
          unknown(path_, gr::text("added token '", content.get<std::string>(), "' has ", key));
        }
      }
      out_.added.push_back({static_cast<int32_t>(id.get<int64_t>()), content.get<std::string>(),
                            flag(entry, "special", false)});
    }
  }

  /// A token of the vocabulary that no bytes give: it must be one of those added.
  void control(const std::string& token, int32_t id) {
    for (const AddedToken& known : out_.added) {
      if (known.content == token && known.id == id) return;
    }
    bad(path_, "token '" + token + "' is neither written in GPT-2's letters for bytes nor added");
  }

  void merges(const json& list) {
    if (!list.is_array()) bad(path_, "'merges' is no list");
    for (const json& entry : list) {
      const size_t line = out_.merges.size();
      if (entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_string()) {
        merge(entry[0].get_ref<const std::string&>(), entry[1].get_ref<const std::string&>(), line);
        continue;
      }
      const std::string text = entry.is_string() ? entry.get<std::string>() : "";
      const size_t space = text.find(' ');
      if (space == std::string::npos) bad(path_, gr::text("merge ", line, " is no pair"));
      merge(std::string_view(text).substr(0, space), std::string_view(text).substr(space + 1),
            line);
    }
  }

  BpeModel& out_;
  const std::string& path_;
  const ByteLetters letters_;
};

/// Lines "left right" after an optional "#version" line.
void read_merges(const MappedFile& file, Reader* reader) {
  std::string_view rest = file.text();
  for (size_t line = 1; !rest.empty(); ++line) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view text = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (text.ends_with('\r')) text.remove_suffix(1);
    if (text.empty() || (line == 1 && text.starts_with("#version"))) continue;
    const size_t space = text.find(' ');
    if (space == std::string_view::npos) {
      throw gr::Error(GR_INVALID_ARGUMENT, "merges_file",
                      gr::text(file.path(), ": line ", line, " is no pair of tokens"));
    }
    reader->merge(text.substr(0, space), text.substr(space + 1), line);
  }
}

}  // namespace

BpeModel read_bpe(const std::string& file, const std::string& merges) {
  BpeModel model;
  Digest digest;
  const MappedFile first(file, "tokenizer_file");
  digest.add_text(first.text());
  Reader reader(&model, file);
  const json root = Reader::parse(first);
  if (merges.empty()) {
    reader.tokenizer_json(root);
  } else {
    // GPT-2's own vocab.json lists its one control token among the others.
    constexpr const char* kEnd = "<|endoftext|>";
    if (root.contains(kEnd) && root[kEnd].is_number_integer()) {
      model.added.push_back({root[kEnd].get<int32_t>(), kEnd, true});
    }
    reader.vocabulary(root);
    const MappedFile second(merges, "merges_file");
    digest.add_text(second.text());
    read_merges(second, &reader);
  }
  model.digest = digest.hex();
  return model;
}

}  // namespace corpus
