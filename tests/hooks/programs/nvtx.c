/* Ranges and marks of NVTX in every way, the wrong ones included. */
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

static nvtxRangeId_t started;

static void* on_thread(void* unused) {
  nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), "my worker");
  nvtxRangePop(); /* of another thread's range */
  nvtxRangeEnd(started);
  nvtxRangePushA("open at the end of its thread");
  return unused;
}

static nvtxEventAttributes_t attributes(int payload_type) {
  nvtxEventAttributes_t made;
  memset(&made, 0, sizeof made);
  made.version = NVTX_VERSION;
  made.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  made.payloadType = payload_type;
  made.messageType = NVTX_MESSAGE_TYPE_ASCII;
  made.message.ascii = "payload";
  return made;
}

int main(void) {
  nvtxDomainHandle_t lib = nvtxDomainCreateA("lib");
  nvtxDomainHandle_t wide = nvtxDomainCreateW(L"w\u00e9");
  nvtxStringHandle_t text = nvtxDomainRegisterStringA(lib, "registered");
  nvtxDomainNameCategoryA(lib, 7, "reading");
  nvtxNameCategoryA(7, "other");

  int levels = nvtxRangePushA("outer") * 100;
  levels += nvtxRangePushW(L"h\u00e9\U0001F600") * 10;
  nvtxEventAttributes_t event = attributes(NVTX_PAYLOAD_TYPE_DOUBLE);
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = text;
  event.category = 7;
  event.payload.dValue = 1.5;
  levels += nvtxDomainRangePushEx(lib, &event);
  if (levels != 10) return 1;
  nvtxRangePop(); /* crosses the range of the domain */
  nvtxDomainRangePop(lib);
  nvtxMarkA("mark");
  nvtxRangePop();
  if (nvtxRangePop() >= 0) return 2; /* one too many */

  event = attributes(NVTX_PAYLOAD_TYPE_INT32);
  event.payload.iValue = -3;
  event.category = 8;
  nvtxDomainMarkEx(wide, &event);
  event = attributes(NVTX_PAYLOAD_TYPE_UNSIGNED_INT64);
  event.payload.ullValue = ~0ull;
  event.category = 7;
  nvtxMarkEx(&event);
  event = attributes(NVTX_PAYLOAD_TYPE_FLOAT);
  event.payload.fValue = 0.25f;
  nvtxMarkEx(&event);

  started = nvtxRangeStartA("started");
  pthread_t thread;
  pthread_create(&thread, NULL, on_thread, NULL);
  pthread_join(thread, NULL);
  nvtxRangeEnd(started); /* twice */
  nvtxRangeEnd(12345);

  nvtxRangePushA(NULL);
  nvtxRangePushEx(NULL);
  event.size = 3;
  nvtxRangePushEx(&event);
  for (int i = 0; i < 3; ++i) nvtxRangePop();
  event = attributes(0);
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = (nvtxStringHandle_t)0xdeadbeef;
  nvtxDomainMarkEx((nvtxDomainHandle_t)0xdeadbeef, &event);
  nvtxMarkA("bad \xff\xfe bytes \"\n");

  nvtxRangePushA("around a fork");
  const pid_t child = fork();
  if (child == 0) {
    nvtxRangePop();
    nvtxMarkA("in the child");
    _exit(0);
  }
  waitpid(child, NULL, 0);
  const pid_t silent = fork();
  if (silent == 0) {
    nvtxRangePop();
    _exit(0);
  }
  waitpid(silent, NULL, 0);
  nvtxRangePop();
  for (int i = 0; i < 5000; ++i) nvtxRangePushA("deep");
  for (int i = 0; i < 5000; ++i) nvtxRangePop();
  nvtxRangePushA("open at the end");
  return 0;
}
