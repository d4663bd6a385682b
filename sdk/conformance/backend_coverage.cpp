// SPDX-License-Identifier: Apache-2.0
// The table of coverage: operator x dtype, forward and backward, from the facts of the L3 cells.
//
// Made of what a run found, not of claims alone, so that a cell that failed says so.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.hpp"
#include "sdk/conformance/catalogue.hpp"

namespace gradrack::conform {
namespace {

struct Column {
  const char* dtype;
  const char* direction;
};
constexpr Column kColumns[] = {{"float32", "forward"}, {"float32", "backward"},
                               {"float64", "forward"}, {"float64", "backward"},
                               {"int64", "forward"},   {"int32", "forward"},
                               {"bool", "forward"}};
constexpr size_t kColumnCount = sizeof kColumns / sizeof kColumns[0];

std::string fact(const CaseResult& result, const char* name) {
  const auto at = result.outcome.facts.find(name);
  return at == result.outcome.facts.end() ? "" : at->second;
}

std::string cell_text(const CaseResult& result) {
  if (result.outcome.verdict == Verdict::kFail) return "**fails**";
  if (result.outcome.verdict == Verdict::kNotApplicable) return "";
  const std::string word = fact(result, "cell");
  const std::string native = fact(result, "native"), cases = fact(result, "cases");
  if (native == "0" || native == cases) return word;
  return fmt::format("{} ({} of {} cases native)", word, native, cases);
}

size_t column_of(const CaseResult& result) {
  size_t k = 0;
  while (k < kColumnCount && (fact(result, "dtype") != kColumns[k].dtype ||
                              fact(result, "direction") != kColumns[k].direction)) {
    ++k;
  }
  return k;
}

using Row = std::vector<std::string>;

std::string table_text(const std::map<std::string, Row>& rows) {
  std::string text = "| operator |";
  std::string rule = "|---|";
  for (const Column& column : kColumns) {
    text += fmt::format(" {} {} |", column.dtype, column.direction);
    rule += "---|";
  }
  text += "\n" + rule + "\n";
  for (const auto& [op, cells] : rows) {
    text += "| " + op + " |";
    for (const std::string& cell : cells) text += cell.empty() ? " |" : " " + cell + " |";
    text += "\n";
  }
  return text;
}

std::string totals(const std::map<std::string, Row>& rows) {
  std::map<std::string, size_t> counts;
  for (const auto& [op, cells] : rows) {
    for (const std::string& cell : cells) {
      if (!cell.empty()) ++counts[cell.substr(0, cell.find(" ("))];
    }
  }
  std::vector<std::string> parts;
  for (const auto& [word, count] : counts) parts.push_back(fmt::format("{} {}", count, word));
  return join(parts, ", ");
}

std::string target_text(const Target& target, const std::vector<CaseResult>& results) {
  std::map<std::string, Row> rows;
  std::string halves;
  for (const CaseResult& result : results) {
    if (result.target.name != target.name || result.target.kind != "backend") continue;
    const std::string op = fact(result, "operator"), half = fact(result, "half");
    if (!half.empty()) halves += half + " forward: " + fact(result, "operators") + ".\n";
    const size_t column = column_of(result);
    if (op.empty() || column == kColumnCount) continue;
    Row& row = rows[op];
    row.resize(kColumnCount);
    row[column] = cell_text(result);
  }
  if (rows.empty()) return "";
  return fmt::format(
      "Operators of backend `{}` ({} cells). native: a kernel of its own; decomposed: run as "
      "other operators that are native; other backend: handed to the next of the chain; empty: "
      "there is no such operator.\n\n{}\n{}",
      target.name, totals(rows), table_text(rows), halves);
}

}  // namespace

std::string coverage_markdown(const std::vector<CaseResult>& results) {
  std::string text;
  std::vector<std::string> seen;
  for (const CaseResult& result : results) {
    const std::string& name = result.target.name;
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) continue;
    seen.push_back(name);
    text += target_text(result.target, results);
  }
  return text;
}

}  // namespace gradrack::conform
