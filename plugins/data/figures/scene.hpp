// SPDX-License-Identifier: Apache-2.0
// Scene: what one image shows, drawn from its sequence of random numbers.
#pragma once

#include <vector>

#include "person.hpp"

/// What scenes are drawn by: options of the data source.
struct SceneRules {
  int64_t side;          ///< height and width of an image
  double least, most;    ///< upright height of a figure, as a share of `side`
  int64_t most_figures;  ///< an image shows 1 to this many
};

/// A figure and what a detector should say of it.
struct Figure {
  Person person;
  Box box;  ///< around it, clipped to the image
};

struct Scene {
  std::vector<Figure> figures;  ///< later ones lie over earlier ones
};

/// Draws a scene and paints it over `planes` [3, side, side], values in [0, 1].
Scene make_scene(const SceneRules& rules, Draws draws, std::span<float> planes);
