# Flags for everything that we compile; the fuzzer and the sanitizers must see every object.
add_library(dftracer_flags INTERFACE)
target_compile_options(dftracer_flags INTERFACE -Wall -Wextra -Wshadow -Wconversion)
if(DFTRACER_WERROR)
  target_compile_options(dftracer_flags INTERFACE -Werror)
endif()

if(DFTRACER_SANITIZE)
  string(REPLACE ";" "," sanitizers "${DFTRACER_SANITIZE}")
  # -O1: fast enough for tests with many threads, and the reports still name the right lines.
  target_compile_options(dftracer_flags INTERFACE
    -O1 -fsanitize=${sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(dftracer_flags INTERFACE -fsanitize=${sanitizers})
endif()

set(DFTRACER_LIBFUZZER OFF)
if(DFTRACER_BUILD_FUZZ AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_FLAGS -fsanitize=fuzzer)
  check_cxx_source_compiles(
    "extern \"C\" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }"
    DFTRACER_HAVE_LIBFUZZER)
  unset(CMAKE_REQUIRED_FLAGS)
  set(DFTRACER_LIBFUZZER ${DFTRACER_HAVE_LIBFUZZER})
endif()
if(DFTRACER_LIBFUZZER)
  target_compile_options(dftracer_flags INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(dftracer_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
