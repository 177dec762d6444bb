# How OptiML's libraries, tools and tests are declared: warnings, include paths, precompiled headers, LLVM linkage.

add_library(OptiMLFlags INTERFACE)
target_include_directories(OptiMLFlags INTERFACE "${CMAKE_SOURCE_DIR}/include" "${CMAKE_BINARY_DIR}/include")
target_compile_options(OptiMLFlags INTERFACE -Wall -Wextra -Wno-unused-parameter
  -Wno-missing-field-initializers -Wno-deprecated-declarations -fno-strict-aliasing
  $<$<CXX_COMPILER_ID:Clang>:-Werror=return-type>)
if(OPTIML_FUZZ)
  target_compile_options(OptiMLFlags INTERFACE -fsanitize=fuzzer-no-link,address)
  target_link_options(OptiMLFlags INTERFACE -fsanitize=address)
endif()
if(OPTIML_ASAN)
  target_compile_options(OptiMLFlags INTERFACE -fsanitize=address,undefined -fno-omit-frame-pointer)
  target_link_options(OptiMLFlags INTERFACE -fsanitize=address,undefined)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND EXISTS "${LLVM_TOOLS_BINARY_DIR}/ld.lld")
  target_link_options(OptiMLFlags INTERFACE "-fuse-ld=lld")
endif()

# LLVM and Clang as one interface: the shared libraries, or (preset static) every archive in one group. The imported
# CMake targets of the static Clang libraries pull in libLLVM.so, so the archives are listed by name.
add_library(OptiMLLLVM INTERFACE)
target_include_directories(OptiMLLLVM SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS} ${CLANG_INCLUDE_DIRS})
separate_arguments(OPTIML_LLVM_DEFS NATIVE_COMMAND "${LLVM_DEFINITIONS}")
target_compile_definitions(OptiMLLLVM INTERFACE ${OPTIML_LLVM_DEFS})
if(OPTIML_STATIC)
  file(GLOB OPTIML_CLANG_ARCHIVES "${LLVM_LIBRARY_DIR}/libclang*.a")
  file(GLOB OPTIML_LLVM_ARCHIVES "${LLVM_LIBRARY_DIR}/libLLVM*.a")
  target_link_libraries(OptiMLLLVM INTERFACE -Wl,--start-group ${OPTIML_CLANG_ARCHIVES} ${OPTIML_LLVM_ARCHIVES}
    -Wl,--end-group -Wl,--gc-sections -s -l:libz.a -l:libzstd.a -l:libxml2.a -l:liblzma.a -l:libicuuc.a -l:libicudata.a
    -lpthread -ldl -lm -static-libstdc++ -static-libgcc)
else()
  target_link_libraries(OptiMLLLVM INTERFACE "${LLVM_LIBRARY_DIR}/libclang-cpp.so" "${LLVM_LIBRARY_DIR}/libLLVM.so")
  target_link_options(OptiMLLLVM INTERFACE "-Wl,-rpath,${LLVM_LIBRARY_DIR}")
endif()

# Headers of Clang, LLVM and others, compiled once and reused by every library that links LLVM, and once more for tests.
file(WRITE "${CMAKE_BINARY_DIR}/pch/anchor.cpp" "// Anchors a precompiled header.\n")
add_library(OptiMLPCH STATIC "${CMAKE_BINARY_DIR}/pch/anchor.cpp")
target_link_libraries(OptiMLPCH PUBLIC OptiMLFlags OptiMLLLVM nlohmann_json::nlohmann_json)
target_precompile_headers(OptiMLPCH PRIVATE "${CMAKE_SOURCE_DIR}/cmake/pch.h")

# optiml_add_library(Name SOURCES a.cpp ... LINK Lib ...): a library that needs LLVM or Clang.
function(optiml_add_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC OptiMLFlags OptiMLLLVM nlohmann_json::nlohmann_json ${ARG_LINK})
  target_precompile_headers(${name} REUSE_FROM OptiMLPCH)
endfunction()

# optiml_embed_texts(texts.cpp TABLE ns::name FILES a.txt ...): the files as a table of EmbeddedFile, in a source of the
# current binary folder.
function(optiml_embed_texts source)
  cmake_parse_arguments(ARG "" "TABLE" "FILES" ${ARGN})
  list(JOIN ARG_FILES "," files)
  set(script "${CMAKE_SOURCE_DIR}/cmake/EmbedTexts.cmake")
  add_custom_command(OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/${source}"
    COMMAND "${CMAKE_COMMAND}" "-DOUT=${CMAKE_CURRENT_BINARY_DIR}/${source}" "-DTABLE=${ARG_TABLE}" "-DFILES=${files}"
            -P "${script}"
    DEPENDS ${ARG_FILES} "${script}" VERBATIM)
endfunction()

# optiml_add_plain_library(Name SOURCES a.cpp ... LINK Lib ...): a library that needs no LLVM.
function(optiml_add_plain_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC OptiMLFlags nlohmann_json::nlohmann_json ${ARG_LINK})
endfunction()

# optiml_add_tool(optiml-x SOURCES main.cpp LINK Lib ...)
function(optiml_add_tool name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE OptiMLFlags ${ARG_LINK})
endfunction()

# Tests are compiled without optimization (but for those of the emulator's runtime, which look at stacks): the compiler
# needs half the time, and what they test is optimized.
set(OPTIML_TEST_OPTIONS $<$<CONFIG:Release>:-O0>)
if(BUILD_TESTING)
  add_library(OptiMLTestPCH OBJECT "${CMAKE_BINARY_DIR}/pch/anchor.cpp")
  target_link_libraries(OptiMLTestPCH PUBLIC OptiMLFlags OptiMLLLVM nlohmann_json::nlohmann_json GTest::gtest)
  set_target_properties(OptiMLTestPCH PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(OptiMLTestPCH PRIVATE -fPIE ${OPTIML_TEST_OPTIONS}) # as executables are compiled
  target_precompile_headers(OptiMLTestPCH PRIVATE "${CMAKE_SOURCE_DIR}/cmake/pch.h" <gtest/gtest.h>)
endif()

# optiml_add_unittest(Name [PLAIN] SOURCES a.cpp ... LINK Lib ...): a GoogleTest program, each test run by ctest.
# PLAIN: it tests what needs no LLVM.
include(GoogleTest)
function(optiml_add_unittest name)
  cmake_parse_arguments(ARG "PLAIN" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  if(NOT ARG_PLAIN)
    target_compile_options(${name} PRIVATE ${OPTIML_TEST_OPTIONS})
    target_link_libraries(${name} PRIVATE OptiMLLLVM nlohmann_json::nlohmann_json)
    target_precompile_headers(${name} REUSE_FROM OptiMLTestPCH)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/unittests")
  target_link_libraries(${name} PRIVATE OptiMLFlags ${ARG_LINK} GTest::gtest GTest::gtest_main)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300)
endfunction()

# optiml_embed_text(VARIABLE FILE NAMESPACE): makes FILE the string constant VARIABLE; its source file is
# ${VARIABLE_CPP}.
function(optiml_embed_text name file namespace)
  get_filename_component(file "${file}" ABSOLUTE)
  set(out "${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp")
  add_custom_command(OUTPUT "${out}"
    COMMAND "${CMAKE_COMMAND}" "-DOUT=${out}" "-DFILE=${file}" -DNAME=${name} -DNAMESPACE=${namespace}
            -P "${CMAKE_SOURCE_DIR}/cmake/EmbedText.cmake"
    DEPENDS "${file}" "${CMAKE_SOURCE_DIR}/cmake/EmbedText.cmake" VERBATIM)
  set(${name}_CPP "${out}" PARENT_SCOPE)
endfunction()
