# Builds what wheels carry, with ziglang's clang: for an old glibc, and for x86-64 or AArch64 on either.
# tools/wheels.py writes the compiler's wrappers and the dependencies, and says where in the environment.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR $ENV{DFTRACER_WHEEL_ARCH})
set(tools $ENV{DFTRACER_WHEEL_TOOLS})
set(CMAKE_C_COMPILER ${tools}/cc)
set(CMAKE_CXX_COMPILER ${tools}/c++)
set(CMAKE_AR ${tools}/ar)
set(CMAKE_RANLIB ${tools}/ranlib)

# zig keeps frame pointers by default. Debug information would be stripped again.
set(CMAKE_C_FLAGS_INIT -fomit-frame-pointer)
set(CMAKE_CXX_FLAGS_INIT -fomit-frame-pointer)
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG" CACHE STRING "")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG" CACHE STRING "")
# The linker strips, because the machine's own strip knows one architecture.
set(CMAKE_SHARED_LINKER_FLAGS_INIT -s)
set(CMAKE_MODULE_LINKER_FLAGS_INIT -s)

# Headers and libraries of the machine belong to its own glibc.
set(CMAKE_FIND_ROOT_PATH $ENV{DFTRACER_WHEEL_DEPENDENCIES})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
