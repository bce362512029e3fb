// A thread that libc does not know about, for the writer.
//
// After a program's first pthread_create(), libc locks its allocator and its streams for real and
// enables cancellation around every read: a single-threaded program that calls os.pread in a loop
// pays some 40 ns per call for the mere existence of our thread. A thread made by a raw clone()
// leaves libc unchanged.
//
// Such a thread must not use any part of libc that has locks, a heap or per-thread state. The
// writer's code makes raw system calls and maps its own memory; a test of the undefined symbols
// of its object files enforces that.
//
// Called by the writer, on the thread that starts it.
#pragma once

namespace dft::sink {

enum class RawStart {
  kNo,      // not possible here: use pthread_create()
  kNotYet,  // the previous thread is about to end; try again
  kYes
};

// Runs body(argument). The thread inherits the caller's signal mask: the caller must have blocked
// all signals. The caller must also hold off changes of credentials, which libc applies to its
// own threads only. There is one such thread at a time.
RawStart start_raw_thread(void (*body)(void*), void* argument) noexcept;

// The thread has left the program's memory, or never existed.
bool raw_thread_is_gone() noexcept;

}  // namespace dft::sink
