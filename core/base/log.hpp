// SPDX-License-Identifier: Apache-2.0
// The log: one line an event on stderr, for people or as JSON.
//
// Base of the flow. stdout stays free for what a command answers (samples, tables), so that it can
// be piped. Colour only on a terminal and only without NO_COLOR (https://no-color.org). spdlog is
// not visible from here: its templates cost every includer.
#pragma once

#include <string_view>

#include "core/base/events.hpp"

namespace gradrack {

enum class LogFormat { kText, kJson };

struct LogOptions {
  LogFormat format = LogFormat::kText;
  bool quiet = false;  ///< warnings and errors alone
};

/// Sets the log up, for the whole process; may be called again. [main]
void start_logging(const LogOptions& options);

/// Whether start_logging was asked to be quiet. [any]
bool log_is_quiet();
/// The format that start_logging was asked for. [any]
LogFormat log_format();

/// Writes one line; before start_logging as text. [any]
void log_event(const Event& event);

/// A line that is no more than its text: kind "log". [any]
void log_line(Level level, std::string_view message);

/// Text with bytes below space (line breaks, escape sequences) shown as \xNN: what a plugin or a
/// file says can neither forge a log line nor drive the terminal.
std::string printable(std::string_view text);

}  // namespace gradrack
