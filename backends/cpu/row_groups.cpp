// SPDX-License-Identifier: Apache-2.0
// Groups that are one pass over rows (row_program.hpp): the whole backward pass of a normalisation
// with what stands around it, and runs of elementwise nodes and normalisations.
#include <utility>

#include "backends/cpu/elementwise.hpp"
#include "backends/cpu/kernels.hpp"
#include "backends/cpu/row_program.hpp"

namespace gradrack::cpu {
namespace {

using host::GroupSpec;

void add(host::KernelTable& table, const Context& context, std::string name, std::string help,
         std::string pattern) {
  host::GroupEntry entry;
  entry.name = std::move(name);
  entry.help = std::move(help);
  entry.pattern = std::move(pattern);
  entry.flags = GR_PATTERN_ACROSS;
  entry.claim = [&context](const GroupSpec& group) {
    RowCode code;
    return make_row_code(group, context.loops, &code);
  };
  entry.make = [&context](const GroupSpec& group) {
    RowCode code;
    make_row_code(group, context.loops, &code);
    return std::make_unique<RowProgram>(group, context, std::move(code));
  };
  table.add_group(std::move(entry));
}

// Both gradients of a normalisation read the gradient and the row: once, here. `c` is the gradient
// of the result as it comes, widened, or a sum; `r` what goes on, with the residual added.
void add_norm_backward(host::KernelTable& table, const Context& context) {
  const std::pair<const char*, const char*> before[] = {
      {"_widened", "c = Cast(a); "}, {"_sum", "c = Add(a, d); "}, {"", ""}};
  const std::pair<const char*, const char*> residual[] = {{"_residual", "; r = Add(e, g)"},
                                                          {"", ""}};
  const std::pair<const char*, bool> after[] = {{"_narrowed", true}, {"", false}};
  for (const auto& [first, cast] : before) {
    for (const auto& [second, sum] : residual) {
      for (const auto& [third, narrowed] : after) {
        const std::string result = *sum == '\0' ? "g" : "r";
        std::string pattern =
            std::string(cast) +
            "g = gradrack.RMSNormalizationGrad|gradrack.LayerNormalizationGrad(c, x, w); "
            "s = gradrack.RMSNormalizationScaleGrad|gradrack.LayerNormalizationScaleGrad(c, x)" +
            sum;
        if (narrowed) pattern += "; b = Cast(" + result + ")";
        add(table, context, std::string("norm_backward") + first + second + third,
            "both gradients of a normalisation in one pass over its rows", pattern);
      }
    }
  }
}

}  // namespace

void add_row_groups(host::KernelTable& table, const Context& context) {
  add_norm_backward(table, context);
  std::string ops =
      "Cast, RMSNormalization, LayerNormalization, gradrack.RMSNormalizationGrad, "
      "gradrack.LayerNormalizationGrad";
  for (const std::string& op : elementwise_ops()) ops += ", " + op;
  add(table, context, "rows", "a run of elementwise nodes and normalisations in one pass",
      "{" + ops + "}");
}

}  // namespace gradrack::cpu
