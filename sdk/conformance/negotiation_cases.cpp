// SPDX-License-Identifier: Apache-2.0
// Level 1: entry against hosts of other ages, and the size of the tables that hosts hand over.
//
// A host of another age is a HostShim with other versions and another struct_size; a table of
// another age is shorter or longer by what a minor may append. Each case has a child to itself,
// since hosts call entry once.
#include <cstring>

#include "core/base/text.hpp"
#include "sdk/conformance/catalogue.hpp"
#include "sdk/conformance/context.hpp"
#include "sdk/conformance/tables.hpp"

namespace gradrack::conform {
namespace {

struct HostRange {
  uint32_t major, min, max;
};

std::string range_text(const HostRange& range) {
  return std::to_string(range.major) + "." + std::to_string(range.min) + ".." +
         std::to_string(range.max);
}

/// What entry says to a host of that range.
struct Answer {
  int32_t code = GR_OK;
  gr_error_t err = {};
  gr_plugin_t plugin = {};
};

Result<Answer> ask(Context& context, const HostRange& range) {
  GR_ASSIGN(Subject * subject, context.subject());
  gr_host_t& host = context.host().table();
  host.abi_major = range.major;
  host.abi_min_minor = range.min;
  host.abi_max_minor = range.max;
  Answer answer;
  answer.plugin.struct_size = sizeof answer.plugin;
  answer.code = subject->header().entry(&host, &answer.plugin, &answer.err);
  return answer;
}

Outcome expect_minor(Context& context, const HostRange& range, uint32_t wanted) {
  CONFORM_ASSIGN(const Answer answer, ask(context, range));
  const std::string host = "a host that speaks " + range_text(range);
  if (answer.code != GR_OK) {
    return fail(host + " is refused: " + status_from(answer.code, answer.err).message());
  }
  if (answer.plugin.abi_minor == wanted) return pass();
  return fail(host + ": entry chose minor " + std::to_string(answer.plugin.abi_minor) + ", " +
              std::to_string(wanted) + " wanted: the smaller of both newest minors");
}

Outcome expect_refusal(Context& context, const HostRange& range) {
  CONFORM_ASSIGN(const Answer answer, ask(context, range));
  const std::string host = "a host that speaks " + range_text(range);
  if (answer.code == GR_OK) return fail(host + " is accepted, GR_VERSION wanted");
  if (answer.code != GR_VERSION) {
    return fail(host + " is refused with status " + std::to_string(answer.code) +
                ", GR_VERSION (8) wanted");
  }
  if (answer.err.code != answer.code) return fail("err.code differs from the status returned");
  return answer.err.message[0] != '\0' ? pass() : fail(host + " is refused without a message");
}

Outcome this_host(Context& context) {
  CONFORM_ASSIGN(const Library library, load_library(context.target().library));
  return library.factories.empty() ? fail("it offers nothing that this host knows") : pass();
}

Outcome same_age(Context& context) {
  CONFORM_ASSIGN(Subject * subject, context.subject());
  const gr_plugin_header_t& header = subject->header();
  if (header.abi_major != GR_ABI_MAJOR || header.abi_min_minor > header.abi_max_minor) {
    return fail("its header names the range " +
                range_text({header.abi_major, header.abi_min_minor, header.abi_max_minor}));
  }
  const uint32_t newest = header.abi_max_minor;
  return expect_minor(context, {GR_ABI_MAJOR, 0, newest}, newest);
}

Outcome newer_host(Context& context) {
  CONFORM_ASSIGN(Subject * subject, context.subject());
  const uint32_t newest = subject->header().abi_max_minor;
  // A newer gr_host_t is longer; what comes after this one's end must not be touched.
  static struct {
    gr_host_t known;
    unsigned char later[64];
  } host;
  host.known = context.host().table();
  std::memset(host.later, 0xA5, sizeof host.later);
  host.known.struct_size = sizeof host;
  host.known.abi_max_minor = newest + 7;
  gr_plugin_t plugin = {};
  plugin.struct_size = sizeof plugin;
  gr_error_t err = {};
  const int32_t code = subject->header().entry(&host.known, &plugin, &err);
  if (code != GR_OK) return fail("a newer host is refused: " + status_from(code, err).message());
  for (const unsigned char byte : host.later) {
    if (byte != 0xA5) return fail("entry writes into the host's table");
  }
  return plugin.abi_minor == newest ? pass() : fail("entry chose a minor beyond its own newest");
}

Outcome too_new_host(Context& context) {
  CONFORM_ASSIGN(Subject * subject, context.subject());
  const uint32_t newest = subject->header().abi_max_minor;
  return expect_refusal(context, {GR_ABI_MAJOR, newest + 1, newest + 9});
}

Outcome older_host(Context& context) {
  CONFORM_ASSIGN(Subject * subject, context.subject());
  const uint32_t oldest = subject->header().abi_min_minor;
  return expect_minor(context, {GR_ABI_MAJOR, 0, oldest}, oldest);
}

Outcome too_old_host(Context& context) {
  CONFORM_ASSIGN(Subject * subject, context.subject());
  const uint32_t oldest = subject->header().abi_min_minor;
  if (oldest == 0) return not_applicable("it speaks every minor from 0");
  return expect_refusal(context, {GR_ABI_MAJOR, 0, oldest - 1});
}

Outcome next_major(Context& context) { return expect_refusal(context, {GR_ABI_MAJOR + 1, 0, 99}); }
Outcome last_major(Context& context) { return expect_refusal(context, {GR_ABI_MAJOR - 1, 0, 99}); }

std::string text_of(const char* text) { return text != nullptr ? text : "(NULL)"; }

std::string answer_text(const gr_plugin_t& plugin) {
  std::string text = text_of(plugin.id) + " " + text_of(plugin.version) + ", minor " +
                     std::to_string(plugin.abi_minor);
  for (uint32_t k = 0; k < plugin.factory_count; ++k) {
    const gr_factory_t* factory = plugin.factories[k];
    text += "; " + text_of(factory->kind) + " " + text_of(factory->name) + " " +
            text_of(factory->version) + " with " + std::to_string(factory->option_count) +
            " options";
  }
  return text;
}

Outcome twice(Context& context) {
  CONFORM_ASSIGN(Subject * subject, context.subject());
  CONFORM_ASSIGN(const gr_plugin_t first, subject->enter(context.host().get()));
  const std::string before = answer_text(first);
  CONFORM_ASSIGN(const gr_plugin_t second, subject->enter(context.host().get()));
  const std::string after = answer_text(second);
  return before == after ? pass() : fail("first: " + before + "; then: " + after);
}

// An answer of `size` bytes: shorter or longer than this SDK's gr_plugin_t.
Outcome answer_of(Context& context, size_t size) {
  CONFORM_ASSIGN(Subject * subject, context.subject());
  RawTable table(size);
  gr_error_t err = {};
  auto* out = static_cast<gr_plugin_t*>(table.data());
  const int32_t code = subject->header().entry(context.host().get(), out, &err);
  CONFORM_TRY(status_from(code, err).with_context("with gr_plugin_t of " + std::to_string(size) +
                                                  " bytes entry fails"));
  const bool newer = subject->header().abi_max_minor > GR_ABI_MAX_MINOR;
  const size_t known = newer ? size : std::min(size, sizeof(gr_plugin_t));
  const int64_t at = table.first_changed(known);
  if (at >= 0) {
    return fail("gr_plugin_t has struct_size " + std::to_string(size) +
                ", and entry writes to byte " + std::to_string(at) +
                ": test members with GR_HAS, or use the SDK's macros");
  }
  return out->factory_count > 0 ? pass() : fail("entry offers nothing to such a host");
}

Outcome short_answer(Context& context) { return answer_of(context, offsetof(gr_plugin_t, stop)); }
Outcome long_answer(Context& context) { return answer_of(context, sizeof(gr_plugin_t) + 64); }

bool is_name(const std::string& text) {
  return !text.empty() &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
}

Outcome texts(Context& context) {
  CONFORM_ASSIGN(const gr_plugin_t* plugin, context.entered());
  const std::string id = text_of(plugin->id);
  if (id.find('.') == std::string::npos || id.front() == '.' || id.back() == '.') {
    return fail("id '" + id + "' is not of the form org.example.name");
  }
  if (plugin->version == nullptr || *plugin->version == '\0') return fail("version is empty");
  for (uint32_t k = 0; k < plugin->factory_count; ++k) {
    const gr_factory_t* factory = plugin->factories[k];
    const std::string what = "factory " + std::to_string(k);
    if (factory == nullptr) return fail(what + " is NULL");
    if (!is_name(text_of(factory->name))) {
      return fail(what + ": name '" + text_of(factory->name) + "' is not made of [a-z0-9_]");
    }
    if (factory->version == nullptr || *factory->version == '\0' || factory->help == nullptr ||
        *factory->help == '\0') {
      return fail(what + " ('" + factory->name + "'): version or help is empty");
    }
    if (std::strchr(factory->help, '\n') != nullptr) return fail(what + ": help is not one line");
  }
  return pass();
}

Outcome options_table(Context& context) {
  CONFORM_ASSIGN(const Factory* factory, context.factory());  // checks types, defaults, ranges
  for (const gr_option_t& option : factory->options) {
    const std::string what = "option '" + text_of(option.name) + "'";
    if (!is_name(text_of(option.name))) return fail(what + " is not made of [a-z0-9_]");
    if (option.help == nullptr || *option.help == '\0') return fail(what + " has no help");
    const uint32_t known = GR_OPTION_REQUIRED | GR_OPTION_MIN_EXCLUSIVE | GR_OPTION_MAX_EXCLUSIVE;
    if ((option.flags & ~known) != 0) return fail(what + " has flags that ABI 1.0 does not know");
    const bool required = (option.flags & GR_OPTION_REQUIRED) != 0;
    if (required != (option.default_text == nullptr)) {
      return fail(what + (required ? " is required and has a default" : " has no default"));
    }
    if (option.min > option.max) return fail(what + ": min is larger than max");
  }
  return pass();
}

// `create` into a table that is `change` bytes longer than this SDK's.
Outcome create_sized(Context& context, int change) {
  if (context.usable().code() == GR_UNSUPPORTED) return not_applicable(context.usable().message());
  CONFORM_ASSIGN(const Factory* factory, context.factory());
  CONFORM_ASSIGN(const OptionValues options, context.options());
  return with_table(factory->kind, [&]<typename Table>(std::type_identity<Table>) -> Outcome {
    const size_t size = sizeof(Table) + static_cast<size_t>(change);
    RawTable table(size);
    gr_error_t err = {};
    const int32_t code = factory->create(factory->host, &options.abi(), table.data(), &err);
    CONFORM_TRY(status_from(code, err).with_context("create fails for a table of " +
                                                    std::to_string(size) + " bytes"));
    table.set_made();
    const bool newer = (*context.subject())->header().abi_max_minor > GR_ABI_MAX_MINOR;
    const int64_t at = table.first_changed(newer ? size : std::min(size, sizeof(Table)));
    if (at >= 0) {
      return fail("the table has struct_size " + std::to_string(size) +
                  ", and create writes to byte " + std::to_string(at) +
                  ": fill what fits (GR_HAS), or use the SDK's classes");
    }
    for (const Slot& slot : kind_info<Table>().required) {
      if (!table.filled(slot)) return fail(std::string("the slot '") + slot.name + "' is NULL");
    }
    return pass();
  });
}

// The last member of every table, get_extension, came last: a host without it is the oldest.
Outcome short_table(Context& context) {
  return create_sized(context, -static_cast<int>(sizeof(void*)));
}
Outcome exact_table(Context& context) { return create_sized(context, 0); }
Outcome long_table(Context& context) { return create_sized(context, sizeof(void*)); }

}  // namespace

void add_negotiation_cases(const Target&, std::vector<Case>* cases) {
  const auto add = [&](const char* id, const char* title, Outcome (*run)(Context&)) {
    cases->push_back({id, 1, title, run});
  };
  add("L1.this_host", "the host's own loader accepts it", this_host);
  add("L1.same_age", "a host of its own age", same_age);
  add("L1.newer_host", "a newer host, with a longer table", newer_host);
  add("L1.too_new_host", "a host that gave up its minors is refused", too_new_host);
  add("L1.older_host", "the oldest host that it says it knows", older_host);
  add("L1.too_old_host", "a host older than that is refused", too_old_host);
  add("L1.next_major", "a host of the next major is refused", next_major);
  add("L1.last_major", "a host of the last major is refused", last_major);
  add("L1.twice", "entry called twice gives the same answer", twice);
  add("L1.short_answer", "entry fills a shorter gr_plugin_t and no more", short_answer);
  add("L1.long_answer", "entry leaves what it does not know in a longer gr_plugin_t", long_answer);
  add("L1.texts", "id, names, versions and help are there", texts);
}

void add_table_cases(const Target&, std::vector<Case>* cases) {
  const auto add = [&](const char* id, const char* title, Outcome (*run)(Context&)) {
    cases->push_back({id, 1, title, run});
  };
  add("L1.options", "the options table agrees with itself", options_table);
  add("L1.exact_table", "create fills the table", exact_table);
  add("L1.short_table", "create fills an older host's table and no more", short_table);
  add("L1.long_table", "create leaves what it does not know in a newer host's table", long_table);
}

}  // namespace gradrack::conform
