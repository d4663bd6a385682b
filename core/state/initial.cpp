// SPDX-License-Identifier: Apache-2.0
// Initial values: see initial.hpp. Draws go through a small block so that no full copy in double
// exists.
#include "core/state/initial.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numbers>
#include <span>
#include <system_error>
#include <thread>
#include <vector>

#include "core/device/convert.hpp"
#include "core/graph/graph.hpp"
#include "gradrack/philox.h"

namespace gradrack {

namespace {

double uniform53(uint32_t high, uint32_t low) {
  const uint64_t bits = (uint64_t{high} << 32 | low) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

std::array<double, 2> draw_pair(const gr_init_t& init, uint64_t seed, uint64_t hash,
                                uint64_t pair) {
  const uint32_t counter[4] = {static_cast<uint32_t>(pair), static_cast<uint32_t>(pair >> 32),
                               static_cast<uint32_t>(hash), static_cast<uint32_t>(hash >> 32)};
  uint32_t bits[4];
  gr_philox4x32(counter, seed, bits);
  const double u = uniform53(bits[0], bits[1]);
  const double v = uniform53(bits[2], bits[3]);
  if (init.kind == GR_INIT_UNIFORM) {
    return {init.a + (init.b - init.a) * u, init.a + (init.b - init.a) * v};
  }
  const double radius = init.b * std::sqrt(-2.0 * std::log1p(-u));
  const double angle = 2.0 * std::numbers::pi * v;
  return {init.a + radius * std::cos(angle), init.a + radius * std::sin(angle)};
}

/// What one thread writes: elements [begin, end); `begin` is even, so that pairs do not straddle.
struct Part {
  const gr_init_t& init;
  gr_dtype_t dtype;
  uint64_t seed, hash;
  int64_t begin, end;
};

Status write_part(const Part& part, std::byte* out) {
  constexpr int64_t kBlock = 1024;
  std::array<double, kBlock> block;
  block.fill(part.init.a);
  for (int64_t at = part.begin; at < part.end; at += kBlock) {
    const int64_t n = std::min(kBlock, part.end - at);
    if (part.init.kind != GR_INIT_CONSTANT) {
      for (int64_t k = 0; k < n; k += 2) {
        const auto place = static_cast<uint64_t>((at + k) / 2);
        const auto pair = draw_pair(part.init, part.seed, part.hash, place);
        block[static_cast<size_t>(k)] = pair[0];
        block[static_cast<size_t>(k) + 1] = pair[1];
      }
    }
    GR_TRY(write_numbers(part.dtype, std::span<const double>(block.data(), static_cast<size_t>(n)),
                         out + at * gr_dtype_bytes(part.dtype)));
  }
  return {};
}

/// Bytes of zeros need no conversion.
bool is_zero(const gr_init_t& init) {
  return init.kind == GR_INIT_CONSTANT && init.a == 0.0 && !std::signbit(init.a);
}

}  // namespace

Status write_initial(const std::string& name, gr_dtype_t dtype, const gr_init_t& init,
                     uint64_t seed, int64_t count, void* out) {
  if (init.kind < GR_INIT_CONSTANT || init.kind > GR_INIT_UNIFORM) {
    return invalid_argument("'" + name + "': unknown initializer " + std::to_string(init.kind));
  }
  auto* const to = static_cast<std::byte*>(out);
  if (is_zero(init) && is_real(dtype)) {
    std::memset(to, 0, static_cast<size_t>(count * gr_dtype_bytes(dtype)));
    return {};
  }
  constexpr int64_t kWorthAThread = 1 << 15;  // a millisecond of draws
  const int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  const int64_t threads = std::clamp<int64_t>(count / kWorthAThread, 1, cores);
  const int64_t each = ((count + threads - 1) / threads + 1) / 2 * 2;
  std::vector<Status> answers(static_cast<size_t>(threads));
  const uint64_t hash = gr_hash_text(name.c_str());
  const auto write = [&](int64_t k) {
    const Part part{
        init, dtype, seed, hash, std::min(k * each, count), std::min((k + 1) * each, count)};
    answers[static_cast<size_t>(k)] = write_part(part, to);
  };
  {
    std::vector<std::jthread> others;
    for (int64_t k = 1; k < threads; ++k) {
      try {
        others.emplace_back(write, k);
      } catch (const std::system_error&) {
        write(k);  // no thread left for it: this one can
      }
    }
    write(0);
  }
  for (const Status& answer : answers) GR_TRY(Status(answer).with_context("'" + name + "'"));
  return {};
}

}  // namespace gradrack
