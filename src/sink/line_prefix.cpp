#include "sink/line_prefix.hpp"

#include "format/escape.hpp"
#include "sink/json_write.hpp"

namespace dft::sink {
namespace {

bool read_word(std::string_view text, CallShape::ShapeWord& word) {
  if (text.size() < 2 || text.size() > 1 + record::kLongestShapeKey) return false;
  if (text[0] != record::kShapeHash && text[0] != record::kShapeNumber) return false;
  word.hash = text[0] == record::kShapeHash;
  char* p = put(word.text, ",\"");
  p = put(p, text.substr(1));
  p = put(p, "\":");
  word.value = 0;
  word.size = 0;
  word.key_size = static_cast<std::uint8_t>(p - word.text);
  return true;
}

}  // namespace

CallShape parse_shape(std::string_view text) noexcept {
  CallShape shape;
  shape.words = 0;
  std::size_t bar = text.find(record::kShapeBar);
  shape.name = text.substr(0, bar);
  shape.category = "?";
  if (bar == std::string_view::npos) return shape;
  text.remove_prefix(bar + 1);
  bar = text.find(record::kShapeBar);
  shape.category = text.substr(0, bar);
  while (bar != std::string_view::npos) {
    text.remove_prefix(bar + 1);
    bar = text.find(record::kShapeBar);
    if (shape.words == record::kMostShapeWords ||
        !read_word(text.substr(0, bar), shape.word[shape.words])) {
      shape.words = 0;
      break;
    }
    ++shape.words;
  }
  return shape;
}

char* put_prefix(char* p, Label name, Label category, std::string_view where) noexcept {
  const auto label = [&p](Label value) {
    p = value.raw ? format::escape(p, value.text) : put(p, value.text);
  };
  p = put(p, ",\"name\":\"");
  label(name);
  p = put(p, "\",\"cat\":\"");
  label(category);
  *p++ = '"';
  p = put(p, where);
  return put(p, ",\"ts\":");
}

bool LinePrefixes::prepare() noexcept {
  if (!memory_.ensure(kPrefixes * sizeof(LinePrefix))) return false;
  memory_.resize(kPrefixes * sizeof(LinePrefix));
  return true;
}

bool LinePrefixes::make(LinePrefix& prefix, const record::Head& head, std::uint32_t thread,
                        std::string_view where, const NameTable& names) noexcept {
  std::string_view name = names.text(head.name);
  std::string_view category = names.text(head.category);
  prefix.version = 0;
  prefix.is_call = head.kind == record::Kind::kCall;
  if (prefix.is_call) {
    prefix.shape = parse_shape(name);
    name = prefix.shape.name;
    category = prefix.shape.category;
  }
  if (name.size() + category.size() + where.size() > LinePrefix::kRoom - kPrefixFixed) return false;
  const char* end = put_prefix(prefix.text, {name, false}, {category, false}, where);
  prefix.size = static_cast<std::uint32_t>(end - prefix.text);
  prefix.name = head.name;
  prefix.category = head.category;
  prefix.thread = thread;
  prefix.version = names.version();
  return true;
}

}  // namespace dft::sink
