// SPDX-License-Identifier: Apache-2.0
// Threads of this process: see threads.hpp.
#include "core/plugin/threads.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/base/folder.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"

namespace gradrack {
namespace {

std::vector<ThreadName> newcomers(const std::vector<ThreadName>& before) {
  std::vector<ThreadName> added;
  for (ThreadName& thread : threads_alive()) {
    const bool known = std::any_of(before.begin(), before.end(),
                                   [&](const ThreadName& old) { return old.id == thread.id; });
    if (!known) added.push_back(std::move(thread));
  }
  return added;
}

}  // namespace

std::vector<ThreadName> threads_alive() {
  std::vector<ThreadName> threads;
  const std::string tasks = "/proc/self/task";
  for (const std::string& id : names_in_or_none(tasks)) {
    std::string name;
    std::getline(std::ifstream(tasks + "/" + id + "/comm"), name);
    if (name.empty()) continue;  // gone in between
    threads.push_back({std::atoi(id.c_str()), std::move(name)});
  }
  std::sort(threads.begin(), threads.end(),
            [](const ThreadName& a, const ThreadName& b) { return a.id < b.id; });
  return threads;
}

std::vector<ThreadName> threads_since(const std::vector<ThreadName>& before) {
  std::vector<ThreadName> added = newcomers(before);
  for (int tries = 0; !added.empty() && tries < 20; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    added = newcomers(before);
  }
  return added;
}

std::string thread_list(const std::vector<ThreadName>& threads) {
  std::vector<std::string> names;
  for (const ThreadName& thread : threads) names.push_back("'" + printable(thread.name) + "'");
  return std::to_string(threads.size()) + (threads.size() == 1 ? " thread (" : " threads (") +
         join(names) + ")";
}

}  // namespace gradrack
