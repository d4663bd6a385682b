// SPDX-License-Identifier: Apache-2.0
// The frame of a page: see page.hpp.
#include "core/schedule/page.hpp"

#include <sstream>

#include "core/schedule/timeline.hpp"

namespace gradrack {

std::string html_page(const std::string& title, const std::string& style, const std::string& body) {
  const std::string name = xml_text(title);
  return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" + name +
         "</title>\n<style>" + style + "</style></head>\n<body><h1>" + name + "</h1>\n" + body +
         "\n</body></html>\n";
}

std::string html_lines(const std::string& text) {
  std::string out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) out += xml_text(line) + "\n";
  return out;
}

}  // namespace gradrack
