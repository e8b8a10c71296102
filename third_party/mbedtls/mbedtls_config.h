/* Mbed TLS: AES and GCM, and the two hashes that keys of the methods of 2017 are made with. */
#ifndef SS_MBEDTLS_CONFIG_H
#define SS_MBEDTLS_CONFIG_H

#include <limits.h>

#define MBEDTLS_HAVE_ASM
#define MBEDTLS_AES_C
#define MBEDTLS_CIPHER_C
#define MBEDTLS_GCM_C
#define MBEDTLS_MD5_C
#define MBEDTLS_SHA1_C
#ifdef __x86_64__
#define MBEDTLS_AESNI_C
#endif

#include "mbedtls/check_config.h"

#endif
