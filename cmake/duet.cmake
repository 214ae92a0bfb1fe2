# duet.cmake: options of every target, and the helpers that make one library, program or test a line.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # The precompiled header is hashed by its sources, not by its time stamps; paths below the source folder are hashed
  # relative to it, so that a second clone finds what the first has compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE_PROGRAM})
endif()

find_package(Threads REQUIRED)
if(NOT DUET_AWAITABLE MATCHES "^(native|public)$")
  message(FATAL_ERROR "DUET_AWAITABLE is native or public, not '${DUET_AWAITABLE}'")
endif()
if(DUET_ONLY_RUNTIME)
  # Boost.JSON is for inspection, which is left out without it.
  find_package(Boost 1.81 EXACT REQUIRED OPTIONAL_COMPONENTS json)
else()
  find_package(Boost 1.81 EXACT REQUIRED COMPONENTS json log program_options unit_test_framework)
  find_package(OpenSSL 3 REQUIRED)
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(YAMLCPP REQUIRED IMPORTED_TARGET yaml-cpp)
  pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
  pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy)
endif()

add_library(duet_options INTERFACE)
target_compile_options(duet_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual)
if(NOT DUET_ONLY_RUNTIME)   # an embedder's compiler may know warnings that ours does not
  target_compile_options(duet_options INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # False with g++ 12: awaitable frames, std::string in Beast, Asio's fences; a string that is moved after an append.
  target_compile_options(duet_options INTERFACE -Wno-mismatched-new-delete -Wno-restrict -Wno-array-bounds)
  if(CCACHE_PROGRAM AND DUET_PCH)
    target_compile_options(duet_options INTERFACE -fpch-preprocess)
  endif()
endif()
target_compile_definitions(duet_options INTERFACE BOOST_ALL_NO_LIB BOOST_TEST_DYN_LINK)
if(DUET_SANITIZE)
  # Their reports follow frame pointers; profiles of the release build unwind by its tables (perf record --call-graph dwarf).
  target_compile_options(duet_options INTERFACE -fsanitize=${DUET_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(duet_options INTERFACE -fsanitize=${DUET_SANITIZE})
  target_compile_definitions(duet_options INTERFACE DUET_SANITIZED=1
    BOOST_ASIO_DISABLE_AWAITABLE_FRAME_RECYCLING)
  # False with g++ 12 and sanitizers: a vector of bytes filled after a resize; std::regex.
  target_compile_options(duet_options INTERFACE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow> $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  if(DUET_SANITIZE MATCHES "thread")
    target_compile_options(duet_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
  endif()
endif()

# One precompiled header for the libraries and programs, one with Boost.Test for the tests.
function(duet_pch target header)
  add_library(${target} OBJECT ${PROJECT_SOURCE_DIR}/cmake/pch.cpp)
  target_link_libraries(${target} PRIVATE duet_options Boost::headers)
  if(DUET_PCH)
    target_precompile_headers(${target} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/${header})
  endif()
endfunction()
duet_pch(duet_pch pch.hpp)
if(NOT DUET_ONLY_RUNTIME)
  duet_pch(duet_test_pch test_pch.hpp)
endif()

function(duet_use_pch target from)
  if(DUET_PCH)
    target_precompile_headers(${target} REUSE_FROM ${from})
  endif()
endfunction()

# duet_library(name SRCS files DEPS folders-of-ours LIBS third-party)
function(duet_library name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS;LIBS" ${ARGN})
  list(TRANSFORM ARG_DEPS PREPEND duet_)
  add_library(duet_${name} STATIC ${ARG_SRCS})
  # Our options stay ours: what is installed exports neither them nor this folder.
  target_include_directories(duet_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  target_link_libraries(duet_${name} PUBLIC ${ARG_DEPS} ${ARG_LIBS} Boost::headers
    PRIVATE $<BUILD_INTERFACE:duet_options>)
  duet_use_pch(duet_${name} duet_pch)
endfunction()

# duet_program(name SRCS files DEPS folders-of-ours LIBS third-party): a binary in bin/
function(duet_program name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS;LIBS" ${ARGN})
  list(TRANSFORM ARG_DEPS PREPEND duet_)
  add_executable(${name} ${ARG_SRCS})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} ${ARG_LIBS} Boost::headers duet_options)
  duet_use_pch(${name} duet_pch)
endfunction()

# duet_test(name SRCS files DEPS folders-of-ours LIBS third-party): one test program and its ctest entry
function(duet_test name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS;LIBS" ${ARGN})
  list(TRANSFORM ARG_DEPS PREPEND duet_)
  add_executable(${name} ${PROJECT_SOURCE_DIR}/tests/main.cpp ${ARG_SRCS})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${name} PRIVATE
    DUET_SOURCE_DIR="${PROJECT_SOURCE_DIR}" DUET_BINARY_DIR="${PROJECT_BINARY_DIR}")
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} ${ARG_LIBS} Boost::unit_test_framework Boost::headers duet_options)
  duet_use_pch(${name} duet_test_pch)
  # It defines BOOST_TEST_MODULE before Boost.Test, which the precompiled header has already read.
  set_source_files_properties(${PROJECT_SOURCE_DIR}/tests/main.cpp PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  # A JUnit file a program lets tools/test.sh count test cases, not programs.
  add_test(NAME ${name} COMMAND ${name} --color_output=no
           --logger=HRF,error,stdout --logger=JUNIT,all,${PROJECT_BINARY_DIR}/junit/${name}.xml)
endfunction()
