/* A port of a manager's, for ports.c and port.c alone. */
#ifndef SS_SERVICE_PORTS_INTERNAL_H
#define SS_SERVICE_PORTS_INTERNAL_H

#include "service/generation.h"
#include "service/ports.h"

struct ss_port {
    struct ss_port_spec spec; /* as it was asked for, but for the users: these are the profile's */
    const struct ss_method *method;
    struct ss_keying keying;
    struct ss_sockets sockets;
    struct ss_plugin *plugin; /* held; NULL: none */
};

struct ss_ports {
    struct ss_engine *engine;
    struct ss_service *service; /* held */
    struct ss_plugins *plugins;
    struct ss_port **list; /* in the order in which they came */
    size_t count;
    uint16_t *places; /* by number: the place in the list + 1; 0: there is none */
};

/* A port that is nothing yet. NULL: out of memory. */
struct ss_port *ss_port_new(struct ss_engine *engine);

/* Closes what is open and ends the sessions, if the engine still runs. */
void ss_port_close(struct ss_port *port);
void ss_port_free(struct ss_port *port);

/* Makes of it what `spec` says, or leaves it as it was; the spec is empty after SS_OK. As
 * ss_ports_set. */
SS_CHECKED enum ss_status ss_port_become(struct ss_ports *ports, struct ss_port *port,
                                         struct ss_port_spec *spec, char *error);

/* Another user, or (`put` is NULL) one less; of a port that has a list of users. */
SS_CHECKED enum ss_status ss_port_change_user(const struct ss_ports *ports, struct ss_port *port,
                                              const struct ss_config_identity *put,
                                              const char *drop, char *error);

/* The same sockets, under what is the same for all ports now. */
SS_CHECKED enum ss_status ss_port_follow(const struct ss_ports *ports, struct ss_port *port);

#endif
