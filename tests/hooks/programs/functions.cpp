// Functions in every way that they begin and end, compiled with -finstrument-functions.
#include <alloca.h>
#include <unistd.h>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>

#define DFT_KEEP __attribute__((noinline))

namespace ns {
struct Class {
  DFT_KEEP int method(int x) const { return x + 1; }
  template <class T>
  DFT_KEEP T generic(T x) {
    return x * 2;
  }
  DFT_KEEP bool operator()(int x) const { return x > 0; }
};
}  // namespace ns

namespace {
DFT_KEEP int hidden(int x) { return x; }
}  // namespace

static DFT_KEEP int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

static jmp_buf place;
static DFT_KEEP void jumps() { longjmp(place, 1); }
static DFT_KEEP void calls_what_jumps() {
  jumps();
  std::abort();
}
static DFT_KEEP void after_the_jump(int n) {
  volatile char big[300];
  big[n] = 1;
}
static DFT_KEEP void throws() { throw std::runtime_error("on purpose"); }
static DFT_KEEP void catches() {
  try {
    throws();
  } catch (const std::exception&) {
  }
}
static DFT_KEEP int moves_its_stack(int n) {
  auto* memory = static_cast<char*>(alloca(static_cast<std::size_t>(n)));
  std::memset(memory, 1, static_cast<std::size_t>(n));
  return hidden(memory[n / 2]);
}
static DFT_KEEP int compare(const void* a, const void* b) {
  return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}
static DFT_KEEP void sorts() {
  int numbers[] = {3, 1, 2};
  std::qsort(numbers, 3, sizeof *numbers, compare);  // through code that is not instrumented
}
static DFT_KEEP void sleeps() { usleep(3000); }
static DFT_KEEP int deep(int n) {
  asm volatile("");
  return n == 0 ? 0 : 1 + deep(n - 1);
}

int main(int count, char**) {
  ns::Class object;
  int sum = fib(5) + object.method(1) + object.generic(2) + object(count) + hidden(count);
  sum += static_cast<int>(object.generic(2.0));
  if (setjmp(place) == 0) calls_what_jumps();
  after_the_jump(count);
  catches();
  sum += moves_its_stack(100 * count);
  sorts();
  sleeps();
  std::thread other([] { fib(2); });
  other.join();
  if (count > 1) std::printf("%d\n", deep(20000));
  std::printf("%d\n", sum);
  std::exit(0);  // main() never ends
}
