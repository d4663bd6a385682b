// SPDX-License-Identifier: Apache-2.0
// The table of "Zero Bubble Pipeline Parallelism" (Qi et al.): profiled times, bubble rates.
//
// Columns 1F1B, H1 (also its ZB-1p), 2p and H2 are the paper's; those for 1.25 and 1.5 times the
// memory are what its authors' public heuristic gives within these limits.
#pragma once

#include <cstdint>
#include <string>

#include "core/simulate/read_table.hpp"

namespace gradrack {

struct GoldenRow {
  const char* model;
  int stages, microbatches;
  const char *forward, *input_gradient, *weight_gradient, *transfer;  // ms
  double one_f_one_b, h1, two, h2, cap125, cap150;
  int64_t hidden, heads;
};

inline constexpr GoldenRow kGoldenRows[] = {{"1.5B", 8, 24, "18.522", "18.086", "9.337", ".601",
                                             .2431, .1585, .0433, .1083, .1068, .0719, 2304, 24},
                                            {"1.5B", 8, 32, "18.513", "18.086", "9.331", ".626",
                                             .1985, .1242, .0039, .0837, .0827, .0456, 2304, 24},
                                            {"1.5B", 8, 64, "18.546", "18.097", "9.321", ".762",
                                             .1240, .0674, .0026, .0444, .0443, .0270, 2304, 24},
                                            {"6.2B", 8, 24, "29.718", "29.444", "19.927", ".527",
                                             .2347, .1323, .0029, .0698, .0751, .0475, 4096, 32},
                                            {"6.2B", 8, 32, "29.802", "29.428", "19.530", ".577",
                                             .1898, .1045, .0022, .0559, .0649, .0366, 4096, 32},
                                            {"6.2B", 8, 64, "29.935", "29.621", "19.388", ".535",
                                             .1091, .0554, .0010, .0294, .0331, .0185, 4096, 32},
                                            {"14.6B", 16, 48, "11.347", "11.248", "8.132", ".377",
                                             .2552, .1397, .0066, .0672, .0837, .0571, 5120, 40},
                                            {"14.6B", 16, 64, "11.307", "11.254", "8.101", ".379",
                                             .2082, .1088, .0054, .0516, .0643, .0437, 5120, 40},
                                            {"14.6B", 16, 128, "11.325", "11.308", "8.109", ".378",
                                             .1251, .0576, .0028, .0266, .0333, .0224, 5120, 40},
                                            {"28.3B", 32, 96, "10.419", "10.207", "7.715", ".408",
                                             .2646, .1421, .0038, .0641, .0867, .0604, 6144, 48},
                                            {"28.3B", 32, 128, "10.408", "10.204", "7.703", ".408",
                                             .2168, .1106, .0029, .0490, .0665, .0468, 6144, 48},
                                            {"28.3B", 32, 256, "10.402", "10.248", "7.698", ".460",
                                             .1352, .0594, .0018, .0257, .0350, .0242, 6144, 48}};

/// A recipe of the row. Memory of a layer at 1024 tokens: a forward holds 34h + 5as for each token,
/// of which 32h are kept for dW.
inline std::string golden_recipe(const GoldenRow& row, const std::string& more = "") {
  const int64_t held = (34 * row.hidden + 5 * row.heads * 1024) * 1024;
  return "pipeline: {stages: " + std::to_string(row.stages) +
         ", microbatches: " + std::to_string(row.microbatches) + ", forward_ms: " + row.forward +
         ", input_gradient_ms: " + row.input_gradient +
         ", weight_gradient_ms: " + row.weight_gradient + ", transfer_ms: " + row.transfer +
         ", forward_bytes: " + std::to_string(held) +
         ", weight_gradient_bytes: " + std::to_string(32 * row.hidden * 1024) + more + "}";
}

inline std::string row_name(const GoldenRow& row) {
  return std::string(row.model) + " m=" + std::to_string(row.microbatches);
}

}  // namespace gradrack
