// SPDX-License-Identifier: Apache-2.0
// Loading the library under test: see subject.hpp.
#include "sdk/conformance/subject.hpp"

#include <dlfcn.h>

namespace gradrack::conform {

Result<std::unique_ptr<Subject>> Subject::open(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    const char* text = dlerror();
    return unsupported(explain_load_error(path, text != nullptr ? text : "no reason given"));
  }
  const auto* header = static_cast<const gr_plugin_header_t*>(dlsym(handle, GR_ENTRY_SYMBOL));
  if (header == nullptr) return invalid_argument("it has no symbol " GR_ENTRY_SYMBOL);
  if (header->magic != GR_PLUGIN_MAGIC) {
    return invalid_argument(GR_ENTRY_SYMBOL " does not begin with the magic number");
  }
  if (header->struct_size < sizeof *header || header->entry == nullptr) {
    return invalid_argument(GR_ENTRY_SYMBOL " is too small or has no entry function");
  }
  return std::unique_ptr<Subject>(new Subject(path, handle, header));
}

Result<gr_plugin_t> Subject::enter(const gr_host_t* host) const {
  gr_plugin_t answer = {};
  answer.struct_size = sizeof answer;
  gr_error_t err = {};
  GR_TRY(status_from(header_->entry(host, &answer, &err), err).with_context("entry refused"));
  if (answer.factory_count == 0 || answer.factories == nullptr) {
    return invalid_argument("entry offers no factories");
  }
  return answer;
}

Result<std::vector<Factory>> Subject::factories(const gr_plugin_t& answer,
                                                const gr_host_t* host) const {
  std::vector<Factory> made;
  for (uint32_t k = 0; k < answer.factory_count; ++k) {
    const gr_factory_t* raw = answer.factories[k];
    if (raw == nullptr || raw->kind == nullptr || raw->name == nullptr || raw->create == nullptr) {
      return invalid_argument("factory " + std::to_string(k) +
                              " is NULL or lacks kind, name or create");
    }
    const std::string what = std::string(raw->kind) + " '" + raw->name + "'";
    auto options = read_option_table(raw->options, raw->option_count, raw->option_stride);
    if (!options.ok()) return options.status().with_context(what);
    Factory factory;
    factory.kind = raw->kind;
    factory.name = raw->name;
    factory.version = raw->version != nullptr ? raw->version : "";
    factory.help = raw->help != nullptr ? raw->help : "";
    factory.options = std::move(*options);
    factory.library = path_;
    factory.host = host;
    factory.probe = raw->probe;
    factory.create = raw->create;
    made.push_back(std::move(factory));
  }
  return made;
}

}  // namespace gradrack::conform
