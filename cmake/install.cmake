# SPDX-License-Identifier: MIT
# What `cmake --install` puts where, what a consumer finds, and Debian packages by `cpack`.
#
# Three components: `program` (the program, its manual and completion, the documentation and
# trained models), `library` (the shared library) and `development` (headers, the static library,
# pkg-config, CMake, examples). Where MPI was found there is `mpi`, the library that is loaded for
# it. One more, `python`, is what a wheel holds besides its modules.
include(CMakePackageConfigHelpers)

set(share ${CMAKE_INSTALL_DATADIR})
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tarn)

# ---- Program ------------------------------------------------------------------

install(TARGETS tarn_program RUNTIME COMPONENT program)
install(DIRECTORY ${pages}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT program)
install(FILES ${pages}/tarn.bash DESTINATION ${share}/bash-completion/completions RENAME tarn
        COMPONENT program)
install(FILES ${pages}/_tarn DESTINATION ${share}/zsh/site-functions COMPONENT program)
install(FILES ${pages}/tarn.fish DESTINATION ${share}/fish/vendor_completions.d
        COMPONENT program)

# ---- Documentation, models, examples ------------------------------------------

# Beside each other as in the sources, so that the links between them work.
install(FILES README.md DESTINATION ${share}/doc/tarn COMPONENT program)
install(DIRECTORY docs DESTINATION ${share}/doc/tarn COMPONENT program)
install(DIRECTORY models/ DESTINATION ${share}/tarn/models COMPONENT program
        FILES_MATCHING PATTERN *.safetensors PATTERN *.md)
install(DIRECTORY examples DESTINATION ${share}/doc/tarn COMPONENT development
        FILES_MATCHING PATTERN *.c)

# ---- Libraries ----------------------------------------------------------------

# Exported one by one: who links the shared library need not have what the static one needs.
set_target_properties(tarn_shared PROPERTIES EXPORT_NAME tarn)
install(TARGETS tarn_shared EXPORT tarn_shared
        LIBRARY COMPONENT library NAMELINK_COMPONENT development)
install(TARGETS tarn_static EXPORT tarn_static ARCHIVE COMPONENT development)
install(DIRECTORY include/tarn DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
        FILES_MATCHING PATTERN *.h)

if(TARGET tarn_mpi)
    install(TARGETS tarn_mpi LIBRARY COMPONENT mpi NAMELINK_SKIP)
endif()

# A wheel has no symbolic links: it has the library under its soname only.
install(FILES $<TARGET_FILE:tarn_shared> DESTINATION . RENAME $<TARGET_SONAME_FILE_NAME:tarn_shared>
        COMPONENT python EXCLUDE_FROM_ALL)
install(TARGETS tarn_program RUNTIME DESTINATION bin COMPONENT python EXCLUDE_FROM_ALL)

# ---- find_package(tarn) -------------------------------------------------------

foreach(kind shared static)
    install(EXPORT tarn_${kind} NAMESPACE tarn:: FILE tarn-${kind}.cmake
            DESTINATION ${package_dir} COMPONENT development)
endforeach()
configure_package_config_file(cmake/tarn-config.cmake.in ${PROJECT_BINARY_DIR}/tarn-config.cmake
                              INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may break its callers: see "Versions" in docs/decisions.md.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tarn-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tarn-config.cmake
              ${PROJECT_BINARY_DIR}/tarn-config-version.cmake
        DESTINATION ${package_dir} COMPONENT development)

# ---- pkg-config ---------------------------------------------------------------

# `pkg-config --libs tarn` links the shared library, `pkg-config --static --libs tarn` the static one.
# A linker takes libtarn.so wherever it finds both, and pkg-config prints a module's Libs before its
# Libs.private; so -ltarn stands in a second module, tarn-shared, whose flags come last. With
# --static everything has been found in libtarn.a by then, and the shared library is left out as
# not needed.
#
# What the static library needs stands in Libs.private as flags: as Requires.private, pkg-config
# would ask for the development files of all of them also where the shared library is linked.
set(private_flags "")
set(directories "")
foreach(module ${modules})
    string(REGEX REPLACE "=.*" "" name ${module})
    list(APPEND directories ${${name}_LIBRARY_DIRS})
    list(TRANSFORM ${name}_LIBRARIES PREPEND -l OUTPUT_VARIABLE flags)
    list(APPEND private_flags ${flags})
endforeach()
list(REMOVE_DUPLICATES directories)
list(REMOVE_ITEM directories ${CMAKE_C_IMPLICIT_LINK_DIRECTORIES})
list(TRANSFORM directories PREPEND -L)
list(JOIN directories " " directories)
list(TRANSFORM CMAKE_DL_LIBS PREPEND -l OUTPUT_VARIABLE dl_flags)
list(APPEND private_flags ${CMAKE_THREAD_LIBS_INIT} ${dl_flags} -lm)
list(JOIN private_flags " " private_flags)
string(STRIP "${directories} ${private_flags}" private_flags)

# Beside the prefix where the folders are, so that the tree may be moved. Not in /usr, whose
# include/ must not be named by another path than the compiler's.
foreach(kind LIBDIR INCLUDEDIR)
    if(IS_ABSOLUTE ${CMAKE_INSTALL_${kind}})
        set(pc_${kind} ${CMAKE_INSTALL_${kind}})
    else()
        set(pc_${kind} "\${prefix}/${CMAKE_INSTALL_${kind}}")
    endif()
endforeach()
if(IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR} OR CMAKE_INSTALL_PREFIX STREQUAL "/usr")
    set(pc_prefix ${CMAKE_INSTALL_PREFIX})
else()
    file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
    string(REGEX REPLACE "/$" "" up "${up}")
    set(pc_prefix "\${pcfiledir}/${up}")
endif()
foreach(module tarn tarn-shared)
    configure_file(cmake/${module}.pc.in ${PROJECT_BINARY_DIR}/${module}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${module}.pc
            DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endforeach()

# ---- Debian packages ----------------------------------------------------------

set(TARN_MAINTAINER "maintainer of tarn <tarn@localhost>" CACHE STRING
    "Name and address for Debian packages")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tarn)
set(CPACK_PACKAGE_VENDOR "the authors of tarn")
set(CPACK_PACKAGE_CONTACT "${TARN_MAINTAINER}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "transformers with linear attention, on CPUs")
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL program library development)
if(TARGET tarn_mpi)
    list(APPEND CPACK_COMPONENTS_ALL mpi)
endif()
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/debian.cmake)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ
    GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(so ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME tarn)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS gnuplot-nox)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libtarn${so})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
file(WRITE ${PROJECT_BINARY_DIR}/debian/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/debian/triggers)
set(CPACK_DEBIAN_MPI_PACKAGE_NAME tarn-mpi)
set(CPACK_DEBIAN_MPI_PACKAGE_SECTION science)
set(CPACK_DEBIAN_MPI_PACKAGE_RECOMMENDS "tarn (= ${PROJECT_VERSION}-1), openmpi-bin")
set(CPACK_DEBIAN_MPI_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/debian/triggers)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libtarn-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libtarn${so} (= ${PROJECT_VERSION}-1)")
foreach(described "PROGRAM;This is the program." "LIBRARY;This is the shared library."
        "MPI;This is the library that makes several processes, started by mpirun, train together."
        "DEVELOPMENT;These are the headers, the static library and files for pkg-config and CMake.")
    list(GET described 0 component)
    list(GET described 1 what)
    string(JOIN "\n" CPACK_COMPONENT_${component}_DESCRIPTION
           "Trains and runs transformers whose attention is linear in the sequence length,"
           "beside softmax and Reformer's, on ordinary CPUs." "." "${what}")
endforeach()

# The time is that of SOURCE_DATE_EPOCH where that is set.
set(ENV{LC_ALL} C)
string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE ${PROJECT_BINARY_DIR}/debian/changelog
     "tarn (${PROJECT_VERSION}-1) unstable; urgency=low\n\n"
     "  * Packaged by cpack; changelog.gz has what changed.\n\n"
     " -- ${TARN_MAINTAINER}  ${now}\n")

# Every package says under which licence it is and what changed; named as Debian wants it.
set(component_tarn program)
set(component_libtarn${so} library)
set(component_libtarn-dev development)
set(component_tarn-mpi mpi)
foreach(package tarn libtarn${so} libtarn-dev tarn-mpi)
    install(FILES LICENSE DESTINATION ${share}/doc/${package} RENAME copyright
            COMPONENT ${component_${package}} EXCLUDE_FROM_ALL)
    install(FILES CHANGELOG.md DESTINATION ${share}/doc/${package} RENAME changelog
            COMPONENT ${component_${package}} EXCLUDE_FROM_ALL)
    install(FILES ${PROJECT_BINARY_DIR}/debian/changelog DESTINATION ${share}/doc/${package}
            RENAME changelog.Debian COMPONENT ${component_${package}} EXCLUDE_FROM_ALL)
endforeach()
include(CPack)
