/* libsodium: of which version this is; its own build writes such a header. */
#ifndef sodium_version_H
#define sodium_version_H

#define SODIUM_VERSION_STRING        "1.0.18"
#define SODIUM_LIBRARY_VERSION_MAJOR 10
#define SODIUM_LIBRARY_VERSION_MINOR 3

#endif
