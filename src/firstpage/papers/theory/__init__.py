"""What the theorems share: probability spaces over orders, sensitivity, consistency."""
