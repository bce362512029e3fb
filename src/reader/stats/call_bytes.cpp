#include "reader/stats/call_bytes.hpp"

#include <algorithm>

namespace dft::reader {
namespace {

// The arguments that hold lengths; -1 where one is missing.
struct Lengths {
  std::int64_t ret = -1;
  std::int64_t size = -1;
  std::int64_t ret_len = -1;
  std::int64_t read_len = -1;
  std::int64_t write_len = -1;
  std::int64_t flags = 0;
  bool is_joined = false;  // the bytes are those of the requests, which have events of their own
  bool has_ret = false;
  bool failed = false;
};

Lengths lengths_of(std::span<const JsonField> args) {
  Lengths lengths;
  for (const JsonField& field : args) {
    if (is(field.key, "ret")) {
      lengths.has_ret = integer_of(field, lengths.ret);
    } else if (is(field.key, "ret_len")) {
      integer_of(field, lengths.ret_len);
    } else if (is(field.key, "size")) {
      integer_of(field, lengths.size);
    } else if (is(field.key, "read_len")) {
      integer_of(field, lengths.read_len);
    } else if (is(field.key, "write_len")) {
      integer_of(field, lengths.write_len);
    } else if (is(field.key, "flags")) {
      integer_of(field, lengths.flags);
    } else if (is(field.key, "joined")) {
      lengths.is_joined = true;
    } else if (is(field.key, "errno")) {
      std::int64_t reason = 0;
      lengths.failed = integer_of(field, reason) && reason > 0;
    }
  }
  return lengths;
}

// Negative if the arguments do not hold it.
std::int64_t length_of(Measure measure, const Lengths& lengths) {
  switch (measure) {
    case Measure::kRet:
      return lengths.has_ret ? std::max<std::int64_t>(lengths.ret, 0) : -1;
    case Measure::kTaken: {
      constexpr std::int64_t kPeek = 0x2;       // MSG_PEEK
      constexpr std::int64_t kErrors = 0x2000;  // MSG_ERRQUEUE: copies of what was sent
      if ((lengths.flags & (kPeek | kErrors)) != 0) return 0;
      return lengths.has_ret ? std::max<std::int64_t>(lengths.ret, 0) : -1;
    }
    case Measure::kItems: {
      if (!lengths.has_ret || lengths.size < 0) return -1;
      std::int64_t product = 0;
      if (lengths.ret <= 0) return 0;
      return __builtin_mul_overflow(lengths.ret, lengths.size, &product) ? -1 : product;
    }
    case Measure::kOne:
      return lengths.has_ret ? (lengths.ret == -1 ? 0 : 1) : -1;
    case Measure::kWord:
      if (lengths.ret_len >= 0 || !lengths.has_ret) return lengths.ret_len;
      return lengths.ret == -1 ? 0 : static_cast<std::int64_t>(sizeof(int));
    case Measure::kRetLen:
      if (lengths.ret_len < 0 && lengths.has_ret && lengths.ret == -1) return 0;
      return lengths.ret_len;
    default:
      return -1;
  }
}

}  // namespace

MovedBytes moved_bytes(const Call& call, std::span<const JsonField> args) {
  if (!moves(call.role)) return {};
  const Lengths lengths = lengths_of(args);
  if (lengths.failed) return {};
  const auto positive = [](std::int64_t n) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(n, 0));
  };
  if (call.measure == Measure::kLengths) {
    const bool nothing = lengths.has_ret && lengths.ret <= 0;
    return {positive(lengths.read_len), positive(lengths.write_len),
            nothing || lengths.is_joined || lengths.read_len >= 0 || lengths.write_len >= 0};
  }
  const std::int64_t length = length_of(call.measure, lengths);
  return {reads(call.role) ? positive(length) : 0, writes(call.role) ? positive(length) : 0,
          length >= 0};
}

std::uint64_t mapped_bytes(std::span<const JsonField> args) {
  std::int64_t length = 0;
  for (const JsonField& field : args) {
    if (is(field.key, "errno")) return 0;
    if (is(field.key, "length")) integer_of(field, length);
  }
  return static_cast<std::uint64_t>(std::max<std::int64_t>(length, 0));
}

namespace {

// Named after their peer: "tcp://", "unix-from:" and so on, as by is_socket() of vocabulary.sql.
bool is_socket(std::string_view path) {
  std::string_view scheme = path.substr(0, path.find(':'));
  if (scheme.size() == path.size()) return false;
  if (scheme == "socketpair") return true;
  const std::size_t dash = scheme.find('-');
  if (dash != std::string_view::npos) {
    const std::string_view side = scheme.substr(dash + 1);
    const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
    if (side.empty() || !std::all_of(side.begin(), side.end(), is_letter)) return false;
    scheme = scheme.substr(0, dash);
  }
  return scheme == "tcp" || scheme == "udp" || scheme == "unix" || scheme == "sctp" ||
         scheme == "raw";
}

}  // namespace

bool is_no_file(std::string_view path) {
  const auto begins = [&](std::string_view with) { return path.substr(0, with.size()) == with; };
  return begins("pipe:") || begins("socket:") || begins("anon_inode:") || begins("/dev/pts/") ||
         begins("/dev/tty") || path == "/dev/ptmx" || path == "/dev/console" || is_socket(path);
}

}  // namespace dft::reader
