// SPDX-License-Identifier: Apache-2.0
// The progress line: its words, and what reaches a terminal, a pipe or nobody.
#include "core/state/progress.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "tests/unit/state/test_folder.hpp"

namespace gradrack {
namespace {

// A stream whose content can be read.
class Captured {
 public:
  Captured() : stream_(std::tmpfile()) {}
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;
  ~Captured() { std::fclose(stream_); }
  std::FILE* stream() { return stream_; }
  std::string text() {
    std::fflush(stream_);
    std::string out(static_cast<size_t>(std::ftell(stream_)), '\0');
    std::rewind(stream_);
    out.resize(std::fread(out.data(), 1, out.size(), stream_));
    return out;
  }

 private:
  std::FILE* stream_;
};

Progress at_step(int64_t step, double elapsed_s) {
  Progress progress;
  progress.step = step;
  progress.max_steps = 20;
  progress.lr = 1e-3;
  progress.elapsed_s = elapsed_s;
  return progress;
}

TEST(Progress, SaysAllThatIsKnown) {
  Progress progress;
  progress.step = 100;
  progress.max_steps = 2000;
  progress.loss = 2.34512;
  progress.best_eval = 2.4;
  progress.lr = 3e-4;
  progress.tokens_per_second = 12345;
  progress.left_s = 82.2;
  EXPECT_EQ(format_progress(progress),
            "step  100/2000  loss 2.3451  best eval 2.4000  lr 3.00e-04  12.3k tok/s  1:23 left");
}

TEST(Progress, LeavesOutWhatIsNotKnown) {
  EXPECT_EQ(format_progress(at_step(0, 0)), "step  0/20  lr 1.00e-03");
  Progress endless;
  endless.step = 7;
  EXPECT_EQ(format_progress(endless), "step 7  lr 0.00e+00");
}

TEST(Progress, WritesTimesAndRatesOfEverySize) {
  Progress progress = at_step(1, 0);
  progress.left_s = 0;
  progress.tokens_per_second = 950.2;
  EXPECT_TRUE(contains(format_progress(progress), "  950 tok/s  0:00 left"));
  progress.left_s = 3727;
  progress.tokens_per_second = 4.56e6;
  EXPECT_TRUE(contains(format_progress(progress), "  4.56M tok/s  1:02:07 left"));
  progress.left_s = 273906;
  EXPECT_TRUE(contains(format_progress(progress), "  3d 4:05:06 left"));
  progress.left_s = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(contains(format_progress(progress), "left"));
}

TEST(ProgressLine, PlainLinesEveryIntervalAndAtTheEnd) {
  Captured out;
  ProgressOptions options;
  options.log_interval = 8;
  {
    ProgressLine line(out.stream(), options);
    for (int64_t step = 1; step <= 20; ++step) line.update(at_step(step, 0));
  }
  EXPECT_EQ(out.text(),
            "step  8/20  lr 1.00e-03\nstep 16/20  lr 1.00e-03\nstep 20/20  lr 1.00e-03\n");
}

TEST(ProgressLine, QuietWritesNothing) {
  Captured out;
  ProgressOptions options;
  options.quiet = true;
  options.terminal = true;
  {
    ProgressLine line(out.stream(), options);
    line.update(at_step(20, 1));
  }
  EXPECT_EQ(out.text(), "");
}

TEST(ProgressLine, TerminalIsRewrittenInPlaceAtMostTenTimesASecond) {
  Captured out;
  ProgressOptions options;
  options.terminal = true;
  {
    ProgressLine line(out.stream(), options);
    line.update(at_step(1, 0.00));
    line.update(at_step(2, 0.05));
    line.update(at_step(3, 0.10));
    line.update(at_step(4, 0.12));
  }
  EXPECT_EQ(out.text(),
            "\rstep  1/20  lr 1.00e-03\rstep  3/20  lr 1.00e-03\rstep  4/20  lr 1.00e-03\n");
}

TEST(ProgressLine, ShorterLineCoversALongerOne) {
  Captured out;
  ProgressOptions options;
  options.terminal = true;
  ProgressLine line(out.stream(), options);
  Progress longer = at_step(1, 0);
  longer.loss = 1;
  line.update(longer);
  line.update(at_step(2, 1));
  EXPECT_EQ(out.text(), "\rstep  1/20  loss 1.0000  lr 1.00e-03\rstep  2/20  lr 1.00e-03" +
                            std::string(13, ' '));
}

TEST(ProgressLine, ClearLeavesRoomForOtherText) {
  Captured out;
  ProgressOptions options;
  options.terminal = true;
  ProgressLine line(out.stream(), options);
  line.clear();
  line.update(at_step(1, 0));
  line.clear();
  EXPECT_EQ(out.text(), "\rstep  1/20  lr 1.00e-03\r" + std::string(23, ' ') + "\r");
}

TEST(ProgressLine, NeverFillsTheLastColumn) {
  Captured out;
  ProgressOptions options;
  options.terminal = true;
  options.columns = 10;
  ProgressLine line(out.stream(), options);
  line.update(at_step(1, 0));
  EXPECT_EQ(out.text(), "\rstep  1/2");
}

TEST(ProgressLine, ColourIsTheOnlySourceOfEscapes) {
  Captured out;
  ProgressOptions options;
  options.terminal = true;
  options.colour = true;
  ProgressLine line(out.stream(), options);
  line.update(at_step(1, 0));
  EXPECT_EQ(out.text(), "\r\x1b[1mstep  1/20  lr 1.00e-03\x1b[0m");
}

TEST(ProgressOptions, FileIsNoTerminal) {
  Captured out;
  const ProgressOptions options = progress_options(out.stream(), false, 5);
  EXPECT_FALSE(options.terminal);
  EXPECT_FALSE(options.colour);
  EXPECT_EQ(options.log_interval, 5);
}

TEST(ProgressOptions, NoColorAndDumbTerminalsAreRespected) {
  const int controller = ::posix_openpt(2 /* O_RDWR */);
  if (controller < 0) GTEST_SKIP() << "no pseudo-terminals here (devpts is not mounted)";
  ASSERT_EQ(::grantpt(controller), 0);
  ASSERT_EQ(::unlockpt(controller), 0);
  std::FILE* terminal = std::fopen(::ptsname(controller), "w");
  ASSERT_NE(terminal, nullptr);
  ::setenv("TERM", "xterm", 1);
  ::unsetenv("NO_COLOR");
  EXPECT_TRUE(progress_options(terminal, false, 1).terminal);
  EXPECT_TRUE(progress_options(terminal, false, 1).colour);
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_TRUE(progress_options(terminal, false, 1).terminal);
  EXPECT_FALSE(progress_options(terminal, false, 1).colour);
  ::setenv("TERM", "dumb", 1);
  EXPECT_FALSE(progress_options(terminal, false, 1).terminal);
  ::unsetenv("NO_COLOR");
  std::fclose(terminal);
}

}  // namespace
}  // namespace gradrack
