/* A program from its first statement to its exit code. */
#ifndef SS_SERVICE_SERVICE_H
#define SS_SERVICE_SERVICE_H

#include "config/config.h"

/* The first statement of main: reads the configuration, serves until a signal, cleans up. */
int ss_service_main(enum ss_program program, int argc, char **argv);

#endif
