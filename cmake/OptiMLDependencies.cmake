# Finds what OptiML builds on. Whatever is missing gets one line that names it and the command that installs it.

function(optiml_missing what how)
  message(FATAL_ERROR "OptiML needs ${what}, which was not found. Install it with: ${how}")
endfunction()

list(APPEND CMAKE_PREFIX_PATH /usr/lib/llvm-22)
find_package(LLVM 22.1 QUIET CONFIG)
if(NOT LLVM_FOUND)
  optiml_missing("LLVM 22.1" "apt-get install llvm-22-dev libclang-22-dev clang-22 llvm-22-tools lld-22")
endif()
find_package(Clang QUIET CONFIG HINTS "${LLVM_DIR}/../clang")
if(NOT Clang_FOUND)
  optiml_missing("Clang 22.1's libraries" "apt-get install libclang-22-dev libclang-cpp22-dev clang-22")
endif()

find_package(CUDAToolkit QUIET)
if(NOT CUDAToolkit_FOUND)
  optiml_missing("the CUDA Toolkit (12.8 or newer)"
    "NVIDIA's cuda-toolkit packages (https://developer.nvidia.com/cuda-downloads), then set CUDA_PATH")
endif()

find_package(nlohmann_json QUIET CONFIG)
if(NOT nlohmann_json_FOUND)
  optiml_missing("nlohmann/json" "apt-get install nlohmann-json3-dev")
endif()

if(OPTIML_STATIC) # relocatable programs: nothing of the below is needed where they run
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
  set(Boost_USE_STATIC_LIBS ON)
endif()

find_package(SQLite3 QUIET)
if(NOT SQLite3_FOUND)
  optiml_missing("SQLite 3" "apt-get install libsqlite3-dev")
endif()

if(OPTIML_HTTP)
  find_package(CURL QUIET)
  if(NOT CURL_FOUND)
    optiml_missing("libcurl (or CMake's -DOPTIML_HTTP=OFF)" "apt-get install libcurl4-openssl-dev")
  endif()
endif()

find_library(SECCOMP_LIBRARY seccomp)
if(NOT SECCOMP_LIBRARY)
  optiml_missing("libseccomp" "apt-get install libseccomp-dev")
endif()

find_package(Boost QUIET COMPONENTS context)
if(NOT Boost_FOUND)
  optiml_missing("Boost.Context" "apt-get install libboost-context-dev")
endif()

find_path(ISL_INCLUDE_DIR isl/set.h)
find_library(ISL_LIBRARY isl)
if(NOT ISL_INCLUDE_DIR OR NOT ISL_LIBRARY)
  optiml_missing("isl" "apt-get install libisl-dev")
endif()
if(OPTIML_STATIC)
  find_library(GMP_LIBRARY gmp REQUIRED)
  set(ISL_LIBRARY "${ISL_LIBRARY};${GMP_LIBRARY}")
endif()

if(BUILD_TESTING OR NOT DEFINED BUILD_TESTING)
  find_package(GTest QUIET)
  if(NOT GTest_FOUND)
    optiml_missing("GoogleTest" "apt-get install libgtest-dev")
  endif()
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # Precompiled headers need these sloppiness settings, see ccache's manual.
  set(OPTIML_CCACHE "${CMAKE_COMMAND}" -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 "${CCACHE_PROGRAM}")
  set(CMAKE_C_COMPILER_LAUNCHER ${OPTIML_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${OPTIML_CCACHE})
endif()
