// SPDX-License-Identifier: Apache-2.0
// The progress line: see progress.hpp.
#include "core/state/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <string_view>

#include "core/base/text.hpp"

namespace gradrack {
namespace {

constexpr double kRewriteInterval = 0.1;  // seconds
constexpr const char* kBold = "\x1b[1m";
constexpr const char* kPlain = "\x1b[0m";

// "950", "12.3k", "4.56M"
std::string short_number(double value) {
  if (value < 999.5) return fmt::format("{:.0f}", value);
  if (value < 999'950) return fmt::format("{:.1f}k", value / 1e3);
  return fmt::format("{:.2f}M", value / 1e6);
}

// "0:07", "1:02:07", "3d 4:05:06"
std::string duration(double seconds) {
  const auto whole = static_cast<int64_t>(std::ceil(seconds));
  const int64_t days = whole / 86400;
  const int64_t hours = whole / 3600 % 24;
  const int64_t minutes = whole / 60 % 60;
  std::string out = days > 0 ? fmt::format("{}d ", days) : "";
  if (days > 0 || hours > 0) {
    return out + fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
  }
  return fmt::format("{}:{:02}", minutes, whole % 60);
}

// A reader that went away is no reason to stop, so errors are not looked at.
void put(std::FILE* stream, const std::string& text) { std::fputs(text.c_str(), stream); }

}  // namespace

std::string format_progress(const Progress& progress) {
  std::string out = "step ";
  if (progress.max_steps > 0) {
    const size_t width = fmt::formatted_size("{}", progress.max_steps);
    out += fmt::format("{:>{}}/{}", progress.step, width, progress.max_steps);
  } else {
    out += fmt::to_string(progress.step);
  }
  if (!std::isnan(progress.loss)) out += fmt::format("  loss {:.4f}", progress.loss);
  if (!std::isnan(progress.best_eval)) out += fmt::format("  best eval {:.4f}", progress.best_eval);
  out += fmt::format("  lr {:.2e}", progress.lr);
  if (std::isfinite(progress.tokens_per_second)) {
    out += fmt::format("  {} tok/s", short_number(progress.tokens_per_second));
  }
  if (progress.memory_bytes > 0) out += "  " + human_bytes(progress.memory_bytes);
  if (std::isfinite(progress.left_s) && progress.left_s >= 0) {
    out += fmt::format("  {} left", duration(progress.left_s));
  }
  return out;
}

ProgressOptions progress_options(std::FILE* stream, bool quiet, int64_t log_interval) {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string_view(value != nullptr ? value : "");
  };
  ProgressOptions options;
  options.quiet = quiet;
  options.log_interval = log_interval;
  const int descriptor = ::fileno(stream);
  options.terminal = ::isatty(descriptor) == 1 && variable("TERM") != "dumb";
  options.colour = options.terminal && variable("NO_COLOR").empty();
  winsize size = {};
  if (options.terminal && ::ioctl(descriptor, TIOCGWINSZ, &size) == 0) {
    options.columns = size.ws_col;
  }
  return options;
}

void ProgressLine::update(const Progress& progress) {
  if (options_.quiet) return;
  last_ = progress;
  const bool ends = progress.max_steps > 0 && progress.step >= progress.max_steps;
  if (!options_.terminal) {
    const int64_t interval = options_.log_interval > 0 ? options_.log_interval : 1;
    if (progress.step % interval != 0 && !ends) return;
    put(stream_, format_progress(progress) + "\n");
    std::fflush(stream_);
    return;
  }
  dirty_ = true;
  const bool early = shown_ > 0 && progress.elapsed_s - shown_at_s_ < kRewriteInterval;
  if (!early || ends) rewrite();
}

void ProgressLine::rewrite() {
  std::string line = format_progress(last_);
  // A line that wraps cannot be rewritten; the last column makes some terminals wrap.
  if (options_.columns > 1 && line.size() >= static_cast<size_t>(options_.columns)) {
    line.resize(static_cast<size_t>(options_.columns) - 1);
  }
  const std::string rest(shown_ > line.size() ? shown_ - line.size() : 0, ' ');
  shown_ = line.size();
  shown_at_s_ = last_.elapsed_s;
  dirty_ = false;
  if (options_.colour) {
    put(stream_, fmt::format("\r{}{}{}{}", kBold, line, kPlain, rest));
  } else {
    put(stream_, fmt::format("\r{}{}", line, rest));
  }
  std::fflush(stream_);
}

void ProgressLine::clear() {
  if (shown_ == 0) return;
  put(stream_, "\r" + std::string(shown_, ' ') + "\r");
  std::fflush(stream_);
  shown_ = 0;
}

void ProgressLine::finish() {
  if (options_.quiet || !options_.terminal) return;
  if (dirty_) rewrite();
  if (shown_ > 0) {
    put(stream_, "\n");
    std::fflush(stream_);
  }
  shown_ = 0;
}

}  // namespace gradrack
