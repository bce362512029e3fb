// A thread that libc does not know of, for the writer.
//
// From a program's first pthread_create on, libc takes the locks of its allocator and its streams
// in earnest and arms cancellation around every read; a program of one thread that calls os.pread
// in a loop pays some 40 ns a call for our thread's mere existence. One made by a bare system call
// leaves libc as it was.
//
// Such a thread may use no part of libc that has a lock, a heap or a memory of its own. The
// writer's code makes its system calls itself and maps what it needs; a test of what its object
// files ask for holds it to that.
#pragma once

namespace dft::sink {

enum class BareStart {
  kNo,      // not here: libc must make the thread
  kNotYet,  // the one before is about to end; ask again
  kYes
};

// Runs body(argument). The thread has the caller's signal mask; the caller is to have blocked all
// signals, and holds off whatever changes the rights of a process, which libc makes its own threads
// follow. There is one such thread at a time.
BareStart start_bare_thread(void (*body)(void*), void* argument) noexcept;

// It has left the program's memory, or there was none.
bool bare_thread_is_gone() noexcept;

}  // namespace dft::sink
