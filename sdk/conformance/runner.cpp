// SPDX-License-Identifier: Apache-2.0
// Running cases in children: see runner.hpp.
#include "sdk/conformance/runner.hpp"

#include <chrono>
#include <deque>
#include <nlohmann/json.hpp>

#include "sdk/conformance/process.hpp"

namespace gradrack::conform {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::vector<std::string> common_arguments(const Target& target, const Settings& settings) {
  std::vector<std::string> arguments = {target.library, "--seed", std::to_string(settings.seed)};
  if (!target.kind.empty()) {
    arguments.insert(arguments.end(), {"--kind", target.kind, "--name", target.name});
  }
  for (const std::string& set : settings.sets) arguments.insert(arguments.end(), {"--set", set});
  for (const std::string& folder : settings.plugin_path) {
    arguments.insert(arguments.end(), {"--plugin-path", folder});
  }
  arguments.insert(arguments.end(), {"--report-fd", std::to_string(Process::kReportFd)});
  return arguments;
}

std::string quoted(const std::string& word) {
  const char* plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

Verdict verdict_from(const std::string& name) {
  return name == "pass"   ? Verdict::kPass
         : name == "fail" ? Verdict::kFail
                          : Verdict::kNotApplicable;
}

/// One target's cases on their way through children.
class Run {
 public:
  Run(const Target& target, const RunnerSettings& settings, const Progress& progress)
      : target_(target), settings_(settings), progress_(progress) {}

  Status all(const std::vector<Case>& cases) {
    for (size_t at = 0; at < cases.size();) {
      std::deque<const Case*> batch = {&cases[at++]};
      while (at < cases.size() && !batch[0]->batch.empty() && cases[at].batch == batch[0]->batch) {
        batch.push_back(&cases[at++]);
      }
      while (!batch.empty()) GR_TRY(one_child(&batch));
    }
    return {};
  }

  std::vector<CaseResult> results;

 private:
  // Runs the head of `batch` until its child ends; takes what is done off. What a child with
  // several cases died in is tried again alone.
  Status one_child(std::deque<const Case*>* batch) {
    std::string ids;
    for (const Case* one : *batch) ids += one->id + "\n";
    GR_ASSIGN(Process child, Process::start(arguments(), ids));
    const bool alone = batch->size() == 1;
    bool first = true;
    while (!batch->empty()) {
      const Case& one = *batch->front();
      CaseResult result = blank(one);
      const Clock::time_point begin = Clock::now();
      const bool known = follow(child, one, &result);
      result.seconds = since(begin);
      if (!known && !alone) {
        if (first) return retry(batch, "");
        return retry(batch, result.outcome.text);
      }
      finish(std::move(result));
      batch->pop_front();
      first = false;
      if (!known || one.must_exit) break;
    }
    return {};
  }

  Status retry(std::deque<const Case*>* batch, const std::string& in_batch) {
    std::deque<const Case*> single = {batch->front()};
    const size_t at = results.size();
    quiet_ = true;
    const Status status = one_child(&single);
    quiet_ = false;
    GR_TRY(status);
    CaseResult& result = results[at];
    if (result.outcome.verdict != Verdict::kFail && !in_batch.empty()) {
      result.outcome = fail(in_batch +
                            " after the cases before it; alone it does not: what they "
                            "leave behind is damaged");
      result.repro = repro("--batch", batch->front()->batch);
    }
    progress_(result);
    batch->pop_front();
    return {};
  }

  // Reads reports until `one` has ended. False: the child died or hung in it; the outcome says how.
  bool follow(Process& child, const Case& one, CaseResult* result) {
    const double limit = one.limit_s > 0 ? one.limit_s : settings_.limit_s;
    const Clock::time_point begin = Clock::now();
    std::string line;
    while (child.read_line(limit - since(begin), &line)) {
      const json report = json::parse(line, nullptr, false);
      if (!report.is_object() || report.value("end", "") != one.id) continue;
      result->outcome.verdict = verdict_from(report.value("verdict", ""));
      result->outcome.text = report.value("text", "");
      const json facts = report.value("facts", json::object());
      for (const auto& [key, value] : facts.items()) {
        result->outcome.facts[key] = value.is_string() ? value.get<std::string>() : value.dump();
      }
      if (report.value("exits", false)) wait_for_exit(child, limit, result);
      result->output = child.output();
      return true;
    }
    const bool hung = !child.ended();
    if (hung) child.kill();
    while (!child.ended() && child.read_line(1, &line)) {
    }
    char text[64];
    std::snprintf(text, sizeof text, "did not end within %g s", limit);
    const std::string how = child.end_text();
    result->outcome =
        fail(hung ? text : "the child ended early: " + (how.empty() ? "by exit(0)" : how));
    result->output = child.output();
    return false;
  }

  void wait_for_exit(Process& child, double limit, CaseResult* result) {
    std::string line;
    (void)child.read_line(limit, &line);
    if (!child.ended()) {
      child.kill();
      result->outcome = fail("the process does not end after exit()");
    } else if (!child.end_text().empty()) {
      result->outcome = fail("the process ended by " + child.end_text() + " instead of exit(0)");
    }
  }

  CaseResult blank(const Case& one) const {
    CaseResult result;
    result.target = target_;
    result.id = one.id;
    result.level = one.level;
    result.title = one.title;
    result.repro = repro("--case", one.id);
    return result;
  }

  void finish(CaseResult result) {
    if (result.outcome.verdict != Verdict::kFail) result.output.clear();
    results.push_back(std::move(result));
    if (!quiet_) progress_(results.back());
  }

  std::vector<std::string> arguments() const {
    std::vector<std::string> words = common_arguments(target_, settings_.settings);
    words.push_back("--run-cases");
    return words;
  }

  std::string repro(const char* option, const std::string& value) const {
    std::string text = quoted(settings_.program) + " " + quoted(settings_.library);
    if (settings_.name_factory && !target_.kind.empty()) {
      text += " --kind " + target_.kind + " --name " + target_.name;
    }
    for (const std::string& set : settings_.settings.sets) text += " --set " + quoted(set);
    for (const std::string& folder : settings_.settings.plugin_path) {
      text += " --plugin-path " + quoted(folder);
    }
    return text + " " + option + " " + quoted(value) + " --seed " +
           std::to_string(settings_.settings.seed);
  }

  const Target& target_;
  const RunnerSettings& settings_;
  const Progress& progress_;
  bool quiet_ = false;
};

OfferedFactory factory_from(const json& line) {
  OfferedFactory factory;
  factory.kind = line.value("kind", "");
  factory.name = line.value("name", "");
  factory.version = line.value("version", "");
  factory.options_error = line.value("options_error", "");
  for (const json& option : line.value("options", json::array())) {
    factory.options.push_back(option.value("name", ""));
  }
  return factory;
}

}  // namespace

Result<Description> describe_library(const std::string& path, const RunnerSettings& settings) {
  std::vector<std::string> arguments = common_arguments({path, "", ""}, settings.settings);
  arguments.push_back("--describe");
  GR_ASSIGN(Process child, Process::start(arguments, ""));
  std::string line;
  if (!child.read_line(settings.limit_s, &line)) {
    if (!child.ended()) return unsupported("loading it does not end");
    return unsupported("loading it ends the process: " + child.end_text() + "\n" + child.output());
  }
  const json report = json::parse(line, nullptr, false);
  if (!report.is_object()) return internal_error("the kit's child answered nonsense: " + line);
  if (report.contains("error")) return unsupported(report.value("error", ""));
  Description description;
  description.id = report.value("id", "");
  description.version = report.value("version", "");
  description.abi_minor = report.value("abi_minor", int64_t{0});
  for (const json& factory : report.value("factories", json::array())) {
    description.factories.push_back(factory_from(factory));
  }
  return description;
}

Result<std::vector<CaseResult>> run_cases(const Target& target, const std::vector<Case>& cases,
                                          const RunnerSettings& settings,
                                          const Progress& progress) {
  Run run(target, settings, progress);
  GR_TRY(run.all(cases));
  return std::move(run.results);
}

}  // namespace gradrack::conform
