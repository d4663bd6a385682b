/* SPDX-License-Identifier: Apache-2.0 */
/* The device part of the backend: what it is, memory, copies, streams, events. See device.c. */
#ifndef DEVICE_H_
#define DEVICE_H_

#include "gradrack/backend.h"

/* Sets every slot of `table` that is not about nodes. */
void fill_device(gr_backend_t* table);

#endif /* DEVICE_H_ */
