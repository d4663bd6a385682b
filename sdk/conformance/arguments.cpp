// SPDX-License-Identifier: Apache-2.0
// The command line: see arguments.hpp. The wall around CLI11's exceptions.
#include "sdk/conformance/arguments.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "core/plugin/host_table.hpp"

namespace gradrack::conform {
namespace {

constexpr const char* kFooter =
    "Levels: 0 file and exports, 1 negotiation with older and newer hosts, 2 lifecycle, threads "
    "and\n"
    "faults, 3 what each call answers, 4 streams (backends), 5 training, determinism, state.\n\n"
    "Exit codes: 0 all that applies passes; 1 a case fails; 2 wrong command line; 3 the library "
    "is\n"
    "not there or cannot be loaded; 4 the kit itself failed.\n\n"
    "Each case runs in a child process, so a plugin that crashes or hangs fails its case and no\n"
    "more. Every failure comes with a line that runs it again; add --in-process to that line to "
    "run\n"
    "it under a debugger.";

void add_selection(CLI::App& app, Arguments& a, std::string& levels) {
  app.add_option("library", a.library, "the plugin library")->required();
  app.add_option("--level", levels, "levels to run: 2, or 0-3")->default_str("0-5");
  app.add_option("--filter", a.filter, "glob over case ids, such as 'L3.MatMul.*'");
  app.add_option("--case", a.cases, "one case by its id; repeatable")->allow_extra_args(false);
  app.add_option("--batch", a.batch, "the cases that share a child under this name");
  app.add_option("--kind", a.kind, "factories of this kind alone");
  app.add_option("--name", a.name, "the factory of this name alone");
  app.add_option("--set", a.settings.sets, "OPTION=VALUE of the plugin; repeatable")
      ->allow_extra_args(false);
  app.add_option("--plugin-path", a.settings.plugin_path,
                 "folder in which other plugins may be found; repeatable")
      ->allow_extra_args(false);
}

void add_running(CLI::App& app, Arguments& a) {
  app.add_option("--seed", a.settings.seed, "of every random choice")->capture_default_str();
  app.add_option("--time-limit", a.limit_s, "seconds for one case")
      ->capture_default_str()
      ->check(CLI::Range(0.01, 86400.0));
  app.add_option("--format", a.format, "text, json or junit")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "json", "junit"}));
  app.add_option("-o,--output", a.output, "write the report to this file");
  app.add_option("--coverage", a.coverage, "backends: print the operator table (markdown)")
      ->check(CLI::IsMember({"markdown"}));
  app.add_flag("--list", a.list, "list the cases instead of running them");
  app.add_flag("-q,--quiet", a.quiet, "no progress");
  app.add_flag("--in-process", a.in_process, "run --case here, without a child: for debuggers");
  app.add_flag("--describe", a.describe)->group("");
  app.add_flag("--run-cases", a.run_cases)->group("");
  app.add_option("--report-fd", a.report_fd)->group("");
}

// "2" or "0-3".
bool read_levels(const std::string& text, Arguments* a) {
  if (text.empty()) return true;
  const auto digit = [](char c) { return c >= '0' && c <= '5'; };
  const bool one = text.size() == 1 && digit(text[0]);
  const bool range = text.size() == 3 && digit(text[0]) && text[1] == '-' && digit(text[2]);
  if (!one && !range) return false;
  a->first_level = text.front() - '0';
  a->last_level = text.back() - '0';
  return a->first_level <= a->last_level;
}

}  // namespace

bool parse_arguments(int argc, char** argv, Arguments* arguments, int* exit_code) {
  CLI::App app("Checks that a plugin library keeps to the Gradrack ABI.", "gradrack-conform");
  app.footer(kFooter);
  app.set_version_flag("--version", "gradrack-conform " + host_version());
  std::string levels;
  add_selection(app, *arguments, levels);
  add_running(app, *arguments);
  arguments->program = argc > 0 ? argv[0] : "gradrack-conform";
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    *exit_code = code == 0 ? kAllPass : kUsage;
    return false;
  }
  *exit_code = kUsage;
  if (!read_levels(levels, arguments)) {
    std::fprintf(stderr, "--level: got '%s', wanted one level from 0 to 5, or two as 0-3\n",
                 levels.c_str());
    return false;
  }
  if (arguments->in_process && arguments->cases.empty()) {
    std::fprintf(stderr, "--in-process needs --case: a crash would end all that follows\n");
    return false;
  }
  return true;
}

}  // namespace gradrack::conform
