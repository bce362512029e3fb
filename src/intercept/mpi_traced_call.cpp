// Only the outermost call of a thread is recorded: MPI-IO calls MPI's collectives, and bindings of other
// languages call those of C.
#include "intercept/mpi_traced_call.hpp"

#include <cerrno>

#include "base/signals.hpp"
#include "intercept/call_site.hpp"
#include "intercept/mpi_event.hpp"
#include "intercept/mpi_names.hpp"
#include "intercept/mpi_requests.hpp"
#include "session/session.hpp"

namespace dft::intercept::mpi {
namespace {

using record::ArgType;

struct ThreadCalls {
  std::uintptr_t outermost;  // the frame of the call that is recorded; 0: none
  // Tests that found nothing, since the last event: a program may make millions.
  std::uint64_t polls;
  std::uint64_t polled;  // their time, in ticks
};
thread_local constinit ThreadCalls t_calls __attribute__((tls_model("initial-exec"))) = {};

// A call inside of another one has a lower frame. One that was left by longjmp() has not.
class Outermost {
 public:
  explicit Outermost(std::uintptr_t frame) : is_outermost_(t_calls.outermost <= frame) {
    if (is_outermost_) t_calls.outermost = frame;
  }
  ~Outermost() {
    if (is_outermost_) t_calls.outermost = 0;
  }
  Outermost(const Outermost&) = delete;
  Outermost& operator=(const Outermost&) = delete;
  [[nodiscard]] bool is_outermost() const { return is_outermost_; }

 private:
  bool is_outermost_;
};

class TracedCall {
 public:
  // The span is filled when it opens. NOLINTNEXTLINE(clang-analyzer-optin.cplusplus.UninitializedObject)
  TracedCall(const Given& given, const void* caller) : given_(given), caller_(caller) {}
  // A C++ error handler may throw through the call.
  ~TracedCall() {
    if (event_.span.live != 0) buffer::drop_span(event_.span);
  }
  TracedCall(const TracedCall&) = delete;
  TracedCall& operator=(const TracedCall&) = delete;

  int run(void* real, Invoke invoke) {
    const Row& row = given_.row;
    event_.details = g_details.load(std::memory_order_relaxed);
    event_.span.live = 0;
    if (row.layer == Layer::MPIIO && row.has(Role::file)) {
      handle_ = given_.word(Role::file);
      open_file_ = file_of_handle(handle_);
      const File& file = open_file_ != nullptr ? *open_file_->file : g_nameless;
      if (!file.traced) return invoke(real, given_.words);
    }
    if (is_watched(row.layer) && row.does != Does::SILENT)
      open_event(event_, name_of(row), category_of(row.layer));
    if (row.does == Does::COMPLETE) return run_completion(real, invoke);
    if (row.does == Does::ABORT && event_.span.live != 0) {
      put_number(Role::code, Key::errorcode);
      put_site();
      close_event(event_, record::ticks());
    }
    note_before();
    want_status(Role::status);
    const std::uint64_t start =
        event_.span.live != 0 ? event_.span.draft.head.start : record::ticks();
    const int error = invoke(real, given_.words);
    const std::uint64_t end = record::ticks();
    const int saved = errno;
    start_ = start;
    end_ = end;
    after(error);
    errno = saved;
    return error;
  }

 private:
  // Where the program wants no status, the call gets one of ours: it says what has come.
  void want_status(Role role) {
    const Does does = given_.row.does;
    if (!given_.has(role) || !is_no_pointer(given_.word(role))) return;
    const bool tells = does == Does::RECEIVE || does == Does::EXCHANGE || does == Does::PROBE ||
                       does == Does::COMPLETE || reads(does);
    if (!tells || given_.lib.status_size == 0) return;
    // A copy: nothing of the program's is changed.
    given_.word(role) = reinterpret_cast<Word>(&own_status_);
  }

  // Handles that the call overwrites.
  void note_before() {
    const Row& row = given_.row;
    if (row.has(Role::freed) && !is_no_pointer(given_.word(Role::freed)))
      before_ = given_.handle_in(Role::freed);
    if (row.has(Role::closed) && !is_no_pointer(given_.word(Role::closed))) {
      handle_ = before_ = given_.file_in(Role::closed);
      open_file_ = file_of_handle(handle_);
    }
    if (row.does == Does::FREE_REQUEST && !is_no_pointer(given_.word(Role::done)))
      before_ = given_.handle_in(Role::done, 0);
  }

  int run_completion(void* real, Invoke invoke) {
    const Pending pending(given_, given_.has(Role::done));
    if (given_.has(Role::status)) want_status(Role::status);
    const std::uint64_t start =
        event_.span.live != 0 ? event_.span.draft.head.start : record::ticks();
    const int returned = invoke(real, given_.words);
    const std::uint64_t end = record::ticks();
    const int saved = errno;
    Completed completed;
    const int error = returned;
    if (error != 0) {
      complete_failed(given_, pending, start, end, completed);
    } else if (!complete(given_, pending, start, end, completed)) {
      ++t_calls.polls;
      t_calls.polled += end - start;
      if (event_.span.live != 0) buffer::drop_span(event_.span);
      errno = saved;
      return returned;
    }
    if (event_.span.live != 0) {
      if (event_.details) {
        if (completed.number == 1) event_.put_known(Key::request, completed.last_request);
        if (given_.has(Role::dones)) event_.put(Key::completed, completed.number);
        finish(error);
      }
      close_event(event_, end);
    }
    errno = saved;
    return returned;
  }

  void put_number(Role role, Key key) {
    if (event_.details && given_.has(role)) event_.put(key, given_.number(role));
  }
  void put_site() {
    buffer::ThreadState* t = buffer::this_thread();
    if (t == nullptr || !event_.details) return;
    if (const std::uint64_t site = site_of(*t, caller_)) {
      event_.span.draft.put(g_ids.key[static_cast<std::size_t>(Key::site_hash)], ArgType::kHash,
                            site);
    }
  }
  // What every event ends with.
  void finish(int error) {
    if (error != 0) event_.put(Key::error, error);
    if (t_calls.polls != 0) {
      event_.put(Key::polls, static_cast<std::int64_t>(t_calls.polls));
      event_.span.draft.put(g_ids.key[static_cast<std::size_t>(Key::polled)], ArgType::kTicks,
                            t_calls.polled);
      t_calls.polls = 0;
      t_calls.polled = 0;
    }
    put_site();
  }

  void after(int returned) {
    const int error = returned;
    const Row& row = given_.row;
    if (error == 0) keep_up();
    if (event_.span.live == 0) {
      if (error == 0 && (row.has(Role::started) || row.has(Role::prepared))) describe();
      keep_started(error);
      return;
    }
    if (row.does == Does::PROBE && row.has(Role::flag) && error == 0 &&
        *given_.at<int>(Role::flag) == 0) {
      ++t_calls.polls;
      t_calls.polled += end_ - start_;
      buffer::drop_span(event_.span);
      return;
    }
    if (row.layer == Layer::MPIIO && !put_file(error)) {
      buffer::drop_span(event_.span);
      return;
    }
    if (error == 0) describe();
    if (event_.details) {
      if (error == 0) put_words();
      keep_started(error);
      finish(error);
    } else {
      keep_started(error);
    }
    close_event(event_, end_);
  }

  // What the call changes about handles, whether it is recorded or not.
  void keep_up() {
    const Row& row = given_.row;
    const Library& lib = given_.lib;
    if (row.does == Does::FINALIZE) forget_handles();
    if (row.has(Role::freed)) forget_comm(lib, before_);
    if (row.does == Does::FREE_REQUEST) forget_request(before_, given_.word(Role::done));
    if (row.does == Does::START) restart();
    if (row.has(Role::made)) made_ = new_comm(lib, given_.handle_in(Role::made));
    if (row.has(Role::closed)) forget_file(before_);
    if (row.does == Does::INIT) {
      made_ = new_comm(lib, lib.world);
      if (made_ != nullptr) session::set_rank(made_->rank);
    }
    if (row.has(Role::unit) && open_file_ != nullptr) {
      open_file_->unit = type_size(lib, given_.handle(Role::unit));
      open_file_->plain_view = false;
    }
  }

  void restart() {
    const bool single = given_.has(Role::done);
    const Role role = single ? Role::done : Role::dones;
    const std::int64_t count = single ? 1 : given_.number(Role::number);
    for (std::int64_t i = 0; i < count; ++i) {
      Request when{};
      started_at(when);
      const auto at = static_cast<std::size_t>(i);
      restart_request(given_.handle_in(role, at), given_.address_in(role, at), when);
      number_ = when.number;
    }
  }

  void started_at(Request& request) const {
    const buffer::ThreadState* t = buffer::this_thread();
    request.number = next_request_number();
    request.start = start_;
    request.live = t != nullptr ? t->live : 0;
    const record::Head& head = event_.span.draft.head;
    const bool open = event_.span.live != 0;
    request.parent = open ? head.parent : 0;
    request.level = open ? head.level : 1;
  }

  // Finds out what the words mean. The call has succeeded with them.
  void describe() {
    const Row& row = given_.row;
    if (row.has(Role::comm)) comm_ = comm_of(given_.lib, given_.handle(Role::comm));
    if (comm_ != nullptr && row.does == Does::COLLECTIVE)
      seq_ = static_cast<std::int64_t>(comm_->collectives.fetch_add(1, std::memory_order_relaxed));
    if (has_bytes(row)) bytes_ = bytes_of(given_, comm_);
    if (row.has(Role::peer)) peer_ = given_.number(Role::peer);
    if (row.has(Role::tag)) tag_ = given_.number(Role::tag);
    // A receive without a request, and a probe, say what has come.
    const bool tells =
        row.has(Role::status) && (row.does == Does::RECEIVE || row.does == Does::EXCHANGE ||
                                  row.does == Does::PROBE || reads(row.does));
    if (tells) result_ = status_at(given_, Role::status, 0);
    if (row.does == Does::RECEIVE || row.does == Does::PROBE) {
      if (result_.known) {
        peer_ = result_.source;
        if (result_.source >= 0) tag_ = result_.tag;
      }
      capacity_ = bytes_;
      bytes_ = result_.known ? (result_.source >= 0 ? result_.bytes : 0) : kNotKnown;
    }
    if (comm_ != nullptr) world_peer_ = world_rank(*comm_, peer_);
    if (row.layer == Layer::MPIIO) describe_file();
  }

  void describe_file() {
    const Does does = given_.row.does;
    if (open_file_ == nullptr) return;
    if (given_.has(Role::count)) offset_ = byte_offset(given_, *open_file_, handle_, bytes_);
    if (does == Does::BEGIN || does == Does::BEGIN_ORDERED) {
      open_file_->begun_bytes = bytes_;
      open_file_->begun_offset = offset_;
      capacity_ = bytes_;
      bytes_ = kNotKnown;
    }
    if (does == Does::END_READ || does == Does::END_WRITE) {
      bytes_ = open_file_->begun_bytes;
      offset_ = open_file_->begun_offset;
    }
    if (reads(does)) {
      capacity_ = bytes_;
      const bool started = given_.has(Role::started);
      bytes_ = started || !result_.known ? kNotKnown : result_.bytes;
    }
  }

  // The file of the event. False if its file is not traced.
  bool put_file(int error) {
    const Row& row = given_.row;
    File* file = open_file_ != nullptr ? open_file_->file : nullptr;
    if (row.has(Role::path) && error == 0) {
      const char* path = without_prefix(given_.at<char>(Role::path));
      if (may_be_traced(path)) file = file_at(path);
      if (file == nullptr) file = &g_elsewhere;
      if (row.has(Role::opened)) {
        handle_ = given_.file_in(Role::opened);
        open_file_ = new_file(handle_);
        if (open_file_ != nullptr) open_file_->file = file;
      }
    }
    if (file == nullptr) return g_nameless.traced;
    if (!file->traced) return false;
    buffer::ThreadState* t = buffer::this_thread();
    if (t == nullptr || file->hash == 0) return true;
    if (file->announced.load(std::memory_order_relaxed) != buffer::announcing(*t))
      announce(*t, *file, -1);
    event_.span.draft.put(g_ids.key[static_cast<std::size_t>(Key::fhash)], ArgType::kHash,
                          file->hash);
    return true;
  }

  void put_words() {
    const Row& row = given_.row;
    if (row.does == Does::INIT && made_ != nullptr) {
      announce_if_new(*made_);
      event_.put(Key::rank, made_->rank);
      event_.put(Key::size, made_->own_size);
    }
    if (comm_ != nullptr) {
      announce_if_new(*comm_);
      event_.put(Key::comm, comm_->number);
    }
    if (seq_ >= 0) event_.put(Key::seq, seq_);
    if (row.has(Role::made) && made_ != nullptr) {
      announce_if_new(*made_);
      event_.put(Key::newcomm, made_->number);
    }
    event_.put_known(Key::bytes, bytes_);
    event_.put_known(Key::capacity, capacity_ != bytes_ ? capacity_ : kNotKnown);
    event_.put_known(Key::peer, peer_);
    if (comm_ != nullptr && peer_ >= 0 && world_peer_ != peer_)
      event_.put(Key::world_peer, world_peer_);
    if (peer_ >= 0 && tag_ >= 0) event_.put(Key::tag, tag_);
    if (row.has(Role::root)) event_.put_known(Key::root, given_.number(Role::root));
    if (row.does == Does::EXCHANGE && result_.known && result_.source >= 0) {
      event_.put(Key::source, result_.source);
      event_.put_known(Key::received, result_.bytes);
    }
    if (row.layer == Layer::MPIIO) put_file_words();
  }

  void put_file_words() {
    const Row& row = given_.row;
    event_.put_known(Key::offset, offset_);
    if (is_together(row.does)) event_.put(Key::collective, 1);
    if (row.has(Role::length)) event_.put(Key::length, given_.wide_number(Role::length));
    if (row.has(Role::whence)) {
      event_.put(Key::offset, given_.wide_number(Role::offset));
      event_.put(Key::whence, given_.number(Role::whence));
    }
    if (row.has(Role::amode)) event_.put(Key::amode, given_.number(Role::amode));
    if (row.has(Role::unit)) {
      event_.put(Key::displacement, given_.wide_number(Role::displacement));
      if (open_file_ != nullptr) event_.put_known(Key::etype, open_file_->unit);
    }
    if (row.has(Role::opened) && open_file_ != nullptr) {
      open_file_->comm = comm_ != nullptr ? comm_->number : kNotKnown;
      put_hints(event_, given_, handle_);
    } else if (open_file_ != nullptr && is_together(row.does)) {
      event_.put_known(Key::comm, open_file_->comm);
    }
  }

  void keep_started(int error) {
    const Row& row = given_.row;
    if (error != 0) return;
    if (row.does == Does::START && event_.span.live != 0 && event_.details && number_ != 0 &&
        given_.has(Role::done)) {
      event_.put(Key::request, static_cast<std::int64_t>(number_));
    }
    const bool prepared = row.has(Role::prepared);
    if ((!prepared && !row.has(Role::started)) || !is_watched(row.layer)) return;
    const Role role = prepared ? Role::prepared : Role::started;
    Request request{};
    request.word = given_.handle_in(role, 0);
    request.where = given_.word(role);
    if (request.word == 0 || request.word == given_.lib.no_request) return;
    started_at(request);
    if (prepared) request.start = 0;
    request.persistent = prepared;
    request.name = name_of(row);
    request.is_file = row.layer == Layer::MPIIO;
    request.receives = row.does == Does::RECEIVE || reads(row.does);
    request.bytes = bytes_;
    request.capacity = capacity_;
    request.peer = peer_;
    request.world_peer = world_peer_;
    request.tag = tag_;
    request.comm = comm_ != nullptr ? comm_->number : kNotKnown;
    request.seq = seq_;
    request.offset = offset_;
    request.file = open_file_ != nullptr ? open_file_->file : nullptr;
    if (!keep_request(request) || event_.span.live == 0 || !event_.details) return;
    event_.put(Key::request, static_cast<std::int64_t>(request.number));
  }

  const Given& given_;
  const void* caller_;
  Event event_;
  OwnStatus own_status_;
  Word before_ = 0;
  Word handle_ = 0;
  OpenFile* open_file_ = nullptr;
  Comm* comm_ = nullptr;
  Comm* made_ = nullptr;
  std::uint64_t start_ = 0;
  std::uint64_t end_ = 0;
  std::uint64_t number_ = 0;
  std::int64_t seq_ = kNotKnown;
  std::int64_t bytes_ = kNotKnown;
  std::int64_t capacity_ = kNotKnown;
  std::int64_t peer_ = kNotKnown;
  std::int64_t world_peer_ = kNotKnown;
  std::int64_t tag_ = kNotKnown;
  std::int64_t offset_ = kNotKnown;
  Result result_;
};

}  // namespace

int traced(const Given& given, void* real, Invoke invoke, const void* caller) {
  const bool watched = is_watched(Layer::MPI) || is_watched(Layer::MPIIO);
  if (!watched || t_slow != 0 || buffer::this_thread() == nullptr) [[unlikely]]
    return invoke(real, given.words);
  const Outermost outermost(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)));
  if (!outermost.is_outermost()) return invoke(real, given.words);
  return TracedCall(given, caller).run(real, invoke);
}

}  // namespace dft::intercept::mpi
