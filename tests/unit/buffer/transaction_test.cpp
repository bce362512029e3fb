// The exactly-once protocol on its own: a fake file, and a death after every step.
#include "buffer/transaction.hpp"

#include <doctest/doctest.h>

#include <string>

using dft::buffer::BlockCounts;
using dft::buffer::SpoolHead;
using dft::buffer::Transaction;

namespace {

constexpr BlockCounts kBlock{100, 7, 2, 1, 3, false};

// A spool's head, a chunk with 64 bytes committed, and the length of the trace file.
struct Machine {
  Machine() {
    head->trace_size = 50;
    head->trace_lines = 4;
    head->trace_metadata = 3;
    head->trace_files = 1;
    head->intent_number.store(6);
    head->done_number.store(6);
    head->applied_number.store(6);
  }
  ~Machine() { delete head; }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // Moves the block, and dies after `steps` of five steps. Returns whether it finished.
  bool move(int steps) {
    Transaction transaction(*head);
    transaction.add(4096, 64);
    if (steps-- == 0) return false;
    transaction.announce(kBlock);
    if (steps-- == 0) return false;
    file += 40;  // a part of the block
    if (steps-- == 0) return false;
    file += 60;  // all of it
    if (steps-- == 0) return false;
    transaction.commit(99);
    if (steps-- == 0) return false;
    transaction.apply([&](std::uint32_t i) {
      CHECK(i == 0);
      drained = head->intent.entry[0].drained;
    });
    return true;
  }
  // What a recoverer does: see Spool::adopt and sink::cut_back.
  void recover() {
    if (Transaction::is_unapplied(*head)) {
      Transaction::apply_to_head(*head);
      drained = head->intent.entry[0].drained;
    }
    head->applied_number.store(head->intent_number.load());
    file = head->trace_size;
  }

  SpoolHead* head = new SpoolHead{};
  std::uint64_t file = 50;
  std::uint64_t drained = 0;
};

void check_before(const Machine& machine) {
  CHECK(machine.file == 50);
  CHECK(machine.drained == 0);
  CHECK(machine.head->trace_lines == 4);
  CHECK(machine.head->lost_written == 0);
}

void check_after(const Machine& machine) {
  CHECK(machine.file == 150);
  CHECK(machine.drained == 64);
  CHECK(machine.head->trace_size == 150);
  CHECK(machine.head->trace_lines == 11);
  CHECK(machine.head->trace_metadata == 5);
  CHECK(machine.head->trace_files == 2);
  CHECK(machine.head->lost_written == 3);
  CHECK(machine.head->trace_inode == 99);
}

}  // namespace

TEST_CASE("a finished block is in the file, and its chunk is drained") {
  Machine machine;
  REQUIRE(machine.move(5 + 1));
  check_after(machine);
  CHECK(machine.head->applied_number.load() == 7);
  CHECK_FALSE(Transaction::is_unapplied(*machine.head));
}

TEST_CASE("a death at any step leaves the block in the file and drained, or neither") {
  for (int steps = 0; steps < 5; ++steps) {
    CAPTURE(steps);
    Machine machine;
    REQUIRE_FALSE(machine.move(steps));
    machine.recover();
    if (steps < 4) {
      check_before(machine);
    } else {
      check_after(machine);
    }
    // After recovery the next block goes through; a partially written block is written again.
    REQUIRE(machine.move(5 + 1));
    CHECK(machine.file == (steps < 4 ? 150 : 250));
    CHECK(machine.head->trace_size == machine.file);
  }
}

TEST_CASE("a block that could not be written is withdrawn") {
  Machine machine;
  Transaction transaction(*machine.head);
  transaction.add(4096, 64);
  transaction.announce(kBlock);
  transaction.withdraw();
  CHECK_FALSE(Transaction::is_unapplied(*machine.head));
  CHECK(machine.head->intent_number.load() == 6);
  machine.recover();
  check_before(machine);
}

TEST_CASE("the last block marks the trace as ended") {
  Machine machine;
  Transaction transaction(*machine.head);
  BlockCounts last = kBlock;
  last.ends = true;
  transaction.announce(last);
  transaction.commit(99);
  CHECK((machine.head->flags & dft::buffer::kEnded) == 0);
  transaction.apply([](std::uint32_t) {});
  CHECK((machine.head->flags & dft::buffer::kEnded) != 0);
}
