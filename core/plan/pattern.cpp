// SPDX-License-Identifier: Apache-2.0
// A recursive descent over the text of a pattern: see pattern.hpp. The grammar is in fusion.h.
#include "core/plan/pattern.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

namespace gradrack {

namespace {

constexpr size_t kMostNodes = 64;    // in one pattern: a match is looked for statement by statement
constexpr size_t kMostText = 10000;  // characters
constexpr size_t kShown = 24;        // characters of what follows the place of an error

bool starts_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

class Parser {
 public:
  explicit Parser(const std::string& text) : text_(text) {}

  Result<PatternText> run() {
    if (text_.size() > kMostText) {
      return invalid_argument(
          fmt::format("an expression of {} characters: {} are the most", text_.size(), kMostText));
    }
    if (accept("{")) {
      GR_TRY(parse_set());
    } else {
      GR_TRY(parse_statements());
      GR_TRY(check_connected());
    }
    return std::move(out_);
  }

 private:
  Status parse_set() {
    do {
      GR_ASSIGN(std::string op, parse_op());
      if (!out_.set.insert(op).second) return wrong(fmt::format("'{}' is named twice", op));
    } while (accept(","));
    if (!accept("}")) return wrong("wanted ',' or '}'");
    return at_end() ? Status() : wrong("wanted the end of the expression behind '}'");
  }

  Status parse_statements() {
    do {
      if (at_end() && !out_.nodes.empty()) break;  // a last `;` is fine
      GR_TRY(parse_statement());
    } while (accept(";"));
    if (!at_end()) return wrong("wanted ';', or the end of the expression");
    if (out_.nodes.size() < 2) return wrong("wanted two statements or more");
    return {};
  }

  Status parse_statement() {
    if (out_.nodes.size() == kMostNodes) {
      return wrong(fmt::format("more than {} statements", kMostNodes));
    }
    PatternNode node;
    GR_TRY(parse_values("=", &node.outputs, &node.more_outputs, true));
    do {
      GR_ASSIGN(std::string op, parse_op());
      node.ops.push_back(std::move(op));
    } while (accept("|"));
    if (!accept("(")) return wrong("wanted '|' or '('");
    if (!accept(")")) GR_TRY(parse_values(")", &node.inputs, &node.more_inputs, false));
    out_.nodes.push_back(std::move(node));
    const std::vector<int>& made = out_.nodes.back().outputs;
    made_.insert(made.begin(), made.end());
    making_.clear();
    return {};
  }

  /// Values up to and with `end`.
  Status parse_values(const char* end, std::vector<int>* values, bool* more, bool made_here) {
    do {
      if (accept("...")) {
        *more = true;
        break;
      }
      GR_ASSIGN(const int value, parse_value(made_here));
      values->push_back(value);
    } while (accept(","));
    if (accept(end)) return {};
    return wrong(*more ? fmt::format("wanted '{}' behind '...'", end)
                       : fmt::format("wanted ',' or '{}'", end));
  }

  Result<int> parse_value(bool made_here) {
    skip_space();
    const size_t begin = at_;
    if (at_ == text_.size() || !starts_name(text_[at_])) {
      return wrong("wanted the name of a value, '_' or '...'");
    }
    while (at_ < text_.size() && in_name(text_[at_])) ++at_;
    const std::string name = text_.substr(begin, at_ - begin);
    if (name == "_") return PatternNode::kAnything;
    const auto [found, is_new] = numbers_.emplace(name, static_cast<int>(out_.values.size()));
    if (is_new) {
      out_.values.push_back(name);
    } else if (made_here) {
      at_ = begin;
      const bool twice = made_.count(found->second) > 0;
      return wrong(
          fmt::format("'{}' is {}", name, twice ? "made twice" : "read before it is made"));
    }
    if (made_here) {
      made_.insert(found->second);
      making_.insert(found->second);
    } else if (making_.count(found->second) > 0) {
      at_ = begin;
      return wrong(fmt::format("'{}' is read before it is made", name));
    }
    return found->second;
  }

  /// "Add", "gradrack.FusedMatMul", "com.example.Op".
  Result<std::string> parse_op() {
    skip_space();
    const size_t begin = at_;
    while (true) {
      if (at_ == text_.size() || !starts_name(text_[at_])) {
        return wrong("wanted the name of an operator");
      }
      while (at_ < text_.size() && in_name(text_[at_])) ++at_;
      if (at_ == text_.size() || text_[at_] != '.') break;
      ++at_;
    }
    return text_.substr(begin, at_ - begin);
  }

  /// By shared values, from the first statement on.
  Status check_connected() const {
    std::vector<bool> reached(out_.nodes.size(), false);
    std::set<int> known;
    const auto reach = [&](size_t k) {
      reached[k] = true;
      for (const auto* values : {&out_.nodes[k].inputs, &out_.nodes[k].outputs}) {
        known.insert(values->begin(), values->end());
      }
      known.erase(PatternNode::kAnything);
    };
    reach(0);
    for (bool grown = true; grown;) {
      grown = false;
      for (size_t k = 0; k < reached.size(); ++k) {
        if (reached[k] || !touches(out_.nodes[k], known)) continue;
        reach(k);
        grown = true;
      }
    }
    const auto lone = std::find(reached.begin(), reached.end(), false);
    if (lone == reached.end()) return {};
    const auto which = static_cast<size_t>(lone - reached.begin());
    return invalid_argument(fmt::format("statement {} ({}) shares no value with those before it",
                                        which + 1, out_.nodes[which].ops[0]));
  }

  static bool touches(const PatternNode& node, const std::set<int>& known) {
    const auto is_known = [&](int value) { return known.count(value) > 0; };
    return std::any_of(node.inputs.begin(), node.inputs.end(), is_known) ||
           std::any_of(node.outputs.begin(), node.outputs.end(), is_known);
  }

  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  bool at_end() {
    skip_space();
    return at_ == text_.size();
  }
  bool accept(const std::string& token) {
    skip_space();
    if (text_.compare(at_, token.size(), token) != 0) return false;
    at_ += token.size();
    return true;
  }
  Status wrong(const std::string& what) const {
    const std::string rest = text_.substr(at_, kShown);
    return invalid_argument(
        fmt::format("at character {}{}: {}", at_ + 1,
                    rest.empty() ? " (the end)" : fmt::format(" (before '{}')", rest), what));
  }

  const std::string& text_;
  size_t at_ = 0;
  PatternText out_;
  std::map<std::string, int> numbers_;
  std::set<int> made_;
  std::set<int> making_;  // by the statement that is being read
};

}  // namespace

Result<PatternText> parse_pattern(const std::string& text) { return Parser(text).run(); }

}  // namespace gradrack
