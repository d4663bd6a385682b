// SPDX-License-Identifier: Apache-2.0
// TokenCache: what is kept is found again, and what is damaged is not believed.
#include "plugins/data/common/token_cache.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "gradrack/extensions.h"

namespace corpus {
namespace {

namespace fs = std::filesystem;

/// A host with a cache folder, that counts the warnings it is told.
class TokenCacheTest : public ::testing::Test {
 protected:
  TokenCacheTest() {
    fs::create_directories(folder_);
    host_.struct_size = sizeof host_;
    host_.context = this;
    host_.log = [](void* self, int32_t, const char* message) {
      static_cast<TokenCacheTest*>(self)->said_.push_back(message);
    };
    host_.get_extension = [](void* self, const char* id) -> const void* {
      const bool wanted = std::string_view(id) == GR_EXT_CACHE;
      return wanted ? &static_cast<TokenCacheTest*>(self)->cache_ : nullptr;
    };
    cache_.context = this;
    cache_.folder = [](void* self) { return static_cast<TokenCacheTest*>(self)->folder_.c_str(); };
  }
  ~TokenCacheTest() override { fs::remove_all(folder_); }

  Tokenized tokens() const {
    Tokenized made;
    made.own.emplace(300);
    const int32_t ids[] = {1, 299, 7, 0, 5};
    made.own->append(ids);
    made.ids = made.own->view();
    made.ends = {2, 5};
    return made;
  }
  fs::path file() const { return *fs::directory_iterator(folder_); }

  const std::string folder_ =
      ::testing::TempDir() + "gradrack_token_cache_" + std::to_string(getpid());
  const std::string key_ = std::string(63, 'a') + "1";
  gr_host_t host_ = {};
  gr_cache_t cache_ = {};
  std::vector<std::string> said_;
};

TEST_F(TokenCacheTest, FindsWhatItKept) {
  const TokenCache cache(host_);
  EXPECT_FALSE(cache.find(key_, 300).has_value());
  cache.keep(key_, tokens());
  const std::optional<Tokenized> found = cache.find(key_, 300);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->ends, (std::vector<int64_t>{2, 5}));
  std::vector<int64_t> ids(5);
  found->ids.copy(0, ids);
  EXPECT_EQ(ids, (std::vector<int64_t>{1, 299, 7, 0, 5}));
  EXPECT_TRUE(said_.empty());
  EXPECT_FALSE(cache.find(std::string(64, 'b'), 300).has_value());
}

TEST_F(TokenCacheTest, BelievesNoDamagedFile) {
  const TokenCache cache(host_);
  cache.keep(key_, tokens());
  std::string content;
  {
    std::ifstream in(file(), std::ios::binary);
    content.assign(std::istreambuf_iterator<char>(in), {});
  }
  for (size_t at = 0; at < content.size(); ++at) {
    std::string damaged = content;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    std::ofstream(file(), std::ios::binary | std::ios::trunc) << damaged;
    EXPECT_FALSE(cache.find(key_, 300).has_value()) << "byte " << at;
  }
  for (size_t size = 0; size < content.size(); ++size) {
    std::ofstream(file(), std::ios::binary | std::ios::trunc) << content.substr(0, size);
    EXPECT_FALSE(cache.find(key_, 300).has_value()) << size << " bytes";
  }
  EXPECT_EQ(said_.size(), 2 * content.size());
}

TEST_F(TokenCacheTest, WarnsWhereNothingCanBeKept) {
  const TokenCache cache(host_);
  fs::remove_all(folder_);
  cache.keep(key_, tokens());
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_NE(said_[0].find("tokens are not kept"), std::string::npos) << said_[0];
}

TEST_F(TokenCacheTest, WorksWithoutAFolder) {
  host_.get_extension = [](void*, const char*) -> const void* { return nullptr; };
  const TokenCache cache(host_);
  cache.keep(key_, tokens());
  EXPECT_FALSE(cache.find(key_, 300).has_value());
  EXPECT_TRUE(said_.empty());
}

}  // namespace
}  // namespace corpus
