"""Values and gradients of losses per query; most violated rankings of structural hinges."""
