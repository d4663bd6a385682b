// SPDX-License-Identifier: Apache-2.0
// gradrack-conform: from a library to a report. The flow: describe (in a child) -> catalogue ->
// run (in children) -> report. See docs/conformance.md.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "core/base/text.hpp"
#include "core/optim/groups.hpp"
#include "sdk/conformance/arguments.hpp"
#include "sdk/conformance/catalogue.hpp"
#include "sdk/conformance/child.hpp"
#include "sdk/conformance/report.hpp"

namespace gradrack::conform {
namespace {

int complain(ExitCode code, const std::string& text) {
  std::fprintf(stderr, "gradrack-conform: %s\n", text.c_str());
  return code;
}

bool wanted(const Arguments& a, const Case& one) {
  if (!a.cases.empty()) {
    return std::find(a.cases.begin(), a.cases.end(), one.id) != a.cases.end();
  }
  if (!a.batch.empty() && a.batch != one.batch) return false;
  return one.level >= a.first_level && one.level <= a.last_level && glob_match(a.filter, one.id);
}

/// The library itself, then each factory asked for, with the cases asked for.
struct Job {
  Target target;
  std::vector<Case> cases;
};

std::vector<Job> jobs_for(const Arguments& a, const std::string& path,
                          const Description& description) {
  std::vector<Target> targets;
  if (a.kind.empty() && a.name.empty()) targets.push_back({path, "", ""});
  for (const OfferedFactory& factory : description.factories) {
    if (!a.kind.empty() && factory.kind != a.kind) continue;
    if (!a.name.empty() && factory.name != a.name) continue;
    targets.push_back({path, factory.kind, factory.name});
  }
  std::vector<Job> jobs;
  for (const Target& target : targets) {
    Job job{target, {}};
    for (Case& one : cases_of(target)) {
      if (wanted(a, one)) job.cases.push_back(std::move(one));
    }
    jobs.push_back(std::move(job));
  }
  return jobs;
}

// What is wrong with the selection or the options, or "".
std::string usage_fault(const Arguments& a, const Description& description,
                        const std::vector<Job>& jobs) {
  for (const std::string& id : a.cases) {
    bool found = false;
    for (const Job& job : jobs) {
      for (const Case& one : job.cases) found = found || one.id == id;
    }
    if (!found)
      return "--case " + id + ": there is no such case here; --list shows those there are";
  }
  for (const std::string& set : a.settings.sets) {
    const std::string option = set.substr(0, set.find('='));
    bool known = false;
    for (const OfferedFactory& factory : description.factories) {
      known = known || std::count(factory.options.begin(), factory.options.end(), option) > 0;
    }
    if (!known)
      return "--set " + set + ": no factory of this library has the option '" + option + "'";
  }
  for (const Job& job : jobs) {
    for (const OfferedFactory& factory : description.factories) {
      const bool this_one = factory.kind == job.target.kind && factory.name == job.target.name;
      if (this_one && !job.cases.empty() && !factory.options_error.empty()) {
        return factory.options_error + "; give options as --set OPTION=VALUE";
      }
    }
  }
  size_t cases = 0;
  for (const Job& job : jobs) cases += job.cases.size();
  return cases == 0 ? "nothing to run: no case fits what --kind, --name, --level and --filter ask"
                    : "";
}

int list_cases(const std::vector<Job>& jobs) {
  for (const Job& job : jobs) {
    if (!job.target.kind.empty()) {
      fmt::print("# {} '{}'\n", job.target.kind, job.target.name);
    }
    for (const Case& one : job.cases) fmt::print("{:<44} {}\n", one.id, one.title);
  }
  return kAllPass;
}

// One line on a terminal, rewritten; nothing elsewhere.
Progress progress_on(const Arguments& a, size_t total) {
  if (a.quiet || ::isatty(STDERR_FILENO) == 0) return [](const CaseResult&) {};
  return [total, done = size_t{0}](const CaseResult& result) mutable {
    ++done;
    fmt::print(stderr, "\r\033[K[{}/{}] {}{}", done, total, result.id,
               done == total ? "\r\033[K" : "");
    std::fflush(stderr);
  };
}

bool write_report(const Arguments& a, const Report& report) {
  const std::string text = a.format == "json"    ? json_report(report)
                           : a.format == "junit" ? junit_report(report)
                                                 : text_report(report);
  if (!a.coverage.empty()) {
    fmt::print(stderr, "{}", text_report(report));
    fmt::print("{}", coverage_markdown(report.results));
  }
  if (a.output.empty()) {
    if (a.coverage.empty()) fmt::print("{}", text);
    return true;
  }
  std::ofstream file(a.output, std::ios::binary);
  file << text;
  file.close();
  if (a.coverage.empty() && a.format != "text") fmt::print("{}", text_report(report));
  return file.good();
}

int run_jobs(const Arguments& a, const std::vector<Job>& jobs, const RunnerSettings& runner,
             Report* report) {
  size_t total = 0;
  for (const Job& job : jobs) total += job.cases.size();
  const Progress progress = progress_on(a, total);
  for (const Job& job : jobs) {
    auto results = run_cases(job.target, job.cases, runner, progress);
    if (!results.ok()) return complain(kKitFault, results.status().message());
    for (CaseResult& result : *results) report->results.push_back(std::move(result));
  }
  if (!write_report(a, *report)) return complain(kKitFault, "cannot write " + a.output);
  if (!report->error.empty()) return kNoLoad;
  return report->count(Verdict::kFail) > 0 ? kSomeFail : kAllPass;
}

// The one case of --in-process, on the only target that has it.
int run_here(const Arguments& a, const std::vector<Job>& jobs) {
  for (const Job& job : jobs) {
    if (job.cases.empty()) continue;
    ChildRequest request{job.target, a.settings, {}, -1};
    for (const Case& one : job.cases) request.ids.push_back(one.id);
    run_child(request);
  }
  return kUsage;
}

int run_parent(const Arguments& a) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(a.library, error);
  if (error) return complain(kNoLoad, a.library + ": " + error.message());
  RunnerSettings runner;
  runner.settings = a.settings;
  runner.program = a.program;
  runner.library = a.library;
  runner.limit_s = a.limit_s;
  Report report;
  report.library = a.library;
  report.seed = a.settings.seed;
  const Result<Description> description = describe_library(path.string(), runner);
  if (description.ok()) {
    report.description = *description;
  } else if (description.status().code() == GR_INTERNAL) {
    return complain(kKitFault, description.status().message());
  } else {
    report.error = description.status().message();
  }
  runner.name_factory = report.description.factories.size() > 1;
  const std::vector<Job> jobs = jobs_for(a, path.string(), report.description);
  const std::string fault = usage_fault(a, report.description, jobs);
  if (!fault.empty()) {
    if (!report.error.empty()) return complain(kNoLoad, a.library + ": " + report.error);
    return complain(kUsage, fault);
  }
  if (a.list) return list_cases(jobs);
  if (a.in_process) return run_here(a, jobs);
  return run_jobs(a, jobs, runner, &report);
}

int run(int argc, char** argv) {
  Arguments arguments;
  int exit_code = kUsage;
  if (!parse_arguments(argc, argv, &arguments, &exit_code)) return exit_code;
  const Target target{arguments.library, arguments.kind, arguments.name};
  ChildRequest request{target, arguments.settings, {}, arguments.report_fd};
  if (arguments.describe) describe_child(request);
  if (arguments.run_cases) {
    for (std::string id; std::getline(std::cin, id);) request.ids.push_back(id);
    run_child(request);
  }
  return run_parent(arguments);
}

}  // namespace
}  // namespace gradrack::conform

int main(int argc, char** argv) {
  try {
    return gradrack::conform::run(argc, argv);
  } catch (const std::exception& exception) {
    return gradrack::conform::complain(gradrack::conform::kKitFault, exception.what());
  }
}
