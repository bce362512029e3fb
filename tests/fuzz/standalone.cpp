// Drives a fuzz target where libFuzzer is missing (g++): runs the given files, then deterministic
// mutations of them. Takes libFuzzer's -runs=, -max_total_time=, -max_len= and -seed=, so that one
// command line works for both.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
// NOLINTNEXTLINE(bugprone-reserved-identifier): the sanitizers' own name, absent in a plain build.
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace {

using Input = std::vector<uint8_t>;

struct Options {
  uint64_t runs = 100000;
  uint64_t seconds = 60;
  uint64_t max_len = 65536;
  uint64_t seed = 1;
};

const Input* g_current = nullptr;

// The input is saved only after a failure: one file per run would cost more than the run.
void save_current() {
  if (g_current == nullptr) return;
  const int fd = ::open("crash-input", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return;
  const ssize_t written = ::write(fd, g_current->data(), g_current->size());
  ::close(fd);
  constexpr std::string_view kNote = "the input that failed is in ./crash-input\n";
  if (written >= 0 && ::write(2, kNote.data(), kNote.size()) < 0) ::_exit(1);
}

void on_signal(int number) {
  save_current();
  std::signal(number, SIG_DFL);
  std::raise(number);
}

bool number_option(std::string_view argument, std::string_view name, uint64_t& value) {
  if (!argument.starts_with(name)) return false;
  value = std::strtoull(argument.data() + name.size(), nullptr, 10);
  return true;
}

Input read_input(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return Input(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

void add_inputs(const std::filesystem::path& path, std::vector<Input>& inputs) {
  if (!std::filesystem::is_directory(path)) {
    inputs.push_back(read_input(path));
    return;
  }
  // Sorted, because directory order differs between machines and a run must be reproducible.
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const auto& file : files) inputs.push_back(read_input(file));
}

class Mutator {
 public:
  Mutator(uint64_t seed, size_t max_len) : random_(seed), max_len_(max_len) {}

  Input next(const std::vector<Input>& inputs) {
    Input input = inputs[below(inputs.size())];
    for (size_t steps = 1 + below(8); steps > 0; --steps) mutate(input, inputs);
    if (input.size() > max_len_) input.resize(max_len_);
    return input;
  }

 private:
  size_t below(size_t bound) { return static_cast<size_t>(random_() % bound); }

  uint64_t odd_number() {
    // Sizes, counts and offsets go wrong at these values far more often than at random ones.
    static constexpr uint64_t kEdges[] = {0,          1,          0x7f,       0x80,
                                          0xff,       0x7fff,     0xffff,     1U << 20,
                                          0x7fffffff, 0xffffffff, 1ULL << 63, ~0ULL};
    const uint64_t edge = kEdges[below(std::size(kEdges))];
    return below(2) == 0 ? edge : random_();
  }

  void mutate(Input& input, const std::vector<Input>& inputs) {
    if (input.empty()) {
      input.resize(1 + below(64));
      for (auto& byte : input) byte = static_cast<uint8_t>(random_());
      return;
    }
    const size_t at = below(input.size());
    switch (below(7)) {
      case 0:
        input[at] ^= static_cast<uint8_t>(1U << below(8));
        break;
      case 1:
        input[at] = static_cast<uint8_t>(random_());
        break;
      case 2: {
        const uint64_t value = odd_number();
        const size_t width = size_t{1} << below(4);
        std::memcpy(input.data() + at, &value, std::min(width, input.size() - at));
        break;
      }
      case 3:
        input.resize(at);
        break;
      case 4:
        insert(input, at, Input(1 + below(64), static_cast<uint8_t>(random_())));
        break;
      case 5: {
        const size_t end = at + 1 + below(input.size() - at);
        insert(input, below(input.size()),
               Input(input.begin() + offset(at), input.begin() + offset(end)));
        break;
      }
      default: {
        const Input& other = inputs[below(inputs.size())];
        const size_t from = other.empty() ? 0 : below(other.size());
        input.resize(at);
        input.insert(input.end(), other.begin() + offset(from), other.end());
        break;
      }
    }
  }

  static std::ptrdiff_t offset(size_t value) { return static_cast<std::ptrdiff_t>(value); }

  static void insert(Input& input, size_t at, const Input& bytes) {
    input.insert(input.begin() + offset(at), bytes.begin(), bytes.end());
  }

  std::mt19937_64 random_;
  size_t max_len_;
};

void run(const Input& input) {
  // An exact copy on the heap, so that AddressSanitizer reports a read one byte past the end.
  const Input exact(input.begin(), input.end());
  g_current = &exact;
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
  g_current = nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  std::vector<Input> inputs;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (number_option(argument, "-runs=", options.runs) ||
        number_option(argument, "-max_total_time=", options.seconds) ||
        number_option(argument, "-max_len=", options.max_len) ||
        number_option(argument, "-seed=", options.seed)) {
      continue;
    }
    // libFuzzer has many more options, which are ignored here.
    if (argument.starts_with('-')) continue;
    if (!std::filesystem::exists(argument)) {
      std::fprintf(stderr, "%s: no such file or directory\n", argv[i]);
      return 2;
    }
    add_inputs(argument, inputs);
  }

  std::signal(SIGABRT,
              on_signal);  // raised by a target's own check; the sanitizers do not catch it
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(save_current);
  } else {
    for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
      std::signal(number, on_signal);
    }
  }

  const size_t given = inputs.size();
  for (const Input& input : inputs) run(input);
  if (inputs.empty()) inputs.emplace_back();

  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::seconds(options.seconds);
  Mutator mutator(options.seed, options.max_len);
  uint64_t done = 0;
  while (done < options.runs && Clock::now() < deadline) {
    run(mutator.next(inputs));
    ++done;
  }
  std::printf("%zu inputs and %llu mutations passed\n", given,
              static_cast<unsigned long long>(done));
  return 0;
}
