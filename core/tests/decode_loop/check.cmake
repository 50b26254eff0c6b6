# The traced decode loop allocates nothing, takes no lock, makes no string and calls no system: callgrind lists every
# function that it entered. WRONG names what the loop does all the same, which then has to be found.
# Run as: cmake -DPROGRAM=traced_decode_loop -DOUT=file [-DWRONG=allocation|lock|string|system-call] -P check.cmake
cmake_minimum_required(VERSION 3.22)
find_program(VALGRIND valgrind)
if(NOT VALGRIND)
  message("skipped: valgrind is not installed")
  return()
endif()
execute_process(
  COMMAND ${VALGRIND} --tool=callgrind --toggle-collect=traced_decode_loop --callgrind-out-file=${OUT} ${PROGRAM} ${WRONG}
  RESULT_VARIABLE result OUTPUT_VARIABLE said ERROR_VARIABLE said)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "the program ended with ${result}:\n${said}")
endif()
file(STRINGS ${OUT} entered REGEX "^c?fn=\\([0-9]+\\) ")
list(TRANSFORM entered REPLACE "^c?fn=\\([0-9]+\\) " "")

# A list without these did not see the loop.
foreach(expected traced_decode_loop kvwitness::core::Decoder::feed kvwitness::core::TracedStore::append)
  if(NOT "${entered}" MATCHES "${expected}")
    message(FATAL_ERROR "callgrind did not see ${expected}; it saw: ${entered}")
  endif()
endforeach()

set(allocation "^(malloc|calloc|realloc|free|aligned_alloc|posix_memalign|memalign|operator new|operator delete|__libc_malloc|_int_malloc)")
set(lock "^(__)?(pthread_(mutex|rwlock|spin|cond)_|lll_lock|sem_)|std::mutex::|futex")
set(string "basic_string|fmt::|std::to_string|std::to_chars|std::locale|printf|basic_ostream")
set(system-call "^(__)?(syscall|mmap|munmap|mprotect|madvise|brk|sbrk|read|write|writev|open|openat|close|getppid|getrusage|clock_gettime_syscall|nanosleep|sched_yield)(@|$|64)")
set(found "")
# Placing an object in memory that is there takes none.
list(FILTER entered EXCLUDE REGEX "^operator new\\(unsigned long, void\\*\\)$")
foreach(kind allocation lock string system-call)
  set(of_kind ${entered})
  list(FILTER of_kind INCLUDE REGEX "${${kind}}")
  if(of_kind)
    list(APPEND found ${kind})
    message("${kind}: ${of_kind}")
  endif()
endforeach()
list(LENGTH entered count)
if(WRONG AND NOT WRONG IN_LIST found)
  message(FATAL_ERROR "the loop does what it must not (${WRONG}), and nobody noticed; it entered: ${entered}")
elseif(NOT WRONG AND found)
  message(FATAL_ERROR "of ${count} functions that the traced decode loop entered, some are none of its business")
endif()
message("${count} functions entered")
