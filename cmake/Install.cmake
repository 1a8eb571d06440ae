# Installs the library with what find_package(tilegemm) and pkg-config need. The command installs
# itself in cli/CMakeLists.txt.
include(CMakePackageConfigHelpers)

install(TARGETS tilegemm tilegemm_static EXPORT tilegemmTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES include/tilegemm.h include/tilegemm_attention.h include/tilegemm_lab.h
              include/tilegemm_sim.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} PATTERN man EXCLUDE)

# The manual pages of the functions come from the headers.
find_program(TG_AWK NAMES mawk gawk awk)
if(TG_AWK)
    set(manual3 "${PROJECT_BINARY_DIR}/manual3")
    file(GLOB public_headers CONFIGURE_DEPENDS include/*.h)
    add_custom_command(OUTPUT "${manual3}/tilegemm.3"
        COMMAND ${CMAKE_COMMAND} -E make_directory "${manual3}"
        COMMAND "${TG_AWK}" -v "out=${manual3}" -v "version=${PROJECT_VERSION}"
                -f "${PROJECT_SOURCE_DIR}/cmake/manual3.awk" ${public_headers}
        DEPENDS ${public_headers} "${PROJECT_SOURCE_DIR}/cmake/manual3.awk"
        VERBATIM)
    add_custom_target(tilegemm_manual3 ALL DEPENDS "${manual3}/tilegemm.3")
    install(DIRECTORY "${manual3}/" DESTINATION ${CMAKE_INSTALL_MANDIR}/man3)
else()
    message(STATUS "manual pages of functions: left out, they need mawk")
endif()

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/tilegemm")
install(EXPORT tilegemmTargets NAMESPACE tilegemm:: DESTINATION ${package_dir})
configure_package_config_file(cmake/tilegemmConfig.cmake.in tilegemmConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(tilegemmConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/tilegemmConfig.cmake"
              "${PROJECT_BINARY_DIR}/tilegemmConfigVersion.cmake" DESTINATION ${package_dir})

# A program linked to libtilegemm.a must add these libraries. pkg-config --static prints them.
set(TG_PC_PRIVATE_LIBS "${CMAKE_THREAD_LIBS_INIT} -lm -ldl")
# The prefix is found from the file's own place, so that an installed tree can be moved.
file(RELATIVE_PATH TG_PC_PREFIX "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
string(REGEX REPLACE "/$" "" TG_PC_PREFIX "${TG_PC_PREFIX}")
file(RELATIVE_PATH TG_PC_LIBDIR "${CMAKE_INSTALL_PREFIX}" "${CMAKE_INSTALL_FULL_LIBDIR}")
file(RELATIVE_PATH TG_PC_INCLUDEDIR "${CMAKE_INSTALL_PREFIX}" "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
configure_file(cmake/tilegemm.pc.in tilegemm.pc @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/tilegemm.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
