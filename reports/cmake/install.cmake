# find_package(kvwitness): targets kvwitness::trace .. kvwitness::reports, kvwitness::conformance, kvwitness::probe where
# this build has it, and kvwitness_LIBRARY_DIR, the scenarios.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/kvwitness)

install(EXPORT kvwitnessTargets NAMESPACE kvwitness:: DESTINATION ${package_dir})
# They work where they are installed only. find_package looks into the parent of every bin directory in PATH, so they must
# not lie at the top of the build tree.
set(package_files ${PROJECT_BINARY_DIR}/package)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/kvwitnessConfig.cmake.in ${package_files}/kvwitnessConfig.cmake
                              INSTALL_DESTINATION ${package_dir} PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_DATADIR)
write_basic_package_version_file(${package_files}/kvwitnessConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${package_files}/kvwitnessConfig.cmake ${package_files}/kvwitnessConfigVersion.cmake DESTINATION ${package_dir})

# The probe interposes malloc, so it is linked into executables as objects: an archive's members that nothing names
# would be left out.
if(TARGET kvwitness_probe)
  install(FILES $<TARGET_OBJECTS:kvwitness_probe> DESTINATION ${CMAKE_INSTALL_LIBDIR}/kvwitness/probe)
endif()

install(DIRECTORY ${PROJECT_SOURCE_DIR}/scenarios/library DESTINATION ${CMAKE_INSTALL_DATADIR}/kvwitness)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/scenarios/schema/ ${PROJECT_SOURCE_DIR}/trace/schema/ ${PROJECT_SOURCE_DIR}/reports/schema/
        DESTINATION ${CMAKE_INSTALL_DATADIR}/kvwitness/schema)

# Documents, at the places by which they name each other.
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${PROJECT_SOURCE_DIR}/trace/events.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/trace)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/trace/schema DESTINATION ${CMAKE_INSTALL_DOCDIR}/trace)
install(FILES ${PROJECT_SOURCE_DIR}/scenarios/FORMAT.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/scenarios)
install(FILES ${PROJECT_SOURCE_DIR}/core/PROTOCOL.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/core)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/reports/examples ${PROJECT_SOURCE_DIR}/reports/schema DESTINATION ${CMAKE_INSTALL_DOCDIR}/reports)
