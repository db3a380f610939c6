# SPDX-License-Identifier: MIT
# The warnings every target is built with, and the hardening of release builds.
set(NOTEGATE_WARNINGS
    -Wall -Wextra -Wpedantic -Wshadow -Wvla -Wstrict-prototypes -Wmissing-prototypes
    -Wold-style-definition -Wpointer-arith -Wcast-qual -Wcast-align -Wwrite-strings -Wformat=2
    -Wundef -Wimplicit-fallthrough -Wconversion -Wsign-conversion -Wdouble-promotion)
if(NOT NOTEGATE_SANITIZE STREQUAL "")
    # What the optimizer sees through the sanitizers' checks makes these two guess wrong.
    list(APPEND NOTEGATE_WARNINGS -Wno-format-truncation -Wno-maybe-uninitialized)
endif()
if(NOTEGATE_WERROR)
    list(APPEND NOTEGATE_WARNINGS -Werror)
endif()
set(NOTEGATE_DEFINITIONS NG_ABI=1 _GNU_SOURCE NOTEGATE_VERSION="${PROJECT_VERSION}")
add_compile_options(-fstack-protector-strong)
add_link_options(-Wl,-z,relro,-z,now)
if(CMAKE_BUILD_TYPE STREQUAL "Release" OR CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo")
    add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
endif()
