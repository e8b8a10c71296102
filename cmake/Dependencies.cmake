# The libraries the suite stands on. Each becomes an imported target ss_dep_<name>.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

pkg_check_modules(ss_dep_uv REQUIRED IMPORTED_TARGET libuv>=1.42)
pkg_check_modules(ss_dep_sodium REQUIRED IMPORTED_TARGET libsodium>=1.0.18)
pkg_check_modules(ss_dep_cares REQUIRED IMPORTED_TARGET libcares>=1.18)
pkg_check_modules(ss_dep_pcre2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(ss_dep_jansson REQUIRED IMPORTED_TARGET jansson)

# Mbed TLS: Debian's 2.28 has no pkg-config file.
find_path(SS_MBEDTLS_INCLUDE mbedtls/gcm.h REQUIRED)
find_library(SS_MBEDCRYPTO_LIBRARY mbedcrypto REQUIRED)
foreach(header build_info.h version.h)
    if(NOT SS_MBEDTLS_VERSION AND EXISTS ${SS_MBEDTLS_INCLUDE}/mbedtls/${header})
        file(STRINGS ${SS_MBEDTLS_INCLUDE}/mbedtls/${header} line
             REGEX "define MBEDTLS_VERSION_STRING +\"")
        if(line MATCHES "\"([0-9.]+)\"")
            set(SS_MBEDTLS_VERSION ${CMAKE_MATCH_1})
        endif()
    endif()
endforeach()
if(NOT SS_MBEDTLS_VERSION VERSION_GREATER_EQUAL 2.28 OR SS_MBEDTLS_VERSION VERSION_GREATER_EQUAL 4)
    message(FATAL_ERROR
        "Mbed TLS '${SS_MBEDTLS_VERSION}' found; 2.28 or 3.x is needed (4 hides the block cipher).")
endif()
add_library(ss_dep_mbedcrypto INTERFACE)
target_include_directories(ss_dep_mbedcrypto SYSTEM INTERFACE ${SS_MBEDTLS_INCLUDE})
target_link_libraries(ss_dep_mbedcrypto INTERFACE ${SS_MBEDCRYPTO_LIBRARY})

# The accelerators are optional: AUTO takes them where they are.
function(ss_accelerator name wanted found)
    if(wanted STREQUAL "ON" AND NOT found)
        message(FATAL_ERROR "SS_WITH_${name}=ON, but the library was not found.")
    endif()
    if(found AND NOT wanted STREQUAL "OFF")
        set(SS_HAVE_${name} 1 PARENT_SCOPE)
    else()
        set(SS_HAVE_${name} 0 PARENT_SCOPE)
    endif()
endfunction()

find_path(SS_IPSECMB_INCLUDE intel-ipsec-mb.h)
find_library(SS_IPSECMB_LIBRARY IPSec_MB)
if(SS_IPSECMB_INCLUDE AND SS_IPSECMB_LIBRARY)
    set(ipsecmb_found TRUE)
endif()
ss_accelerator(IPSECMB "${SS_WITH_IPSECMB}" "${ipsecmb_found}")
add_library(ss_dep_ipsecmb INTERFACE)
if(SS_HAVE_IPSECMB)
    target_include_directories(ss_dep_ipsecmb SYSTEM INTERFACE ${SS_IPSECMB_INCLUDE})
    target_link_libraries(ss_dep_ipsecmb INTERFACE ${SS_IPSECMB_LIBRARY})
endif()

pkg_check_modules(libcrypto IMPORTED_TARGET libcrypto>=3)
ss_accelerator(OPENSSL "${SS_WITH_OPENSSL}" "${libcrypto_FOUND}")

message(STATUS "Mbed TLS ${SS_MBEDTLS_VERSION}, IPsec-MB ${SS_HAVE_IPSECMB}, OpenSSL ${SS_HAVE_OPENSSL}")
