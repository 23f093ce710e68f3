# SPDX-License-Identifier: MIT
# Run by cpack before a package is made of what was installed: Debian wants manuals and
# changelogs compressed.
file(GLOB_RECURSE texts ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*)
list(FILTER texts INCLUDE REGEX "/man1/[^/]*[.]1$|/changelog([.]Debian)?$")
foreach(text ${texts})
    execute_process(COMMAND gzip -9nf ${text} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
