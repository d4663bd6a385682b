// SPDX-License-Identifier: Apache-2.0
// Owners and modes: see trust.hpp.
#include "core/plugin/trust.hpp"

#include <fcntl.h>
#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

namespace gradrack {
namespace {

constexpr const char* kWayOut =
    "; or --allow-writable-plugins (plugins.allow_writable: true) if you trust whoever can";

Status refused(const std::string& message) {
  return Status(GR_FAILED_PRECONDITION, message).in_area(Area::kPlugin);
}

std::string mode_text(mode_t mode) {
  char text[8];
  (void)std::snprintf(text, sizeof text, "%04o", static_cast<unsigned>(mode & 07777));
  return text;
}

std::string user_name(uid_t user) {
  passwd entry;
  passwd* found = nullptr;
  char text[1024];
  if (getpwuid_r(user, &entry, text, sizeof text, &found) == 0 && found != nullptr) {
    return "user '" + std::string(found->pw_name) + "'";
  }
  return "user " + std::to_string(user);
}

std::string writers(mode_t mode) {
  const bool group = (mode & S_IWGRP) != 0;
  const bool others = (mode & S_IWOTH) != 0;
  return group && others ? "its group and all others" : group ? "its group" : "all others";
}

Status check_one(const std::string& what, const std::string& path, const struct stat& facts,
                 uid_t me) {
  if (facts.st_uid != me && facts.st_uid != 0) {
    return refused(what + " belongs to " + user_name(facts.st_uid) +
                   ", who can replace it: take a copy of your own" + kWayOut);
  }
  const bool sticky_folder = S_ISDIR(facts.st_mode) && (facts.st_mode & S_ISVTX) != 0;
  if ((facts.st_mode & (S_IWGRP | S_IWOTH)) == 0 || sticky_folder) return {};
  return refused(what + " can be written by " + writers(facts.st_mode) + " (mode " +
                 mode_text(facts.st_mode) + "): chmod go-w '" + path + "'" + kWayOut);
}

Status system_error(const std::string& what, int error) {
  const std::string text = what + ": " + std::strerror(error);
  return error == ENOENT ? not_found(text) : io_error(text);
}

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) (void)close(number);
  }
};

Result<std::string> read_all(int descriptor, size_t expected_bytes) {
  std::string bytes;
  bytes.reserve(expected_bytes + 1);
  char block[1 << 16];
  for (;;) {
    const ssize_t got = read(descriptor, block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("it cannot be read", errno);
    if (got == 0) return bytes;
    bytes.append(block, static_cast<size_t>(got));
  }
}

}  // namespace

Status check_trust(const std::string& path, const struct stat& file, const struct stat& folder,
                   uid_t me) {
  const std::string folder_path = std::filesystem::path(path).parent_path().string();
  GR_TRY(check_one("it", path, file, me));
  return check_one("its folder " + folder_path, folder_path, folder, me);
}

Status check_folder_trust(const std::string& folder) {
  struct stat facts;
  if (stat(folder.c_str(), &facts) != 0) return system_error("it cannot be examined", errno);
  return check_one("it", folder, facts, geteuid());
}

Result<std::string> read_trusted(const std::string& path, bool allow_writable) {
  // Not blocking, so that a pipe with a library's name does not hang the host.
  const Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.number < 0) return system_error("it cannot be opened", errno);
  struct stat facts;
  if (fstat(file.number, &facts) != 0) return system_error("it cannot be examined", errno);
  if (!S_ISREG(facts.st_mode)) {
    return unsupported("it is no regular file: build it again, or remove it");
  }
  if (!allow_writable) {
    const std::string folder = std::filesystem::path(path).parent_path().string();
    struct stat folder_facts;
    if (stat(folder.empty() ? "." : folder.c_str(), &folder_facts) != 0) {
      return system_error("its folder cannot be examined", errno);
    }
    GR_TRY(check_trust(path, facts, folder_facts, geteuid()));
  }
  return read_all(file.number, static_cast<size_t>(facts.st_size));
}

}  // namespace gradrack
