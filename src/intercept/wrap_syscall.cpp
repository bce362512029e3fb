// Wrapper written by hand: calls made through syscall(), which are shown as what they are. Only
// those with a number in the table of calls come here (tail_calls.cpp). Rows with a signature
// record them as they do the function; the others are below, one function per call.
#include <linux/openat2.h>

#include <utility>

#include "intercept/processes.hpp"
#include "intercept/rings.hpp"
#include "intercept/syscall_numbers.hpp"
#include "intercept/wrap_aio.hpp"
#include "intercept/wrap_net.hpp"
#include "intercept/wrap_open.hpp"

using namespace dft::intercept;  // NOLINT: as in wrap_table.cpp
namespace record = dft::record;

// The rows name parameters that only pass through.
#pragma GCC diagnostic ignored "-Wunused-parameter"

namespace {

using SystemCall = long(long, long, long, long, long, long, long);

// The six arguments, as the program passed them.
struct Args {
  long a, b, c, d, e, f;
  [[nodiscard]] int fd() const { return static_cast<int>(a); }
};

template <class T>
T argument(long value) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<T>(value);
  } else {
    return static_cast<T>(value);
  }
}

// Calls `body` with as many arguments, and of such types, as the function has.
template <class Function>
struct Signature;
template <class R, class... P>
struct Signature<R(P...)> {
  template <class Body>
  static long apply(const Args& args, Body body) {
    const long values[] = {args.a, args.b, args.c, args.d, args.e, args.f};
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      return body(argument<P>(values[i])...);
    }(std::index_sequence_for<P...>{});
  }
};

#define DFT_CALL_SYSCALL(category, does, R, parameters, forwarded, about, recorded, name)    \
  template <class Call>                                                                      \
  long syscall_##name(const Args& args, Call call) {                                         \
    return Signature<R parameters>::apply(args, [&] parameters {                             \
      return probe<Row::name, Category::category>(about, call, DFT_COUNTED(does, recorded)); \
    });                                                                                      \
  }
#include "format/calls.def"

// What a descriptor means goes with its copy.
long copied(int from, long to) {
  if (to >= 0 && to != from) copy_file_of(from, static_cast<int>(to));
  return to;
}

template <class Call>
long syscall_openat(const Args& args, Call call) {
  const OpenFlags open{static_cast<int>(args.c), static_cast<mode_t>(args.d)};
  return open_path<Row::openat, Category::POSIX>(
      args.fd(), argument<const char*>(args.b), names_the_file(open.flags), call, kItself,
      DFT_NUM_AS(dirfd, args.fd()), DFT_NUM_AS(flags, open.flags), DFT_AFTER(open.shown_mode()));
}
template <class Call>
long syscall_openat2(const Args& args, Call call) {
  const auto* how = argument<const open_how*>(args.c);
  static constexpr open_how kUnread{};
  return open_path<Row::syscall, Category::POSIX>(
      args.fd(), argument<const char*>(args.b), true, call, kItself, DFT_NUM_AS(dirfd, args.fd()),
      DFT_NUM_AS(flags, (ret >= 0 ? how : &kUnread)->flags),
      DFT_NUM_AS(mode, (ret >= 0 ? how : &kUnread)->mode),
      DFT_NUM_AS(resolve, (ret >= 0 ? how : &kUnread)->resolve));
}
template <class Call>
long open_old(const char* path, int flags, mode_t mode, Call call) {
  const OpenFlags open{flags, mode};
  return open_path<Row::open, Category::POSIX>(kCwd, path, names_the_file(flags), call, kItself,
                                               DFT_NUM(flags), DFT_AFTER(open.shown_mode()));
}
template <class Call>
long syscall_open(const Args& args, Call call) {
  return open_old(argument<const char*>(args.a), static_cast<int>(args.b),
                  static_cast<mode_t>(args.c), call);
}
template <class Call>
long syscall_creat(const Args& args, Call call) {
  return open_old(argument<const char*>(args.a), O_CREAT | O_WRONLY | O_TRUNC,
                  static_cast<mode_t>(args.b), call);
}
template <class Call>
long syscall_close(const Args& args, Call call) {
  return close_call<Row::close, Category::POSIX>(args.fd(), call);
}
template <class Call>
long syscall_close_range(const Args& args, Call call) {
  constexpr long kOnlyMark = 4;  // CLOSE_RANGE_CLOEXEC
  if ((args.c & kOnlyMark) == 0)
    forget_descriptors(static_cast<unsigned>(args.a), static_cast<unsigned>(args.b));
  return probe<Row::close_range, Category::POSIX>(
      on_unnamed(), call, DFT_AFTER(moves_nothing()), DFT_NUM_AS(first, args.a),
      DFT_NUM_AS(last, args.b), DFT_NUM_AS(flags, args.c));
}
template <class Call>
long syscall_dup(const Args& args, Call call) {
  return copied(args.fd(),
                probe<Row::dup, Category::POSIX>(on_fd(args.fd()), call, DFT_AFTER(moves_nothing()),
                                                 DFT_NUM_AS(oldfd, args.a)));
}
template <class Call>
long syscall_dup2(const Args& args, Call call) {
  return copied(args.fd(), probe<Row::dup2, Category::POSIX>(
                               on_fd(args.fd()), call, DFT_AFTER(moves_nothing()),
                               DFT_NUM_AS(oldfd, args.a), DFT_NUM_AS(newfd, args.b)));
}
template <class Call>
long syscall_dup3(const Args& args, Call call) {
  return copied(args.fd(),
                probe<Row::dup3, Category::POSIX>(
                    on_fd(args.fd()), call, DFT_AFTER(moves_nothing()), DFT_NUM_AS(oldfd, args.a),
                    DFT_NUM_AS(newfd, args.b), DFT_NUM_AS(flags, args.c)));
}
template <class Call>
long syscall_fcntl(const Args& args, Call call) {
  const long result = probe<Row::fcntl, Category::POSIX>(
      on_fd(args.fd()), call, DFT_AFTER(moves_nothing()), DFT_NUM_AS(cmd, args.b));
  return args.b == F_DUPFD || args.b == F_DUPFD_CLOEXEC ? copied(args.fd(), result) : result;
}
template <class Call>
long syscall_chdir(const Args& args, Call call) {
  if (watch(Category::POSIX) != nullptr) know_cwd();
  const long result = probe<Row::chdir, Category::POSIX>(on_path(argument<const char*>(args.a)),
                                                         call, DFT_AFTER(moves_nothing()));
  if (result == 0) forget_cwd();
  return result;
}
template <class Call>
long syscall_fchdir(const Args& args, Call call) {
  const long result =
      probe<Row::fchdir, Category::POSIX>(on_fd(args.fd()), call, DFT_AFTER(moves_nothing()));
  if (result == 0) forget_cwd();
  return result;
}

template <class Call>
long syscall_socket(const Args& args, Call call) {
  const long result = probe<Row::socket, Category::NET>(
      on_unnamed(), call, DFT_AFTER(moves_nothing()), DFT_NUM_AS(domain, args.a),
      DFT_NUM_AS(type, args.b), DFT_NUM_AS(protocol, args.c));
  if (result >= 0) set_file_of(static_cast<int>(result), nullptr);
  return result;
}
template <class Call>
long syscall_socketpair(const Args& args, Call call) {
  const long result = probe<Row::socketpair, Category::NET>(
      on_unnamed(), call, DFT_AFTER(moves_nothing()), DFT_NUM_AS(domain, args.a),
      DFT_NUM_AS(type, args.b), DFT_NUM_AS(protocol, args.c));
  const auto* fds = argument<const int*>(args.d);
  for (int i = 0; i < 2 && result == 0; ++i) set_file_of(fds[i], nullptr);
  return result;
}
template <class Call>
long syscall_bind(const Args& args, Call call) {
  return rename_call<Row::bind>(args.fd(), call);
}
template <class Call>
long syscall_listen(const Args& args, Call call) {
  return rename_call<Row::listen>(args.fd(), call, DFT_NUM_AS(backlog, args.b));
}
template <class Call>
long syscall_accept(const Args& args, Call call) {
  return accept_call<Row::accept>(args.fd(), call);
}
template <class Call>
long syscall_accept4(const Args& args, Call call) {
  return accept_call<Row::accept4>(args.fd(), call, DFT_NUM_AS(flags, args.d));
}
template <class Call>
long syscall_connect(const Args& args, Call call) {
  return connect_call<Row::connect>(args.fd(), argument<const void*>(args.b),
                                    static_cast<socklen_t>(args.c), call);
}
template <class Call>
long syscall_sendto(const Args& args, Call call) {
  return message_call<Row::sendto>(
      args.fd(), call,
      [&] {
        return SocketAddress::of(argument<const void*>(args.e), static_cast<socklen_t>(args.f));
      },
      DFT_NUM_AS(len, args.c), DFT_NUM_AS(flags, args.d));
}
template <class Call>
long syscall_recvfrom(const Args& args, Call call) {
  return message_call<Row::recvfrom>(
      args.fd(), call,
      [&] { return address_of(argument<const void*>(args.e), argument<const socklen_t*>(args.f)); },
      DFT_NUM_AS(len, args.c), DFT_NUM_AS(flags, args.d));
}
template <class Call>
long syscall_sendmsg(const Args& args, Call call) {
  return message_call<Row::sendmsg>(
      args.fd(), call, [&] { return address_of(argument<const msghdr*>(args.b)); },
      DFT_NUM_AS(flags, args.c));
}
template <class Call>
long syscall_recvmsg(const Args& args, Call call) {
  return message_call<Row::recvmsg>(
      args.fd(), call, [&] { return address_of(argument<const msghdr*>(args.b)); },
      DFT_NUM_AS(flags, args.c));
}

// That the program has a ring is always recorded, because its requests may go unseen.
template <class Call>
long syscall_io_uring_setup(const Args& args, Call call) {
  static constinit std::atomic<std::uint32_t> name{0};
  dft::buffer::ThreadState* t = watch(Category::POSIX);
  const std::uint64_t start = record::ticks();
  const long result = call();
  if (result >= 0 && watch(Category::IO_URING) != nullptr) {
    set_file_of(static_cast<int>(result), nullptr);
    ring_was_set_up(static_cast<int>(result), *argument<const RingParams*>(args.b));
  }
  if (t == nullptr) return result;
  CallArgs recorded;
  put_field(*t, recorded, field(Key::count, args.a));
  put_field(*t, recorded, field(Key::ret, result));
  emit_as(name, "io_uring_setup", t, start, record::ticks(), recorded);
  return result;
}

template <class Call>
long syscall_io_uring_enter(const Args& args, Call call) {
  return enter_ring(args.fd(), static_cast<unsigned>(args.b), static_cast<unsigned>(args.c),
                    static_cast<unsigned>(args.d), caller_of_wrapper(), call, [](long ret) {
                      return ret >= 0 ? ret : static_cast<long>(-reason<Row::syscall>());
                    });
}
template <class Call>
long syscall_io_uring_register(const Args& args, Call call) {
  const long result = call();
  Ring* ring = result >= 0 ? ring_of(args.fd()) : nullptr;
  if (ring != nullptr) {
    ring_registered(*ring, static_cast<unsigned>(args.b), argument<const void*>(args.c),
                    static_cast<unsigned>(args.d));
  }
  return result;
}

template <class Call>
long syscall_io_submit(const Args& args, Call call) {
  return submit_blocks<Row::syscall, Row::io_submit>(args.b, argument<iocb**>(args.c),
                                                     caller_of_wrapper(), call);
}
template <class Call>
long syscall_io_getevents(const Args& args, Call call) {
  return collect<Row::syscall, Row::io_getevents>(
      call, args.b, args.c, argument<const void*>(args.d), caller_of_wrapper());
}
template <class Call>
long syscall_io_pgetevents(const Args& args, Call call) {
  return collect<Row::syscall, Row::io_pgetevents>(
      call, args.b, args.c, argument<const void*>(args.d), caller_of_wrapper());
}

template <class Call>
long syscall_seccomp(const Args& args, Call call) {
  if (args.a != 0 || args.b != 0) enters_sandbox();
  return call();
}
template <class Call>
long syscall_exit_group(const Args&, Call call) {
  process_leaves();
  return call();
}
template <class Call>
long syscall_setuid(const Args& args, Call call) {
  return call_as(static_cast<unsigned>(args.a), call);
}
template <class Call>
long syscall_setreuid(const Args& args, Call call) {
  return call_as(static_cast<unsigned>(args.b), call);
}
template <class Call>
long syscall_setresuid(const Args& args, Call call) {
  return call_as(static_cast<unsigned>(args.b), call);
}
#define DFT_ALONE(name)                         \
  template <class Call>                         \
  long syscall_##name(const Args&, Call call) { \
    return call_alone(call);                    \
  }
DFT_ALONE(setgid)
DFT_ALONE(setregid)
DFT_ALONE(setresgid)
DFT_ALONE(setgroups)
DFT_ALONE(capset)
DFT_ALONE(unshare)
DFT_ALONE(setns)

}  // namespace

extern "C" long DFT_WRAPPER(syscall_wanted)(long number, long a, long b, long c, long d, long e,
                                            long f) {
  const auto call = [&] { return real<SystemCall>(Row::syscall)(number, a, b, c, d, e, f); };
  const Args args{a, b, c, d, e, f};
  switch (number) {
#define DFT_SYSCALL(name) \
  case SYS_##name:        \
    return syscall_##name(args, call);
#include "format/calls.def"
    default:
      return call();
  }
}
