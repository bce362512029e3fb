// The Python code that the calling thread runs, read from its frames without the GIL: only the thread
// itself changes them, and it is in a call. Used by call_site.cpp, on the program's threads.
#pragma once
#include <cstddef>
#include <cstdint>

namespace dft::intercept {

// Where a release of CPython keeps what is needed: byte offsets in its structures.
struct PythonLayout {
  static constexpr std::uint8_t kNone = 255;
  std::uint8_t minor;      // of the version 3.x
  std::uint8_t frame;      // PyThreadState: the innermost frame, or what points to it
  std::uint8_t indirect;   // _PyCFrame: the innermost frame; kNone: nothing lies between
  std::uint8_t code;       // frame: its code object
  std::uint8_t outer;      // frame: the frame that called it
  std::uint8_t at;         // frame: the instruction; without `start`, its number
  std::uint8_t owner;      // frame: 3 and more for those that run no code; kNone: there are none
  std::uint8_t start;      // code: the first instruction; kNone: frames have numbers
  std::uint8_t file;       // code: file name
  std::uint8_t name;       // code: qualified name, where there is one
  std::uint8_t line;       // code: number of the first line
  std::uint8_t lines;      // code: which instruction is on which line
  std::uint8_t version;    // code: a number that no other code object has had; kNone: it has none
  std::uint8_t ascii;      // str: characters of ASCII text
  std::uint8_t not_ascii;  // str: other characters
};

// An interpreter that is loaded into this process.
struct Python {
  const PythonLayout* layout;
  void* (
      *this_thread)();  // PyGILState_GetThisThreadState: null on threads that Python does not know
  const void* code_type;  // &PyCode_Type
  const void* text_type;  // &PyUnicode_Type
  std::uintptr_t begin;   // of the object that holds the interpreter itself
  std::uintptr_t end;
};

// The layout of this version ("3.11.7 (main, ..."); null if it is not known.
const PythonLayout* layout_of(const char* version) noexcept;

// A place in Python code. The innermost frame outside of libraries: the line that a user knows; and
// what it called, if that is Python code. Without such a frame, the innermost of all.
struct PythonPlace {
  const char* code;
  std::uint64_t at;    // the frame's instruction
  const char* callee;  // a code object; null if the code made the call itself
};

// The instructions of the frames up to a place, innermost first. What follows them is not looked at.
struct FrameTrail {
  static constexpr std::uint32_t kLongest = 5;
  std::uint64_t at[kLongest];
  std::uint32_t length;  // 0: too long
};

// The innermost frame; null if the thread runs no Python code.
const char* innermost_frame(const Python& python) noexcept;
// From there on. False if there is no code.
bool find_place(const Python& python, const char* frame, PythonPlace& place,
                FrameTrail& trail) noexcept;
// Whether the frames are those of this trail, which is not empty.
bool follows(const PythonLayout& layout, const char* frame, const FrameTrail& trail) noexcept;

// Tells code objects that follow each other at one address apart: by their version, or, where they have
// none, by what they own.
std::uint64_t identity_of(const PythonLayout& layout, const char* code) noexcept;

// Whether the thread's innermost frame is what the layout promises. Asks the kernel before each load,
// which would crash on builds of Python that have other structures.
enum class Fit : std::uint8_t { kNoFrame, kFits, kFitsNot };
Fit check_layout(const Python& python) noexcept;

// "file:line function", and " > module.function" for the callee. Returns its length.
std::size_t describe(const Python& python, const PythonPlace& place, char* to,
                     std::size_t room) noexcept;

}  // namespace dft::intercept
