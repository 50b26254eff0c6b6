# Code compiled for newer processors may share no symbol with the rest of the library: of a weak symbol the linker keeps
# any copy. So every weak symbol of those objects names its instruction set.
# Run as: cmake -DNM=nm -DLIBRARY=libkvwitness_core.a -P wide_symbols.cmake
execute_process(COMMAND ${NM} -C --defined-only ${LIBRARY} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
foreach(object project_avx2 golden_avx2 golden_avx512 block_avx2 block_avx512)
  string(REGEX MATCH "${object}[^\n]*:\n([^\n]+\n)*" listed "${symbols}")
  if(NOT listed MATCHES "_kernels")
    message(FATAL_ERROR "${LIBRARY} has no object ${object}")
  endif()
  string(REGEX MATCHALL "[0-9a-f]+ [WVu] [^\n]*" weak "${listed}")
  foreach(symbol IN LISTS weak)
    if(NOT symbol MATCHES "xsimd::avx|DW\\.ref\\.")
      message(FATAL_ERROR "${object} is compiled for newer processors, but shares with all: ${symbol}")
    endif()
  endforeach()
endforeach()
