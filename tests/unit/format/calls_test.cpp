// The table of calls, as the reader uses it.
#include "format/calls.hpp"

#include <doctest/doctest.h>

using dft::format::call_of;
using dft::format::kCalls;
using dft::format::Measure;
using dft::format::Role;

TEST_CASE("one row describes a function for the wrapper and the reader") {
  CHECK(call_of("POSIX", "read").role == Role::kRead);
  CHECK(call_of("POSIX", "read").measure == Measure::kRet);
  CHECK(call_of("STDIO", "getchar").measure == Measure::kOne);
  CHECK(call_of("STDIO", "putchar").role == Role::kWrite);
  CHECK(call_of("STDIO", "fread").measure == Measure::kItems);
  CHECK(call_of("STDIO", "fputs").measure == Measure::kRetLen);
  CHECK(call_of("POSIX", "splice").role == Role::kCopy);
  CHECK(call_of("POSIX", "splice").second == "fd_out_hash");
  CHECK(call_of("POSIX", "sendfile").second == "in_fd_hash");
  CHECK_FALSE(call_of("POSIX", "sendfile").second_is_written);
  CHECK(call_of("POSIX", "io_event").role == Role::kCollect);
  CHECK(call_of("POSIX", "openat2").role == Role::kOpen);
}

TEST_CASE("unknown functions are metadata, and other categories are not calls") {
  CHECK(call_of("POSIX", "no_such_function").role == Role::kMetadata);
  CHECK(call_of("POSIX", "stat").role == Role::kMetadata);
  CHECK(call_of("APP", "read").role == Role::kNone);
  CHECK(call_of("", "").role == Role::kNone);
}

TEST_CASE("each shown function is in the table once per category, and does the same in all") {
  for (std::size_t i = 1; i < kCalls.size(); ++i) {
    const auto& a = kCalls[i - 1];
    const auto& b = kCalls[i];
    CHECK((a.name < b.name || (a.name == b.name && a.category < b.category)));
    if (a.name != b.name) continue;
    CAPTURE(a.name);
    CHECK(a.role == b.role);
    CHECK(a.measure == b.measure);
    CHECK(a.second == b.second);
  }
  CHECK(kCalls.size() > 250);
}
