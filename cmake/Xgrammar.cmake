# xgrammar (Apache-2.0), the library behind engine/grammar.h: its C++ core, built here from the source package on PyPI,
# which is fetched by pip and pinned by hash. No Debian has it.
#
#   -DWARMPATH_XGRAMMAR_SOURCE=PATH   the package (xgrammar-0.2.8.tar.gz) or a folder with its contents: no network
#   -DWARMPATH_STRUCTURED_OUTPUT=     AUTO: with it when it can be had, else a warning and engines that refuse requests
#                                     for structured output; ON: an error instead of the warning; OFF: without it
set(WARMPATH_STRUCTURED_OUTPUT AUTO CACHE STRING "structured output in the engine: AUTO, ON or OFF")
set_property(CACHE WARMPATH_STRUCTURED_OUTPUT PROPERTY STRINGS AUTO ON OFF)
set(WARMPATH_XGRAMMAR_SOURCE "" CACHE PATH "xgrammar's source package or folder; empty: fetched by pip")

set(warmpath_xgrammar_version 0.2.8)
set(warmpath_xgrammar_sha256 8305646fd2b319d6c3003f51a1665e54cbbe9cba1fb636bc41d0b46434ccbb80)

# Sets `folder` to the unpacked source, or `problem` to why there is none.
function(_warmpath_find_xgrammar folder problem)
  set(package "xgrammar-${warmpath_xgrammar_version}.tar.gz")
  set(${folder} "" PARENT_SCOPE)
  set(${problem} "" PARENT_SCOPE)
  if(WARMPATH_XGRAMMAR_SOURCE)
    if(IS_DIRECTORY "${WARMPATH_XGRAMMAR_SOURCE}")
      if(NOT EXISTS "${WARMPATH_XGRAMMAR_SOURCE}/cpp/grammar_compiler.cc")
        set(${problem} "WARMPATH_XGRAMMAR_SOURCE=${WARMPATH_XGRAMMAR_SOURCE} holds no cpp/grammar_compiler.cc: it is not xgrammar's source" PARENT_SCOPE)
        return()
      endif()
      set(${folder} "${WARMPATH_XGRAMMAR_SOURCE}" PARENT_SCOPE)
      return()
    endif()
    set(archive "${WARMPATH_XGRAMMAR_SOURCE}")
  else()
    if(DEFINED ENV{XDG_CACHE_HOME})
      set(store "$ENV{XDG_CACHE_HOME}/warmpath/sources")
    elseif(DEFINED ENV{HOME})
      set(store "$ENV{HOME}/.cache/warmpath/sources")
    else()
      set(store "${CMAKE_BINARY_DIR}/sources")
    endif()
    set(archive "${store}/${package}")
    set(found "")
    if(EXISTS "${archive}")
      file(SHA256 "${archive}" found)
    endif()
    if(NOT found STREQUAL warmpath_xgrammar_sha256)
      message(STATUS "Fetching ${package} with pip")
      # Beside the store's files, so that the last step is a rename; pip checks the hash as well.
      string(RANDOM LENGTH 8 suffix)
      set(download "${store}/fetch-${suffix}")
      file(MAKE_DIRECTORY "${download}")
      file(WRITE "${download}/pinned.txt" "xgrammar==${warmpath_xgrammar_version} --hash=sha256:${warmpath_xgrammar_sha256}\n")
      execute_process(
        COMMAND python3 -m pip download --quiet --disable-pip-version-check --retries 2 --timeout 15 --no-deps --no-binary xgrammar
          --require-hashes --requirement pinned.txt --dest .
        WORKING_DIRECTORY "${download}" RESULT_VARIABLE code ERROR_VARIABLE said OUTPUT_QUIET TIMEOUT 300)
      if(code EQUAL 0 AND EXISTS "${download}/${package}")
        file(RENAME "${download}/${package}" "${archive}")
      endif()
      file(REMOVE_RECURSE "${download}")
      if(NOT EXISTS "${archive}")
        string(STRIP "${said}" said)
        string(REGEX REPLACE ".*\n" "" said "${said}")
        set(${problem} "pip could not fetch ${package} (${said})" PARENT_SCOPE)
        return()
      endif()
    endif()
  endif()
  if(NOT EXISTS "${archive}")
    set(${problem} "there is no ${archive}" PARENT_SCOPE)
    return()
  endif()
  file(SHA256 "${archive}" found)
  if(NOT found STREQUAL warmpath_xgrammar_sha256)
    set(${problem} "${archive} has SHA-256 ${found}, expected ${warmpath_xgrammar_sha256}" PARENT_SCOPE)
    return()
  endif()
  set(unpacked "${CMAKE_BINARY_DIR}/third_party/xgrammar-${warmpath_xgrammar_version}")
  if(NOT EXISTS "${unpacked}/cpp/grammar_compiler.cc")
    file(ARCHIVE_EXTRACT INPUT "${archive}" DESTINATION "${CMAKE_BINARY_DIR}/third_party")
  endif()
  set(${folder} "${unpacked}" PARENT_SCOPE)
endfunction()

set(WARMPATH_HAS_XGRAMMAR OFF)
if(NOT WARMPATH_STRUCTURED_OUTPUT STREQUAL "OFF")
  _warmpath_find_xgrammar(warmpath_xgrammar_folder warmpath_xgrammar_problem)
  if(warmpath_xgrammar_folder)
    set(WARMPATH_HAS_XGRAMMAR ON)
  else()
    set(remedy "Structured output (response_format, tool_choice \"required\") needs xgrammar, and ${warmpath_xgrammar_problem}.
Without network: on a machine that has one, run
  python3 -m pip download --no-deps --no-binary xgrammar xgrammar==${warmpath_xgrammar_version}
and configure with -DWARMPATH_XGRAMMAR_SOURCE=/path/to/xgrammar-${warmpath_xgrammar_version}.tar.gz, or build without it: -DWARMPATH_STRUCTURED_OUTPUT=OFF.")
    if(WARMPATH_STRUCTURED_OUTPUT STREQUAL "ON")
      message(FATAL_ERROR "${remedy}")
    endif()
    message(WARNING "${remedy}\nThis build goes on without it; its engines will refuse such requests.")
  endif()
endif()

if(WARMPATH_HAS_XGRAMMAR)
  # Its whole core. What runs once per grammar is compiled with -O1: a third less to wait
  # for, and nothing to notice; masks and matching, and the automata they walk, keep -O2.
  file(GLOB warmpath_xgrammar_sources "${warmpath_xgrammar_folder}/cpp/*.cc" "${warmpath_xgrammar_folder}/cpp/support/*.cc"
    "${warmpath_xgrammar_folder}/cpp/converter_ext/*.cc")
  set(warmpath_xgrammar_cold ${warmpath_xgrammar_sources})
  list(FILTER warmpath_xgrammar_cold INCLUDE REGEX
    "/(json_schema_converter|structural_tag|lark_converter|grammar_parser|grammar_printer|regex_converter|fsm_builder|grammar)\\.cc$|/converter_ext/")
  set_source_files_properties(${warmpath_xgrammar_cold} PROPERTIES COMPILE_OPTIONS -O1)
  add_library(warmpath_xgrammar STATIC ${warmpath_xgrammar_sources})
  target_include_directories(warmpath_xgrammar SYSTEM PUBLIC "${warmpath_xgrammar_folder}/include"
    "${warmpath_xgrammar_folder}/3rdparty/dlpack/include" "${warmpath_xgrammar_folder}/3rdparty/picojson")
  target_compile_definitions(warmpath_xgrammar PUBLIC XGRAMMAR_ENABLE_CPPTRACE=0 XGRAMMAR_ENABLE_INTERNAL_CHECK=0
    XGRAMMAR_LOG_CUSTOMIZE=1)
  target_compile_options(warmpath_xgrammar PRIVATE -w)
  target_link_libraries(warmpath_xgrammar PUBLIC Threads::Threads)
endif()
