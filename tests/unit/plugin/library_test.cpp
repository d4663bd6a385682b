// SPDX-License-Identifier: Apache-2.0
// The loader's messages, reworded. What whole libraries do is in tests/fault.
#include "core/plugin/library.hpp"

#include <gtest/gtest.h>

namespace gradrack {
namespace {

TEST(LoadError, NamesTheMissingLibrary) {
  EXPECT_EQ(explain_load_error("/p/a.so",
                               "libfoo.so.1: cannot open shared object file: No such "
                               "file or directory")
                .substr(0, 45),
            "it needs libfoo.so.1, which was not found: in");
}

TEST(LoadError, NamesTheMissingSymbol) {
  EXPECT_EQ(explain_load_error("/p/a.so", "/p/a.so: undefined symbol: foo").substr(0, 26),
            "it uses the symbol 'foo', ");
}

TEST(LoadError, NamesTheVersionOfANewerSystem) {
  const std::string text = explain_load_error(
      "/p/a.so", "/lib/libstdc++.so.6: version `GLIBCXX_3.4.32' not found (required by /p/a.so)");
  EXPECT_EQ(text.substr(0, 66),
            "it was built for a newer system (GLIBCXX_3.4.32): rebuild it on th");
}

TEST(LoadError, NamesAFileThatIsNoLibrary) {
  EXPECT_EQ(explain_load_error("/p/a.so", "/p/a.so: invalid ELF header").substr(0, 28),
            "it is not a shared library f");
}

TEST(LoadError, KeepsTheSystemsWords) {
  EXPECT_EQ(explain_load_error("/p/a.so", "something else"),
            "the system cannot load it [something else]");
}

}  // namespace
}  // namespace gradrack
