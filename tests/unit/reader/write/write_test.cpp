#include "reader/write/write.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <random>

#include "format/member.hpp"
#include "reader/input/inflate.hpp"

namespace {

using namespace dft::reader;

std::string place(const char* ending) {
  static int number = 0;
  return "/tmp/dft_write_" + std::to_string(::getpid()) + "_" + std::to_string(number++) + ending;
}

std::string read_and_remove(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string out((std::istreambuf_iterator<char>(in)), {});
  ::unlink(path.c_str());
  return out;
}

std::string inflate_all(std::string_view bytes) {
  Inflater inflater;
  Buffer out;
  while (!bytes.empty()) {
    dft::format::MemberHeader header;
    REQUIRE(dft::format::read_member_header(bytes, header));
    std::size_t used = 0;
    REQUIRE(inflater.member(bytes.substr(0, header.size), std::size_t{1} << 26, out, used) ==
            Inflated::kWhole);
    REQUIRE(used == header.size);
    bytes.remove_prefix(used);
  }
  return std::string(out.view());
}

}  // namespace

TEST_CASE("the ending of a name says what is written") {
  const auto kind = [](std::string_view path) {
    OutputKind out;
    const bool known = output_kind(path, out);
    return std::make_tuple(known, out.document, out.compressed);
  };
  CHECK(kind("a.pfw") == std::make_tuple(true, false, false));
  CHECK(kind("a.pfw.gz") == std::make_tuple(true, false, true));
  CHECK(kind("a.json") == std::make_tuple(true, true, false));
  CHECK(kind("a.json.gz") == std::make_tuple(true, true, true));
  CHECK_FALSE(std::get<0>(kind("a.txt")));
  CHECK_FALSE(std::get<0>(kind(".pfw")));
}

TEST_CASE("a member holds its size, its lines and the text, at every level") {
  std::mt19937 random(9);
  std::string noise(200000, '\0');
  for (char& c : noise) c = static_cast<char>(random());
  for (const std::string& text : {std::string("[\n{}\n"), std::string(100000, 'x'), noise}) {
    for (unsigned level = 0; level < 5; ++level) {
      Deflater deflater(level);
      std::string out = "before";
      deflater.member(text, 42, out);
      const std::string_view member = std::string_view(out).substr(6);
      dft::format::MemberHeader header;
      REQUIRE(dft::format::read_member_header(member, header));
      CHECK(header.size == member.size());
      CHECK(header.lines == 42);
      CHECK(inflate_all(member) == text);
    }
  }
}

TEST_CASE("blanks between tokens go, blanks in strings stay") {
  std::string out;
  append_compact(out, "{ \"a b\" :\n[1, 2,\t\"c \\\" d\"] }");
  CHECK(out == "{\"a b\":[1,2,\"c \\\" d\"]}");
}

TEST_CASE("bytes that are not UTF-8 become visible, and the rest stays") {
  std::string out;
  append_visible(out, "a\xff\xc3\xa9\xe2\x82");
  CHECK(out == "a\\uefff\xc3\xa9\\uefe2\\uef82");
}

TEST_CASE("a trace appears under its name only once it is committed") {
  const std::string path = place(".pfw");
  {
    TraceFile file(path, {}, 1, "");
    file.add("{\"id\":1}\n", 1);
    file.finish();
    CHECK(::access(path.c_str(), F_OK) != 0);
    CHECK(::access(file.written_path().c_str(), F_OK) == 0);
  }
  CHECK(::access(path.c_str(), F_OK) != 0);  // not committed, so nothing is left
  TraceFile file(path, {}, 1, "");
  file.add("{\"id\":1}\n", 1);
  file.add("{\"id\":2}\n", 1);
  file.finish();
  file.commit();
  CHECK(file.lines() == 2);
  const std::string text = read_and_remove(path);
  CHECK(text == "[\n{\"id\":1}\n{\"id\":2}\n");
  CHECK(file.bytes() == text.size());
}

TEST_CASE("lines and finished members keep their order in a compressed trace") {
  const std::string path = place(".pfw.gz");
  Deflater deflater(1);
  TraceFile file(path, {.document = false, .compressed = true}, 1, "", 20);
  file.add("{\"id\":1}\n", 1);
  Parcel parcel;
  parcel.lines = 1;
  deflater.member("{\"id\":2}\n", 1, parcel.member);
  file.add(std::move(parcel));
  file.add(Parcel{"{\"id\":3}\n", 1, {}});
  file.finish();
  file.commit();
  CHECK(file.lines() == 3);
  CHECK(inflate_all(read_and_remove(path)) == "[\n{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n");
}

TEST_CASE("the records of a document have commas between them") {
  const std::string path = place(".json");
  TraceFile file(path, {.document = true, .compressed = false}, 1, "\"x\":1,");
  file.add("{\"id\":1}\n{\"id\":2}\n", 2);
  file.add("{\"id\":3}\n", 1);
  file.finish();
  file.commit();
  CHECK(read_and_remove(path) ==
        "{\"x\":1,\"traceEvents\":[\n{\"id\":1},\n{\"id\":2},\n{\"id\":3}\n]}\n");
}

TEST_CASE("an output that only counts writes nothing") {
  OutFile out;
  out.write("12345");
  out.commit();
  CHECK(out.size() == 5);
}
