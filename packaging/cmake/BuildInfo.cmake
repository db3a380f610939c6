# SPDX-License-Identifier: MIT
# cmake -DSOURCE=... -DHEADER=... -P BuildInfo.cmake - writes the commit and date of the sources as a C header: what git says, else
# the file packaging/VERSION, which `git archive` fills in. An unchanged header is left alone, so that nothing is compiled again.
set(commit "")
set(date "")
find_program(GIT git)
if(GIT AND EXISTS ${SOURCE}/.git)
    set(git ${GIT} -c safe.directory=${SOURCE} -C ${SOURCE})
    execute_process(COMMAND ${git} describe --always --tags --dirty OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    execute_process(COMMAND ${git} log -1 --format=%cs OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(commit STREQUAL "" AND EXISTS ${SOURCE}/packaging/VERSION)
    file(STRINGS ${SOURCE}/packaging/VERSION line LIMIT_COUNT 1)
    if(line MATCHES "^([0-9a-z.-]+) ([0-9-]+)$")
        set(commit ${CMAKE_MATCH_1})
        set(date ${CMAKE_MATCH_2})
    endif()
endif()
file(CONFIGURE OUTPUT ${HEADER} CONTENT "#define BUILD_COMMIT \"${commit}\"\n#define BUILD_DATE \"${date}\"\n")
