"""Code shared by the theorems: probability spaces over orders, sensitivity, consistency."""
