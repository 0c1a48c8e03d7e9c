"""Values and gradients of losses per query; the most violated rankings of structural hinges."""
