// SPDX-License-Identifier: Apache-2.0
// Required slots: see kinds.hpp. `destroy` is required everywhere.
#include "core/plugin/kinds.hpp"

namespace gradrack {

#define GRADRACK_SLOT(table, member) \
  Slot { #member, offsetof(table, member) }

template <>
const KindInfo& kind_info<gr_model_t>() {
  static const auto* info =
      new KindInfo{"model",
                   sizeof(gr_model_t),
                   {GRADRACK_SLOT(gr_model_t, destroy), GRADRACK_SLOT(gr_model_t, build)}};
  return *info;
}

template <>
const KindInfo& kind_info<gr_data_t>() {
  static const auto* info =
      new KindInfo{"data",
                   sizeof(gr_data_t),
                   {GRADRACK_SLOT(gr_data_t, destroy), GRADRACK_SLOT(gr_data_t, info),
                    GRADRACK_SLOT(gr_data_t, rows), GRADRACK_SLOT(gr_data_t, batch)}};
  return *info;
}

template <>
const KindInfo& kind_info<gr_optimizer_t>() {
  static const auto* info = new KindInfo{
      "optimizer",
      sizeof(gr_optimizer_t),
      {GRADRACK_SLOT(gr_optimizer_t, destroy), GRADRACK_SLOT(gr_optimizer_t, declare_state),
       GRADRACK_SLOT(gr_optimizer_t, build_update)}};
  return *info;
}

template <>
const KindInfo& kind_info<gr_lr_schedule_t>() {
  static const auto* info = new KindInfo{
      "lr_schedule",
      sizeof(gr_lr_schedule_t),
      {GRADRACK_SLOT(gr_lr_schedule_t, destroy), GRADRACK_SLOT(gr_lr_schedule_t, value)}};
  return *info;
}

template <>
const KindInfo& kind_info<gr_precision_t>() {
  static const auto* info = new KindInfo{
      "precision",
      sizeof(gr_precision_t),
      {GRADRACK_SLOT(gr_precision_t, destroy), GRADRACK_SLOT(gr_precision_t, storage_dtype),
       GRADRACK_SLOT(gr_precision_t, node_dtype)}};
  return *info;
}

template <>
const KindInfo& kind_info<gr_scheduler_t>() {
  static const auto* info =
      new KindInfo{"scheduler",
                   sizeof(gr_scheduler_t),
                   {GRADRACK_SLOT(gr_scheduler_t, destroy), GRADRACK_SLOT(gr_scheduler_t, streams),
                    GRADRACK_SLOT(gr_scheduler_t, schedule)}};
  return *info;
}

template <>
const KindInfo& kind_info<gr_backend_t>() {
  static const auto* info = new KindInfo{
      "backend",
      sizeof(gr_backend_t),
      {GRADRACK_SLOT(gr_backend_t, destroy), GRADRACK_SLOT(gr_backend_t, device_info),
       GRADRACK_SLOT(gr_backend_t, allocate), GRADRACK_SLOT(gr_backend_t, release),
       GRADRACK_SLOT(gr_backend_t, copy), GRADRACK_SLOT(gr_backend_t, stream_create),
       GRADRACK_SLOT(gr_backend_t, stream_destroy), GRADRACK_SLOT(gr_backend_t, stream_synchronize),
       GRADRACK_SLOT(gr_backend_t, event_create), GRADRACK_SLOT(gr_backend_t, event_destroy),
       GRADRACK_SLOT(gr_backend_t, event_record), GRADRACK_SLOT(gr_backend_t, stream_wait),
       GRADRACK_SLOT(gr_backend_t, event_synchronize), GRADRACK_SLOT(gr_backend_t, claim),
       GRADRACK_SLOT(gr_backend_t, prepare), GRADRACK_SLOT(gr_backend_t, kernel_destroy),
       GRADRACK_SLOT(gr_backend_t, launch)}};
  return *info;
}

template <>
const KindInfo& kind_info<gr_metrics_t>() {
  static const auto* info =
      new KindInfo{"metrics",
                   sizeof(gr_metrics_t),
                   {GRADRACK_SLOT(gr_metrics_t, destroy), GRADRACK_SLOT(gr_metrics_t, open),
                    GRADRACK_SLOT(gr_metrics_t, record)}};
  return *info;
}

#undef GRADRACK_SLOT

}  // namespace gradrack
