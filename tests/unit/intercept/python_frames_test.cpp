// Frames of a made-up interpreter, laid out as each release of CPython does it: which line a call comes
// from, and that nothing is read that a frame does not have.
#include "intercept/python_frames.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

using namespace dft::intercept;  // NOLINT: as in the other tests

namespace {

// Objects of Python, in memory that nothing moves.
class Interpreter {
 public:
  explicit Interpreter(const char* version) {
    python_.layout = layout_of(version);
    REQUIRE(python_.layout != nullptr);
    python_.this_thread = []() -> void* { return g_thread; };
    python_.is_finalizing = [] { return g_ends ? 1 : 0; };
    g_ends = false;
    python_.code_type = &code_type_;
    python_.text_type = &text_type_;
    g_thread = nullptr;
  }
  ~Interpreter() { g_thread = nullptr; }
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  Python& python() { return python_; }
  const PythonLayout& layout() { return *python_.layout; }

  char* text(std::string_view ascii) {
    char* object = memory(layout().ascii + ascii.size());
    put(object, 8, &text_type_);
    put(object, 16, ascii.size());
    put(object, 32, std::uint32_t{1 << 2 | 0x20 | 0x40});
    std::memcpy(object + layout().ascii, ascii.data(), ascii.size());
    return object;
  }
  char* wide(std::u16string_view letters) {
    char* object = memory(layout().not_ascii + 2 * letters.size());
    put(object, 8, &text_type_);
    put(object, 16, letters.size());
    put(object, 32, std::uint32_t{2 << 2 | 0x20});
    std::memcpy(object + layout().not_ascii, letters.data(), 2 * letters.size());
    return object;
  }
  // Three instructions: on the first line, two lines below it, and without a line.
  char* code(char* file, const char* name, int first_line) {
    std::string lines;
    if (layout().minor == 9) {
      lines = {2, 2};
    } else if (layout().minor == 10) {
      lines = {2, 0, 2, 2, 2, char(-128)};
    } else {
      // No columns, a difference of 0; one line with columns; without a line.
      lines = {char(0x80 | 13 << 3), 0, char(0x80 | 12 << 3), 1, 2, char(0x80 | 15 << 3)};
    }
    char* table = memory(32 + lines.size());
    put(table, 16, lines.size());
    std::memcpy(table + 32, lines.data(), lines.size());
    char* object = memory(256);
    put(object, 8, &code_type_);
    put(object, layout().file, file);
    put(object, layout().name, text(name));
    put(object, layout().line, first_line);
    put(object, layout().lines, table);
    return object;
  }
  // Calls: the innermost frame now is one of this code, at this instruction.
  char* enter(char* code, unsigned instruction, std::uint8_t owner = 0) {
    char* frame = memory(128);
    put(frame, layout().code, code);
    put(frame, layout().outer, frame_);
    if (layout().start != PythonLayout::kNone) {
      put(frame, layout().at, code + layout().start + 2 * instruction);
      put(frame, layout().owner, owner);
    } else {
      put(frame, layout().at, layout().minor == 9 ? 2 * instruction : instruction);
    }
    frame_ = frame;
    publish();
    return frame;
  }
  void publish() {
    char* thread = memory(128);
    char* innermost = frame_;
    if (layout().indirect != PythonLayout::kNone) {
      innermost = memory(16);
      put(innermost, layout().indirect, frame_);
    }
    put(thread, layout().frame, innermost);
    g_thread = thread;
  }
  void finalize() { g_ends = true; }
  std::string place() {
    PythonPlace place;
    FrameTrail trail;
    if (!find_place(python_, innermost_frame(python_), place, trail)) return "";
    char to[512];
    return {to, describe(python_, place, to, sizeof to)};
  }

 private:
  char* memory(std::size_t size) {
    // Aligned as Python's objects are.
    memory_.emplace_back((size + 15) / 16 + 1);
    return reinterpret_cast<char*>(memory_.back().data());
  }
  template <class T>
  static void put(char* object, std::size_t offset, T value) {
    std::memcpy(object + offset, &value, sizeof value);
  }
  struct alignas(16) Unit {
    char bytes[16] = {};
  };
  static inline char* g_thread = nullptr;
  static inline bool g_ends = false;
  std::deque<std::vector<Unit>> memory_;
  Python python_{};
  char* frame_ = nullptr;
  char code_type_ = 0;
  char text_type_ = 0;
};

constexpr const char* kVersions[] = {"3.9.18 (main)", "3.10.0", "3.11.7", "3.12.1",
                                     "3.13.0",        "3.14.2", "3.15.0"};

}  // namespace

TEST_CASE("the line of the code that made the call is found in every release") {
  for (const char* version : kVersions) {
    CAPTURE(version);
    Interpreter fake(version);
    char* code = fake.code(fake.text("/home/me/data.py"), "Data.__getitem__", 40);
    fake.enter(code, 0);
    CHECK(fake.place() == "/home/me/data.py:40 Data.__getitem__");
    fake.enter(code, 1);
    CHECK(fake.place() == "/home/me/data.py:42 Data.__getitem__");
  }
}

TEST_CASE("an instruction without a line is on line 0, where the release can tell") {
  for (const char* version : {"3.10.0", "3.11.7", "3.13.0"}) {
    CAPTURE(version);
    Interpreter fake(version);
    fake.enter(fake.code(fake.text("a.py"), "f", 40), 2);
    CHECK(fake.place() == "a.py:0 f");
  }
}

TEST_CASE("the line outside of libraries is shown, with what it called") {
  for (const char* version : kVersions) {
    CAPTURE(version);
    Interpreter fake(version);
    fake.enter(fake.code(fake.text("/home/me/train.py"), "main", 7), 0);
    fake.enter(
        fake.code(fake.text("/venv/lib/python3.12/site-packages/numpy/lib/npyio.py"), "load", 400),
        1);
    fake.enter(fake.code(fake.text("/usr/lib/python3.12/pathlib.py"), "Path.open", 10), 0);
    CHECK(fake.place() == "/home/me/train.py:7 main > numpy.lib.npyio.load");
  }
}

TEST_CASE("a program that is a library itself is shown by its innermost line") {
  Interpreter fake("3.11.7");
  fake.enter(fake.code(fake.text("/usr/lib/python3.11/runpy.py"), "_run_code", 1), 0);
  fake.enter(fake.code(fake.text("/usr/lib/python3.11/json/__init__.py"), "load", 5), 1);
  CHECK(fake.place() == "/usr/lib/python3.11/json/__init__.py:7 load");
}

TEST_CASE("a library's package and the frozen modules have readable names") {
  Interpreter fake("3.12.1");
  fake.enter(fake.code(fake.text("<stdin>"), "<module>", 1), 0);
  char* code = fake.code(fake.text("/x/lib64/python3.12/json/__init__.py"), "load", 5);
  fake.enter(code, 0);
  CHECK(fake.place() == "<stdin>:1 <module> > json.load");
  fake.enter(fake.code(fake.text("<string>"), "<module>", 3), 0);
  fake.enter(fake.code(fake.text("<frozen zipimport>"), "_read", 5), 0);
  CHECK(fake.place() == "<string>:3 <module> > zipimport._read");
}

TEST_CASE("frames that run no code are passed over") {
  Interpreter fake("3.12.1");
  fake.enter(fake.code(fake.text("a.py"), "f", 1), 0);
  fake.enter(fake.code(fake.text("shim"), "shim", 99), 0, 3);
  CHECK(fake.place() == "a.py:1 f");
  CHECK(check_layout(fake.python()) == Fit::kFits);
}

TEST_CASE("marks in a frame's reference to its code are removed") {
  Interpreter fake("3.14.2");
  char* frame = fake.enter(fake.code(fake.text("a.py"), "f", 1), 0);
  std::uintptr_t marked;
  std::memcpy(&marked, frame, sizeof marked);
  marked |= 1;
  std::memcpy(frame, &marked, sizeof marked);
  CHECK(fake.place() == "a.py:1 f");
  CHECK(check_layout(fake.python()) == Fit::kFits);
}

TEST_CASE("names that are not ASCII become UTF-8, and undecodable bytes stay bytes") {
  Interpreter fake("3.11.7");
  fake.enter(fake.code(fake.wide(u"/d\u00e4t\u20ac\xdcff.py"), "f", 1), 0);
  CHECK(fake.place() == "/d\xc3\xa4t\xe2\x82\xac\xff.py:1 f");
}

TEST_CASE("a place is described within the room that there is") {
  Interpreter fake("3.11.7");
  const std::string path = "/" + std::string(1000, 'x') + "/end.py";
  fake.enter(fake.code(fake.text(path), "f", 1), 0);
  const std::string place = fake.place();
  CHECK(place.size() < 420);
  CHECK(place.starts_with("...xxx"));
  CHECK(place.ends_with("/end.py:1 f"));
  PythonPlace found;
  FrameTrail trail;
  REQUIRE(find_place(fake.python(), innermost_frame(fake.python()), found, trail));
  char to[8];
  CHECK(describe(fake.python(), found, to, sizeof to) == sizeof to);
}

TEST_CASE("a trail is followed while every frame up to the place is where it was") {
  for (const char* version : kVersions) {
    CAPTURE(version);
    Interpreter fake(version);
    const PythonLayout& layout = fake.layout();
    char* user = fake.code(fake.text("a.py"), "f", 1);
    char* library = fake.code(fake.text("/lib/python3.9/b.py"), "g", 1);
    fake.enter(user, 0);
    fake.enter(library, 1);
    PythonPlace place;
    FrameTrail trail;
    const char* inner = innermost_frame(fake.python());
    REQUIRE(find_place(fake.python(), inner, place, trail));
    CHECK(trail.length == 2);
    CHECK(place.code == user);
    CHECK(place.callee == library);
    CHECK(follows(layout, inner, trail));
    // The same function, called from another line.
    fake.enter(user, 1);
    fake.enter(library, 1);
    CHECK(!follows(layout, innermost_frame(fake.python()), trail));
    // Another function of the same place.
    fake.enter(user, 0);
    fake.enter(library, 0);
    CHECK(!follows(layout, innermost_frame(fake.python()), trail));
    CHECK(!follows(layout, nullptr, trail));
  }
}

TEST_CASE("a thread without Python has no place") {
  Interpreter fake("3.11.7");
  CHECK(innermost_frame(fake.python()) == nullptr);
  CHECK(fake.place().empty());
  CHECK(check_layout(fake.python()) == Fit::kNoFrame);
  fake.publish();  // a thread that Python knows, outside of any code
  CHECK(fake.place().empty());
  CHECK(check_layout(fake.python()) == Fit::kNoFrame);
}

TEST_CASE("nothing is read of an interpreter that ends") {
  Interpreter fake("3.11.7");
  fake.enter(fake.code(fake.text("a.py"), "f", 1), 0);
  fake.finalize();
  CHECK(fake.place().empty());
  CHECK(check_layout(fake.python()) == Fit::kNoFrame);
}

TEST_CASE("structures of another layout are recognised without a crash") {
  Interpreter fake("3.11.7");
  char* frame = fake.enter(fake.code(fake.text("a.py"), "f", 1), 0);
  CHECK(check_layout(fake.python()) == Fit::kFits);
  Python other = fake.python();
  other.layout = layout_of("3.9.1");
  CHECK(check_layout(other) != Fit::kFits);
  const std::uintptr_t nowhere = 0x10;
  std::memcpy(frame + fake.layout().code, &nowhere, sizeof nowhere);
  CHECK(check_layout(fake.python()) == Fit::kFitsNot);
}

TEST_CASE("only releases whose structures are known are used") {
  CHECK(layout_of("3.11.7 (main, Jan 1 2024, 00:00:00) [GCC]")->minor == 11);
  CHECK(layout_of("3.8.18") == nullptr);
  CHECK(layout_of("3.16.0") == nullptr);
  CHECK(layout_of("2.7.18") == nullptr);
  CHECK(layout_of("") == nullptr);
  CHECK(layout_of("3.13.0 experimental free-threading build (main)") == nullptr);
}
