// SPDX-License-Identifier: Apache-2.0
// One claimed node in every style that must not matter: see backend_cell.hpp.
//
// Base style, the same again, other bytes around and inside what the kernel may not read, strides
// that say nothing, memory shared as announced; then NaN and infinities in the inputs. Invariant:
// styles are compared by bits, the reference by the table of tolerances.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sdk/conformance/backend_cell.hpp"
#include "sdk/conformance/tolerance.hpp"

namespace gradrack::conform {
namespace {

constexpr int64_t kLargestSpecial = 600;

/// The tolerance of the coarser of the operator's inputs and this output.
double room(const OpCase& c, gr_dtype_t to) {
  return std::max(tolerance(c.op, main_dtype(c)), tolerance(c.op, to));
}

class Styles {
 public:
  Styles(const OpCase& c, const KernelRun& kernel, const Contents& contents, CellReport* report)
      : case_(c), kernel_(kernel), contents_(contents), report_(*report) {}

  void run(const std::vector<HostArray>& want) {
    const auto base = launch({}, "launch");
    if (base.empty() && !want.empty()) return;
    expect_near(base, want);
    const LaunchStyle other{0xff, 0xff, 0x00, false, false};
    const bool again = expect_same(base, {}, "two launches on equal inputs differ");
    if (again && differs(base, other)) diagnose(base);
    expect_same(base, {0x5a, 0x5a, 0xff, false, true},
                "depends on strides of dims of size 1, which say nothing");
    if (!kernel_.allows_in_place()) return;
    expect_same(base, {0x5a, 0x5a, 0xff, true, false},
                "another result when an output shares an input's memory, as in_place allows");
  }

  /// What several launches of a case have in common is told once.
  void fail(const std::string& text) {
    const std::string line = case_.text() + ": " + text;
    std::vector<std::string>& told = report_.failures;
    if (std::find(told.begin(), told.end(), line) == told.end()) told.push_back(line);
  }

 private:
  /// Empty after a failure, which is told.
  std::vector<HostArray> launch(const LaunchStyle& style, const std::string& what) {
    std::vector<std::string> faults;
    auto outputs = kernel_.launch(contents_, style, &faults);
    for (const std::string& fault : faults) fail(fault);
    if (outputs.ok()) return std::move(*outputs);
    fail("claimed, but " + what + " fails: " + outputs.status().message());
    return {};
  }

  void expect_near(const std::vector<HostArray>& got, const std::vector<HostArray>& want) {
    for (size_t k = 0; k < want.size(); ++k) {
      const std::string fault = compare(got[k], want[k], room(case_, got[k].dtype));
      if (!fault.empty()) fail(fmt::format("output {}, {}", k, fault));
    }
  }

  static std::string difference(const std::vector<HostArray>& a, const std::vector<HostArray>& b) {
    for (size_t k = 0; k < a.size() && k < b.size(); ++k) {
      const std::string fault = compare_bits(a[k], b[k]);
      if (!fault.empty()) return fmt::format("output {}, {}", k, fault);
    }
    return "";
  }

  bool expect_same(const std::vector<HostArray>& base, const LaunchStyle& style,
                   const std::string& what) {
    const std::string found = difference(base, launch(style, "launch"));
    if (!found.empty()) fail(what + ": " + found);
    return found.empty();
  }

  bool differs(const std::vector<HostArray>& base, const LaunchStyle& style) {
    return !difference(base, launch(style, "launch")).empty();
  }

  /// Which of the bytes that may not matter does.
  void diagnose(const std::vector<HostArray>& base) {
    const size_t before = report_.failures.size();
    expect_same(base, {0xff, 0x5a, 0xff, false, false}, "reads beyond a tensor");
    expect_same(base, {0x5a, 0xff, 0xff, false, false},
                "reads an output before writing it, or leaves elements unwritten");
    expect_same(base, {0x5a, 0x5a, 0x00, false, false}, "reads the workspace before writing it");
    if (report_.failures.size() == before) fail("launches on equal inputs differ now and then");
  }

  const OpCase& case_;
  const KernelRun& kernel_;
  const Contents& contents_;
  CellReport& report_;
};

struct Special {
  const char* name;
  double value;
  Specials least;  // how much of the operator's answer must be defined
};

bool takes(const OpCase& c, size_t k, Specials least, gr_dtype_t to) {
  const InputSpec& input = c.inputs[k];
  const bool drawn = input.fill == Fill::kNormal || input.fill == Fill::kPositive;
  return is_real(input.dtype) && drawn && element_count(input) > 0 &&
         defined_specials(c.op, k, to) >= least;
}

/// Puts the special number at one place of every input that may take it. False: there is none.
bool put_special(const OpCase& c, const Special& special, gr_dtype_t to,
                 std::vector<std::vector<double>>* numbers) {
  bool any = false;
  for (size_t k = 0; k < c.inputs.size(); ++k) {
    if (!takes(c, k, special.least, to)) continue;
    std::vector<double>& content = (*numbers)[k];
    content[(3 + 5 * k) % content.size()] = special.value;
    any = true;
  }
  return any;
}

/// NaN, Inf and -Inf in the inputs, as the reference has them.
void try_specials(const Bench& bench, const OpCase& c, const Graph& graph, const KernelRun& kernel,
                  CellReport* report) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Special specials[] = {{"NaN", std::nan(""), Specials::kNaN},
                              {"Inf", infinity, Specials::kAll},
                              {"-Inf", -infinity, Specials::kAll}};
  const gr_dtype_t to = graph.value(graph.nodes().back().outputs[0]).type.dtype;
  for (const Special& special : specials) {
    auto numbers = draw_contents(c, bench.seed);
    if (!put_special(c, special, to, &numbers)) continue;
    const auto want = reference_answer(bench, c, numbers);
    if (!want.ok()) return;
    const std::string where = c.text() + ", " + special.name + " in the inputs: ";
    std::vector<std::string> faults;
    const auto got = kernel.launch(contents_of(graph, source_arrays(c, numbers)), {}, &faults);
    if (!got.ok()) faults.push_back(got.status().message());
    for (size_t k = 0; got.ok() && k < want->size(); ++k) {
      const std::string fault = compare((*got)[k], (*want)[k], room(c, (*got)[k].dtype));
      if (!fault.empty()) faults.push_back(fmt::format("output {}, {}", k, fault));
    }
    for (const std::string& fault : faults) report->failures.push_back(where + fault);
  }
}

}  // namespace

void try_styles(const Bench& bench, const OpCase& c, const BoundGraph& bound, size_t node,
                const Contents& contents, const std::vector<HostArray>& want, CellReport* report) {
  const auto kernel = KernelRun::prepare(*bench.tested, bound, node);
  if (!kernel.ok()) {
    report->failures.push_back(c.text() + ": claimed, but " + kernel.status().message());
    return;
  }
  Styles styles(c, *kernel, contents, report);
  const std::string info = kernel->info_fault();
  if (!info.empty()) {
    styles.fail(info);
    return;
  }
  styles.run(want);
  if (largest_input(c) <= kLargestSpecial) {
    try_specials(bench, c, *bound.graph, *kernel, report);
  }
}

}  // namespace gradrack::conform
