# Compiler settings that every target of the project shares.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # ccache leaves files with precompiled headers alone unless it may trust their defines.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE_PROGRAM})
endif()

include_directories(${CMAKE_SOURCE_DIR})

# Every file is instrumented, so that libFuzzer sees the branches of the rooms and not only of the entry point.
if(WARMPATH_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "WARMPATH_FUZZ needs clang++ (cmake --preset fuzz); this is ${CMAKE_CXX_COMPILER}")
  endif()
  # clang 14 cannot assemble coroutines whose functions carry the type information of -fsanitize=function.
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize=function
    -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=address,undefined)
endif()

if(WARMPATH_SANITIZE)
  add_compile_options(-fsanitize=${WARMPATH_SANITIZE} -fno-omit-frame-pointer -g1 -O1)
  add_link_options(-fsanitize=${WARMPATH_SANITIZE})
  if(WARMPATH_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
  if(WARMPATH_SANITIZE MATCHES "thread")
    add_compile_options(-Wno-tsan)
  endif()
endif()
