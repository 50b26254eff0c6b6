# cmake -DBUILD=... -DSOURCE=... -DWORK=... -DGENERATOR=... -DCXX=... -DPROBE=ON|OFF -P run.cmake
# Installs the build into a stage of its own, builds this project against it, and runs it.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGN}: ${result}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/stage)
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_BUILD_TYPE=Debug
    -DCMAKE_PREFIX_PATH=${WORK}/stage)
run(${CMAKE_COMMAND} --build ${WORK}/build)
if(PROBE)
  run(${WORK}/build/outside)
else()
  run(${WORK}/build/outside --no-probe)
endif()
# The installed program finds the installed scenarios beside itself.
run(${WORK}/stage/bin/kvwitness run --filter ring/wrap-identity)
file(REMOVE_RECURSE ${WORK})
