// SPDX-License-Identifier: Apache-2.0
// A protocol buffer as a tree of fields, for mutations that keep its lengths right.
//
// Without the messages' definitions: bytes that read as a whole message count as one. For fuzz
// targets alone.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace gradrack::fuzz {

class WireTree {
 public:
  explicit WireTree(std::string_view bytes) {
    std::string_view rest = bytes;
    if (!parse(&rest, 0, &root_.children)) root_.children.clear();
  }

  std::string bytes() const { return write(root_); }

  template <typename Random>
  void mutate(Random& random) {
    std::vector<Field*> parents = {&root_};
    collect(&root_, &parents);
    Field& parent = *parents[random() % parents.size()];
    std::vector<Field>& fields = parent.children;
    if (fields.empty()) return;
    const size_t at = random() % fields.size();
    Field& field = fields[at];
    switch (random() % 7) {
      case 0:
        fields.erase(fields.begin() + static_cast<long>(at));
        return;
      case 1: {
        const Field copy = field;
        fields.insert(fields.begin() + static_cast<long>(random() % (fields.size() + 1)), copy);
        return;
      }
      case 2:
        std::swap(field, fields[random() % fields.size()]);
        return;
      case 3: {  // the same kind of field from elsewhere
        Field& other = *parents[random() % parents.size()];
        if (other.children.empty()) return;
        Field copy = other.children[random() % other.children.size()];  // may be part of `field`
        field = std::move(copy);
        return;
      }
      case 4:
        field.number = static_cast<uint32_t>(1 + random() % 24);
        return;
      default:
        change(field, random);
    }
  }

 private:
  struct Field {
    uint32_t number = 0;
    uint32_t wire = 2;
    uint64_t value = 0;           // of wire types 0, 1 and 5
    std::string text;             // of 2, when it is no message
    std::vector<Field> children;  // of 2, when it is one
    bool is_message = false;
  };

  template <typename Random>
  static void change(Field& field, Random& random) {
    static constexpr uint64_t kNumbers[] = {
        0,     1,          2,          7,          8,     13,    24,         255,
        65536, 0x7fffffff, 0xffffffff, 1ull << 40, ~0ull, ~1ull, 1ull << 62, 1ull << 63};
    if (field.wire != 2) {
      field.value = random() % 2 == 0 ? kNumbers[random() % std::size(kNumbers)]
                                      : field.value + random() % 5 - 2;
    } else if (!field.is_message) {
      if (field.text.empty() || random() % 4 == 0) {
        field.text = std::string(random() % 20, static_cast<char>(random()));
      } else {
        field.text[random() % field.text.size()] = static_cast<char>(random());
      }
    }
  }

  static void collect(Field* field, std::vector<Field*>* out) {
    for (Field& child : field->children) {
      if (!child.is_message) continue;
      out->push_back(&child);
      collect(&child, out);
    }
  }

  static bool varint(std::string_view* rest, uint64_t* out) {
    *out = 0;
    for (int shift = 0; shift < 64 && !rest->empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest->front());
      rest->remove_prefix(1);
      *out |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  static bool parse(std::string_view* rest, int depth, std::vector<Field>* out) {
    while (!rest->empty()) {
      Field field;
      uint64_t tag = 0, length = 0;
      if (!varint(rest, &tag) || tag >> 3 == 0 || tag >> 3 > 64) return false;
      field.number = static_cast<uint32_t>(tag >> 3);
      field.wire = static_cast<uint32_t>(tag & 7);
      if (field.wire == 0) {
        if (!varint(rest, &field.value)) return false;
      } else if (field.wire == 1 || field.wire == 5) {
        const size_t width = field.wire == 1 ? 8 : 4;
        if (rest->size() < width) return false;
        for (size_t k = width; k-- > 0;) {
          field.value = field.value << 8 | static_cast<unsigned char>((*rest)[k]);
        }
        rest->remove_prefix(width);
      } else if (field.wire == 2) {
        if (!varint(rest, &length) || length > rest->size()) return false;
        std::string_view content = rest->substr(0, length);
        field.text = std::string(content);
        rest->remove_prefix(length);
        field.is_message = depth < 8 && length > 1 && parse(&content, depth + 1, &field.children);
        if (!field.is_message) field.children.clear();
      } else {
        return false;
      }
      out->push_back(std::move(field));
    }
    return true;
  }

  static void put(uint64_t number, std::string* out) {
    for (; number >= 0x80; number >>= 7) out->push_back(static_cast<char>(number | 0x80));
    out->push_back(static_cast<char>(number));
  }

  static std::string write(const Field& message) {
    std::string out;
    for (const Field& field : message.children) {
      put(uint64_t{field.number} << 3 | field.wire, &out);
      if (field.wire == 0) {
        put(field.value, &out);
      } else if (field.wire == 2) {
        const std::string content = field.is_message ? write(field) : field.text;
        put(content.size(), &out);
        out += content;
      } else {
        const int width = field.wire == 1 ? 8 : 4;
        for (int k = 0; k < width; ++k) out.push_back(static_cast<char>(field.value >> (8 * k)));
      }
    }
    return out;
  }

  Field root_;
};

}  // namespace gradrack::fuzz
