# The project's kinds of target. Our own code is held to warnings-as-errors here; generated code is not.

function(_warmpath_own_code target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow=local -Werror)
    # g++ 12 reports impossible overflows inside its own standard library at -O2.
    target_compile_options(${target} PRIVATE -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds
      -Wno-restrict -Wno-maybe-uninitialized -Wno-dangling-reference)
  endif()
endfunction()

# All tests share one precompiled gtest: 1.2 of the 2.5 s that a small test file takes.
# A program of its own lends it, because only targets with the same options can, and libraries have others.
function(_warmpath_test_headers target)
  if(NOT TARGET warmpath_test_headers)
    add_executable(warmpath_test_headers ${CMAKE_SOURCE_DIR}/cmake/test_headers.cc)
    target_link_libraries(warmpath_test_headers PRIVATE GTest::gtest GTest::gmock)
    target_compile_options(warmpath_test_headers PRIVATE -pthread)
    target_precompile_headers(warmpath_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
    set_target_properties(warmpath_test_headers PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/cmake)
  endif()
  target_compile_options(${target} PRIVATE -pthread)  # some libraries ask for it, and all must agree
  target_precompile_headers(${target} REUSE_FROM warmpath_test_headers)
endfunction()

# warmpath_library(NAME SOURCES a.cc ... DEPS lib ...): a static library of one room.
function(warmpath_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC ${ARG_DEPS})
  _warmpath_own_code(${name})
endfunction()

# warmpath_program(NAME SOURCES ... DEPS ... [INSTALL])
function(warmpath_program name)
  cmake_parse_arguments(ARG "INSTALL" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  _warmpath_own_code(${name})
  if(ARG_INSTALL)
    install(TARGETS ${name} RUNTIME DESTINATION bin)
  endif()
endfunction()

# warmpath_test(NAME SOURCES a_test.cc ... DEPS ... [LABEL core|clients|agents|engines] [TIMEOUT s])
# One ctest entry per binary; label `core` unless said otherwise.
function(warmpath_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "SOURCES;DEPS" ${ARGN})
  if(NOT WARMPATH_TESTS)
    return()
  endif()
  if(NOT ARG_LABEL)
    set(ARG_LABEL core)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gtest GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE WARMPATH_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
    WARMPATH_BINARY_DIR="${CMAKE_BINARY_DIR}")
  _warmpath_own_code(${name})
  _warmpath_test_headers(${name})
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT})
endfunction()

# warmpath_bench(NAME SOURCES ... DEPS ...): build/<preset>/bin/NAME, printing one JSON object on its last line with --json.
function(warmpath_bench name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  if(NOT WARMPATH_BENCHES)
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  target_compile_definitions(${name} PRIVATE WARMPATH_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
    WARMPATH_BINARY_DIR="${CMAKE_BINARY_DIR}")
  _warmpath_own_code(${name})
endfunction()

# warmpath_fuzz(NAME SOURCES name_fuzz.cc ... DEPS ...): a libFuzzer target, built only with the preset `fuzz` (clang++).
# With WARMPATH_TESTS the same entry point also runs over its checked-in corpus (tests/corpus/NAME) as a core test.
function(warmpath_fuzz name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  if(WARMPATH_FUZZ)
    add_executable(${name} ${ARG_SOURCES})
    target_link_libraries(${name} PRIVATE ${ARG_DEPS})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  elseif(WARMPATH_TESTS)
    add_executable(${name}_corpus ${ARG_SOURCES} ${CMAKE_SOURCE_DIR}/tests/fuzz_corpus_main.cc)
    target_link_libraries(${name}_corpus PRIVATE ${ARG_DEPS})
    _warmpath_own_code(${name}_corpus)
    add_test(NAME ${name}_corpus COMMAND ${name}_corpus ${CMAKE_SOURCE_DIR}/tests/corpus/${name})
    set_tests_properties(${name}_corpus PROPERTIES LABELS core TIMEOUT 120)
  endif()
endfunction()
