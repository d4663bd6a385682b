// SPDX-License-Identifier: Apache-2.0
// Running cases in a child: see child.hpp.
#include "sdk/conformance/child.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "sdk/conformance/catalogue.hpp"

namespace gradrack::conform {
namespace {

using nlohmann::json;

void write_line(int fd, const json& line) {
  const std::string text = line.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  for (size_t at = 0; at < text.size();) {
    const ssize_t put = ::write(fd, text.data() + at, text.size() - at);
    if (put <= 0) ::_exit(4);  // the parent is gone
    at += static_cast<size_t>(put);
  }
}

void say(const std::string& id, const Outcome& outcome) {
  std::printf("%s: %s%s%s\n", id.c_str(), verdict_name(outcome.verdict),
              outcome.text.empty() ? "" : ": ", outcome.text.c_str());
  for (const auto& [key, value] : outcome.facts) {
    std::printf("  %s: %s\n", key.c_str(), value.c_str());
  }
  std::fflush(stdout);
}

// Cases above negotiation need a factory that works here; one that says no is believed.
Outcome run_case(const Case& one, Context& context) {
  const bool probes = one.level >= 2 && !context.target().kind.empty();
  if (probes) {
    const Status usable = context.usable();
    if (usable.code() == GR_UNSUPPORTED) {
      return not_applicable("not on this machine: " + usable.message());
    }
    if (!usable.ok()) return fail(usable.message());
  }
  return one.run(context);
}

// The kit's own descriptors are no business of the plugin's children, and a child must not outlive
// a kit that was interrupted.
void prepare(int report_fd) {
  if (report_fd < 0) return;
  (void)::fcntl(report_fd, F_SETFD, FD_CLOEXEC);
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
}

}  // namespace

void run_child(const ChildRequest& request) {
  prepare(request.report_fd);
  const std::vector<Case> cases = cases_of(request.target);
  auto* context = new Context(request.target, request.settings);  // may be needed until exit
  bool failed = false;
  for (const std::string& id : request.ids) {
    const auto at =
        std::find_if(cases.begin(), cases.end(), [&](const Case& one) { return one.id == id; });
    if (at == cases.end()) continue;
    if (request.report_fd >= 0) write_line(request.report_fd, {{"begin", id}});
    const Outcome outcome = run_case(*at, *context);
    failed = failed || outcome.verdict == Verdict::kFail;
    const bool exits = at->must_exit && outcome.verdict == Verdict::kPass;
    if (request.report_fd < 0) {
      say(id, outcome);
    } else {
      write_line(request.report_fd, {{"end", id},
                                     {"verdict", verdict_name(outcome.verdict)},
                                     {"text", outcome.text},
                                     {"facts", outcome.facts},
                                     {"exits", exits}});
    }
    if (exits) std::exit(0);
  }
  std::fflush(nullptr);
  ::_exit(request.report_fd < 0 && failed ? 1 : 0);
}

namespace {

json option_json(const gr_option_t& option) {
  return {{"name", option.name}, {"required", (option.flags & GR_OPTION_REQUIRED) != 0}};
}

json factory_json(const Factory& factory, const std::vector<std::string>& sets) {
  json line = {{"kind", factory.kind}, {"name", factory.name}, {"version", factory.version}};
  line["options"] = json::array();
  for (const gr_option_t& option : factory.options) line["options"].push_back(option_json(option));
  const auto values = option_values(factory, sets);
  if (!values.ok()) line["options_error"] = values.status().message();
  return line;
}

Result<json> describe(const ChildRequest& request) {
  auto* context = new Context(request.target, request.settings);
  GR_ASSIGN(Subject * subject, context->subject());
  GR_ASSIGN(const gr_plugin_t* answer, context->entered());
  GR_ASSIGN(const std::vector<Factory> factories,
            subject->factories(*answer, context->host().get()));
  json line = {{"id", answer->id != nullptr ? answer->id : ""},
               {"version", answer->version != nullptr ? answer->version : ""},
               {"abi_minor", answer->abi_minor}};
  line["factories"] = json::array();
  for (const Factory& factory : factories) {
    line["factories"].push_back(factory_json(factory, request.settings.sets));
  }
  return line;
}

}  // namespace

void describe_child(const ChildRequest& request) {
  prepare(request.report_fd);
  const Result<json> line = describe(request);
  write_line(request.report_fd < 0 ? STDOUT_FILENO : request.report_fd,
             line.ok() ? *line : json{{"error", line.status().message()}});
  ::_exit(0);
}

}  // namespace gradrack::conform
