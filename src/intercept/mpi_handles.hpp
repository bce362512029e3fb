// What is remembered of the handles of an MPI program: its communicators, requests and files. Bounded
// tables, read without a lock on the program's threads. What does not fit is not joined: its calls
// are recorded without it.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "buffer/lane.hpp"
#include "intercept/file_table.hpp"
#include "intercept/mpi_library.hpp"

namespace dft::intercept::mpi {

// ---- Communicators
struct Comm {
  std::atomic<Word> word;                // 0: free; 1: was freed, the search goes on
  std::atomic<std::uint64_t> announced;  // the generation whose trace says what it is
  std::atomic<std::uint64_t> collectives;
  std::uint32_t number;  // in the order in which this process met them; 0 is MPI_COMM_WORLD
  std::int32_t rank;
  std::int32_t size;  // of the group that peers are numbered in
  std::int32_t own_size;
  std::int32_t nth;     // how many communicators of the same ranks came before; -1: not known
  std::int32_t degree;  // neighbors that are sent to; -1: not asked yet
  bool is_inter;
  bool is_world;
  // Ranks in MPI_COMM_WORLD: an arithmetic sequence, or a list.
  bool has_ranks;
  std::int32_t first;
  std::int32_t stride;
  std::int32_t* list;
  std::uint32_t list_room;
};

// Null where it is not known. Asks the library at the first use.
Comm* comm_of(const Library& lib, Word word) noexcept;
// A new communicator; null for MPI_COMM_NULL.
Comm* new_comm(const Library& lib, Word word) noexcept;
void forget_comm(const Library& lib, Word word) noexcept;
// The rank in MPI_COMM_WORLD of a peer; -1: not known.
std::int64_t world_rank(const Comm& comm, std::int64_t peer) noexcept;
// The neighbors that a collective of this communicator sends to; -1: not known.
std::int32_t degree_of(const Library& lib, Comm& comm, Word word) noexcept;
// "0-7", "0-3,8": at most `room` characters, without a 0; 0 if it does not fit or is not known.
std::size_t write_ranks(const Comm& comm, char* to, std::size_t room) noexcept;

// ---- Files
struct OpenFile {
  std::atomic<Word> word;
  File* file;
  std::int64_t comm;  // its number; -1: not known
  std::int64_t unit;  // bytes of an elementary type; -1: not known
  bool plain_view;    // offsets are bytes from the beginning
  // What a collective in two halves began with.
  std::int64_t begun_offset;
  std::int64_t begun_bytes;
};
OpenFile* file_of_handle(Word word) noexcept;
OpenFile* new_file(Word word) noexcept;  // null if there are too many
void forget_file(Word word) noexcept;

// ---- Requests
struct Request {
  Word word;
  Word where;            // the variable that the handle was put into
  std::uint64_t number;  // counted from 1 in this process
  std::uint64_t live;    // of the thread that started it: its epoch
  std::uint64_t start;   // in ticks; 0: not started
  std::uint64_t parent;  // the span around the call that started it
  std::uint32_t name;    // the interned name of that call
  bool is_file;
  bool receives;  // its status says what came
  bool persistent;
  std::uint16_t level;
  std::int64_t bytes;
  std::int64_t capacity;
  std::int64_t peer;
  std::int64_t world_peer;
  std::int64_t tag;
  std::int64_t comm;
  std::int64_t seq;
  std::int64_t offset;
  File* file;
};
std::uint64_t next_request_number() noexcept;
// False if the table is full.
bool keep_request(const Request& request) noexcept;
// Takes a request out: that of this variable, or else the oldest with this handle, because libraries
// give the same handle to all requests that were complete at once. A persistent one stays.
bool take_request(Word word, Word where, Request& to) noexcept;
// A persistent request is started again. False if it is not known.
bool restart_request(Word word, Word where, const Request& when) noexcept;
// Takes it out for good.
void forget_request(Word word, Word where) noexcept;

// Everything is forgotten: MPI has ended.
void forget_handles() noexcept;

}  // namespace dft::intercept::mpi
