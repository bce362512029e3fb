// The second pass of a merge: one record in, one line of the common shape out.
// One rewriter a worker thread.
#pragma once
#include <string>

#include "reader/merge/plan.hpp"

namespace dft::reader {

// The number of a thread that has a text instead of one.
[[nodiscard]] std::int64_t thread_number(std::int64_t pid, std::string_view text);
// Likewise of a thread of a trace that has rows of its own beside those of its process.
[[nodiscard]] std::int64_t aside_number(std::int64_t pid, std::int64_t tid, std::string_view mark);
// The text that a merge put into the arguments as `tid`; nullptr if it was a number.
[[nodiscard]] const JsonField* thread_text(const Event& event, const InFile& file);

class Rewriter {
 public:
  explicit Rewriter(const Plan& plan) : plan_(plan) {}

  // What happens with this record. Throws std::runtime_error if the first pass did not see it,
  // because the file has changed since.
  const Treatment& treatment(const Event& event, const InFile& file);
  // Appends the line, with its line end.
  void write(const Event& event, const InFile& file, const Treatment& treatment, std::string& out);

 private:
  void times(const Event& event, const Treatment& treatment, std::string& out);
  void arguments(const Event& event, const InFile& file, const Treatment& treatment,
                 std::string& out);

  const Plan& plan_;
  const Treatment* last_ = nullptr;
  std::uint32_t last_file_ = 0;
  std::int64_t last_pid_ = 0;
  std::string last_host_;
  std::string last_mark_;
  std::string key_;
  std::string scratch_;
};

}  // namespace dft::reader
