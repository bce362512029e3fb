#include "reader/stats/accesses.hpp"

#include <doctest/doctest.h>

namespace {

using namespace dft::reader;

// Calls of one process on one file.
class Calls {
 public:
  Accesses::Placement open(std::int64_t tid = 1, std::int64_t offset = 0) {
    return follow(Role::kOpen, tid, offset, kUnknown);
  }
  Accesses::Placement close(std::int64_t tid = 1) {
    return follow(Role::kClose, tid, kUnknown, kUnknown);
  }
  Accesses::Placement duplicate(std::int64_t tid = 1) {
    return follow(Role::kDuplicate, tid, kUnknown, kUnknown);
  }
  Accesses::Placement read(std::int64_t bytes, std::int64_t tid = 1) {
    return follow(Role::kRead, tid, kUnknown, bytes);
  }
  Accesses::Placement pread(std::int64_t offset, std::int64_t bytes, std::int64_t tid = 1) {
    return follow(Role::kRead, tid, offset, bytes);
  }
  Accesses::Placement seek(std::int64_t offset, bool relative = false, std::int64_t tid = 1) {
    return follow(Role::kSeek, tid, offset, kUnknown, relative);
  }

  std::int32_t process = 0;
  std::string path = "/data/a";

 private:
  Accesses::Placement follow(Role role, std::int64_t tid, std::int64_t offset, std::int64_t bytes,
                             bool relative = false) {
    FileCall call{};
    call.tid = tid;
    call.offset = offset;
    call.bytes = bytes;
    call.role = role;
    call.relative = relative;
    return accesses_.follow(process, accesses_.path(path), call);
  }
  Accesses accesses_;
};

void check(const Accesses::Placement& placement, std::int64_t position, Pattern pattern) {
  CHECK(placement.position == position);
  CHECK(placement.pattern == pattern);
}

}  // namespace

TEST_CASE("reads move the position of an open file") {
  Calls calls;
  calls.open();
  check(calls.read(100), 0, Pattern::kFirst);
  check(calls.read(50), 100, Pattern::kSequential);
  check(calls.read(10), 150, Pattern::kSequential);
  calls.seek(1000);
  check(calls.read(10), 1000, Pattern::kRandom);
  calls.seek(-10, true);
  check(calls.read(10), 1000, Pattern::kRandom);
  calls.close();
  CHECK(calls.read(10).position == kUnknown);
}

TEST_CASE("equal distances are strides") {
  Calls calls;
  check(calls.pread(0, 10), 0, Pattern::kFirst);
  check(calls.pread(100, 10), 100, Pattern::kRandom);
  check(calls.pread(200, 10), 200, Pattern::kStrided);
  check(calls.pread(300, 10), 300, Pattern::kStrided);
  check(calls.pread(310, 10), 310, Pattern::kSequential);
  check(calls.pread(5, 10), 5, Pattern::kRandom);
}

TEST_CASE("a transfer of unknown length makes the position unknown until a seek") {
  Calls calls;
  calls.open();
  calls.read(10);
  calls.read(kUnknown);
  CHECK(calls.read(10).position == kUnknown);
  calls.seek(70);
  CHECK(calls.read(10).position == 70);
}

TEST_CASE("a file that is appended to has no known position") {
  Calls calls;
  calls.open(1, kUnknown);
  CHECK(calls.read(10).position == kUnknown);
}

TEST_CASE("a process that did not open a file has no position in it") {
  Calls calls;
  calls.open();
  calls.process = 1;
  CHECK(calls.read(10).position == kUnknown);
  calls.seek(30);  // from here on it is known
  CHECK(calls.read(10).position == 30);
  calls.process = 0;
  calls.path = "/data/b";
  CHECK(calls.read(10).position == kUnknown);
}

TEST_CASE("threads that opened a file themselves have positions of their own") {
  Calls calls;
  calls.open(1);
  calls.open(2);
  check(calls.read(10, 1), 0, Pattern::kFirst);
  check(calls.read(99, 2), 0, Pattern::kFirst);
  check(calls.read(10, 1), 10, Pattern::kSequential);
  check(calls.read(10, 2), 99, Pattern::kSequential);
  // Which of the two a third one uses is in doubt.
  CHECK(calls.read(10, 3).position == kUnknown);
}

TEST_CASE("threads that share an open file share its position") {
  Calls calls;
  calls.open(1);
  check(calls.read(10, 1), 0, Pattern::kFirst);
  check(calls.read(10, 2), 10, Pattern::kSequential);
  check(calls.read(10, 1), 20, Pattern::kSequential);
  // Threads that take turns at seeking are not followed.
  calls.seek(500, false, 2);
  CHECK(calls.read(10, 1).position == kUnknown);
  CHECK(calls.read(10, 2).position == 510);
}

TEST_CASE("a duplicated descriptor keeps the file open") {
  Calls calls;
  calls.open();
  calls.duplicate();
  calls.read(10);
  calls.close();
  CHECK(calls.read(10).position == 10);
  calls.close();
  CHECK(calls.read(10).position == kUnknown);
}

TEST_CASE("positions at the end of all numbers do not overflow") {
  Calls calls;
  calls.open();
  calls.seek(INT64_MAX - 1);
  CHECK(calls.read(100).position == INT64_MAX - 1);
  calls.seek(INT64_MAX, true);
  CHECK(calls.read(1).position == kUnknown);
}
