// SPDX-License-Identifier: Apache-2.0
// Umbrella header: every kind of plugin. A plugin may include only the kind it is.
#ifndef GRADRACK_GRADRACK_H_
#define GRADRACK_GRADRACK_H_

#include "gradrack/backend.h"
#include "gradrack/capture.h"
#include "gradrack/data.h"
#include "gradrack/direction.h"
#include "gradrack/extensions.h"
#include "gradrack/fusion.h"
#include "gradrack/graph.h"
#include "gradrack/loss_scale.h"
#include "gradrack/lr_schedule.h"
#include "gradrack/metrics.h"
#include "gradrack/model.h"
#include "gradrack/model_file.h"
#include "gradrack/optimizer.h"
#include "gradrack/options.h"
#include "gradrack/philox.h"
#include "gradrack/plugin.h"
#include "gradrack/precision.h"
#include "gradrack/precision_choice.h"
#include "gradrack/precision_inputs.h"
#include "gradrack/preview.h"
#include "gradrack/scheduler.h"
#include "gradrack/status.h"
#include "gradrack/tensor.h"
#include "gradrack/timing.h"
#include "gradrack/update_rounding.h"

#endif  // GRADRACK_GRADRACK_H_
