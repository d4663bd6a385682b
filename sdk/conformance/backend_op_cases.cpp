// SPDX-License-Identifier: Apache-2.0
// The operator cells of L3 as cases: "L3.MatMul.float32.forward" and ".backward" for every operator
// that needs a kernel and every dtype that it takes; half precision in one case each, of what is
// claimed. Their facts are what the table of coverage is made of.
#include <fmt/format.h>

#include "sdk/conformance/backend_bench.hpp"
#include "sdk/conformance/op_cases.hpp"

namespace gradrack::conform {
namespace {

constexpr size_t kMostShown = 4;
constexpr gr_dtype_t kDtypes[] = {GR_FLOAT32, GR_FLOAT64, GR_INT64, GR_INT32, GR_BOOL};

std::string joined_failures(const CellReport& report) {
  std::string text;
  for (size_t k = 0; k < report.failures.size() && k < kMostShown; ++k) {
    text += (k > 0 ? "\n" : "") + report.failures[k];
  }
  if (report.failures.size() > kMostShown) {
    text += fmt::format("\n... and {} more", report.failures.size() - kMostShown);
  }
  return text;
}

Outcome outcome_of_cell(const CellReport& report, const std::string& op, gr_dtype_t dtype,
                        const char* direction) {
  Outcome out;
  out.facts = {{"operator", op},
               {"dtype", dtype_name(dtype)},
               {"direction", direction},
               {"cell", report.word()},
               {"cases", std::to_string(report.cases)},
               {"native", std::to_string(report.native)}};
  if (!report.failures.empty()) {
    out.verdict = Verdict::kFail;
    out.text = joined_failures(report);
  } else if (report.cases == 0) {
    out.verdict = Verdict::kNotApplicable;
    out.text = "the reference has no such cell";
  } else if (report.native < report.cases) {
    out.text =
        fmt::format("{} of {} cases native, {} decomposed, {} by another backend: {}",
                    report.native, report.cases, report.decomposed, report.other, report.reason);
  }
  return out;
}

Outcome forward(Context& context, const std::string& op, gr_dtype_t dtype) {
  CONFORM_ASSIGN(const Bench bench, bench_of(context));
  return outcome_of_cell(try_forward(bench, cell_cases(op, dtype)), op, dtype, "forward");
}

Outcome backward(Context& context, const std::string& op, gr_dtype_t dtype) {
  CONFORM_ASSIGN(const Bench bench, bench_of(context));
  return outcome_of_cell(try_backward(bench, gradient_cases(op, dtype)), op, dtype, "backward");
}

/// Half precision: the reference has none, so a cell exists where the backend claims it.
Outcome half(Context& context, gr_dtype_t dtype) {
  CONFORM_ASSIGN(const Bench bench, bench_of(context));
  CellReport sum;
  std::string claimed;
  for (const std::string& op : operators_with_cells()) {
    std::vector<OpCase> cases;
    for (OpCase& c : cell_cases(op, dtype)) {
      if (claims_case(bench, c)) cases.push_back(std::move(c));
    }
    const CellReport report = try_forward(bench, cases);
    if (report.native > 0) claimed += (claimed.empty() ? "" : ", ") + op;
    sum.cases += report.cases;
    sum.failures.insert(sum.failures.end(), report.failures.begin(), report.failures.end());
  }
  if (sum.cases == 0) return not_applicable("nothing is claimed in " + dtype_name(dtype));
  Outcome out = sum.failures.empty() ? pass() : fail(joined_failures(sum));
  out.facts = {{"half", dtype_name(dtype)}, {"operators", claimed}};
  return out;
}

}  // namespace

void add_operator_cases(std::vector<Case>* cases) {
  for (const std::string& op : operators_with_cells()) {
    for (const gr_dtype_t dtype : kDtypes) {
      if (!has_cell(op, dtype)) continue;
      const std::string id = "L3." + op + "." + dtype_name(dtype);
      cases->push_back({id + ".forward", 3, op + " agrees with the reference, in every style",
                        [op, dtype](Context& c) { return forward(c, op, dtype); }, "L3." + op});
      if (!has_gradient(op, dtype)) continue;
      cases->push_back({id + ".backward", 3, "gradients of " + op + " agree with the reference",
                        [op, dtype](Context& c) { return backward(c, op, dtype); }, "L3." + op});
    }
  }
  for (const gr_dtype_t dtype : {gr_dtype_t{GR_FLOAT16}, gr_dtype_t{GR_BFLOAT16}}) {
    cases->push_back({"L3." + dtype_name(dtype) + ".forward", 3,
                      "what is claimed in " + dtype_name(dtype) + " agrees with the reference",
                      [dtype](Context& c) { return half(c, dtype); }, "L3.half"});
  }
}

}  // namespace gradrack::conform
