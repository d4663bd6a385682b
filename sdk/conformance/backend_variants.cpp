// SPDX-License-Identifier: Apache-2.0
// One claimed node in every style that must not matter: see backend_cell.hpp.
//
// Base style, the same again, other bytes around and inside what the kernel may not read, strides
// that say nothing, memory shared as announced; then NaN and infinities in the inputs. Invariant:
// styles are compared by bits, the reference by the table of tolerances.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "sdk/conformance/backend_cell.hpp"
#include "sdk/conformance/tolerance.hpp"

namespace gradrack::conform {
namespace {

constexpr int64_t kLargestSpecial = 600;

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

  void fail(const std::string& text) { report_.failures.push_back(case_.text() + ": " + text); }

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
      const std::string fault = compare(got[k], want[k], tolerance(case_.op, got[k].dtype));
      if (!fault.empty()) fail(fmt::format("output {}, {}", k, fault));
    }
  }

  static std::string difference(const std::vector<HostArray>& a, const std::vector<HostArray>& b) {
    for (size_t k = 0; k < a.size() && k < b.size(); ++k) {
      const std::string fault = compare_bits(b[k], a[k]);
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
    expect_same(base, {0x5a, 0x5a, 0x00, false, false},
                "reads the workspace before writing it");
    if (report_.failures.size() == before) fail("launches on equal inputs differ now and then");
  }

  const OpCase& case_;
  const KernelRun& kernel_;
  const Contents& contents_;
  CellReport& report_;
};

bool takes_specials(const InputSpec& input) {
  return is_real(input.dtype) && (input.fill == Fill::kNormal || input.fill == Fill::kPositive) &&
         element_count(input) > 0;
}

/// NaN, Inf and -Inf at one place of every real input, as the reference has them.
void try_specials(const Bench& bench, const OpCase& c, const Graph& graph, const KernelRun& kernel,
                  CellReport* report) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::pair<const char*, double> specials[] = {
      {"NaN", std::nan("")}, {"Inf", infinity}, {"-Inf", -infinity}};
  for (const auto& [name, special] : specials) {
    auto numbers = draw_contents(c, bench.seed);
    bool any = false;
    for (size_t k = 0; k < c.inputs.size(); ++k) {
      if (!takes_specials(c.inputs[k])) continue;
      numbers[k][(3 + 5 * k) % numbers[k].size()] = special;
      any = true;
    }
    const auto want = reference_answer(bench, c, numbers);
    if (!any || !want.ok()) return;
    const Contents contents = contents_of(graph, source_arrays(c, numbers));
    std::vector<std::string> faults;
    const auto got = kernel.launch(contents, {}, &faults);
    const std::string where = c.text() + ", " + name + " in the inputs: ";
    if (!got.ok()) {
      report->failures.push_back(where + got.status().message());
      return;
    }
    for (const std::string& fault : faults) report->failures.push_back(where + fault);
    for (size_t k = 0; k < want->size(); ++k) {
      const gr_dtype_t to = (*got)[k].dtype;
      if (!specials_are_defined(c.op, main_dtype(c), to)) continue;
      const std::string fault = compare((*got)[k], (*want)[k], tolerance(c.op, to));
      if (!fault.empty()) report->failures.push_back(fmt::format("{}output {}, {}", where, k, fault));
    }
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
