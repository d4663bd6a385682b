// SPDX-License-Identifier: Apache-2.0
// The log: see log.hpp.
#include "core/base/log.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <memory>
#include <mutex>

namespace gradrack {
namespace {

struct LogState {
  std::shared_ptr<spdlog::logger> logger;
  LogFormat format = LogFormat::kText;
  bool quiet = false;
};

std::shared_ptr<spdlog::logger> make_logger(const LogOptions& options) {
  const char* no_color = std::getenv("NO_COLOR");
  const bool plain = no_color != nullptr && no_color[0] != '\0';
  auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>(
      plain ? spdlog::color_mode::never : spdlog::color_mode::automatic);
  auto logger = std::make_shared<spdlog::logger>("gradrack", std::move(sink));
  logger->set_pattern(options.format == LogFormat::kJson ? "%v" : "%^%l%$: %v");
  logger->set_level(options.quiet ? spdlog::level::warn : spdlog::level::info);
  logger->flush_on(spdlog::level::trace);
  return logger;
}

std::mutex& log_mutex() {
  static std::mutex mutex;
  return mutex;
}

// Leaked, so that a plugin's thread may still log while the program ends.
LogState& log_state() {
  static LogState* state = new LogState{make_logger({}), LogFormat::kText, false};
  return *state;
}

spdlog::level::level_enum spdlog_level(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarn:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

}  // namespace

void start_logging(const LogOptions& options) {
  const std::lock_guard<std::mutex> lock(log_mutex());
  log_state() = {make_logger(options), options.format, options.quiet};
}

bool log_is_quiet() {
  const std::lock_guard<std::mutex> lock(log_mutex());
  return log_state().quiet;
}

LogFormat log_format() {
  const std::lock_guard<std::mutex> lock(log_mutex());
  return log_state().format;
}

void log_event(const Event& event) {
  const std::lock_guard<std::mutex> lock(log_mutex());
  LogState& state = log_state();
  const std::string line =
      state.format == LogFormat::kJson ? to_json_line(event) : printable(event.message);
  state.logger->log(spdlog_level(event.level), spdlog::string_view_t(line));
}

void log_line(Level level, std::string_view message) {
  log_event({"log", level, std::string(message)});
}

std::string printable(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      out += c;
    } else {
      out += {'\\', 'x', kHex[byte / 16], kHex[byte % 16]};
    }
  }
  return out;
}

}  // namespace gradrack
