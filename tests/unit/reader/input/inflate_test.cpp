#include "reader/input/inflate.hpp"

#include <doctest/doctest.h>

#include <string>

#include "reader/write/write.hpp"

namespace {

using namespace dft::reader;

constexpr std::size_t kMost = std::size_t{1} << 20;

std::string text_of(std::size_t lines, int salt = 0) {
  std::string out;
  for (std::size_t i = 0; i < lines; ++i) {
    out += "{\"id\":" + std::to_string(i * 7919 + static_cast<std::size_t>(salt)) + "}\n";
  }
  return out;
}

std::string member(const std::string& text, std::uint32_t lines) {
  Deflater deflater(1);
  std::string out;
  deflater.member(text, lines, out);
  return out;
}

}  // namespace

TEST_CASE("a member gives its text, and says how many bytes it took") {
  const std::string text = text_of(1000);
  const std::string bytes = member(text, 1000);
  Inflater inflater;
  Buffer out;
  std::size_t used = 0;
  CHECK(inflater.member(bytes, kMost, out, used) == Inflated::kWhole);
  CHECK(out.view() == text);
  CHECK(used == bytes.size());
  // What follows is not touched, and the text is appended.
  CHECK(inflater.member(bytes + "rubbish", kMost, out, used) == Inflated::kWhole);
  CHECK(out.view() == text + text);
  CHECK(used == bytes.size());
}

TEST_CASE("a member that is cut gives the beginning of its text") {
  const std::string text = text_of(5000);
  const std::string bytes = member(text, 5000);
  Inflater inflater;
  for (const std::size_t size : {bytes.size() / 2, bytes.size() - 1, bytes.size() - 9}) {
    Buffer out;
    std::size_t used = 0;
    CHECK(inflater.member(std::string_view(bytes).substr(0, size), kMost, out, used) ==
          Inflated::kCut);
    CHECK(out.size() > 0);
    CHECK(text.starts_with(out.view()));
  }
}

TEST_CASE("a damaged member gives nothing") {
  const std::string text = text_of(3000);
  const std::string good = member(text, 3000);
  Inflater inflater;
  std::string bad_sum = good;
  bad_sum[bad_sum.size() - 7] = static_cast<char>(bad_sum[bad_sum.size() - 7] ^ 1);
  Buffer out;
  out.append("before");
  std::size_t used = 0;
  CHECK(inflater.member(bad_sum, kMost, out, used) == Inflated::kBad);
  CHECK(out.view() == "before");
  // More text than the caller allows.
  CHECK(inflater.member(good, 1000, out, used) == Inflated::kBad);
  CHECK(out.view() == "before");
}

TEST_CASE("a stream may come in pieces") {
  const std::string text = text_of(2000);
  const std::string bytes = member(text, 2000);
  for (const std::size_t step : {700, 1000, 5000}) {
    Inflater inflater;
    inflater.begin();
    Buffer out;
    std::size_t position = 0;
    Inflated state = Inflated::kCut;
    while (position < bytes.size() && state == Inflated::kCut) {
      std::size_t used = 0;
      state = inflater.piece(std::string_view(bytes).substr(position, step), kMost, out, used);
      position += used;
    }
    CHECK(state == Inflated::kWhole);
    CHECK(position == bytes.size());
    CHECK(out.view() == text);
  }
}

TEST_CASE("members are found between other bytes") {
  const std::string bytes = member(text_of(10), 10);
  const std::string foreign("\x1f\x8b\x08\0\0\0\0\0\0\x03 somebody else's data, long enough", 44);
  const std::string all = "rubbish\x1f" + foreign + bytes;
  const std::size_t ours = all.size() - bytes.size();
  CHECK(find_member(all, 0, false) == ours);
  CHECK(find_member(all, 0, true) == 8);
  CHECK(find_member(all, 9, true) == ours);
  CHECK(find_member(all, ours + 1, false) == std::string_view::npos);
  CHECK(find_member("short", 0, true) == std::string_view::npos);
}
