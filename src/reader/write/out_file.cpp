// Output files that appear under their name only once they are complete.
#include "reader/write/out_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace dft::reader {
namespace {

[[noreturn]] void fail(const std::string& path) {
  throw std::system_error(errno, std::generic_category(), path);
}

}  // namespace

OutFile::OutFile(std::string path) : path_(std::move(path)), counts_only_(false) {
  struct stat facts{};
  // A pipe or a device takes what is written as it comes.
  const bool special = ::stat(path_.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode);
  part_ = special ? path_ : path_ + "." + std::to_string(::getpid()) + ".part";
  const int fd =
      ::open(part_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (special ? 0 : O_TRUNC), 0600);
  if (fd < 0) fail(path_);
  file_ = ::fdopen(fd, "wb");
  if (file_ == nullptr) fail(path_);
}

OutFile::OutFile(int fd) : counts_only_(false) {
  const int own = ::fcntl(fd, F_DUPFD_CLOEXEC, 3);
  if (own < 0) fail("output");
  file_ = ::fdopen(own, "wb");
  if (file_ == nullptr) fail("output");
}

OutFile::~OutFile() {
  if (file_ != nullptr) std::fclose(file_);
  if (!committed_ && part_ != path_) ::unlink(part_.c_str());
}

void OutFile::write(std::string_view text) {
  if (text.empty()) return;
  if (!counts_only_ && std::fwrite(text.data(), 1, text.size(), file_) != text.size()) fail(path_);
  size_ += text.size();
}

void OutFile::finish() {
  if (file_ == nullptr) return;
  std::FILE* file = file_;
  file_ = nullptr;
  if (std::fclose(file) != 0) fail(path_);
}

void OutFile::commit() {
  finish();
  if (part_ != path_ && std::rename(part_.c_str(), path_.c_str()) != 0) fail(path_);
  committed_ = true;
}

}  // namespace dft::reader
